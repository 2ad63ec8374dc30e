"""What the loop costs beside the plain client's: CPU of a turn and of a chunk, runs at once, start.

Both sides do the same work against the same stub on loopback: ask, read a file, answer. Ours does
it with confined reads, with every turn and answer flushed into a record, and with the budget held.
Each number comes from a process of its own; the sides take turns (A B A B) and the median counts.

    python -m benchmarks.loop             all of it, about two minutes
    python -m benchmarks.loop --quick     fewer rounds
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HELP = "CPU of a turn and of a chunk, 200 runs at once, and start, beside the plain client"
ROOT = Path(__file__).resolve().parents[1]
TURNS = (10, 100, 300)
RUNS = 200
CHUNKS = 2000
LATENCY = 50
GOALS = {"turn@10": 0.5, "turn@300": 0.06, "growth": 1.7, "chunk": 0.25, "runs": 3.5, "start": 1.15}

Talk = Callable[[str], Awaitable[int]]
"""One conversation with the stub at this address; returns its requests."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--quick", action="store_true", help="two rounds of each instead of five")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    parser.add_argument(
        "--child", nargs=3, metavar=("SIDE", "WHAT", "STUB"), help=argparse.SUPPRESS
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure; 0 where every goal is reached."""
    if arguments.child:
        side, what, stub = arguments.child
        print(json.dumps(asyncio.run(_child(side, what, stub))))
        return 0
    rounds = 2 if arguments.quick else 5
    with _stub() as stub:
        numbers = _measure(stub, rounds)
    print(json.dumps(numbers, indent=2) if arguments.json else _shown(numbers))
    return 0 if all(goal["reached"] for goal in numbers["goals"].values()) else 1


@contextmanager
def _stub() -> Any:
    """Run the stub in a process of its own."""
    script = Path(__file__).with_name("_loop_stub.py")
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as made:
        try:
            if made.stdout is None:
                return
            yield made.stdout.readline().strip()
        finally:
            made.kill()


def _measure(stub: str, rounds: int) -> dict[str, Any]:
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(rounds):
        for what in (*(f"turn@{n}" for n in TURNS), "chunk", "runs"):
            for side in ("plain", "ours"):
                value = _in_child(side, what, stub)
                found.setdefault(what, {}).setdefault(side, []).append(value)
        for side in ("plain", "ours"):
            found.setdefault("start", {}).setdefault(side, []).append(_start(side, stub))
    medians = {
        what: {side: statistics.median(values) for side, values in sides.items()}
        for what, sides in found.items()
    }
    return {"medians": medians, "goals": _goals(medians), "rounds": rounds}


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
    units = {"chunk": "µs", "runs": "runs/s", "start": "s CPU"}
    lines = [f"{'':10} {'plain':>10} {'ours':>10}   unit"]
    for what, sides in numbers["medians"].items():
        unit = units.get(what, "ms CPU")
        lines.append(f"{what:10} {sides['plain']:10.3f} {sides['ours']:10.3f}   {unit}")
    lines.append("")
    for name, goal in numbers["goals"].items():
        sign = "≥" if name == "runs" else "≤"
        word = "reached" if goal["reached"] else "MISSED"
        lines.append(f"{name:10} {goal['ratio']:8.3f}x   goal {sign} {goal['goal']}x   {word}")
    return "\n".join(lines)


def _in_child(side: str, what: str, stub: str) -> float:
    command = [sys.executable, "-m", "benchmarks.loop", "--child", side, what, stub]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, env=_environ()
    )
    if done.returncode != 0:
        raise SystemExit(f"{side} {what}: {done.stderr[-2000:]}")
    return float(json.loads(done.stdout.strip().splitlines()[-1]))


def _environ() -> dict[str, str]:
    """Return an environment in which our modules are kept compiled, as the installed ones are."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def _start(side: str, stub: str) -> float:
    """Return the CPU seconds of a process until its first request has arrived: ours is the program.

    That is workspace, samples, skills, record, brief and tools before the first word to a model.
    """
    before = _count(stub)
    command = [sys.executable, "-m", "benchmarks.loop", "--child", side, "start", stub]
    environ = _environ()
    if side == "ours":
        command = [sys.executable, "app.py", "--live", "--quiet"]
        asked = {"API_KEY": "none", "MODEL": "stub", "BASE_URL": f"{stub}/t0-c0-l3000/v1"}
        environ.update({f"OPENAI_{name}": value for name, value in asked.items()})
    child = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30
        while _count(stub) == before and time.monotonic() < end:
            time.sleep(0.005)
        return _cpu(child.pid)
    finally:
        child.kill()
        child.wait()


def _count(stub: str) -> int:
    with urllib.request.urlopen(f"{stub}/count", timeout=10) as answer:
        return int(answer.read())


def _cpu(pid: int) -> float:
    """Return the CPU seconds of all threads of a process (Linux)."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


# -- in a child


async def _child(side: str, what: str, stub: str) -> float:
    with tempfile.TemporaryDirectory(prefix="reread-bench-") as folder:
        stream = what == "chunk"
        talk, close = (_plain if side == "plain" else _ours)(
            Path(folder), stream=stream, runs=RUNS + 20 if what == "runs" else 0
        )
        try:
            if what == "start":
                await talk(f"{stub}/t0-c0-l3000/v1")
                return 0.0
            await talk(f"{stub}/t1-c0-l0/v1")  # imports and the first connection
            if what.startswith("turn@"):
                return await _turn(talk, stub, int(what.partition("@")[2]))
            return await (_chunk(talk, stub) if stream else _runs(talk, stub))
        finally:
            await close()


async def _turn(talk: Talk, stub: str, turns: int) -> float:
    """Return milliseconds of CPU for a turn, in a conversation of so many."""
    gc.collect()
    before = time.process_time()
    requests = await talk(f"{stub}/t{turns}-c0-l0/v1")
    spent = time.process_time() - before
    if requests != turns + 1:
        raise SystemExit(f"{requests} requests instead of {turns + 1}")
    return spent * 1000 / turns


async def _chunk(talk: Talk, stub: str) -> float:
    """Return microseconds of CPU for a chunk of a stream."""
    spent = []
    for chunks in (0, CHUNKS):
        await talk(f"{stub}/t0-c{chunks}-l0/v1")
        gc.collect()
        before = time.process_time()
        for _ in range(3):
            await talk(f"{stub}/t0-c{chunks}-l0/v1")
        spent.append((time.process_time() - before) / 3)
    return (spent[1] - spent[0]) * 1e6 / CHUNKS


async def _runs(talk: Talk, stub: str) -> float:
    """Return conversations a second, with many at once and a service that takes its time."""
    place = f"{stub}/t5-c0-l{LATENCY}/v1"
    await asyncio.gather(*(talk(place) for _ in range(10)))
    before = time.monotonic()
    await asyncio.gather(*(talk(place) for _ in range(RUNS)))
    return RUNS / (time.monotonic() - before)


def _plain(
    folder: Path, *, stream: bool, runs: int = 0
) -> tuple[Talk, Callable[[], Awaitable[None]]]:
    """Return a loop over the client as its documentation shows it."""
    from openai import AsyncOpenAI

    note = folder / "note.txt"
    note.write_text(NOTE)
    clients: dict[str, AsyncOpenAI] = {}

    async def talk(place: str) -> int:
        client = clients.get(place)
        if client is None:
            client = clients[place] = AsyncOpenAI(api_key="none", base_url=place)
        messages: list[Any] = list(OPENING)
        requests = 0
        while True:
            requests += 1
            if stream:
                return await _listened(client, messages)
            answer = await client.chat.completions.create(
                model="stub", messages=messages, tools=TOOLS
            )
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return requests
            for call in message.tool_calls:
                if call.type != "function":
                    continue
                function: Any = getattr(call, "function", None)
                json.loads(function.arguments)
                result = {"ok": True, "content": note.read_text()}
                said = json.dumps(result)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": said})

    async def close() -> None:
        for client in clients.values():
            await client.close()

    return talk, close


async def _listened(client: Any, messages: list[Any]) -> int:
    pieces = []
    stream = await client.chat.completions.create(
        model="stub", messages=messages, tools=TOOLS, stream=True
    )
    async for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            pieces.append(chunk.choices[0].delta.content)
    return 1 if "".join(pieces) else 0


def _ours(
    folder: Path, *, stream: bool, runs: int = 0
) -> tuple[Talk, Callable[[], Awaitable[None]]]:
    """Return our loop: a record, confined reads, a budget."""
    from agent_runtime import Budget, Conversation, Limits, Tool, run_agent
    from reread.models import Settings, open_model, shorten
    from reread.rails.recorder import Recorder
    from reread.records import Record
    from reread.workspace import Work, Workspace

    workspace = Workspace(folder)
    (folder / "inputs" / "note.txt").write_text(NOTE)

    def open_run() -> tuple[Work, Record]:
        work = workspace.begin()
        return work, Record(work.run)

    # A run's folder is made before its first request; making all of them is not measured.
    opened = [open_run() for _ in range(runs)]

    async def talk(place: str) -> int:
        work, record = opened.pop() if opened else open_run()

        async def read(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
            found = work.locate(arguments["path"])
            return {"content": found.folder.read_text(found.relative, limit=1 << 16)}

        function = TOOLS[0]["function"]
        tool = Tool("read_file", function["description"], function["parameters"], read)
        model = open_model(Settings("none", "stub", place, stream=stream), tell=record.tell)
        budget = Budget(Limits(turns=None, tool_calls=None, tokens=10**9))
        conversation = Conversation([dict(message) for message in OPENING], budget)
        try:
            ended = await run_agent(
                model, conversation, [tool], rails=[Recorder(record)], shorten=shorten
            )
        finally:
            await model.aclose()
            record.close()
        if ended.status != "complete":
            raise SystemExit(str(ended))
        return budget.turns

    async def close() -> None:
        """Each conversation has closed its own."""

    return talk, close


NOTE = "Revenue of the month: 1,234.50 in 17 orders.\n" * 3
OPENING = (
    {"role": "system", "content": "You read files and report what stands in them. " * 20},
    {"role": "user", "content": "Read the note again and again, then say what it says."},
)
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "Read a UTF-8 text file.",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string", "description": "relative path"}},
                "required": ["path"],
                "additionalProperties": False,
            },
        },
    }
]


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=HELP)
    configure(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
