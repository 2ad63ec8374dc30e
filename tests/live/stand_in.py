"""A stand-in for model services: answers on loopback with what a test hands it, keeps what came.

It speaks enough HTTP/1.1 to be wrong in every way that services are: any status, any header, any
bytes, a connection that is cut. It checks nothing itself; `rules.py` does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back.

    Attributes:
        cut_after: bytes of the body after which the connection is reset; `None` sends all of it.
        delay: seconds before the first byte.
        pieces: the body is sent in pieces of this many bytes; 0 sends it at once.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut_after: int | None = None
    delay: float = 0.0
    pieces: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that came."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    at: float


Answering = Callable[[Asked, int], Answer]


@dataclass(slots=True)
class StandIn:
    """A running stand-in: where it listens and what it was asked."""

    base_url: str
    asked: list[Asked]


@asynccontextmanager
async def stand_in(answering: Answering) -> AsyncIterator[StandIn]:
    """Listen on loopback; `answering` gets each request and its number, from 0."""
    asked: list[Asked] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _request(reader)) is not None:
                asked.append(request)
                if not await _send(writer, answering(request, len(asked) - 1)):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the other side has gone, which some tests want
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield StandIn(f"http://127.0.0.1:{port}/v1", asked)
    finally:
        server.close()


async def _request(reader: asyncio.StreamReader) -> Asked | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    first, *lines = head.decode("latin-1").rstrip().split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (li.partition(":") for li in lines)
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    now = asyncio.get_running_loop().time()
    return Asked(first.split()[1], headers, json.loads(body or b"{}"), now)


async def _send(writer: asyncio.StreamWriter, answer: Answer) -> bool:
    """Send an answer; False where the connection is over."""
    await asyncio.sleep(answer.delay)
    cut = answer.cut_after
    if cut == 0:
        writer.transport.abort()
        return False
    headers = {"content-length": str(len(answer.body)), **answer.headers}
    lines = [f"HTTP/1.1 {answer.status} Some", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
    writer.write("\r\n".join(lines).encode("latin-1"))
    body = answer.body if cut is None else answer.body[:cut]
    step = answer.pieces or len(body) or 1
    for at in range(0, len(body), step):
        writer.write(body[at : at + step])
        await writer.drain()
        await asyncio.sleep(0)
    await writer.drain()
    if cut is not None:
        await asyncio.sleep(0.02)
        writer.transport.abort()
        return False
    return True


def completion(
    content: str | None = None,
    calls: Sequence[tuple[str, str]] = (),
    *,
    finish: str | None = None,
    usage: Mapping[str, int] | None = None,
    **extra: Any,
) -> dict[str, Any]:
    """Return a chat completion that is as it should be."""
    message: dict[str, Any] = {"role": "assistant", "content": content, **extra}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{at}_{abs(hash(arguments)) % 100000}",
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for at, (name, arguments) in enumerate(calls)
        ]
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": finish or ("tool_calls" if calls else "stop"),
    }
    counted = usage or {"prompt_tokens": 30, "completion_tokens": 5, "total_tokens": 35}
    return {
        "id": "cmpl-1",
        "object": "chat.completion",
        "created": 1790000000,
        "model": "stand-in",
        "choices": [choice],
        "usage": dict(counted),
    }


def as_json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer that carries JSON."""
    made = {"content-type": "application/json", **(headers or {})}
    return Answer(status, made, json.dumps(value).encode())


def as_events(*events: Any, done: bool = True, pieces: int = 0) -> Answer:
    """Return an answer that carries a stream of events."""
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    body = "".join([*lines, "data: [DONE]\n\n"] if done else lines).encode()
    return Answer(200, {"content-type": "text/event-stream"}, body, pieces=pieces)


def chunk(delta: Any, finish: str | None = None, **extra: Any) -> dict[str, Any]:
    """Return one chunk of a streamed completion."""
    return {
        "id": "cmpl-1",
        "object": "chat.completion.chunk",
        "created": 1790000000,
        "model": "stand-in",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **extra,
    }
