"""A model service for measuring: Chat Completions on loopback that replays a fixed run, quickly.

It keeps no state: how many assistant messages a request carries says which turn it is. Where the
path says `t300-c0-l50` (300 turns with a call, the answer in 0 chunks, 50 ms of latency), turns 1
to 300 call `read_file`, and the next is the last. `GET /count` tells how many requests came.

    python benchmarks/_loop_stub.py --port 0          prints its address, then serves
    python benchmarks/_loop_stub.py --ceiling         how much it could serve at most
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time

CALL = json.dumps({"path": "inputs/note.txt"})
WORDS = "The answer stands in the file that was read before. "
_PLACE = re.compile(rb"/t(\d+)-c(\d+)-l(\d+)/")
_LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)
_ASSISTANT = re.compile(rb'"role":\s?"assistant"')


def _message(turn: int, turns: int) -> dict[str, object]:
    if turn >= turns:
        return {"role": "assistant", "content": WORDS}
    function = {"name": "read_file", "arguments": CALL}
    call = {"id": f"call_{turn}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _base(kind: str) -> dict[str, object]:
    return {"id": "cmpl-1", "object": kind, "created": 1790000000, "model": "stub"}


def _plain(turn: int, turns: int) -> bytes:
    message = _message(turn, turns)
    finish = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return json.dumps({**_base("chat.completion"), "choices": [choice], "usage": usage}).encode()


def _event(delta: object, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    made = {**_base("chat.completion.chunk"), "choices": [choice]}
    return b"data: " + json.dumps(made).encode() + b"\n\n"


def _streamed(turn: int, turns: int, chunks: int) -> bytes:
    message = _message(turn, turns)
    calls = message.pop("tool_calls", None)
    events = [_event({"role": "assistant", "content": ""})]
    words = (WORDS * (chunks // 10 + 1)).split()
    events += [_event({"content": f"{word} "}) for word in words[:chunks]]
    if isinstance(calls, list):
        events.append(_event({"tool_calls": [{"index": 0, **calls[0]}]}))
    events.append(_event({}, "tool_calls" if calls else "stop"))
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    last = {**_base("chat.completion.chunk"), "choices": [], "usage": usage}
    return b"".join([*events, b"data: " + json.dumps(last).encode() + b"\n\n", b"data: [DONE]\n\n"])


class Stub(asyncio.Protocol):
    """One connection."""

    requests = 0
    cache: dict[tuple[int, int, int, bool], bytes] = {}  # noqa: RUF012 - shared on purpose

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep where to answer."""
        self._transport = transport
        self._data = bytearray()
        self._missing = 0

    def data_received(self, data: bytes) -> None:
        """Answer as soon as a request is whole."""
        self._data += data
        if len(self._data) < self._missing:
            return
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._data[:end])
        length = _LENGTH.search(head)
        self._missing = end + 4 + (int(length[1]) if length else 0)
        if len(self._data) < self._missing:
            return
        body = bytes(self._data[end + 4 : self._missing])
        del self._data[: self._missing]
        self._missing = 0
        self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        place = _PLACE.search(head.split(b"\r\n", 1)[0])
        if not place:
            self._send(json.dumps(Stub.requests).encode(), stream=False)
            return
        Stub.requests += 1
        turns, chunks, latency = map(int, place.groups())
        stream = re.search(rb'"stream":\s?true', body) is not None
        turn = len(_ASSISTANT.findall(body))
        key = (turn, turns, chunks, stream)
        if key not in Stub.cache:
            Stub.cache[key] = _streamed(turn, turns, chunks) if stream else _plain(turn, turns)
        answer = Stub.cache[key]
        if latency:
            loop = asyncio.get_running_loop()
            loop.call_later(latency / 1000, lambda: self._send(answer, stream=stream))
        else:
            self._send(answer, stream=stream)

    def _send(self, body: bytes, *, stream: bool) -> None:
        kind = b"text/event-stream" if stream else b"application/json"
        head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n"
        if isinstance(self._transport, asyncio.Transport) and not self._transport.is_closing():
            self._transport.write(head % (kind, len(body)) + body)


async def serve(port: int) -> None:
    """Serve until killed; the first line printed is the address."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Stub, "127.0.0.1", port, backlog=1024)
    host, at = server.sockets[0].getsockname()[:2]
    print(f"http://{host}:{at}", flush=True)
    await server.serve_forever()


async def ceiling(seconds: float = 2.0) -> float:
    """Return how many requests a second it answers to a client that does nothing but send."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Stub, "127.0.0.1", 0)
    at = server.sockets[0].getsockname()[1]
    body = json.dumps({"messages": [{"role": "user", "content": "x" * 2000}] * 4}).encode()
    head = b"POST /t0-c0-l0/v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", at)
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        writer.write(head % len(body) + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(answer)
        await reader.readexactly(int(length[1]) if length else 0)
        count += 1
    writer.close()
    server.close()
    return count / seconds


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ceiling", action="store_true")
    arguments = parser.parse_args()
    if arguments.ceiling:
        print(f"{asyncio.run(ceiling()):.0f} requests/s, client and stub in one process")
        return 0
    try:
        asyncio.run(serve(arguments.port))
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
