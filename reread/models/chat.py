"""A live model: asks a service, bears with what it answers, and gives up with a name.

Chat Completions unless another dialect is handed in.

Proves: every request obeys the order that the API asks for; every failure ends as an answer, as a
bounded number of new tries, or as a Failure; no half of a stream is taken for a whole.
Does not prove: that the service counts its tokens rightly.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from agent_runtime import Failure, Message, Reply, Tool, Usage
from reread.models import _prices
from reread.models._context import shorten
from reread.models._dialect import Chat, Dialect, Heard
from reread.models._errors import LONGEST_WAIT, Trouble, from_body, from_response
from reread.models._profile import KNOWN, Profile, adjusted
from reread.models._replies import BROKEN, CUT_NUDGE, Raw, to_reply
from reread.models._settings import Settings
from reread.models._stream import BrokenEvent, Events
from reread.models._transport import AFTER_DONE, Answer, Service, Troubled
from reread.values import Code

Tell = Callable[[str, Mapping[str, Any]], None]
"""Told what goes on: `model.progress`, `model.again`, `model.adjusted`, each with its data."""

ADJUSTMENTS = 8
"""Changes of the request that one turn may need; each is made once for a host and model."""
BACKOFF = 0.5
PROGRESS_EVERY = 1.0
"""Seconds between two words about a stream that goes on."""
TOKENS_PER_BYTE = 0.3
"""Of a request, until the service has told what it counts; rather too many than too few."""
NEAR_WINDOW = 0.85
_CAPS = ("max_completion_tokens", "max_output_tokens", "max_tokens")


class ChatModel:
    """The model of one run. Runs of one event loop that ask the same service share connections."""

    def __init__(
        self,
        settings: Settings,
        *,
        dialect: Dialect | None = None,
        prices: Mapping[str, _prices.Price] | None = None,
        tell: Tell | None = None,
        backoff: float = BACKOFF,
    ) -> None:
        self.settings = settings
        self._dialect = dialect or Chat()
        self._tell = tell or _quiet
        self._backoff = backoff
        self._service = Service(settings)
        self._encoder = self._dialect.encoder()
        self._place = (settings.base_url, settings.model)
        self._price = _prices.find(
            _prices.load() if prices is None else prices, settings.model, local=settings.local
        )
        self._rate = TOKENS_PER_BYTE
        self._shortened_at = -1
        self._empty_streams = 0
        self._heads: dict[Any, bytes] = {}
        self._ids: set[str] = set()

    @property
    def profile(self) -> Profile:
        """What is known of this host and model."""
        return KNOWN.get(self._place, _UNKNOWN)

    @property
    def price(self) -> _prices.Price:
        """What its tokens cost, as far as that is known."""
        return self._price

    def expect(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Usage:
        """Estimate the next request: its input, and its output where a cap was asked for.

        Raises:
            Failure: context_too_long, where it would come near the window and can be shortened.
        """
        tokens = self._tokens(len(self._body(messages, tools)))
        window = self.profile.window or self._price.window
        near = window is not None and tokens + (self._cap or 0) > NEAR_WINDOW * window
        if near and self._shortened_at != len(messages) and shorten(messages) is not None:
            self._shortened_at = len(messages)
            raise _too_long(f"about {tokens} of the {window} tokens that fit are used")
        output = self._cap or 0
        return Usage(tokens, output, self._price.usd(tokens, output), estimated=True)

    async def reply(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
        """Ask, and ask again where that may help.

        Raises:
            Failure: model_failed, model_refused, model_output_cut, context_too_long.
        """
        wasted, tries, changes = Usage(), 0, 0
        while True:
            body = self._body(messages, tools)
            try:
                raw = await self._answer(body)
            except Troubled as troubled:
                trouble = troubled.trouble
            else:
                nudged = any(m.get("content") == CUT_NUDGE for m in messages[-1:])
                raw = replace(raw, usage=raw.usage + wasted)
                reply = to_reply(raw, tools, self._ids, nudged=nudged)
                self._ids.update(call.id for call in reply.calls)
                return reply
            if trouble.begun:
                wasted += self._estimated(len(body), trouble.begun)
            if trouble.action == "compact":
                self._learn(replace(self.profile, window=trouble.window or self.profile.window))
                raise _too_long(trouble.text)
            if changes < ADJUSTMENTS and self._adjust(trouble, tools):
                changes += 1
                continue
            if trouble.action != "retry" or tries >= self.settings.attempts:
                raise self._failure(trouble)
            tries += 1
            await self._wait(trouble, tries)

    async def aclose(self) -> None:
        """Release connections."""
        await self._service.aclose()

    # -- the request

    @property
    def _cap(self) -> int | None:
        caps = (self.settings.options.get(name) for name in _CAPS)
        return next((cap for cap in caps if isinstance(cap, int)), None)

    def _body(self, messages: Sequence[Message], tools: Sequence[Tool]) -> bytes:
        profile = self.profile
        items = self._encoder.encode(messages, profile)
        head = self._head(tools, profile)
        return b'%b,"%b":[%b]}' % (head, self._dialect.items.encode(), b",".join(items))

    def _head(self, tools: Sequence[Tool], profile: Profile) -> bytes:
        """Return the request up to its history, without the closing bracket."""
        key = (id(profile), *map(id, tools))
        if key not in self._heads:
            text = json.dumps(self._asked(tools, profile), ensure_ascii=False)
            self._heads = {key: text.encode("utf-8", "replace")[:-1]}
        return self._heads[key]

    def _asked(self, tools: Sequence[Tool], profile: Profile) -> dict[str, Any]:
        wanted = {"model": self.settings.model, **self.settings.options}
        stream = self.settings.stream and profile.stream
        return self._dialect.head(wanted, tools, profile, stream=stream)

    # -- the answer

    async def _answer(self, body: bytes) -> Raw:
        """Send one request and read its answer. Raises Troubled."""
        answer = await self._service.post(self._dialect.path, body)
        try:
            streamed = "event-stream" in answer.content_type
            heard = await (self._listen(answer) if streamed else self._read(answer))
        finally:
            await answer.aclose()
        if heard.error or heard.finish.lower() in BROKEN or heard.message is None:
            error = heard.error or {"message": f"the answer ended with '{heard.finish}'"}
            trouble = from_body(error, status=answer.status, key=self.settings.key)
            raise Troubled(replace(trouble, begun=_size(heard)))
        return Raw(heard.message, heard.finish, self._usage(heard, len(body)), self._cap)

    async def _listen(self, answer: Answer) -> Heard:
        """Read a stream to its end. Raises Troubled."""
        events, ear = Events(), self._dialect.ear()
        progress = _Progress(self._tell)
        try:
            async with aclosing(answer.chunks()) as chunks:
                async for chunk in chunks:
                    for event in events.feed(chunk):
                        kind, piece = ear.add(event)
                        if piece:
                            progress.add(kind, piece)
                    if events.done:
                        await _drain(chunks)
                        break
            for event in events.end():
                ear.add(event)
        except BrokenEvent as broken:
            raise Troubled(_broken_off(str(broken), _size(ear.heard()))) from None
        except Troubled as troubled:
            raise Troubled(replace(troubled.trouble, begun=_size(ear.heard()))) from None
        heard = ear.heard()
        if not events.seen:
            raise Troubled(replace(_broken_off("the stream was empty", 1), code="empty_stream"))
        self._empty_streams = 0
        if not (heard.finish or events.done or heard.error):
            raise Troubled(_broken_off("the stream ended before the answer did", _size(heard)))
        return heard

    async def _read(self, answer: Answer) -> Heard:
        """Read an answer that was not announced as a stream; some are one all the same."""
        async with aclosing(answer.chunks()) as chunks:
            body = b"".join([chunk async for chunk in chunks])
        try:
            if body.lstrip()[:5] == b"data:":
                return self._unannounced(body)
            value = json.loads(body)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            return self._dialect.plain(value)
        if value is None and body.lstrip()[:1] in (b"{", b"[", b"d"):
            raise Troubled(_broken_off("the answer is no whole JSON", len(body)))
        if not body.strip():
            raise Troubled(_broken_off("the answer was empty", 0))
        trouble = from_response(answer.status, answer.headers, body, key=self.settings.key)
        raise Troubled(replace(trouble, begun=len(body)))

    def _unannounced(self, body: bytes) -> Heard:
        events, ear = Events(), self._dialect.ear()
        for event in (*events.feed(body), *events.end()):
            ear.add(event)
        heard = ear.heard()
        if not (heard.finish or events.done or heard.error):
            raise Troubled(_broken_off("the stream ended before the answer did", _size(heard)))
        return heard

    # -- tokens

    def _usage(self, heard: Heard, sent: int) -> Usage:
        """Return what the service counted, or an estimate where it did not say."""
        said = heard.usage or {}
        read = _count(said, "prompt_tokens", "input_tokens")
        written = _count(said, "completion_tokens", "output_tokens")
        if not read:
            return self._estimated(sent, _size(heard))
        self._rate = read / sent
        details = said.get("prompt_tokens_details") or said.get("input_tokens_details")
        cached = _count(details if isinstance(details, dict) else {}, "cached_tokens")
        cached = cached or _count(said, "prompt_cache_hit_tokens")
        usd = self._price.usd(read, written or 0, cached or 0)
        return Usage(read, written or 0, usd, estimated=written is None)

    def _estimated(self, sent: int, received: int) -> Usage:
        read = self._tokens(sent)
        written = int(received * TOKENS_PER_BYTE) + 1
        return Usage(read, written, self._price.usd(read, written), estimated=True)

    def _tokens(self, size: int) -> int:
        return int(size * self._rate) + 1

    # -- trouble

    def _adjust(self, trouble: Trouble, tools: Sequence[Tool]) -> bool:
        """Change the request after a refusal, and remember it. False where nothing can change."""
        profile = self.profile
        changed: Profile | None = None
        if trouble.action == "adjust":
            changed = adjusted(profile, trouble, self._asked(tools, profile))
        elif trouble.code == "empty_stream":
            self._empty_streams += 1
            changed = replace(profile, stream=False) if self._empty_streams > 1 else None
        if changed is None or changed == profile:
            return False
        self._learn(changed)
        self._tell("model.adjusted", {"cause": trouble.text})
        return True

    def _learn(self, profile: Profile) -> None:
        KNOWN[self._place] = profile

    async def _wait(self, trouble: Trouble, tries: int) -> None:
        backoff = self._backoff * 2 ** (tries - 1) * random.uniform(0.75, 1.25)
        wait = backoff if trouble.wait is None else trouble.wait
        self._tell("model.again", {"cause": trouble.text, "try": tries, "seconds": round(wait, 1)})
        await asyncio.sleep(min(wait, LONGEST_WAIT))

    def _failure(self, trouble: Trouble) -> Failure:
        code = Code.model_refused if trouble.kind == "refused" else Code.model_failed
        status = f" with status {trouble.status}" if trouble.status else ""
        said = trouble.text or trouble.code or "nothing"
        return Failure(
            code,
            f"{self.settings.host} did not answer{status}: {said}",
            trouble.remedy or _REMEDIES.get(trouble.kind, _REMEDIES["server"]),
            {"kind": trouble.kind, "status": trouble.status},
        )


_UNKNOWN = Profile()
_REMEDIES = {
    "rate_limit": "The service limits how often it is asked. Wait, then run it again.",
    "network": "See that the service is up and that OPENAI_BASE_URL is right: "
    "python app.py doctor --live",
    "config": "The service does not take this request. Check OPENAI_MODEL: "
    "python app.py doctor --live",
    "server": "The service fails. Wait, then run it again, or look at its own log.",
}


def _quiet(kind: str, data: Mapping[str, Any]) -> None:
    """Tell nobody."""


class _Progress:
    """Tells of a stream now and then: each piece by itself would cost more than it says."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._pieces: list[str] = []
        self._next = time.monotonic() + PROGRESS_EVERY

    def add(self, kind: str, piece: str) -> None:
        self._pieces.append(piece)
        if (now := time.monotonic()) < self._next:
            return
        self._next = now + PROGRESS_EVERY
        text = "".join(self._pieces[-40:])[-80:]
        self._tell("model.progress", {"kind": kind, "tokens": len(self._pieces), "text": text})


def _count(usage: Mapping[str, Any], *names: str) -> int | None:
    values = (usage.get(name) for name in names)
    return next((int(v) for v in values if isinstance(v, int | float) and v >= 0), None)


def _size(heard: Heard) -> int:
    """Return the bytes of what a model wrote, for an estimate of its tokens; at least 1."""
    return len(json.dumps(heard.message, default=str)) if heard.message else 1


def _broken_off(text: str, size: int) -> Trouble:
    return Trouble("retry", "protocol", text=text, begun=size)


def _too_long(text: str) -> Failure:
    return Failure(
        Code.context_too_long,
        f"The history does not fit into the model's window: {text}",
        "Give the task in smaller parts, or name a model with a larger window.",
    )


async def _drain(chunks: Any) -> None:
    """Wait a moment for the end of a stream that said it is done, so its connection can be kept."""
    try:
        async with asyncio.timeout(AFTER_DONE):
            async for _ in chunks:
                pass
    except (TimeoutError, Troubled):
        return
