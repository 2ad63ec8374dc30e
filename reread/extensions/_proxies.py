"""A package's tools and rails as the kernel sees them: each asks the package's process.

What reached the process and what it answered is kept here, in the program, where no package can
change it; verification reads that and not what a package says of itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent_runtime import Failure, Message, Rail, Reply, Round, Tool, ToolCall
from reread.extensions._process import HOOK_SECONDS, Process
from reread.values import Code

Emit = Callable[[str, Mapping[str, Any]], None]
TOOL_SECONDS = 300.0
TOOL_SECONDS_MOST = 3600.0


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call that reached a tool of a package.

    Attributes:
        arguments: as the tool got them, after the rails.
        answer: what its process answered; empty where there was none.
    """

    tool: str
    arguments: Mapping[str, Any]
    answer: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HookRun:
    """One hook that was asked for: which rails ran it, and which raised in it."""

    hook: str
    ran: tuple[str, ...]
    faults: tuple[Mapping[str, str], ...]
    effects: Mapping[str, Any]


@dataclass(slots=True)
class Seen:
    """What a loaded package did so far. It only grows."""

    invocations: list[Invocation] = field(default_factory=list)
    hooks: list[HookRun] = field(default_factory=list)


def tool_of(card: Mapping[str, Any], process: Process, seen: Seen, session_id: str) -> Tool:
    name = card["name"]
    seconds = min(card["timeout"] or TOOL_SECONDS, TOOL_SECONDS_MOST)

    async def call(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        question = {
            "do": "invoke",
            "session": session_id,
            "tool": name,
            "arguments": dict(arguments),
            "timeout": seconds,
        }
        answer: Mapping[str, Any] = {}
        try:
            # Half a second more: the process ends a call that awaits, we end one that blocks.
            answer = await process.ask(question, seconds + 0.5)
        except Failure as failure:
            answer = {"error": failure.cause, "code": failure.code}
            raise _tool_failed(name, failure.cause, answer) from failure
        finally:
            seen.invocations.append(Invocation(name, dict(arguments), answer))
        return _result(name, answer)

    return Tool(name, card["description"][:1024], card["input_params"], call, changes=True)


def _result(name: str, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    if "error" in answer:
        raise _tool_failed(name, str(answer["error"]), answer)
    result = answer.get("result")
    if not isinstance(result, dict) or not isinstance(result.get("success"), bool):
        shown = repr(result)[:200]
        cause = f"it returned {shown}, neither a ToolOutput nor a mapping with success"
        raise _tool_failed(name, cause, answer)
    if not result["success"]:
        raise _tool_failed(name, str(result.get("error") or "it gave no reason"), answer)
    return result


def _tool_failed(name: str, why: str, answer: Mapping[str, Any]) -> Failure:
    return Failure(
        Code.tool_failed,
        f"The tool '{name}' failed: {why}"[:2000],
        "Call it with other arguments, or do without it.",
        {"result": answer.get("result")} if answer.get("result") is not None else {},
    )


class RailProxy(Rail):
    """All rails of a package, asked in its process; hooks that none of them has cost nothing."""

    def __init__(
        self,
        name: str,
        process: Process,
        hooks: Collection[str],
        session_id: str,
        emit: Emit,
        seen: Seen,
    ) -> None:
        self._name = name
        self._process = process
        self._hooks = hooks
        self._session_id = session_id
        self._emit = emit
        self._seen = seen
        self._steering: list[str] = []

    async def before_run(self, prompt: str) -> str:
        """Return the sections that the rails add to the prompt."""
        effects = await self._ask("before_invoke")
        return "\n\n".join(str(text) for text in effects.get("prompt", ()))

    async def before_model_call(self, messages: Sequence[Message]) -> Sequence[str]:
        """Return what the rails say to the model."""
        await self._ask("before_model_call", messages=tuple(messages))
        said, self._steering = tuple(self._steering), []
        return said

    async def after_model_call(self, reply: Reply) -> None:
        """Tell the rails."""
        await self._ask("after_model_call", messages=(reply.message,))

    async def before_tool_call(self, call: ToolCall) -> ToolCall:
        """Let the rails stop or rewrite the call; a rail that fails stops it."""
        if call.fault:
            return call
        arguments = dict(call.arguments)
        effects = await self._ask("before_tool_call", tool_name=call.name, tool_args=arguments)
        if "finish" in effects:
            raise Failure(
                Code.tool_stopped,
                f"A rail of '{self._name}' stopped the call of '{call.name}'.",
                "Do what its result says.",
                {"result": effects["finish"]},
            )
        changed = effects.get("arguments", arguments)
        if not isinstance(changed, dict):
            raise self._broken("before_tool_call", f"it rewrote the arguments to {changed!r:.100}")
        return replace(call, arguments=changed) if changed != arguments else call

    async def after_tool_call(self, call: ToolCall, result: Mapping[str, Any]) -> None:
        """Tell the rails."""
        facts = {"tool_name": call.name, "tool_args": dict(call.arguments), "tool_result": result}
        if not result.get("ok"):
            await self._hook("on_tool_exception", facts, exception=str(result.get("cause", "")))
        await self._hook("after_tool_call", facts)

    async def after_run(self, round: Round) -> None:
        """Tell the rails."""
        await self._ask("after_invoke")

    async def _ask(self, hook: str, **inputs: Any) -> Mapping[str, Any]:
        return await self._hook(hook, inputs)

    async def _hook(
        self, hook: str, inputs: Mapping[str, Any], exception: str = ""
    ) -> Mapping[str, Any]:
        if hook not in self._hooks:
            return {}
        question = {
            "do": "hook",
            "session": self._session_id,
            "hook": hook,
            "inputs": _plain(inputs),
            "exception": exception,
        }
        try:
            answer = await self._process.ask(question, HOOK_SECONDS)
        except Failure as failure:
            answer = {"ran": [], "faults": [{"rail": "", "error": failure.cause}], "effects": {}}
        run = HookRun(hook, tuple(answer["ran"]), tuple(answer["faults"]), dict(answer["effects"]))
        self._seen.hooks.append(run)
        for event in run.effects.get("stream", ()):
            self._emit("extension.stream", {"extension": self._name, "event": event})
        self._steering += [str(text) for text in run.effects.get("steering", ())]
        for fault in run.faults:
            self._emit("extension.fault", {"extension": self._name, "hook": hook, **fault})
        if run.faults and hook == "before_tool_call":
            raise self._broken(hook, str(run.faults[0].get("error", "")))
        return run.effects

    def _broken(self, hook: str, why: str) -> Failure:
        return Failure(
            Code.tool_stopped,
            f"The hook {hook} of '{self._name}' failed, so the call did not run: {why}"[:1000],
            "Mend the extension, or run without it.",
        )


def _plain(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return dict(json.loads(json.dumps(inputs, default=str)))
