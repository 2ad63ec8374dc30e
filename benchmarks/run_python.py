"""What the fence costs: the same scripts by the bare interpreter, by `uv run`, by ours, by others.

The environments are there already in all of them, and the contestants take turns, so that a busy
moment of the machine hits all alike. Others run warm: a Jupyter kernel and smolagents' executor
keep their process and what it imported, ours starts a new process in a new fence each time. Then
the first run of ours, its environment made from uv's cache, and a gigabyte of output: seconds, and
memory of this program and its keepers together.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks import _peers, _table
from reread import sandbox
from reread.sandbox import Mechanism
from reread.scripts import Place, find_uv, run_script
from reread.values import Permissions, ScriptLimits, ScriptRun

HELP = "run_python beside the bare interpreter, uv run, a warm kernel, and another executor"
EXECUTOR = Path(__file__).with_name("_drivers") / "executor.py"
TRIVIAL = b"# /// script\n# dependencies = []\n# ///\nprint('done')\n"
PANDAS = b"""# /// script
# dependencies = ["pandas"]
# ///
import pandas
frame = pandas.DataFrame({"group": [n % 7 for n in range(20_000)], "value": range(20_000)})
print(frame.groupby("group")["value"].sum().to_dict())
"""
OFFICE = b"""# /// script
# dependencies = ["openpyxl"]
# ///
from openpyxl import Workbook
book = Workbook()
for row in range(500):
    book.active.append([row, f"item {row}", row * 1.5])
book.save("drafts/book.xlsx")
"""
SCRIPTS = {"trivial": TRIVIAL, "pandas": PANDAS, "workbook": OFFICE}
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
    parser.add_argument("--rounds", type=int, default=15, help="turns of each (default: 15)")
    parser.add_argument(
        "--quick", action="store_true", help="two turns of the trivial script, no others"
    )
    parser.add_argument("--json", action="store_true", help="print the numbers alone, as JSON")


def run(args: argparse.Namespace) -> int:
    """Measure, print, and return 0 if the promises about speed held, else 1."""
    scripts = ("trivial",) if args.quick else tuple(SCRIPTS)
    rounds = 2 if args.quick else args.rounds
    with tempfile.TemporaryDirectory(prefix="reread-bench-") as folder:
        place = Place(Path(folder).resolve() / "work", {}, Path(folder).resolve() / "logs")
        (place.work / "drafts").mkdir(parents=True)
        found = {name: asyncio.run(_measure(place, name, rounds, args.quick)) for name in scripts}
        flood = asyncio.run(_gigabyte(place, sandbox.available()))
    print(json.dumps([found, flood], indent=1) if args.json else _shown(found, flood))
    if args.quick:
        return 0
    best = statistics.median(found["trivial"][sandbox.available().NAME])
    held = (
        best <= 2.0 * statistics.median(found["trivial"]["interpreter"])
        and best < statistics.median(found["trivial"]["uv run"])
        and flood["gigabyte s"] < 1.0
        and flood["gigabyte MiB"] < 40.0
    )
    print("held" if held else "not held", file=sys.stderr)
    return 0 if held else 1


Found = dict[str, list[float]]
"""Contestant → seconds."""


def _shown(found: Mapping[str, Found], flood: Mapping[str, float]) -> str:
    head = ["ms", *(text for name in found for text in (name, "ratio"))]
    rows = []
    for contestant in found["trivial"]:
        row = [contestant]
        for times in found.values():
            values = [value * 1000 for value in times.get(contestant, ())]
            base = [value * 1000 for value in times["interpreter"]]
            row += [_table.spread(values), _table.ratio(values, base)] if values else ["", ""]
        rows.append(row)
    seconds, size = flood["gigabyte s"], flood["gigabyte MiB"]
    last = f"A gigabyte of output: {seconds:.2f} s, {size:.0f} MiB."
    return f"{_table.table(head, rows)}\n\n{last}"


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


async def _measure(place: Place, what: str, rounds: int, quick: bool) -> Found:
    data, mechanisms = SCRIPTS[what], _working()
    times: Found = {}
    for mechanism in mechanisms:  # what is made once is made before
        began = time.perf_counter()
        ran = await _ours(place, data, mechanism)
        if ran.failure:
            raise SystemExit(f"{what}: {ran.failure}\n{ran.stderr}")
        times.setdefault("ours, the first time", [time.perf_counter() - began])
    environment = ran.environment
    python = environment.python if environment else sys.executable
    script = str(place.work / "scripts/bench.py")
    commands = {
        "interpreter": [python, script],
        "uv run": [str(find_uv()), "run", "--no-project", "--no-config", "--script", script],
    }
    for command in commands.values():
        _plain(command, place.work)
    with contextlib.ExitStack() as stack:
        peers = {} if quick else dict(_warm(stack, data.decode(), place.work))
        for _ in range(rounds):
            for name, command in commands.items():
                began = time.perf_counter()
                _plain(command, place.work)
                times.setdefault(name, []).append(time.perf_counter() - began)
            for mechanism in mechanisms:
                began = time.perf_counter()
                await _ours(place, data, mechanism)
                times.setdefault(mechanism.NAME, []).append(time.perf_counter() - began)
            for name, ask in peers.items():
                times.setdefault(name, []).append(ask())
    return times


def _warm(
    stack: contextlib.ExitStack, code: str, work: Path
) -> Iterator[tuple[str, Callable[[], float]]]:
    """Yield executors of others that have run the code once."""
    for name, driven in (("jupyter", "jupyter"), ("smolagents executor", "smolagents")):
        try:
            python = _peers.python(name)
        except _peers.Unavailable as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        child = stack.enter_context(
            subprocess.Popen(
                [str(python), str(EXECUTOR), driven],
                cwd=work,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        )
        ask = functools.partial(_asked, child, code)
        ask()
        yield f"{name}, warm", ask


def _asked(child: subprocess.Popen[str], code: str) -> float:
    if child.stdin is None or child.stdout is None:
        raise SystemExit("the executor has no pipes")
    child.stdin.write(json.dumps({"code": code}) + "\n")
    child.stdin.flush()
    line = child.stdout.readline()
    if not line:
        raise SystemExit(f"{child.args!r} has ended: {child.wait()}")
    return float(json.loads(line)["seconds"])


def _plain(command: list[str], work: Path) -> None:
    subprocess.run(command, cwd=work, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=True)


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
