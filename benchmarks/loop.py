"""What the loop costs beside the plain client's and beside other harnesses.

All do the same work against the same stub on loopback: ask, read a file, answer. Ours does it with
confined reads, with every turn and answer flushed into a record, and with the budget held. Each
number comes from a process of its own; the sides take turns (A B A B) and the median counts.

The start is that of the whole program: workspace, samples, skills, record and tools are made before
the first request. Memory is the share of the process and of all that it started (PSS), at the first
request; with many runs it is the peak of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import _loop_peers, _peers, _table
from benchmarks._loop_child import RUNS

HELP = "CPU of a turn and of a chunk, runs at once, start and memory, beside other harnesses"
ROOT = Path(__file__).resolve().parents[1]
STUB = Path(__file__).with_name("_loop_stub.py")
TURNS = (10, 100, 300)
PEER_ROUNDS = 2
GOALS = {
    "turn@10": 0.5,
    "turn@300": 0.06,
    "growth": 1.7,
    "chunk": 0.25,
    "runs": 3.5,
    "start": 1.15,
    "memory": 1.1,
    "memory@200": 1.3,
}
"""Number → our ratio to the plain client's: at least 3.5 for runs, at most this for all others."""
UNITS = {
    "chunk": "CPU µs of a chunk",
    "runs": "runs/s, 200 at once, 50 ms latency",
    "runs@50": "runs/s, 50 at once, 50 ms latency",
    "start": "CPU s to the first request",
    "memory": "MiB at the first request",
    "memory@200": "MiB with 200 runs",
    "growth": "turn@300 to turn@10, ours",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--quick", action="store_true", help="one round of each, shorter, and no other harness"
    )
    parser.add_argument("--peer", action="append", choices=_loop_peers.NAMES, help="only these")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Measure; 0 where every goal is reached."""
    peers = {} if arguments.quick else _loop_peers.there(arguments.peer or _loop_peers.NAMES)
    with _stub() as stub:
        numbers = _measure(stub, 1 if arguments.quick else 5, quick=arguments.quick, peers=peers)
    print(json.dumps(numbers, indent=2) if arguments.json else _shown(numbers))
    if arguments.quick:
        return 0
    return 0 if all(goal["reached"] for goal in numbers["goals"].values()) else 1


@contextmanager
def _stub() -> Any:
    """Run the stub in a process of its own."""
    with subprocess.Popen([sys.executable, str(STUB)], stdout=subprocess.PIPE, text=True) as made:
        try:
            if made.stdout is None:
                return
            yield made.stdout.readline().strip()
        finally:
            made.kill()


Found = dict[str, dict[str, list[float]]]
"""Number → side → what was measured of it."""


def _measure(stub: str, rounds: int, *, quick: bool, peers: Mapping[str, Path]) -> dict[str, Any]:
    found: Found = {}
    turns = TURNS[:1] if quick else TURNS

    def note(what: str, side: str, value: float) -> None:
        found.setdefault(what, {}).setdefault(side, []).append(value)

    for number in range(rounds):
        for what in (*(f"turn@{n}" for n in turns), "chunk", *RUNS):
            for side in ("plain", "ours"):
                value, peak = _in_child(side, what, stub)
                note(what, side, value)
                if what == "runs":
                    note("memory@200", side, peak)
        for side in ("plain", "ours", *peers):
            seconds, memory = _start(_start_command(side, stub, peers), stub)
            note("start", side, seconds)
            note("memory", side, memory)
        for name, python in peers.items() if number < PEER_ROUNDS else ():
            for what, value in _loop_peers.turns(name, python, stub, turns).items():
                note(what, name, value)
    medians = {
        what: {side: statistics.median(values) for side, values in sides.items()}
        for what, sides in found.items()
    }
    return {
        "medians": medians,
        "spread": found,
        "goals": {} if quick else _goals(medians),
        "ceiling": _ceiling(),
    }


def _ceiling() -> str:
    """Return what the stub itself can serve, so that nobody takes its limit for a harness's."""
    command = [sys.executable, str(STUB), "--ceiling"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def _goals(medians: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    ratios = {what: sides["ours"] / sides["plain"] for what, sides in medians.items()}
    ratios["growth"] = medians["turn@300"]["ours"] / medians["turn@10"]["ours"]
    return {
        name: {
            "ratio": round(ratios[name], 4),
            "goal": goal,
            "reached": ratios[name] >= goal if name == "runs" else ratios[name] <= goal,
        }
        for name, goal in GOALS.items()
    }


def _shown(numbers: Mapping[str, Any]) -> str:
    goals, spread, medians = numbers["goals"], numbers["spread"], numbers["medians"]
    rows = []
    for what in (*medians, "growth"):
        sides = spread.get(what, {})
        if what == "growth" and what not in goals:
            continue
        name = UNITS.get(what, f"CPU ms of a turn, {what.partition('@')[2]} turns")
        plain, ours = (_table.spread(sides[s], 2) if sides else "" for s in ("plain", "ours"))
        ratio = _table.ratio(sides["ours"], sides["plain"]) if sides else ""
        if what in goals:
            ratio = ratio or f"{goals[what]['ratio']:.2f}"
        rows.append((name, plain, ours, ratio, _goal(what, goals)))
    head = ("", f"plain openai {_peers.PEERS['openai'].version}", "reread", "ratio", "goal")
    text = _table.table(head, rows)
    others = [side for side in medians["start"] if side not in ("plain", "ours")]
    if others:
        text += f"\n\n{_beside(spread, others)}"
    return f"{text}\n\nThe stub alone: {numbers['ceiling']}."


def _goal(what: str, goals: Mapping[str, Any]) -> str:
    if what not in goals:
        return ""
    word = "" if goals[what]["reached"] else ", missed"
    return f"{'≥' if what == 'runs' else '≤'} {goals[what]['goal']}{word}"


def _beside(spread: Found, others: Sequence[str]) -> str:
    """Return the table of all harnesses."""
    columns = ("start", "memory", *(f"turn@{n}" for n in TURNS))
    head = ("harness", *(UNITS.get(c, f"CPU ms, {c.partition('@')[2]} turns") for c in columns))
    sides = {"ours": "reread", "plain": f"plain openai {_peers.PEERS['openai'].version}"}
    sides |= {name: f"{name} {_peers.PEERS[name].version}" for name in others}
    rows = [
        (shown, *(_table.spread(spread[column][side], 2) for column in columns))
        for side, shown in sides.items()
    ]
    return _table.table(head, rows)


def _in_child(side: str, what: str, stub: str) -> tuple[float, float]:
    """Return the number, and the peak memory of the process in MiB."""
    command = [sys.executable, "-m", "benchmarks._loop_child", side, what, stub]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, env=_environ()
    )
    if done.returncode != 0:
        raise SystemExit(f"{side} {what}: {done.stderr[-2000:]}")
    value, peak = json.loads(done.stdout.strip().splitlines()[-1])
    return float(value), float(peak)


def _environ() -> dict[str, str]:
    """Return an environment in which our modules are kept compiled, as the installed ones are."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def _start_command(side: str, stub: str, peers: Mapping[str, Path]) -> list[str]:
    if side == "ours":
        return [sys.executable, "app.py", "--live", "--quiet"]
    if side == "plain":
        return _loop_peers.start_command("openai", Path(sys.executable), stub)
    return _loop_peers.start_command(side, peers[side], stub)


def _start(command: list[str], stub: str) -> tuple[float, float]:
    """Return CPU seconds and MiB of a process and what it started, once its first request is there.

    For ours that is workspace, samples, skills, record and tools before the first word to a model.
    """
    before = _count(stub)
    asked = {"API_KEY": "none", "MODEL": "stub", "BASE_URL": f"{stub}/t0-c0-l3000/v1"}
    environ = _environ() | {f"OPENAI_{name}": value for name, value in asked.items()}
    child = subprocess.Popen(
        command, cwd=ROOT, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + 60
        while _count(stub) == before and time.monotonic() < end:
            time.sleep(0.005)
        return _spent(child.pid)
    finally:
        child.kill()
        child.wait()


def _count(stub: str) -> int:
    with urllib.request.urlopen(f"{stub}/count", timeout=10) as answer:
        return int(answer.read())


def _spent(pid: int) -> tuple[float, float]:
    """Return the CPU seconds and the MiB of a process and of all that it started (Linux)."""
    seconds = memory = 0.0
    for one in _loop_peers.tree(pid):
        place = Path(f"/proc/{one}")
        tasks = [int((task / "schedstat").read_text().split()[0]) for task in place.glob("task/*")]
        seconds += sum(tasks) / 1e9
        lines = (place / "smaps_rollup").read_text().splitlines()
        memory += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    return seconds, memory


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=HELP)
    configure(flags)
    sys.exit(run(flags.parse_args()))
