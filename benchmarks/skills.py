"""Scanning skill folders against a bare walk, and other loaders on files of every kind.

The bare walk goes through the same tree with `os.walk` and reads each file; it parses nothing. A
cold scan starts without a cache, a warm one finds nothing changed. All take turns. The cache of the
file system is filled for both, so what is compared is the work of the program.

With --peers, public loaders from PyPI read the case files of the tests, each in its own environment
in a cache folder. The manifest of the cases says what is expected; it was written here, so the
count says how far loaders differ from it and no more.

Shows: what a scan costs here, and what each loader took.
Does not show: which loader is right where the standard leaves it open.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from reread.scripts import find_uv
from reread.skills import Skills

HELP = "time scans of skill folders against a bare walk; compare loaders on odd files"
CASES = Path(__file__).resolve().parent.parent / "tests" / "data" / "skills"
COLD_LIMIT = 2.0
"""How often a cold scan may take the time of a bare walk."""

_SETTLED = 2.1
_SKILL = """---
name: {name}
description: Turns table number {number} into charts and a report. Use for thing {number}.
license: MIT
metadata:
  author: someone
  version: "1.{number}"
---

# Skill {number}

{body}"""

PEERS: Mapping[str, str] = {
    "skills-ref": """
from skills_ref.parser import read_properties
def load(root):
    return {p.name: attempt(lambda: read_properties(p).description) for p in folders(root)}
""",
    "agno": """
from agno.skills import LocalSkills, Skills
def load(root):
    found = attempt(lambda: Skills([LocalSkills(str(root))]).get_all_skills())
    if isinstance(found, list):
        return {Path(s.source_path).name: s.description for s in found}
    return {p.name: found for p in folders(root)}
""",
}
_DRIVER = """
import json, logging, sys
from pathlib import Path
logging.disable(logging.CRITICAL)
def folders(root):
    return sorted(p for p in Path(root).iterdir() if p.is_dir())
def attempt(read):
    try:
        return read()
    except Exception as error:
        return {"error": type(error).__name__}
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--rounds", type=int, default=7, help="turns of each (default: 7)")
    parser.add_argument("--quick", action="store_true", help="500 folders, two turns")
    parser.add_argument("--peers", action="store_true", help="also install and run other loaders")
    parser.add_argument("--json", action="store_true", help="print the numbers alone, as JSON")


def run(args: argparse.Namespace) -> int:
    """Measure, print, and return 0 if the promise about speed held, else 1."""
    sizes, rounds = ((500,), 2) if args.quick else ((1_000, 10_000), args.rounds)
    numbers: dict[str, Any] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="reread-bench-") as place:
            numbers[f"{size} folders"] = measure(Path(place) / "skills", size, rounds)
    if args.peers:
        numbers["loaders"] = {"reread": _verdict(_ours())} | {
            name: _verdict(_peer(name, code)) for name, code in PEERS.items()
        }
    print(json.dumps(numbers, indent=None if args.json else 1))
    held = all(
        value["cold / walk"] < COLD_LIMIT for key, value in numbers.items() if key != "loaders"
    )
    print("held" if held else "not held", file=sys.stderr)
    return 0 if held else 1


def measure(root: Path, folders: int, rounds: int) -> dict[str, float]:
    """Return medians in milliseconds, and medians of the ratios to the walk of the same turn."""
    for number in range(folders):
        name = f"skill-{number:05}"
        (root / name).mkdir(parents=True)
        body = "Follow the steps in order and say at the end what was done.\n" * 90
        text = _SKILL.format(name=name, number=number, body=body)
        (root / name / "SKILL.md").write_text(text, "utf-8")
    time.sleep(_SETTLED)
    turns: list[tuple[float, float, float]] = []
    for _ in range(rounds + 1):
        walk = _timed(lambda: bare_walk(root))
        skills = Skills(root)
        cold = _timed(skills.scan)
        warm = _timed(skills.scan)
        if len(skills.names) != folders:
            raise SystemExit("a scan did not find all skills")
        turns.append((walk, cold, warm))
    turns = turns[1:]  # the first one fills the caches of the system
    return {
        "walk ms": statistics.median(walk for walk, _, _ in turns),
        "cold ms": statistics.median(cold for _, cold, _ in turns),
        "warm ms": statistics.median(warm for _, _, warm in turns),
        "cold / walk": statistics.median(cold / walk for walk, cold, _ in turns),
        "warm / walk": statistics.median(warm / walk for walk, _, warm in turns),
    }


def bare_walk(root: Path) -> int:
    """Read every file below a folder by name and return the bytes."""
    size = 0
    for folder, _, names in os.walk(root):
        for name in names:
            with open(os.path.join(folder, name), "rb") as stream:  # noqa: PTH118, PTH123 as bare as can be
                size += len(stream.read())
    return size


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


Found = Mapping[str, Mapping[str, Any]]
"""Case → folder → the description that was read, or {"error": …}."""


def _cases() -> list[dict[str, Any]]:
    return list(json.loads((CASES / "manifest.json").read_text("utf-8"))["cases"])


def _ours() -> Found:
    found = {}
    for case in _cases():
        skills = Skills(CASES / case["id"] / "skills")
        skills.scan()
        found[case["id"]] = {skill.folder: skill.description for skill in skills.skills}
    return found


def _peer(name: str, code: str) -> Found:
    roots = {case["id"]: str(CASES / case["id"] / "skills") for case in _cases()}
    driver = f"{_DRIVER}{code}\nroots = json.loads(sys.argv[1])\n"
    driver += "print(json.dumps({key: load(root) for key, root in roots.items()}))"
    done = subprocess.run(
        [str(_python(name)), "-c", driver, json.dumps(roots)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _python(name: str) -> Path:
    """Return the interpreter of a loader's environment, made where it is missing."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "reread" / "benchmarks" / f"loader-{name}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        uv = str(find_uv())
        for command in (
            [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)],
            [uv, "pip", "install", "--quiet", "--python", str(python), name],
        ):
            subprocess.run(command, check=True, timeout=600)
    return python


def _verdict(found: Found) -> dict[str, int]:
    """Count what a loader made of the cases, by what the manifest expects."""
    counts = dict.fromkeys(
        ("cases", "as expected", "missing", "wrong description", "taken though broken"), 0
    )
    ours = _ours()
    for case in _cases():
        folder = Path(case["skill"]).parent.name
        got = found[case["id"]].get(folder)
        read = isinstance(got, str)
        counts["cases"] += 1
        if case["standard"]["result"] == "error":
            counts["taken though broken" if read else "as expected"] += 1
        elif not read:
            counts["missing"] += 1
        else:
            same = " ".join(str(got).split()) == " ".join(ours[case["id"]][folder].split())
            counts["as expected" if same else "wrong description"] += 1
    return counts
