"""A model service for measuring: Chat Completions on loopback that replays a fixed run, quickly.

It keeps no state: how many assistant messages a request carries says which turn it is. Where the
path says `t300-c0-l50` (300 turns with a call, the answer in 0 chunks, 50 ms of latency), turns 1
to 300 call `read_file`, and the next is the last. `GET /count` tells how many requests came, and
`GET /set/t300-c0-l50/` makes that the meaning of paths that say `/now/`. Harnesses that end with a
call say so in the path: `/smolagents/`, `/shell/`.

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
_PLACE = re.compile(rb"(/set)?/t(\d+)-c(\d+)-l(\d+)/")
_LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)
_ASSISTANT = re.compile(rb'"role":\s?"assistant"')


ENDS = {
    b"/smolagents/": ("final_answer", {"answer": WORDS}),
    b"/shell/": ("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}),
}
SHELL = json.dumps({"command": "cat inputs/note.txt"})


def _message(turn: int, turns: int, speech: bytes) -> dict[str, object]:
    if turn >= turns and speech not in ENDS:
        return {"role": "assistant", "content": WORDS}
    function = {"name": "read_file", "arguments": CALL}
    if turn >= turns:
        name, arguments = ENDS[speech]
        function = {"name": name, "arguments": json.dumps(arguments)}
    elif speech == b"/shell/":
        function = {"name": "bash", "arguments": SHELL}
    call = {"id": f"call_{turn}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _base(kind: str) -> dict[str, object]:
    return {"id": "cmpl-1", "object": kind, "created": 1790000000, "model": "stub"}


def _plain(turn: int, turns: int, speech: bytes) -> bytes:
    message = _message(turn, turns, speech)
    finish = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return json.dumps({**_base("chat.completion"), "choices": [choice], "usage": usage}).encode()


def _event(delta: object, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    made = {**_base("chat.completion.chunk"), "choices": [choice]}
    return b"data: " + json.dumps(made).encode() + b"\n\n"


def _streamed(turn: int, turns: int, chunks: int, speech: bytes) -> bytes:
    message = _message(turn, turns, speech)
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
    now = (0, 0, 0)
    cache: dict[tuple[int, int, int, bool, bytes], bytes] = {}  # noqa: RUF012 - shared on purpose

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
        first = head.split(b"\r\n", 1)[0]
        place = _PLACE.search(first)
        named = Stub.now
        if place:
            named = (int(place[2]), int(place[3]), int(place[4]))
        if place and place[1]:
            Stub.now = named
        if not (place or b"/now/" in first) or (place and place[1]):
            self._send(json.dumps(Stub.requests).encode(), stream=False)
            return
        Stub.requests += 1
        turns, chunks, latency = named
        stream = re.search(rb'"stream":\s?true', body) is not None
        turn = len(_ASSISTANT.findall(body))
        speech = next((one for one in ENDS if one in first), b"")
        key = (turn, turns, chunks, stream, speech)
        if key not in Stub.cache:
            made = _streamed(turn, turns, chunks, speech) if stream else _plain(turn, turns, speech)
            Stub.cache[key] = made
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
