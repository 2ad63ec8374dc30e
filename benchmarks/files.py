"""What confinement costs: the digests of 1,000 files, and reading and writing one.

The bare contestants do the same by name with the standard library alone: they follow links, take
what they find, and for the write they skip nothing that keeps half a file from being seen (a
temporary file, synced, renamed). All take turns, so that a busy moment of the machine hits all.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from reread.files import ConfinedFolder

HELP = "time digests, reads and writes of confined files against bare ones"
FILES, FOLDERS, SIZE = 1000, 20, 4096
WARM_LIMIT = 50.0
"""Milliseconds that the digests of 1,000 files may take when none has changed."""

_SETTLED = 2.1
_Contestants = Mapping[str, Callable[[], object]]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--rounds", type=int, default=30, help="turns of each (default: 30)")
    parser.add_argument("--quick", action="store_true", help="five turns, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print the numbers alone, as JSON")


def run(args: argparse.Namespace) -> int:
    """Measure, print, and return 0 if the promise about speed held, else 1."""
    with tempfile.TemporaryDirectory(prefix="reread-bench-") as place:
        numbers = measure(Path(place), 5 if args.quick else args.rounds)
    if args.json:
        print(json.dumps(numbers, indent=1))
    else:
        for name, value in numbers.items():
            print(f"{name:32} {value:10.3f}")
    held = numbers["digests, nothing changed ms"] < WARM_LIMIT
    print("held" if held else "not held", file=sys.stderr)
    return 0 if held else 1


def measure(place: Path, rounds: int) -> dict[str, float]:
    """Return medians in milliseconds, and ratios to the bare contestant."""
    for number in range(FILES):
        inner = place / "tree" / f"{number % FOLDERS}"
        inner.mkdir(parents=True, exist_ok=True)
        (inner / f"{number}.bin").write_bytes(os.urandom(SIZE))
    time.sleep(_SETTLED)
    warm = ConfinedFolder(place / "tree")
    if bare_digests(place / "tree") != warm.digests():
        raise SystemExit("the contestants do not agree on the digests")
    trees: _Contestants = {
        "bare digests": lambda: bare_digests(place / "tree"),
        "digests, all read": lambda: ConfinedFolder(place / "tree").digests(),
        "digests, nothing changed": warm.digests,
        "walk": lambda: list(warm.walk()),
    }
    return turns(trees, rounds) | _single_files(place, rounds)


def bare_digests(tree: Path) -> dict[str, str]:
    """Hash every file below a folder by name."""
    found = {}
    for folder, _, names in os.walk(tree):
        for name in names:
            path = f"{folder}/{name}"
            with open(path, "rb") as stream:  # noqa: PTH123 as bare as can be
                found[os.path.relpath(path, tree)] = hashlib.sha256(stream.read()).hexdigest()
    return found


def bare_write(path: Path, data: bytes) -> None:
    """Replace a file by name, synced, in one step."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    Path(stream.name).replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def turns(contestants: _Contestants, rounds: int) -> dict[str, float]:
    """Let each have its turn, `rounds` times; the first of them is what the others are held to."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, action in contestants.items():
            start = time.perf_counter()
            action()
            times[name].append((time.perf_counter() - start) * 1000)
    medians = {name: statistics.median(values) for name, values in times.items()}
    base = next(iter(medians.values()))
    return {f"{name} ms": value for name, value in medians.items()} | {
        f"{name} ratio": value / base for name, value in medians.items()
    }


def _single_files(place: Path, rounds: int) -> dict[str, float]:
    folder, path, data = ConfinedFolder(place), place / "deep/er/a", os.urandom(SIZE)
    sha256 = folder.write("deep/er/a", data).sha256
    reads: _Contestants = {"bare read": path.read_bytes, "read": lambda: folder.read("deep/er/a")}
    writes: _Contestants = {
        "bare write": lambda: bare_write(path, data),
        "write": lambda: folder.write("deep/er/a", data),
        "write, compared": lambda: folder.write("deep/er/a", data, expect=sha256),
    }
    return turns(reads, rounds * 10) | turns(writes, rounds)


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=HELP)
    configure(flags)
    sys.exit(run(flags.parse_args()))
