"""Tool calls that a model wrote into its text instead of asking for them.

A text becomes calls only when nothing but calls stands in it and each names a tool that was
offered; a text that merely shows a call is answered with a nudge. Thoughts in `<think>` come off
first. What a model invents as a tool's answer is never taken for one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_runtime import Tool

# Kept as text: `re` compiles what is used and keeps it, and most runs use none of these.
_THINK = r"(?si)\A\s*<(think|thinking|thought)>(.*?)</\1>\s*"
_LATE_THINK = r"(?s)\A(?:(?!<think).)*?</think>\s*"
_WRAPPED = (
    r"(?s)<(tool_call|toolcall|tool_calls|function_call|function_calls|minimax:tool_call)>"
    r"(.*?)</\1>"
)
_NAMED = r"(?s)<function=([\w.-]+)>(.*?)</function>"
_INVOKED = r"(?s)<invoke\s+name=\"([\w.-]+)\"\s*>(.*?)</invoke>"
_PARAMETER = r"(?s)<parameter(?:=|\s+name=\")([\w.-]+)\"?\s*>(.*?)</parameter>"
_HARMONY = (
    r"(?s)(?:<\|start\|>assistant)?(?:<\|channel\|>)?\s*(?:commentary|analysis)?"
    r"\s*to=functions\.([\w-]+).*?<\|message\|>(.*?)(?:<\|call\|>|<\|end\|>|\Z)"
)
_DEEPSEEK = (
    r"(?s)<\uff5ctool▁call▁begin\uff5c>(?:function<\uff5ctool▁sep\uff5c>)?([\w.-]+)"
    r"(?:<\uff5ctool▁sep\uff5c>|\s)\s*(.*?)<\uff5ctool▁call▁end\uff5c>"
)
_DEEPSEEK_FRAME = r"<\uff5ctool▁calls▁(?:begin|end)\uff5c>"
_PREFIXED = r"(?s)\A\s*(?:<\|python_tag\|>|\[TOOL_CALLS\]|<\|tool_call\|>)\s*(.*)\Z"
_MISTRAL_ARGS = r"(?s)\A\s*\[TOOL_CALLS\]\s*([\w.-]+)\s*(?:\[ARGS\])?\s*(\{.*)\Z"
_FENCE = r"(?s)\A\s*```(?:json|tool_call|tool_code)?[ \t]*\n(.*?)\n?```\s*\Z"
_ANY_FENCE = r"(?s)```(?:json|tool_call|tool_code)?[ \t]*\n(.*?)\n?```"
_UNCLOSED = r"<(?:tool_call|function_call)>\s*\{\s*\"name\":\s*\"([\w.-]+)\""
_MARKS = (
    r"</?(?:tool_call|toolcall|tool_calls|function_calls?|invoke|minimax:tool_call|tool_response"
    r"|function_response|function_results)\b"
    r"|<function=|<\|python_tag\|>|\[TOOL_CALLS\]|<\|tool_call|<\uff5ctool▁|<\|channel\|>|to=functions\."
)


@dataclass(frozen=True, slots=True)
class Read:
    """What stands in a text.

    Attributes:
        reasoning: thoughts that stood before it.
        calls: (tool, arguments as text or object) for each call; then nothing else stood there.
        shows_call: it shows a call, or a tool's answer, but cannot be run.
    """

    text: str
    reasoning: str
    calls: tuple[tuple[str, Any], ...] = ()
    shows_call: bool = False


def read_text(text: str, tools: Mapping[str, Tool]) -> Read:
    """Look for thoughts and calls in what a model said."""
    rest, reasoning = _split_thoughts(text)
    if not any(letter in rest for letter in "<[{`"):
        return Read(rest, reasoning)
    calls = _calls(rest, tools)
    if calls and all(name in tools for name, _ in calls):
        return Read("", reasoning, tuple(calls))
    return Read(rest, reasoning, (), bool(calls) or _shows_call(rest, tools))


def _split_thoughts(text: str) -> tuple[str, str]:
    if "think" not in text and "thought" not in text:
        return text, ""
    thoughts: list[str] = []
    while found := re.match(_THINK, text):
        thoughts.append(found[2].strip())
        text = text[found.end() :]
    if not thoughts and "</think>" in text and (late := re.match(_LATE_THINK, text)):
        # The opening tag stood in the prompt.
        thoughts.append(late[0].replace("</think>", "").strip())
        text = text[late.end() :]
    return text, "\n".join(thoughts)


def _calls(text: str, tools: Mapping[str, Tool]) -> list[tuple[str, Any]]:
    """Return the calls, if the text consists of them; else nothing."""
    stripped = text.strip()
    if found := re.match(_MISTRAL_ARGS, stripped):
        return [(found[1], found[2])]
    for pattern in (_HARMONY, _DEEPSEEK):
        bare = re.sub(_DEEPSEEK_FRAME, "", stripped)
        found_all = re.findall(pattern, bare)
        if found_all and not re.sub(pattern, "", bare).strip():
            return [(name, _unfenced(arguments)) for name, arguments in found_all]
    wrapped = re.findall(_WRAPPED, stripped)
    if wrapped and not re.sub(_WRAPPED, "", stripped).strip():
        found_calls = [_inside(body, tools) for _, body in wrapped]
        return [call for calls in found_calls for call in calls] if all(found_calls) else []
    if prefixed := re.match(_PREFIXED, stripped):
        return _json_calls(prefixed[1].removesuffix("<|eom_id|>"))
    return _inside(stripped, tools)


def _inside(body: str, tools: Mapping[str, Tool]) -> list[tuple[str, Any]]:
    for pattern in (_NAMED, _INVOKED):
        found = re.findall(pattern, body)
        if found and not re.sub(pattern, "", body).strip():
            return [(name, _parameters(inner, tools.get(name))) for name, inner in found]
    return _json_calls(_unfenced(body))


def _unfenced(text: str) -> str:
    found = re.match(_FENCE, text)
    return found[1] if found else text.strip()


def _json_calls(text: str) -> list[tuple[str, Any]]:
    """Read one call, several on end, or a list of them."""
    values: list[Any] = []
    decoder, at = json.JSONDecoder(strict=False), 0
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            values += value if isinstance(value, list) else [value]
            while at < len(text) and (text[at].isspace() or text[at] == ";"):
                at += 1
    except (ValueError, RecursionError):
        return []
    calls = [_json_call(value) for value in values]
    return [call for call in calls if call] if all(calls) else []


def _json_call(value: Any) -> tuple[str, Any] | None:
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict) and set(value) <= {"type", "function", "id"}:
        value = value["function"]
    name = value.get("name")
    if not isinstance(name, str) or not set(value) <= {"name", "arguments", "parameters", "id"}:
        return None
    if "arguments" not in value and "parameters" not in value:
        return None
    return name, value.get("arguments", value.get("parameters"))


def _parameters(body: str, tool: Tool | None) -> Any:
    """Read XML parameters: text where the schema says text, JSON otherwise."""
    found = re.findall(_PARAMETER, body)
    if not found:
        return body.strip()
    kinds = tool.parameters.get("properties", {}) if tool else {}
    return {name: _parameter(value, kinds.get(name, {})) for name, value in found}


def _parameter(value: str, schema: Mapping[str, Any]) -> Any:
    text = value.removeprefix("\n").removesuffix("\n")
    if schema.get("type", "string") == "string":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _shows_call(text: str, tools: Mapping[str, Tool]) -> bool:
    """Say whether the text is meant as a call, or as a tool's answer; prose about calls is not."""
    if re.match(_MARKS, text.strip()):
        return True
    blocks = [body for _, body in re.findall(_WRAPPED, text)] + re.findall(_ANY_FENCE, text)
    shown = [name for body in blocks for name, _ in _inside(body.strip(), tools)]
    shown += [name for name, _ in (*re.findall(_NAMED, text), *re.findall(_INVOKED, text))]
    shown += [name for name in re.findall(_UNCLOSED, text)]
    return any(name in tools for name in shown)
