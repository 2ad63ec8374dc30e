"""Drives one peer in its environment: asks and answers are lines of JSON.

    python main.py NAME truth               one job a line in, one verdict a line out
    python main.py NAME turns STUB URL N…   CPU of a turn in conversations of so many
    python main.py NAME start STUB URL      one request that is kept waiting

The standard library alone; the peer is imported by its driver.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

SCRIPT_SECONDS = 20.0
Ask = Callable[[str], bool]


def tools_in(root: Path) -> list[Callable[..., str]]:
    """Return the two tools that every peer gets, as their users would write them."""

    def save_text(path: str, content: str) -> str:
        """Write a UTF-8 text file.

        Args:
            path: where, relative to the work folder
            content: the whole text
        """
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
        return json.dumps({"ok": True, "path": path})

    def run_python(code: str) -> str:
        """Run a Python script in the work folder.

        Args:
            code: the whole script
        """
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=root,
            capture_output=True,
            text=True,
            timeout=SCRIPT_SECONDS,
        )
        said = {"exit_code": done.returncode, "stdout": done.stdout, "stderr": done.stderr[-2000:]}
        return json.dumps(said)

    return [save_text, run_python]


def truth(build: Callable[..., Ask], said: TextIO) -> None:
    """Do the jobs of stdin; say for each whether the peer calls it finished, and how it ended."""
    for line in sys.stdin:
        job = json.loads(line)
        root = Path(job["root"])
        check = _careful(job) if job["checked"] else None
        answer: dict[str, Any] = {"id": job["id"]}
        try:
            answer["finished"] = build(job["url"], tools_in(root), check, root)(job["task"])
        except Exception as error:  # however a peer says no, it says no
            answer |= {"finished": False, "error": f"{type(error).__name__}: {error}"[:300]}
        said.write(json.dumps(answer) + "\n")
        said.flush()


def _careful(job: dict[str, Any]) -> Callable[[], str]:
    """Return a function that says what is wrong with the file now, or ''."""

    def check() -> str:
        done = subprocess.run(job["check"], capture_output=True, text=True, timeout=60)
        return "" if done.returncode == 0 else done.stdout.strip() or "the check failed"

    return check


def read_file(path: str) -> str:
    """Read a UTF-8 text file.

    Args:
        path: relative path
    """
    return json.dumps({"ok": True, "content": Path(path).read_text()})


def turns(build: Callable[..., Ask], said: TextIO, stub: str, url: str, counts: list[int]) -> None:
    """Say how many milliseconds of CPU a turn takes in conversations of so many."""
    note = Path("inputs/note.txt")
    note.parent.mkdir(exist_ok=True)
    note.write_text("Revenue of the month: 1,234.50 in 17 orders.\n" * 3)
    found: dict[str, float] = {}
    ask = build(url, [read_file], None, Path.cwd())
    _now(stub, "t1-c0-l0")
    ask("Read the note, then say what it says.")
    for count in counts:
        _now(stub, f"t{count}-c0-l0")
        gc.collect()
        requests, before = _get(f"{stub}/count"), time.process_time()
        ask("Read the note again and again, then say what it says.")
        spent = time.process_time() - before
        made = int(_get(f"{stub}/count")) - int(requests)
        if made != count + 1:
            raise SystemExit(f"{made} requests instead of {count + 1}")
        found[f"turn@{count}"] = spent * 1000 / count
    said.write(json.dumps(found) + "\n")


def start(build: Callable[..., Ask], stub: str, url: str) -> None:
    """Make one request and wait; the one who started this process measures it."""
    _now(stub, "t0-c0-l30000")
    build(url, [read_file], None, Path.cwd())("Say what the note says.")


def _now(stub: str, place: str) -> None:
    _get(f"{stub}/set/{place}/")


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return bytes(answer.read())


def main() -> None:
    """Run from the command line."""
    name, what, *rest = sys.argv[1:]
    said = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # a peer may print whatever it likes
    os.environ.setdefault("OPENAI_API_KEY", "none")
    build = importlib.import_module(f"with_{name.replace('-', '_')}").build
    if what == "truth":
        truth(build, said)
    elif what == "turns":
        turns(build, said, rest[0], rest[1], [int(count) for count in rest[2:]])
    else:
        start(build, *rest)


if __name__ == "__main__":
    main()
