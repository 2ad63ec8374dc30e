"""The history as one host takes it, encoded once.

Proves: what is sent obeys the order that Chat Completions asks for: each call is answered exactly
once, right after it; no answer is without a call; no assistant message is empty; all is UTF-8.
What was encoded for an earlier request is used again, so a request costs what is new in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agent_runtime import Message
from reread.models._arguments import clean
from reread.models._profile import Profile
from reread.models._stream import content_text

NOT_ANSWERED = '{"ok": false, "code": "interrupted"}'
_MESSAGE_FIELDS = frozenset({"role", "content", "name", "tool_calls", "tool_call_id"})
_CALL_FIELDS = frozenset({"id", "type", "function"})


class Wire:
    """Encodes a growing history and keeps what it has encoded."""

    def __init__(self, say: Callable[[Message], Sequence[Mapping[str, Any]]] | None = None) -> None:
        self._say = say or _as_it_is
        self._profile = Profile()
        self._source: list[tuple[Message, Message]] = []
        """Each message with a shallow copy: the one that is changed in place is encoded anew."""
        self._blocks: list[tuple[int, list[bytes]]] = []
        """(messages up to the end of the block, its encoded messages)."""

    def encode(self, messages: Sequence[Message], profile: Profile) -> list[bytes]:
        """Return the messages as JSON, in the order in which they are sent."""
        if profile != self._profile:
            self._source, self._blocks, self._profile = [], [], profile
        if profile.merge or profile.fold_users or profile.no_system:
            blocks = (_arranged(block, profile) for block in _split(messages))
            flat = [message for block in blocks for message in block]
            return self._encoded(_joined(flat, profile))
        self._forget_after(self._same(messages))
        start = self._blocks[-1][0] if self._blocks else 0
        for block in _split(messages[start:]):
            start += len(block)
            self._blocks.append((start, self._encoded(_arranged(block, profile))))
        self._source += [(m, dict(m)) for m in messages[len(self._source) :]]
        return [chunk for _, chunks in self._blocks for chunk in chunks]

    def _encoded(self, messages: Iterable[Message]) -> list[bytes]:
        return [encoded(item) for message in messages for item in self._say(message)]

    def _same(self, messages: Sequence[Message]) -> int:
        """Count the messages at the front that are as they were."""
        count = 0
        for message, (known, copy) in zip(messages, self._source, strict=False):
            if message is not known or message != copy:
                break
            count += 1
        return count

    def _forget_after(self, count: int) -> None:
        """Drop what stands behind, and the last block: answers may have joined it."""
        while self._blocks and self._blocks[-1][0] >= count:
            self._blocks.pop()
        del self._source[self._blocks[-1][0] if self._blocks else 0 :]


def _as_it_is(message: Message) -> Sequence[Mapping[str, Any]]:
    return (message,)


def encoded(message: Mapping[str, Any]) -> bytes:
    """Return a message as JSON in UTF-8; lone surrogates are replaced."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return clean(text).encode()


def _split(messages: Iterable[Message]) -> Iterable[list[Message]]:
    """Yield blocks: a message and the tools' answers behind it."""
    block: list[Message] = []
    for message in messages:
        if block and message.get("role") != "tool":
            yield block
            block = []
        block.append(message)
    if block:
        yield block


def _arranged(block: Sequence[Message], profile: Profile) -> list[Message]:
    leader = block[0]
    if leader.get("role") == "developer":
        leader = {**leader, "role": "system"}
    if leader.get("role") != "assistant":
        # Answers that stand behind no call are answers to nobody.
        return [] if leader.get("role") == "tool" else [_images(leader, profile)]
    calls = leader.get("tool_calls")
    if not calls:
        empty = not content_text(leader.get("content")).strip()
        return [] if empty else [_assistant(leader, profile)]
    answers = {message.get("tool_call_id"): message for message in reversed(block[1:])}
    made = [_assistant(leader, profile)]
    moved: list[Message] = []
    for call in calls:
        answer = answers.get(call["id"]) or {
            "role": "tool",
            "tool_call_id": call["id"],
            "content": NOT_ANSWERED,
        }
        if profile.short_ids:
            answer = {**answer, "tool_call_id": short_id(call["id"])}
        made.append(_images(answer, profile, moved))
    return made + moved


def _assistant(message: Message, profile: Profile) -> Message:
    calls = message.get("tool_calls")
    content = message.get("content")
    changed = dict(message)
    if calls and not content:
        changed["content"] = profile.empty_content
        changed.update({key: value for key, value in profile.fill.items() if key not in message})
    if not profile.unknown_fields:
        changed = {key: value for key, value in changed.items() if key in _MESSAGE_FIELDS}
        changed.update(_calls(calls, _CALL_FIELDS, profile))
    elif profile.short_ids:
        changed.update(_calls(calls, None, profile))
    return changed


def _calls(
    calls: Sequence[dict[str, Any]] | None, fields: frozenset[str] | None, profile: Profile
) -> dict[str, Any]:
    if not calls:
        return {}
    made = [
        {key: value for key, value in call.items() if fields is None or key in fields}
        for call in calls
    ]
    if profile.short_ids:
        made = [{**call, "id": short_id(call["id"])} for call in made]
    return {"tool_calls": made}


def short_id(name: str) -> str:
    """Return nine letters and digits for an id, always the same ones."""
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:9]


def _images(message: Message, profile: Profile, moved: list[Message] | None = None) -> Message:
    """Put images where the host takes them: in a user message, or nowhere but as a note."""
    content = message.get("content")
    if profile.images == "tool" or not isinstance(content, list):
        return message
    images = [part for part in content if part.get("type") == "image_url"]
    if not images or (profile.images == "user" and moved is None):
        return message
    rest = content_text(content) or "An image was returned."
    if profile.images == "user" and moved is not None:
        moved.append({"role": "user", "content": images})
        return {**message, "content": rest}
    return {**message, "content": f"{rest}\n[{len(images)} image(s) left out]"}


def _joined(messages: Sequence[Message], profile: Profile) -> list[Message]:
    """Join what a host wants joined: users behind answers, equal neighbours, the system's text."""
    made: list[Message] = []
    system: list[str] = []
    for message in messages:
        role = message["role"]
        last = made[-1]["role"] if made else ""
        if role == "system" and profile.no_system:
            system.append(content_text(message["content"]))
            continue
        if role == "user" and system:
            message = _appended({"role": "user", "content": "\n\n".join(system)}, message)
            system = []
        same = profile.merge and role == last and role in ("system", "user", "assistant")
        if (role == "user" and last == "tool" and profile.fold_users) or (
            same and not made[-1].get("tool_calls")
        ):
            made[-1] = _appended(made[-1], message)
        else:
            made.append(message)
    return made


def _appended(first: Message, second: Message) -> Message:
    texts = (content_text(first.get("content")), content_text(second.get("content")))
    extra = {"tool_calls": second["tool_calls"]} if second.get("tool_calls") else {}
    return {**first, "content": "\n\n".join(text for text in texts if text), **extra}
