"""A history made shorter: old results of tools are cut to their head and tail.

The system's text, the task, activated skills and the newest turns stay as they are. A cut result
keeps its verdict and the digest of the whole, which stays in the run's record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent_runtime import Message

KEPT_TOOLS = frozenset({"activate_skill"})
NEWEST = 4
"""Tool answers at the end that are cut last."""


def shorten(messages: Sequence[Message]) -> list[Message] | None:
    """Return a history of about half the size, or None where there is nothing left to cut.

    Gentle cuts come first, and each is made only as long as the history is above its half.
    """
    made = list(messages)
    goal = sum(map(_size, made)) // 2
    names = _tool_names(made)
    answers = [
        at
        for at, message in enumerate(made)
        if message.get("role") == "tool"
        and names.get(message.get("tool_call_id", ""), "") not in KEPT_TOOLS
    ]
    older, newest = answers[:-NEWEST], answers[-NEWEST:]
    changed = False
    for group, head, tail in ((older, 1200, 600), (older, 200, 100), (newest, 1200, 600)):
        changed |= _cut_answers(made, group, head, tail, goal)
    wrote = [at for at, message in enumerate(made) if message.get("tool_calls")]
    changed |= _cut_calls(made, wrote[:-2], goal)
    changed |= _cut_answers(made, newest, 200, 100, goal)
    return made if changed else None


def _cut_answers(
    made: list[Message], group: Sequence[int], head: int, tail: int, goal: int
) -> bool:
    total, changed = sum(map(_size, made)), False
    for at in group:
        if total <= goal:
            break
        content = made[at].get("content")
        if not isinstance(content, str):
            continue
        short = cut_text(content, head, tail)
        if len(short) < len(content):
            total -= len(content) - len(short)
            made[at] = {**made[at], "content": short}
            changed = True
    return changed


def cut_text(text: str, head: int, tail: int) -> str:
    """Cut a tool's answer, as JSON that says so. One that was cut already keeps its digest."""
    if len(text) <= head + tail + 300:
        return text
    said = _object(text)
    if said.get("cut") is True and isinstance(said.get("head"), str):
        begin, end, whole = said["head"], str(said.get("tail", "")), said.get("sha256", "")
        size = said.get("characters", len(text))
    else:
        data = text.encode("utf-8", "backslashreplace")
        begin, end, whole, size = text, text, hashlib.sha256(data).hexdigest(), len(text)
    made: dict[str, Any] = {key: said[key] for key in ("ok", "code") if key in said}
    made.update(cut=True, characters=size, sha256=whole, head=begin[:head], tail=end[-tail:])
    return json.dumps(made, ensure_ascii=False)


def _cut_calls(made: list[Message], group: Sequence[int], goal: int) -> bool:
    """Cut the long texts that old calls carried; the files that they wrote are on disk."""
    total, changed = sum(map(_size, made)), False
    for at in group:
        if total <= goal:
            break
        before = _size(made[at])
        calls = [_cut_call(call) for call in made[at]["tool_calls"]]
        if calls != made[at]["tool_calls"]:
            made[at] = {**made[at], "tool_calls": calls}
            total -= before - _size(made[at])
            changed = True
    return changed


def _cut_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    values = _object(function["arguments"])
    short = {key: _cut_value(value) for key, value in values.items()}
    if short == values:
        return dict(call)
    text = json.dumps(short, ensure_ascii=False)
    return {**call, "function": {**function, "arguments": text}}


def _cut_value(value: Any) -> Any:
    if not isinstance(value, str) or len(value) < 1000:
        return value
    digest = hashlib.sha256(value.encode("utf-8", "backslashreplace")).hexdigest()
    return f"{value[:300]}\n[… {len(value)} characters, sha256 {digest} …]\n{value[-150:]}"


def _tool_names(messages: Sequence[Message]) -> dict[str, str]:
    return {
        call["id"]: call["function"]["name"]
        for message in messages
        for call in message.get("tool_calls") or ()
    }


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _size(message: Message) -> int:
    content = message.get("content")
    calls = message.get("tool_calls") or ()
    return (len(content) if isinstance(content, str) else 0) + sum(
        len(call["function"]["arguments"]) for call in calls
    )
