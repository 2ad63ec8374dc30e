"""The package's side: loads its classes, then answers one question a line until the line ends.

It runs in the sandbox with nothing of the program but this module and `api`. It judges nothing;
what it answers is what the package does, and the program asks, checks and reads the disk itself.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import os
import sys
import traceback
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from reread.extensions import api

TAIL = 4000
ANSWER_LIMIT = 4 << 20
KNOWN_ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "openjiuwen.core.foundation.tool": {
        "Tool": "Tool",
        "ToolCard": "ToolCard",
        "ToolOutput": "ToolOutput",
    },
    "openjiuwen.harness.tools.base_tool": {"ToolOutput": "ToolOutput"},
    "openjiuwen.harness.rails.base": {"DeepAgentRail": "Rail"},
    "openjiuwen.core.single_agent.rail.base": {"AgentRail": "Rail"},
    "openjiuwen.core.runner.callback.errors": {"AbortError": "AbortError"},
}
"""Names of the other runtime that stand for ours; every other import of it fails by name."""


def main() -> None:
    """Take over the channel on stdin, and keep the package's own output away from it."""
    channel = os.fdopen(os.dup(0), "r+b", buffering=0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    lines = iter_lines(channel)
    opening = json.loads(next(lines))
    nonce = opening["nonce"]
    with asyncio.Runner() as runner:
        loaded = Loaded(opening)
        _say(channel, nonce, 0, loaded.describe())
        for line in lines:
            request = json.loads(line)
            answer = runner.run(loaded.answer(request))
            _say(channel, nonce, request["id"], answer)
        loaded.close()


def iter_lines(channel: BinaryIO) -> Iterator[bytes]:
    """Yield lines until the other side is gone."""
    kept = b""
    while piece := channel.read(1 << 16):
        *lines, kept = (kept + piece).split(b"\n")
        yield from lines


def _say(channel: BinaryIO, nonce: str, number: int, answer: Mapping[str, Any]) -> None:
    data = json.dumps({"nonce": nonce, "id": number, "answer": answer}, default=_foreign).encode()
    if len(data) > ANSWER_LIMIT:
        fault = {"error": f"the answer has {len(data)} bytes, more than {ANSWER_LIMIT}"}
        data = json.dumps({"nonce": nonce, "id": number, "answer": fault}).encode()
    view = memoryview(data + b"\n")
    while view:
        view = view[channel.write(view) or 0 :]


def _foreign(value: Any) -> Any:
    """Show a value that JSON does not have; the program then sees that it is none."""
    return {"not_json": f"{type(value).__module__}.{type(value).__name__}"}


class Loaded:
    """The package's objects, or why there are none."""

    def __init__(self, opening: Mapping[str, Any]) -> None:
        self.faults: list[dict[str, str]] = []
        self.tools: list[tuple[str, api.Tool]] = []
        self.rails: list[tuple[str, api.Rail]] = []
        self.extra: dict[str, Any] = {}
        _make_importable(Path(opening["root"]), opening["prefix"])
        for entry in opening["rails"]:
            made = self._make(entry, api.Rail)
            if made is not None:
                self.rails.append((entry["class"], made))
        for entry in opening["tools"]:
            made = self._make(entry, api.Tool)
            if made is not None:
                self.tools.append((entry["class"], made))
        if not self.faults:
            self._init()

    def describe(self) -> dict[str, Any]:
        """Return the cards and hooks, or the faults."""
        if self.faults:
            return {"faults": self.faults}
        return {
            "tools": [
                {
                    "class": name,
                    "id": card.id,
                    "name": card.name,
                    "description": card.description,
                    "input_params": card.input_params,
                    "timeout": _timeout(card),
                }
                for name, tool in self.tools
                for card in (tool.card,)
            ],
            "rails": [{"class": name, "hooks": _hooks(rail)} for name, rail in self.rails],
        }

    async def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one question."""
        session = api.Session(request["session"])
        if request["do"] == "invoke":
            return await self._invoke(request, session)
        return await self._hook(request, session)

    def close(self) -> None:
        """Tell the rails that they are unloaded."""
        for _, rail in self.rails:
            rail.uninit(None)

    def _make(self, entry: Mapping[str, str], kind: type) -> Any:
        where = f"{entry['module']}:{entry['class']}"
        try:
            module = importlib.import_module(entry["module"])
            made = getattr(module, entry["class"])
        except BaseException as error:  # sys.exit() at import is the package's failure too
            return self._fault("module_import_failed", where, error)
        if not (isinstance(made, type) and issubclass(made, kind)):
            what = TypeError(f"it is no subclass of {kind.__name__}")
            return self._fault("class_init_failed", where, what)
        try:
            thing = made()
            if isinstance(thing, api.Tool) and not hasattr(thing, "card"):
                raise TypeError("it has no card; call super().__init__(ToolCard(...))")
        except BaseException as error:
            return self._fault("class_init_failed", where, error)
        return thing

    def _init(self) -> None:
        for name, rail in self.rails:
            for hook in _not_async(rail):
                what = TypeError(f"the hook {hook} is no 'async def'")
                self._fault("rail_hook_not_observed", name, what)
            try:
                rail.init(None)
            except BaseException as error:
                self._fault("rail_not_registered", name, error)

    def _fault(self, code: str, where: str, error: BaseException) -> None:
        if error.__traceback__ is not None:
            traceback.print_exception(error)
        self.faults.append({"code": code, "where": where, "error": _shown(error)})

    async def _invoke(self, request: Mapping[str, Any], session: api.Session) -> dict[str, Any]:
        tool = next(tool for _, tool in self.tools if tool.card.name == request["tool"])
        try:
            seconds = request["timeout"]
            async with asyncio.timeout(seconds):
                result = await tool.invoke(request["arguments"], session=session)
        except BaseException as error:
            traceback.print_exception(error)
            return {"error": _shown(error)}
        if isinstance(result, api.ToolOutput):
            output = {"success": result.success, "data": result.data, "error": result.error}
            return {"result": output}
        return {"result": result}

    async def _hook(self, request: Mapping[str, Any], session: api.Session) -> dict[str, Any]:
        inputs = api.CallInputs(**request["inputs"])
        name = request["hook"]
        if name == "before_tool_call":
            self.extra = {}
        context = api.Context(session, inputs, self.extra, request.get("exception", ""))
        ran: list[str] = []
        faults: list[dict[str, str]] = []
        for label, rail in self.rails:
            if name not in _hooks(rail) or "finish" in context.effects:
                continue
            try:
                await getattr(rail, name)(context)
                ran.append(label)
            except api.AbortError as stop:
                ran.append(label)
                context.effects["finish"] = {"stopped": str(stop)}
            except BaseException as error:
                traceback.print_exception(error)
                faults.append({"rail": label, "error": _shown(error)})
        effects = dict(context.effects)
        if inputs.tool_args != request["inputs"].get("tool_args"):
            effects["arguments"] = inputs.tool_args
        return {"ran": ran, "faults": faults, "effects": effects}


def _make_importable(root: Path, prefix: str) -> None:
    """Let the package be imported under its namespace and its siblings not at all."""
    parts = prefix.split(".")
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        module = types.ModuleType(name)
        module.__path__ = [str(root.parent)] if count == len(parts) else []
        sys.modules[name] = module
    if parts[0] == "openjiuwen":
        _stand_in()


def _stand_in() -> None:
    for name, words in KNOWN_ELSEWHERE.items():
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            inner = ".".join(parts[:count])
            if inner not in sys.modules:
                module = types.ModuleType(inner)
                module.__path__ = []
                sys.modules[inner] = module
        for word, ours in words.items():
            setattr(sys.modules[name], word, getattr(api, ours))


def _hooks(rail: api.Rail) -> list[str]:
    return [name for name in api.HOOKS if getattr(type(rail), name) is not getattr(api.Rail, name)]


def _timeout(card: api.ToolCard) -> float | None:
    resilience = dict(card.properties or {}).get("resilience") or {}
    seconds = resilience.get("timeout_s")
    return float(seconds) if isinstance(seconds, int | float) and seconds > 0 else None


def _shown(error: BaseException) -> str:
    lines = "".join(traceback.format_exception_only(error)).strip()
    return (lines or type(error).__name__)[-TAIL:]


def _not_async(rail: api.Rail) -> list[str]:
    return [n for n in _hooks(rail) if not inspect.iscoroutinefunction(getattr(rail, n))]
