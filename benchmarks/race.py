"""A folder is exchanged for a link to the outside, as fast as can be, while file tools use it.

Each contestant reads a file below the folder and writes new ones there. It has escaped when it
returns bytes of the outside, or when a file appears outside. Peers come from PyPI, each in its own
environment in a cache folder, and only where they were asked for.

Shows: how long each held, on this machine, at this moment.
Does not show: that one which held cannot be made to escape; only how it is built can.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reread.scripts import find_uv

HELP = "race file tools against a folder that is exchanged for a link"
ROOT = Path(__file__).resolve().parent.parent
AT_CWD, EXCHANGE = -100, 2


@dataclass(frozen=True, slots=True)
class Contestant:
    """File tools to race.

    Attributes:
        requirement: what to install for it; '' for ours.
        code: defines `read(path) -> text` and `write(path, text)` on the folder `root`.
    """

    name: str
    requirement: str
    code: str


@dataclass(frozen=True, slots=True)
class Result:
    """How a race ended.

    Attributes:
        turns: reads, and as many writes, that were tried.
        swaps: how often the folder was exchanged meanwhile.
        escaped: `read` or `write` → seconds to the first escape.
    """

    turns: int
    swaps: int
    escaped: Mapping[str, float]


OURS = Contestant(
    "reread",
    "",
    """
from reread.files import ConfinedFolder
folder = ConfinedFolder(root)
read = folder.read_text
write = lambda path, text: folder.write(path, text.encode())
""",
)
PEERS = (
    Contestant(
        "deepagents FilesystemBackend",
        "deepagents==0.7.32",
        """
from deepagents.backends.filesystem import FilesystemBackend
backend = FilesystemBackend(root_dir=root, virtual_mode=True)
read = lambda path: str(backend.read("/" + path))
write = lambda path, text: backend.write("/" + path, text)
""",
    ),
    Contestant(
        "agno FileTools",
        "agno==3.1.10",
        """
from agno.utils.log import logger
logger.disabled = True
from agno.tools.file import FileTools
tools = FileTools(base_dir=root)
read = tools.read_file
write = lambda path, text: tools.save_file(text, path)
""",
    ),
)
DRIVER = """
import json, sys, time
from pathlib import Path

root, outside, seconds = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
exec(sys.argv[4])
start, turns, seen = time.monotonic(), 0, {}
kept = {path.name for path in outside.iterdir()}
while time.monotonic() - start < seconds and len(seen) < 2:
    turns += 1
    for name, action in (
        ("read", lambda: read("inside/a")),
        ("write", lambda: write(f"inside/new{turns}", "mine")),
    ):
        try:
            result = action()
        except Exception:
            result = ""
        escaped = "SECRET" in str(result) or (outside / f"new{turns}").exists()
        if escaped and name not in seen:
            seen[name] = time.monotonic() - start
print(json.dumps({"turns": turns, "escaped": seen}))
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--seconds", type=float, default=10.0, help="of each race (default: 10)")
    parser.add_argument("--quick", action="store_true", help="one second, to see that it runs")
    parser.add_argument(
        "--peers", action="store_true", help="race others too; downloads them from PyPI once"
    )
    parser.add_argument(
        "--cache", type=Path, default=None, help="keep their environments here (default: ~/.cache)"
    )


def run(args: argparse.Namespace) -> int:
    """Race, print, and return 0 if ours never escaped, else 1."""
    held = False
    for contestant in (OURS, *(PEERS if args.peers else ())):
        python = _python(contestant, args.cache or _cache())
        result = race(contestant, python, 1.0 if args.quick else args.seconds)
        print(f"{contestant.name} {contestant.requirement.partition('==')[2]}".rstrip())
        for name in ("read", "write"):
            seconds = result.escaped.get(name)
            print(f"  {name:6} {'held' if seconds is None else f'escaped after {seconds:.4f} s'}")
        print(f"  {result.turns} turns, {result.swaps} exchanges")
        if contestant is OURS:
            held = not result.escaped and result.swaps > 0
    return 0 if held else 1


def race(contestant: Contestant, python: Path, seconds: float) -> Result:
    """Run one contestant in its own process until it escaped both ways or the time is over."""
    with tempfile.TemporaryDirectory(prefix="reread-race-") as folder:
        root, outside = Path(folder) / "root", Path(folder) / "outside"
        for path, text in ((root / "inside/a", "mine"), (outside / "a", "SECRET")):
            path.parent.mkdir(parents=True)
            path.write_text(text)
        (root / "link").symlink_to(outside)
        arguments = (str(root), str(outside), str(seconds), contestant.code)
        with swapping(root / "inside", root / "link") as swaps:
            done = subprocess.run(
                [python, "-c", DRIVER, *arguments],
                capture_output=True,
                text=True,
                cwd=ROOT if contestant is OURS else folder,
                timeout=seconds + 120,
            )
            count = swaps.value
    if done.returncode:
        raise SystemExit(f"{contestant.name} could not run: {done.stderr.strip()[-600:]}")
    return Result(swaps=count, **json.loads(done.stdout))


@contextmanager
def swapping(one: Path, other: Path) -> Iterator[ctypes.c_long]:
    """Exchange two names as fast as one process can, and count."""
    fork = multiprocessing.get_context("fork")
    count: ctypes.c_long = fork.RawValue(ctypes.c_long, 0)
    child = fork.Process(target=_swap, args=(os.fsencode(one), os.fsencode(other), count))
    child.start()
    try:
        yield count
    finally:
        child.kill()
        child.join()


def _swap(one: bytes, other: bytes, count: ctypes.c_long) -> None:
    call = ctypes.CDLL(None, use_errno=True).renameat2
    while True:
        if call(AT_CWD, one, AT_CWD, other, EXCHANGE) == 0:
            count.value += 1


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reread" / "peers"


def _python(contestant: Contestant, cache: Path) -> Path:
    """Return the interpreter of its environment, made on first use."""
    if not contestant.requirement:
        return Path(sys.executable)
    folder = cache / contestant.requirement
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        uv = str(find_uv())
        for command in (
            [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)],
            [uv, "pip", "install", "--quiet", "--python", str(python), contestant.requirement],
        ):
            subprocess.run(command, check=True, timeout=600)
        (folder / "complete").touch()
    return python


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=HELP)
    configure(flags)
    sys.exit(run(flags.parse_args()))
