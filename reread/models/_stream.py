"""Server-sent events, and the pieces of a chat completion put together again.

Both take what services really send: comments, events over several lines or without a blank line
between them, calls without an index, several calls at one index, one call at several.

Proves: `whole` is true only when the service said that the answer is at its end.
Does not prove: that the pieces arrived in the order in which the model wrote them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

DONE = "[DONE]"


class BrokenEvent(ValueError):
    """An event whose data is no JSON."""


class Events:
    """Cuts a byte stream into the JSON values of its events."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self.done = False
        self.seen = 0
        """Events with data so far, the last one included."""

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """Yield the events that this piece completes. Raises BrokenEvent."""
        chunk = self._rest + chunk
        if b"\r" in chunk:
            held = b"\r" if chunk.endswith(b"\r") else b""  # its \n may come with the next piece
            chunk = chunk[: len(chunk) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            chunk += held
        *lines, self._rest = chunk.split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:])
            elif not line and self._data:
                yield from self._dispatch()

    def end(self) -> Iterator[dict[str, Any]]:
        """Yield what stands behind the last blank line; some services leave it out."""
        yield from self.feed(b"\n\n")

    def _dispatch(self) -> Iterator[dict[str, Any]]:
        data, self._data = self._data, []
        if len(data) == 1:
            yield from self._value(data[0])
            return
        try:
            values = [json.loads(b"\n".join(data))]
        except ValueError:
            for line in data:
                yield from self._value(line)
            return
        self.seen += 1
        yield from (value for value in values if isinstance(value, dict))

    def _value(self, data: bytes) -> Iterator[dict[str, Any]]:
        data = data.strip()
        if self.done or not data:
            return
        self.seen += 1
        if data == b"[DONE]":
            self.done = True
            return
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise BrokenEvent(f"an event of the stream is no JSON: {data[:80]!r}") from error
        if isinstance(value, dict):
            yield value


class _Slot:
    """One tool call while it arrives."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.kind = "function"
        self.pieces: list[str] = []
        self.value: dict[str, Any] | None = None
        self.extras: dict[str, Any] = {}

    @property
    def arguments(self) -> str | dict[str, Any]:
        return self.value if self.value is not None and not self.pieces else "".join(self.pieces)

    def take(self, delta: Mapping[str, Any]) -> None:
        """Set id and name once; add to the arguments; keep what is not ours to understand."""
        function = _mapping(delta.get("function")) or {
            key: delta[key] for key in ("name", "arguments") if key in delta
        }
        self.id = self.id or _text(delta.get("id"))
        self.name = self.name or _text(function.get("name"))
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            self.value = {**(self.value or {}), **arguments}
        elif isinstance(arguments, str):
            self.pieces.append(arguments)
        known = ("id", "index", "type", "function", "name", "arguments")
        self.extras.update({key: value for key, value in delta.items() if key not in known})

    def whole(self) -> bool:
        """Say whether the arguments so far are one JSON object."""
        if self.value is not None:
            return True
        try:
            return isinstance(json.loads("".join(self.pieces), strict=False), dict)
        except (ValueError, RecursionError):
            return False

    def as_call(self) -> dict[str, Any]:
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": self.kind, "function": function, **self.extras}


class Pieces:
    """Puts the chunks of one streamed chat completion together."""

    def __init__(self) -> None:
        self.finish: str | None = None
        self.usage: dict[str, Any] | None = None
        self.error: Any = None
        self._texts: dict[str, list[str]] = {}
        self._extras: dict[str, Any] = {}
        self._slots: list[_Slot] = []
        self._at: dict[int, _Slot] = {}
        self._legacy: _Slot | None = None

    def add(self, chunk: Mapping[str, Any]) -> tuple[str, str]:
        """Take one chunk. Returns what it adds for people: (`text`|`reasoning`|``, piece)."""
        if chunk.get("error"):
            self.error = chunk["error"]
        elif chunk.get("object") == "error" or chunk.get("type") == "error":
            self.error = dict(chunk)
        usage = chunk.get("usage")
        if isinstance(usage, dict):
            self.usage = usage
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return "", ""
        return self._choice(choices[0])

    def _choice(self, choice: Mapping[str, Any]) -> tuple[str, str]:
        if choice.get("index"):
            return "", ""  # another answer to the same question; none was asked for
        if choice.get("finish_reason"):
            self.finish = str(choice["finish_reason"])
        if isinstance(choice.get("usage"), dict):
            self.usage = choice["usage"]
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = choice.get("message")
            if not isinstance(delta, dict) or self._texts or self._slots:
                return "", ""
        shown = ("", "")
        for key, value in delta.items():
            if value is None or key == "role":
                continue
            shown = self._take(key, value) or shown
        return shown

    def _take(self, key: str, value: Any) -> tuple[str, str] | None:
        if key == "content":
            piece = content_text(value)
            self._texts.setdefault(key, []).append(piece)
            return "text", piece
        if key == "tool_calls":
            for delta in value if isinstance(value, list) else [value]:
                if isinstance(delta, dict):
                    self._slot(delta).take(delta)
        elif key == "function_call":
            self._legacy = self._legacy or _Slot()
            self._legacy.take({"function": value})
        elif isinstance(value, str):
            self._texts.setdefault(key, []).append(value)
            return ("reasoning", value) if key.startswith("reasoning") else None
        elif isinstance(value, list) and isinstance(self._extras.get(key, []), list):
            self._extras.setdefault(key, []).extend(value)
        else:
            self._extras[key] = value
        return None

    def _slot(self, delta: Mapping[str, Any]) -> _Slot:
        """Find the call that a piece belongs to: by id, by index, else the last one open."""
        index, name = delta.get("index"), _text(delta.get("id"))
        by_id = next((slot for slot in self._slots if name and slot.id == name), None)
        if by_id:
            return by_id
        last = self._slots[-1] if self._slots else None
        slot = self._at.get(index) if isinstance(index, int) else last
        if slot is None or (name and slot.id) or _begins_anew(slot, delta):
            slot = _Slot()
            self._slots.append(slot)
        if isinstance(index, int):
            self._at[index] = slot
        return slot

    def message(self) -> dict[str, Any]:
        """Return the assistant message as a service that does not stream would send it."""
        texts = {key: "".join(pieces) for key, pieces in self._texts.items()}
        made = {"role": "assistant", "content": texts.pop("content", None), **texts, **self._extras}
        if self._slots:
            made["tool_calls"] = [slot.as_call() for slot in self._slots]
        elif self._legacy:
            made["function_call"] = self._legacy.as_call()["function"]
        return made


def _begins_anew(slot: _Slot, delta: Mapping[str, Any]) -> bool:
    """Say whether a piece without an id starts another call after one that is whole."""
    function = _mapping(delta.get("function")) or delta
    arguments = function.get("arguments")
    name = _text(function.get("name"))
    starts = isinstance(arguments, dict) or _text(arguments).lstrip().startswith("{")
    other = bool(slot.name) and name != slot.name and not isinstance(delta.get("index"), int)
    return bool(name) and ((starts and slot.whole()) or other)


def content_text(content: Any) -> str:
    """Return the text of a message's content, which may come in typed parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(
            part if isinstance(part, str) else _text(part.get("text"))
            for part in content
            if isinstance(part, str | dict)
        )
    return ""


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
