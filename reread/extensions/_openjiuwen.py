"""The package's side in the real openjiuwen: a DeepAgent loads it and answers one question a line.

It runs in the sandbox, with an interpreter in whose environment openjiuwen is. Loading goes by the
runtime's own path, hooks are fired through its callback manager, tools are called through its
ability manager; the program drives the turns, with a scripted model of its own.

Capability is told by `hasattr`, since the releases differ more than their numbers say. Hook
exceptions, which the runtime swallows, are caught on their way; a rail counts as registered when
its object is found, not when a label says so.

Proves: this release loads the package, and its registries call it.
Does not prove: that a model of that runtime would.
"""
# mypy: ignore-errors

from __future__ import annotations

import asyncio
import importlib.metadata
import inspect
import json
import os
import traceback
from pathlib import Path

from reread.extensions._serve import _foreign, _say, _shown, iter_lines

AGENT = "reread-verify"
AGENT_EVENTS = ("before_invoke", "after_invoke", "before_task_iteration", "after_task_iteration")


def main() -> None:
    """Take over the channel on stdin, and keep what everything prints away from it."""
    channel = os.fdopen(os.dup(0), "r+b", buffering=0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    lines = iter_lines(channel)
    opening = json.loads(next(lines))
    nonce = opening["nonce"]
    with asyncio.Runner() as runner:
        host = Host(opening)
        _say(channel, nonce, 0, runner.run(host.load()))
        for line in lines:
            request = json.loads(line)
            _say(channel, nonce, request["id"], runner.run(host.answer(request)))


class Host:
    """A DeepAgent with one package in it."""

    def __init__(self, opening) -> None:
        self.root = Path(opening["root"])
        self.entries = opening
        self.ran: list[str] = []
        self.faults: list[dict[str, str]] = []
        self.sessions: dict[str, object] = {}
        self.steering: asyncio.Queue | None = None
        self.prompt = ""

    async def load(self):
        """Load the package as the runtime does, and say what is there afterwards."""
        work = Path.cwd()
        os.chdir(os.environ["HOME"])  # the runtime writes its logs where it starts
        _keep_logs_here()
        self._watch()
        await self._build()
        os.chdir(work)
        try:
            path = str(self.root / "harness_config.yaml")
            entry = "load_plugin" if hasattr(self.agent, "load_plugin") else "load_harness_config"
            await getattr(self.agent, entry)(path)
        except BaseException as error:  # sys.exit() at import is the package's failure too
            traceback.print_exception(error)
            return {"faults": [self._fault(error)]}
        return await self._described()

    async def answer(self, request):
        """Answer one question."""
        if request["do"] == "invoke":
            return await self._invoke(request)
        return await self._hook(request)

    # -- loading

    def _watch(self) -> None:
        """Catch what hooks raise, and keep the id that a tool gave its card."""
        from openjiuwen.core.foundation.tool import Tool
        from openjiuwen.core.single_agent.rail.base import AgentRail

        made, listed, host = Tool.__init__, AgentRail.get_callbacks, self

        def init(tool, card, *more, **named):
            tool.__dict__["_given_id"] = getattr(card, "id", None)
            made(tool, card, *more, **named)

        def get_callbacks(rail):
            kept = rail.__dict__.setdefault("_watched", {})
            for event, method in listed(rail).items():
                kept.setdefault(event, host._watched(type(rail).__name__, method))
            return kept

        Tool.__init__, AgentRail.get_callbacks = init, get_callbacks

    def _watched(self, name, method):
        async def hook(context):
            try:
                result = method(context)
                if inspect.isawaitable(result):
                    result = await result
            except BaseException as error:
                if type(error).__name__ == "AbortError":
                    self.ran.append(name)
                else:
                    traceback.print_exception(error)
                    self.faults.append({"rail": name, "error": _shown(error)})
                raise
            self.ran.append(name)
            return result

        return hook

    async def _build(self) -> None:
        from openjiuwen.core.runner import Runner
        from openjiuwen.core.single_agent import AgentCard
        from openjiuwen.core.sys_operation import LocalWorkConfig, OperationMode, SysOperationCard
        from openjiuwen.harness import DeepAgentConfig
        from openjiuwen.harness.deep_agent import DeepAgent
        from openjiuwen.harness.rails import SkillUseRail

        self.runner = Runner
        card = SysOperationCard(
            id=f"{AGENT}-system",
            mode=OperationMode.LOCAL,
            work_config=LocalWorkConfig(shell_allowlist=[]),
        )
        Runner.resource_mgr.add_sys_operation(card)
        system = Runner.resource_mgr.get_sys_operation(card.id)
        self.card = AgentCard(name=AGENT, description="verifies a package")
        config = DeepAgentConfig(enable_task_loop=False, sys_operation=system)
        self.agent = DeepAgent(self.card).configure(config)
        if hasattr(self.agent, "load_plugin"):
            self.skills = SkillUseRail(skills_dir=[], include_tools=False)
            await self.agent.register_rail(self.skills)
        self.prompt = self._prompt()

    def _fault(self, error):
        cause = error.__cause__ or error
        frames = traceback.extract_tb(cause.__traceback__)
        inner = [frame for frame in frames if str(self.root) in frame.filename]
        names = {frame.name for frame in inner}
        code = "harness_load_failed"
        if isinstance(cause, ImportError | SyntaxError | FileNotFoundError) or "<module>" in names:
            code = "module_import_failed"
        elif "init" in names:
            code = "rail_not_registered"
        elif "__init__" in names or isinstance(cause, TypeError | AttributeError):
            code = "class_init_failed"
        elif "already" in str(cause):
            code = "tool_not_registered"
        where = f"{inner[-1].name} of {Path(inner[-1].filename).name}" if inner else self.root.name
        return {"code": code, "where": where, "error": _shown(cause)}

    async def _described(self):
        tools, rails, faults = [], [], []
        self.tools = {}
        held = self._held_tools()
        for entry in self.entries["tools"]:
            found = [tool for tool in held if type(tool).__name__ == entry["class"]]
            if not found:
                text = "no tool of this class is in the agent's registry"
                faults.append(
                    {"code": "tool_not_registered", "where": entry["class"], "error": text}
                )
                continue
            card = found[0].card
            self.tools[card.name] = card
            tools.append({"class": entry["class"], **_card(found[0])})
        for entry in self.entries["rails"]:
            rail = self._rail(entry["class"])
            if rail is None:
                text = "no rail of this class is registered at the agent"
                faults.append(
                    {"code": "rail_not_registered", "where": entry["class"], "error": text}
                )
                continue
            hooks = [getattr(event, "value", str(event)) for event in rail.get_callbacks()]
            rails.append({"class": entry["class"], "hooks": hooks})
        faults += await self._lost_skills()
        if faults:
            return {"faults": faults}
        release = importlib.metadata.version("openjiuwen")
        return {"tools": tools, "rails": rails, "runtime": f"openjiuwen {release}"}

    async def _lost_skills(self):
        """Return a fault for each skill folder that the runtime's own loader does not list."""
        from openjiuwen.harness.rails import SkillUseRail

        rails = [rail for rail in self.agent._registered_rails if isinstance(rail, SkillUseRail)]
        known = set()
        for rail in rails:
            await rail.reload_skills()
            known |= {skill.name for skill in rail.skills}
        folders = [self.root / folder for folder in self.entries["skills"]]
        wanted = [path.parent.name for folder in folders for path in folder.glob("*/SKILL.md")]
        return [
            {"code": "skill_not_loaded", "where": name, "error": "the agent does not list it"}
            for name in wanted
            if name not in known
        ]

    def _held_tools(self):
        cards = self.agent.ability_manager.list()
        held = [self.runner.resource_mgr.get_tool(card.id) for card in cards]
        return [tool for tool in held if tool is not None]

    def _rail(self, name):
        held = getattr(self.agent, "_registered_rails", ())
        return next((rail for rail in held if type(rail).__name__ == name), None)

    # -- answering

    def _session(self, name):
        from openjiuwen.core.session.agent import create_agent_session

        if name not in self.sessions:
            self.sessions[name] = create_agent_session(session_id=name, card=self.card)
        return self.sessions[name]

    async def _invoke(self, request):
        """Call a tool through the ability manager; the hooks around it are asked for apart."""
        from openjiuwen.core.foundation.llm import ToolCall
        from openjiuwen.core.single_agent.rail.base import AgentCallbackContext

        session = self._session(request["session"])
        # Tool hooks hang on the inner agent; with the outer one here none of them fires twice.
        context = AgentCallbackContext(agent=self.agent, session=session)
        arguments = json.dumps(request["arguments"])
        call = ToolCall(id="call", type="function", name=request["tool"], arguments=arguments)
        [(result, message)] = await self.agent.ability_manager.execute(context, call, session)
        if result is None:
            return {"error": str(getattr(message, "content", message))[-4000:] or "no result"}
        if hasattr(result, "success") and hasattr(result, "data"):
            output = {"success": result.success, "data": result.data, "error": result.error}
            return {"result": output}
        return {"result": result}

    async def _hook(self, request):
        from openjiuwen.core.single_agent.rail.base import AgentCallbackEvent

        name = request["hook"]
        outer = name in AGENT_EVENTS
        agent = self.agent if outer else self.agent._react_agent
        context = self._context(agent, request)
        event = AgentCallbackEvent(name)
        self.ran, self.faults, effects = [], [], {}
        ours = {entry["class"] for entry in self.entries["rails"]}
        try:
            await agent.agent_callback_manager.execute(event, context)
        except Exception as stop:  # AbortError: what the runtime lets through stops the call
            effects["finish"] = {"stopped": str(stop)}
        if context.has_force_finish_request:
            effects["finish"] = context.consume_force_finish().result
        changed = getattr(context.inputs, "tool_args", None)
        if name == "before_tool_call" and changed != self.given:
            effects["arguments"] = json.loads(changed) if isinstance(changed, str) else changed
        said = []
        while not self.steering.empty():
            said.append(str(self.steering.get_nowait()))
        if said:
            effects["steering"] = said
        added = self._prompt()
        if name == "before_invoke" and added != self.prompt:
            known = set(self.prompt.splitlines())
            effects["prompt"] = [line for line in added.splitlines() if line not in known]
        if self.stream:
            effects["stream"] = json.loads(json.dumps(self.stream, default=_foreign))
        return {
            "ran": [name for name in self.ran if name in ours],
            "faults": [fault for fault in self.faults if fault["rail"] in ours],
            "effects": effects,
        }

    def _context(self, agent, request):
        from openjiuwen.core.single_agent.rail import base

        given, name = request["inputs"], request["hook"]
        if "tool" in name:
            self.given = json.dumps(given.get("tool_args") or {})
            inputs = base.ToolCallInputs(
                tool_name=given.get("tool_name", ""),
                tool_args=self.given,
                tool_result=given.get("tool_result"),
            )
        elif "model" in name:
            inputs = base.ModelCallInputs(messages=list(given.get("messages", ())))
        else:
            inputs = base.InvokeInputs(query="")
        session = self._session(request["session"])
        context = base.AgentCallbackContext(agent=agent, inputs=inputs, session=session)
        self.steering, self.stream = asyncio.Queue(), []
        context.bind_steering_queue(self.steering)

        async def write_stream(data):
            self.stream.append(data)

        session.write_stream = write_stream
        return context

    def _prompt(self) -> str:
        builder = getattr(self.agent, "system_prompt_builder", None)
        return str(builder.build()) if builder is not None else ""


def _keep_logs_here() -> None:
    """Let the logs go below the present folder whatever the folder is later."""
    try:
        from openjiuwen.core.common.logging import log_config
    except ImportError:
        return  # a release without such a module logs where it was imported
    if hasattr(log_config, "get_log_config_snapshot"):
        log_config.configure_log_config(_absolute(log_config.get_log_config_snapshot()))


def _absolute(value):
    if isinstance(value, dict):
        return {key: _absolute(inner) for key, inner in value.items()}
    relative = isinstance(value, str) and value.startswith(("./", "logs"))
    return str(Path(value).resolve()) if relative else value


def _card(tool):
    card = tool.card
    resilience = dict(card.properties or {}).get("resilience") or {}
    parameters = card.input_params
    if hasattr(parameters, "model_json_schema"):
        parameters = parameters.model_json_schema()
    return {
        "id": tool.__dict__.get("_given_id", card.id),
        "name": card.name,
        "description": card.description,
        "input_params": parameters,
        "timeout": resilience.get("timeout_s"),
    }
