"""One assistant message, however it came, becomes a Reply of the loop.

Proves: every call has an id of its own; a call whose arguments do not decode, or whose output was
cut, carries a fault and will not run; what goes back into the history is valid JSON.
Does not prove: that the tool exists or that its schema accepts the arguments; the loop asks that.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from agent_runtime import Failure, Message, Reply, Tool, ToolCall, Usage
from reread.models._arguments import Decoded, clean, decode
from reread.models._stream import content_text
from reread.models._text_calls import read_text
from reread.values import Code

LENGTH = frozenset({"length", "max_tokens", "model_length", "max_output_tokens"})
FILTERED = frozenset(
    {"content_filter", "content-filter", "safety", "refusal", "sensitive", "recitation"}
    | {"prohibited_content", "blocklist", "spii"}
)
BROKEN = frozenset({"error", "network_error", "insufficient_system_resource", "abort", "aborted"})

EMPTY_NUDGE = (
    "Your last message was empty. Call a tool, or say in one sentence that you are finished."
)
SHOWN_NUDGE = (
    "Nothing was run: your message only shows a tool call, or what one might answer. "
    "Call the tool through function calling, or say that you are finished."
)
CUT_NUDGE = (
    "Your last message was cut off at the token limit and nothing was run. "
    "Go on with less in one message: split the work into smaller calls."
)
_KNOWN_FIELDS = frozenset({"role", "content", "tool_calls", "function_call"})
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


@dataclass(frozen=True, slots=True)
class Raw:
    """What a service answered.

    Attributes:
        message: the assistant message, untouched.
        finish: its reason for stopping, '' where it gave none.
        cap: the limit on output tokens that was asked for, if any.
    """

    message: Mapping[str, Any]
    finish: str
    usage: Usage
    cap: int | None = None


def to_reply(raw: Raw, tools: Sequence[Tool], taken: AbstractSet[str], *, nudged: bool) -> Reply:
    """Turn an answer into a Reply.

    Raises:
        Failure: model_refused; model_output_cut, where the text was cut again after a nudge.
    """
    by_name = {tool.name: tool for tool in tools}
    finish = raw.finish.lower()
    refusal = raw.message.get("refusal")
    wanted = _wanted(raw.message)
    if finish in FILTERED or (refusal and not wanted):
        raise _refused(raw.finish, refusal)
    read = read_text(content_text(raw.message.get("content")), by_name)
    promoted = [] if wanted else [_as_call(name, value) for name, value in read.calls]
    calls = _calls(wanted or promoted, raw, by_name, taken)
    text = clean(read.text)
    nudge = "" if calls else _nudge(text, finish, shows_call=read.shows_call)
    if nudge == CUT_NUDGE and nudged:
        raise _cut(f"The answer was cut off at the token limit twice: '{text[-80:]}'.")
    return Reply(
        text, tuple(call for call, _ in calls), _message(raw, text, calls), raw.usage, nudge
    )


def _nudge(text: str, finish: str, *, shows_call: bool) -> str:
    if finish in LENGTH:
        return CUT_NUDGE
    if shows_call:
        return SHOWN_NUDGE
    return EMPTY_NUDGE if not text.strip() or finish in ("tool_calls", "function_call") else ""


def _wanted(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of a message in one form; the old single form counts as one call."""
    found = message.get("tool_calls")
    calls = found if isinstance(found, list) else [found]
    wanted = [call for call in calls if isinstance(call, dict) and call]
    old = message.get("function_call")
    return wanted or ([{"function": old}] if isinstance(old, dict) and old.get("name") else [])


def _as_call(name: str, value: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": value}}


def _calls(
    wanted: Sequence[Mapping[str, Any]],
    raw: Raw,
    tools: Mapping[str, Tool],
    taken: AbstractSet[str],
) -> list[tuple[ToolCall, dict[str, Any]]]:
    """Return each call with its entry for the history."""
    used = set(taken)
    made = []
    for call in wanted:
        function = call.get("function") or call.get("custom") or call
        function = function if isinstance(function, dict) else {}
        name = tool_name(str(function.get("name") or ""), tools)
        arguments = function.get("arguments", function.get("input"))
        decoded = decode(arguments)
        own = own_id(call.get("id"), used)
        used.add(own)
        fault = _fault(name, decoded, raw)
        value = {} if fault else decoded.value
        repaired = decoded.repaired and not fault
        entry = _entry(call, own, name, _written(arguments, decoded))
        made.append((ToolCall(own, name, value, fault, repaired), entry))
    return made


def tool_name(name: str, tools: Mapping[str, Tool]) -> str:
    """Take off what templates leak into a name; an unknown name stays as it is."""
    if name in tools:
        return name
    bare = name.split("<|")[0].strip().strip("\"'`")
    bare = re.sub(r"\A(?:functions?|tools?|default_api)[.:/]", "", bare)
    return bare if bare in tools else name


def own_id(given: Any, used: AbstractSet[str]) -> str:
    """Keep the service's id if it is one and is new; else make one that every service takes."""
    if isinstance(given, str) and given.strip() and given.isprintable() and given not in used:
        return given
    while (made := secrets.token_hex(5)[:9]) in used:
        pass
    return made


def _fault(name: str, decoded: Decoded, raw: Raw) -> Failure | None:
    if raw.finish.lower() in LENGTH:
        return _cut(f"The call of '{name}' was cut off at the token limit.")
    if not decoded.fault:
        return None
    spent = raw.usage.output_tokens
    if decoded.fault == "cut" and (raw.cap is None or raw.usage.estimated or spent >= raw.cap):
        return _cut(f"The arguments of '{name}' end in the middle: {decoded.problem}")
    return Failure(
        Code.tool_arguments_invalid,
        f"The arguments of '{name}' cannot be used: {decoded.problem}.",
        "Call it again with one valid JSON object. Nothing was run.",
    )


def _cut(cause: str) -> Failure:
    return Failure(
        Code.model_output_cut,
        cause,
        "Nothing was run. Ask for less in one call, for instance by writing the file in parts.",
    )


def _refused(finish: str, refusal: Any) -> Failure:
    said = clean(str(refusal))[:300] if refusal else f"it ended with '{finish}'"
    return Failure(
        Code.model_refused,
        f"The model service refused to answer: {said}.",
        "Word the task differently, or use another model. Asking again will not help.",
        {"kind": "refused"},
    )


def _written(arguments: Any, decoded: Decoded) -> str:
    """Return arguments as the history keeps them: always one JSON object as text."""
    if decoded.fault:
        return "{}"
    if isinstance(arguments, str) and arguments.strip() and not decoded.repaired:
        try:
            json.loads(arguments)  # strict: a raw line break inside a string is not sent back
        except (ValueError, RecursionError):
            pass
        else:
            return clean(arguments)
    return json.dumps(decoded.value, ensure_ascii=False)


def _entry(call: Mapping[str, Any], own: str, name: str, arguments: str) -> dict[str, Any]:
    shown = name if _NAME.match(name) else re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unnamed"
    known = ("id", "type", "function", "custom", "index", "name", "arguments", "input")
    extras = {key: value for key, value in call.items() if key not in known and value is not None}
    function = {"name": shown, "arguments": arguments}
    return {"id": own, "type": "function", "function": function, **extras}


def _message(raw: Raw, text: str, calls: Sequence[tuple[ToolCall, dict[str, Any]]]) -> Message:
    """Build the history's entry; fields that only the service understands go back to it."""
    extras = {
        key: value
        for key, value in raw.message.items()
        if key not in _KNOWN_FIELDS and value is not None and value != []
    }
    made: Message = {"role": "assistant", "content": text or (None if calls else "")}
    if calls:
        made["tool_calls"] = [entry for _, entry in calls]
    return {**made, **extras}
