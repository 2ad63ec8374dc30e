"""L3's stage: a loaded package in the kernel's real loop, and what was seen there.

The model is scripted, so what it says is no evidence of anything; it only makes the calls that
the spec declares.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_runtime import (
    Budget,
    Conversation,
    Failure,
    Limits,
    Model,
    Rail,
    Reply,
    Round,
    ScriptedModel,
    Tool,
    ToolCall,
    assistant_message,
    run_agent,
)
from reread.extensions._proxies import HookRun, Invocation
from reread.extensions.loading import Extension
from reread.values import Code

Call = tuple[str, Mapping[str, Any] | str]


@dataclass(frozen=True, slots=True)
class Scene:
    """What was seen while one test ran.

    Attributes:
        results: (call, answer) as the kernel gave it, in order.
        invocations: what reached the package's tools.
        stand_ins: (tool, arguments) that reached tools which are not the package's.
        stream: events that the rails sent.
        messages: the whole conversation.
    """

    results: tuple[tuple[ToolCall, Mapping[str, Any]], ...]
    invocations: tuple[Invocation, ...]
    stand_ins: tuple[tuple[str, Mapping[str, Any]], ...]
    hooks: tuple[HookRun, ...]
    stream: tuple[Any, ...]
    messages: tuple[Mapping[str, Any], ...]
    ended: Round

    @property
    def prompt(self) -> str:
        """The system prompt as the model saw it."""
        return "\n".join(str(m.get("content")) for m in self.messages if m["role"] == "system")


class _Watch(Rail):
    """Sees every answer as the model gets it."""

    def __init__(self) -> None:
        self.results: list[tuple[ToolCall, Mapping[str, Any]]] = []

    async def after_tool_call(self, call: ToolCall, result: Mapping[str, Any]) -> None:
        self.results.append((call, result))


@dataclass(frozen=True, slots=True)
class Stage:
    """A loaded package, the context of its skills, and where its events go."""

    extension: Extension
    work: Path
    context: str
    stream: list[Any] = field(default_factory=list)

    async def play(
        self,
        query: str,
        calls: Sequence[Call],
        *,
        stand_in: bool = False,
        model: Model | None = None,
    ) -> Scene:
        """Run one conversation and return what was seen.

        Args:
            stand_in: tools that the package does not have are answered by stand-ins.
            model: a real one, which decides for itself; by default the calls are scripted.
        """
        extension, watch = self.extension, _Watch()
        seen = extension.seen
        before = (len(seen.invocations), len(seen.hooks), len(self.stream))
        reached: list[tuple[str, Mapping[str, Any]]] = []
        tools = list(extension.tools)
        if stand_in:
            known = {tool.name for tool in tools}
            tools += [_stand_in(name, reached) for name in {n for n, _ in calls} - known]
        script = ScriptedModel([[_turn(calls), _turn(())]]) if model is None else None
        rails: list[Rail] = [extension.rail, watch, *([script] if script else [])]
        opening = [{"role": "system", "content": self.context or "You are an agent with tools."}]
        conversation = Conversation(
            [*opening, {"role": "user", "content": query or "Do what the test declares."}],
            Budget(Limits(turns=20, timeout=600.0)),
        )
        ended = await run_agent(model or script or _nobody(), conversation, tools, rails=rails)
        return Scene(
            tuple(watch.results),
            tuple(seen.invocations[before[0] :]),
            tuple(reached),
            tuple(seen.hooks[before[1] :]),
            tuple(self.stream[before[2] :]),
            tuple(conversation.messages),
            ended,
        )


def _nobody() -> Model:
    return ScriptedModel([])


def _turn(calls: Sequence[Call]) -> Reply:
    made = tuple(_call(index, name, given) for index, (name, given) in enumerate(calls))
    return Reply("" if made else "done", made, assistant_message("" if made else "done", made))


def _call(index: int, name: str, given: Mapping[str, Any] | str) -> ToolCall:
    number = f"call_{index}"
    if not isinstance(given, str):
        return ToolCall(number, name, given)
    try:
        value = json.loads(given)
    except ValueError:
        value = None
    if isinstance(value, dict):
        return ToolCall(number, name, value)
    fault = Failure(
        Code.tool_arguments_invalid,
        f"The arguments of '{name}' are no JSON object: {given[:200]}",
        "Call it again with a JSON object. Nothing was run.",
    )
    return ToolCall(number, name, {}, fault=fault)


def _stand_in(name: str, reached: list[tuple[str, Mapping[str, Any]]]) -> Tool:
    async def answer(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        reached.append((name, dict(arguments)))
        return {"stand_in": True}

    return Tool(name, "stands in for a tool of the host", {"type": "object"}, answer)


def filled(value: Any, words: Mapping[str, str]) -> Any:
    """Put paths in the place of ${OUTPUT} and ${WORK}, inside text and inside JSON text too."""
    if isinstance(value, str):
        for word, text in words.items():
            value = value.replace(word, text)
        return value
    if isinstance(value, Mapping):
        return {key: filled(inner, words) for key, inner in value.items()}
    return [filled(inner, words) for inner in value] if isinstance(value, list) else value


def contains(value: Any, wanted: Any) -> bool:
    """Say whether JSON holds everything that is wanted of it, objects by key."""
    if isinstance(wanted, Mapping):
        return isinstance(value, Mapping) and all(
            key in value and contains(value[key], inner) for key, inner in wanted.items()
        )
    return bool(value == wanted)
