"""One side of the loop benchmark in a process of its own: SIDE WHAT STUB → [number, peak MiB]."""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

RUNS = {"runs": 200, "runs@50": 50}
CHUNKS = 2000
LATENCY = 50

Talk = Callable[[str], Awaitable[int]]
"""One conversation with the stub at this address; returns its requests."""


async def _child(side: str, what: str, stub: str) -> float:
    with tempfile.TemporaryDirectory(prefix="reread-bench-") as folder:
        stream = what == "chunk"
        talk, close = (_plain if side == "plain" else _ours)(
            Path(folder), stream=stream, runs=RUNS.get(what, -20) + 20
        )
        try:
            await talk(f"{stub}/t1-c0-l0/v1")  # imports and the first connection
            if what.startswith("turn@"):
                return await _turn(talk, stub, int(what.partition("@")[2]))
            return await (_chunk(talk, stub) if stream else _runs(talk, stub, RUNS[what]))
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


async def _runs(talk: Talk, stub: str, runs: int) -> float:
    """Return conversations a second, with many at once and a service that takes its time."""
    place = f"{stub}/t5-c0-l{LATENCY}/v1"
    await asyncio.gather(*(talk(place) for _ in range(10)))
    before = time.monotonic()
    await asyncio.gather(*(talk(place) for _ in range(runs)))
    return runs / (time.monotonic() - before)


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


def main() -> None:
    """Run from the command line."""
    value = asyncio.run(_child(*sys.argv[1:4]))
    print(json.dumps((value, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)))


if __name__ == "__main__":
    main()
