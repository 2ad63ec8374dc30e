"""What Chat Completions asks of a request: the API's own types, and the order of messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, get_args, get_type_hints

# Fields that services add to their answers and want back; the API's own types do not know them.
ECHOED = {"reasoning_content", "reasoning", "reasoning_details", "extra_content"}


@cache
def _adapter(stream: bool) -> Any:
    from openai.types.chat import completion_create_params as params
    from pydantic import TypeAdapter

    kind = "Streaming" if stream else "NonStreaming"
    return TypeAdapter(getattr(params, f"CompletionCreateParams{kind}"))


@cache
def _fields(role: str) -> frozenset[str]:
    from openai.types.chat import ChatCompletionMessageParam

    for kind in get_args(ChatCompletionMessageParam):
        hints = get_type_hints(kind)
        if role in get_args(hints["role"]) or role in str(hints["role"]):
            return frozenset(hints)
    return frozenset()


def violations(body: Mapping[str, Any]) -> list[str]:
    """Return everything that a strict service would refuse in a request."""
    return [*_typed(body), *_messages(body["messages"]), *_tools(body.get("tools"))]


def _typed(body: Mapping[str, Any]) -> Iterator[str]:
    from pydantic import ValidationError

    try:
        made = _adapter(bool(body.get("stream"))).validate_python(dict(body))
        for message in made["messages"]:  # iterables are checked while they are walked
            list(message.get("tool_calls") or ())
        list(made.get("tools") or ())
    except ValidationError as error:
        yield from (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:5])
    from openai.types.chat import completion_create_params as params

    known = set(get_type_hints(params.CompletionCreateParamsBase)) | {"stream"}
    yield from (f"unknown parameter {name}" for name in body if name not in known)


def _messages(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not messages:
        yield "no messages"
    open_calls: list[str] = []
    for at, message in enumerate(messages):
        role = message["role"]
        yield from (
            f"messages[{at}]: unknown field {name}"
            for name in message
            if name not in _fields(role) | ECHOED
        )
        if role == "tool":
            if message["tool_call_id"] not in open_calls:
                yield f"messages[{at}]: answers no open call"
            else:
                open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            yield f"messages[{at}]: the calls {open_calls} before it have no answer"
        open_calls = [call["id"] for call in message.get("tool_calls") or ()]
        yield from _assistant(at, message)
    if open_calls:
        yield f"the calls {open_calls} at the end have no answer"


def _assistant(at: int, message: Mapping[str, Any]) -> Iterator[str]:
    if message["role"] != "assistant":
        if not message.get("content"):
            yield f"messages[{at}]: empty"
        return
    calls = message.get("tool_calls") or ()
    if not calls and not message.get("content"):
        yield f"messages[{at}]: neither content nor calls"
    ids = [call["id"] for call in calls]
    if len(set(ids)) != len(ids) or not all(ids):
        yield f"messages[{at}]: ids {ids}"
    for call in calls:
        if set(call) - {"id", "type", "function"} - ECHOED or call["type"] != "function":
            yield f"messages[{at}]: a call with {sorted(call)}"
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call["function"]["name"]):
            yield f"messages[{at}]: name {call['function']['name']!r}"
        try:
            whole = isinstance(json.loads(call["function"]["arguments"]), dict)
        except (ValueError, TypeError):
            whole = False
        if not whole:
            yield f"messages[{at}]: arguments {call['function']['arguments']!r}"


def _tools(tools: Sequence[Mapping[str, Any]] | None) -> Iterator[str]:
    for tool in tools or ():
        function = tool["function"]
        if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_]{0,63}", function["name"]):
            yield f"tool name {function['name']!r}"
        if function["parameters"].get("type") != "object":
            yield f"{function['name']}: its parameters are no object"
