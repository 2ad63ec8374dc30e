"""A model service on loopback for whole batches: it counts what it is asked, in a thread.

Each task names itself in its text as `item=NAME`. Every answer carries a serial number, so that a
turn that was asked twice shows in the records.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.live.stand_in import Answer, Asked, completion, stand_in

TURNS = 4
SERIAL = re.compile(r"serial=(\d+)")


@dataclass(slots=True)
class Service:
    """A running service.

    Attributes:
        asked: (item, turn) → how often it was asked.
        order: the item of each request, as they came.
        times: when each request came, in seconds of the loop's clock.
        down: answer 503 to everything.
    """

    base_url: str = ""
    delay: float = 0.05
    down: bool = False
    asked: Counter[tuple[str, int]] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    serials: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def environment(self) -> dict[str, str]:
        """What makes the program ask this service."""
        return {
            "OPENAI_BASE_URL": self.base_url,
            "OPENAI_API_KEY": "none",
            "OPENAI_MODEL": "stand-in",
        }

    def answer(self, asked: Asked, _: int) -> Answer:
        """Play the turns of an item: a note, a draft, the file, the last word."""
        if self.down:
            headers = {"content-type": "application/json", "retry-after": "0"}
            return Answer(503, headers, b'{"error": {"message": "down for a while"}}')
        messages = asked.body["messages"]
        name = _item(messages)
        turn = sum(message["role"] == "assistant" for message in messages) + 1
        self.asked[name, turn] += 1
        self.times.append(asked.at)
        self.order.append(name)
        body = completion(f"serial={next(self.serials)}", _calls(name, turn))
        return Answer(
            headers={"content-type": "application/json"},
            body=json.dumps(body).encode(),
            delay=self.delay,
        )


def _item(messages: list[dict[str, Any]]) -> str:
    for message in messages:
        if message["role"] == "user" and (found := re.search(r"item=(\S+)", message["content"])):
            return found[1]
    raise AssertionError("a request without the task")


def _calls(name: str, turn: int) -> list[tuple[str, str]]:
    if turn >= TURNS:
        return []
    path = {1: "drafts/note.md", 2: "drafts/note.md"}.get(turn, "outputs/result.json")
    note = f"# Note {turn}\n\nWhat {name} has found in its turn {turn}.\n"
    value = {"item": name, "turns": turn, "values": [3, 5, 8, 13]}
    content = json.dumps(value, indent=1) if path.endswith("json") else note
    return [("write_file", json.dumps({"path": path, "content": content}))]


@contextmanager
def serving(*, delay: float = 0.05) -> Iterator[Service]:
    """Run a service in a thread."""
    service = Service(delay=delay)
    ready = threading.Event()
    stop: list[Callable[[], object]] = []

    async def serve() -> None:
        loop, ending = asyncio.get_running_loop(), asyncio.Event()
        stop.append(lambda: loop.call_soon_threadsafe(ending.set))
        async with stand_in(service.answer) as running:
            service.base_url = running.base_url
            ready.set()
            await ending.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield service
    finally:
        stop[0]()
        thread.join(10)
