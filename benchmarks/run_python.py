"""What the fence costs: one trivial script by the bare interpreter, by `uv run`, and by ours.

The environment is there already in all of them, and the contestants take turns, so that a busy
moment of the machine hits all alike. Then a gigabyte of output: seconds, and memory of this program
and its keepers together.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from reread import sandbox
from reread.sandbox import Mechanism
from reread.scripts import Place, find_uv, run_script
from reread.values import Permissions, ScriptLimits, ScriptRun

HELP = "time run_python against the bare interpreter and uv run"
TRIVIAL = b"# /// script\n# dependencies = []\n# ///\nprint('done')\n"
FLOOD = b"""# /// script
# dependencies = []
# ///
import os
line = b'x' * 99 + b'\\n'
block = line * 10240
for _ in range((1 << 30) // len(block) + 1):
    os.write(1, block)
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--rounds", type=int, default=40, help="turns of each (default: 40)")
    parser.add_argument("--json", action="store_true", help="print the numbers alone, as JSON")


def run(args: argparse.Namespace) -> int:
    """Measure, print, and return 0 if the promises about speed held, else 1."""
    with tempfile.TemporaryDirectory(prefix="reread-bench-") as folder:
        numbers = asyncio.run(_measure(Path(folder).resolve(), args.rounds))
    if args.json:
        print(json.dumps(numbers, indent=1, sort_keys=True))
    else:
        for name, value in numbers.items():
            print(f"{name:32} {value:10.3f}")
    best = sandbox.available().NAME
    held = (
        numbers[f"{best} ratio"] <= 2.0
        and numbers[f"{best} ms"] < numbers["uv run ms"]
        and numbers["gigabyte s"] < 1.0
        and numbers["gigabyte MiB"] < 40.0
    )
    print("held" if held else "not held", file=sys.stderr)
    return 0 if held else 1


def _working() -> list[Mechanism]:
    return [mechanism for mechanism in sandbox.MECHANISMS if not sandbox.fault(mechanism)]


async def _ours(place: Place, data: bytes, mechanism: Mechanism) -> ScriptRun:
    file = place.work / "scripts/bench.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return await run_script(
        data,
        name="bench.py",
        file=file,
        place=place,
        permissions=Permissions(),
        limits=ScriptLimits(output=2 << 30, file_size=4 << 30),
        shipped=True,
        emit=lambda event, facts: None,
        mechanism=mechanism,
    )


async def _measure(folder: Path, rounds: int) -> dict[str, float]:
    place = Place(folder / "work", {}, folder / "logs")
    mechanisms = _working()
    first = [await _ours(place, TRIVIAL, mechanism) for mechanism in mechanisms]
    environment = first[0].environment
    python = environment.python if environment else sys.executable
    script = str(place.work / "scripts/bench.py")
    times: dict[str, list[float]] = {}
    commands = {
        "interpreter": [python, script],
        "uv run": [str(find_uv()), "run", "--no-project", "--no-config", "--script", script],
    }
    for command in commands.values():
        _plain(command)
    for _ in range(rounds):
        for name, command in commands.items():
            started = time.perf_counter()
            _plain(command)
            times.setdefault(name, []).append(time.perf_counter() - started)
        for mechanism in mechanisms:
            started = time.perf_counter()
            await _ours(place, TRIVIAL, mechanism)
            times.setdefault(mechanism.NAME, []).append(time.perf_counter() - started)
    return _summary(times) | await _gigabyte(place, sandbox.available())


def _plain(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=True)


def _summary(times: dict[str, list[float]]) -> dict[str, float]:
    medians = {name: statistics.median(values) for name, values in times.items()}
    numbers = {f"{name} ms": value * 1000 for name, value in medians.items()}
    base = medians["interpreter"]
    return numbers | {f"{name} ratio": value / base for name, value in medians.items()}


async def _gigabyte(place: Place, mechanism: Mechanism) -> dict[str, float]:
    """Run the flood three times and take the best: the first one waits for pages of the cache.

    The script's own memory counts too, which makes the number an upper bound.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds: list[float] = []
    peak = 0
    for _ in range(3):
        started = time.perf_counter()
        ran = await _ours(place, FLOOD, mechanism)
        seconds.append(time.perf_counter() - started)
        peak = max(peak, ran.peak_memory)
        size = sum(log.stat().st_size for log in place.logs.iterdir())
        if ran.exit_code != 0 or size < 1 << 30:
            raise SystemExit(f"the flood did not pass: {ran.failure}\n{ran.stderr}")
        for log in place.logs.iterdir():
            log.unlink()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"gigabyte s": min(seconds), "gigabyte MiB": grown / 1024 + peak / (1 << 20)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=HELP)
    configure(parser)
    sys.exit(run(parser.parse_args()))
