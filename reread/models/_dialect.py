"""What tells one API of model services from another: the words, not the way of asking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agent_runtime import Message, Tool
from reread.models._history import Wire
from reread.models._profile import Profile
from reread.models._stream import Pieces


@dataclass(frozen=True, slots=True)
class Heard:
    """What an answer says, in the words of Chat Completions.

    Attributes:
        message: an assistant message; `None` where there is none.
        usage: the service's own count, or `None`.
        error: an error object that came inside a 200, or `None`.
    """

    message: Mapping[str, Any] | None
    finish: str = ""
    usage: Mapping[str, Any] | None = None
    error: Any = None


class Encoder(Protocol):
    """Encodes a history for the wire."""

    def encode(self, messages: Sequence[Message], profile: Profile) -> list[bytes]:
        """Return the items of the history, each as JSON."""
        ...


class Ear(Protocol):
    """Takes the events of a stream."""

    def add(self, event: Mapping[str, Any]) -> tuple[str, str]:
        """Take one event. Returns what it adds for people: (`text`|`reasoning`|``, piece)."""
        ...

    def heard(self) -> Heard:
        """Return all of it together."""
        ...


class Dialect(Protocol):
    """One API.

    Attributes:
        path: where requests go, below the base URL.
        items: the parameter that carries the history.
    """

    @property
    def path(self) -> str: ...

    @property
    def items(self) -> str: ...

    def encoder(self) -> Encoder:
        """Return a new encoder."""
        ...

    def head(
        self, wanted: Mapping[str, Any], tools: Sequence[Tool], profile: Profile, *, stream: bool
    ) -> dict[str, Any]:
        """Return the request without its history."""
        ...

    def ear(self) -> Ear:
        """Return a new ear."""
        ...

    def plain(self, value: Mapping[str, Any]) -> Heard:
        """Read an answer that was not streamed."""
        ...


class Chat:
    """Chat Completions."""

    path = "/chat/completions"
    items = "messages"

    def encoder(self) -> Encoder:
        """Return an encoder that keeps what it has encoded."""
        return Wire()

    def head(
        self, wanted: Mapping[str, Any], tools: Sequence[Tool], profile: Profile, *, stream: bool
    ) -> dict[str, Any]:
        """Return the request without its messages; nothing is sent that nobody asked for."""
        asked = {**wanted, **({"stream_options": {"include_usage": True}} if stream else {})}
        strict = bool(asked.pop("strict", False)) and profile.strict
        made = profile.parameters({"model": asked.pop("model"), **asked})
        if stream:
            made["stream"] = True
        if tools:
            made["tools"] = [
                {"type": "function", "function": function(tool, profile, strict=strict)}
                for tool in tools
            ]
        else:
            made.pop("tool_choice", None)
        return made

    def ear(self) -> Ear:
        """Return a collector of chunks."""
        return _ChatEar()

    def plain(self, value: Mapping[str, Any]) -> Heard:
        """Read a whole completion; an error may stand where the choices should."""
        usage = value.get("usage") if isinstance(value.get("usage"), dict) else None
        choices = value.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return Heard(None, "", usage, value.get("error") or dict(value))
        message = choice.get("message")
        if not isinstance(message, dict):
            text = choice.get("text")
            message = {"content": text} if isinstance(text, str) else None
        error = value.get("error") or choice.get("error")
        return Heard(message, str(choice.get("finish_reason") or ""), usage, error)


class _ChatEar:
    def __init__(self) -> None:
        self._pieces = Pieces()

    def add(self, event: Mapping[str, Any]) -> tuple[str, str]:
        return self._pieces.add(event)

    def heard(self) -> Heard:
        pieces = self._pieces
        return Heard(pieces.message(), pieces.finish or "", pieces.usage, pieces.error)


def function(tool: Tool, profile: Profile, *, strict: bool) -> dict[str, Any]:
    """Return a tool as the services know it, its schema without the words that a host refuses."""
    parameters = without(tool.parameters, profile.schema_words)
    made = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {**made, "strict": True} if strict else made


def without(schema: Any, words: frozenset[str]) -> Any:
    """Return a schema without some words; the names of properties are not words."""
    if not words:
        return schema
    if isinstance(schema, list | tuple):
        return [without(item, words) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: {name: without(inner, words) for name, inner in value.items()}
        if key == "properties" and isinstance(value, Mapping)
        else without(value, words)
        for key, value in schema.items()
        if key not in words
    }
