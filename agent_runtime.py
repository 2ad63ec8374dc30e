"""The kernel: a loop that asks a model, runs the tools that it calls, and stops.

It knows nothing of files, skills or formats. Tools, rails and the model are handed in; the file
could be lifted out on its own.

Proves: every tool call gets exactly one answer; no handler runs with arguments that its schema
refuses; no limit is passed before a request is made.
Does not prove: that anything the model says is true. Whoever wants to know reads the disk.

Exceptions: `Failure` is the only class. A Failure inside a tool is told to the model; any other
exception is a bug of the program and propagates.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

Message = dict[str, Any]
"""A Chat Completions message as it goes over the wire."""


class Failure(Exception):
    """Something could not be done. The one exception class.

    Attributes:
        code: stable, snake_case, searchable.
        cause: one sentence with the offending value in it.
        remedy: what to do, as a command where there is one.
        details: JSON values for the model and the record (stdout, paths); may be empty.
    """

    def __init__(
        self, code: str, cause: str, remedy: str, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(f"{code}: {cause}\n  {remedy}")
        self.code = str(code)
        self.cause = cause
        self.remedy = remedy
        self.details = dict(details or {})

    def as_json(self) -> dict[str, Any]:
        """Return it as the model and the record see it."""
        return {
            "ok": False,
            "code": self.code,
            "cause": self.cause,
            "remedy": self.remedy,
            **self.details,
        }


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a model asked for.

    Attributes:
        arguments: decoded; empty where `fault` says why they could not be.
        fault: the call must not run: its arguments do not decode, or the output was cut.
        repaired: decoding needed a guess; such a call never runs on a tool that changes something.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    fault: Failure | None = None
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money of one request or of a run. `estimated`: the service did not say."""

    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.usd + other.usd,
            self.estimated or other.estimated,
        )

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Reply:
    """One turn of a model.

    Attributes:
        message: what goes into the history, calls included, as the service wants it back.
        nudge: where it is no answer (empty, cut off), what to tell the model, once in a round.
    """

    text: str
    calls: tuple[ToolCall, ...]
    message: Message
    usage: Usage = Usage()
    nudge: str = ""


class Model(Protocol):
    """Whatever answers a history with text and calls."""

    async def reply(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
        """Answer. Raises Failure (`model_failed`, `limit_reached`, …) when there is no answer."""
        ...

    async def aclose(self) -> None:
        """Release connections. Called on every path, also after a failure; safe to call twice."""
        ...


@runtime_checkable
class Metered(Protocol):
    """A model whose requests cost something that can be foreseen."""

    def expect(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Usage:
        """Estimate the next request. Raises Failure context_too_long where it cannot fit."""
        ...


@dataclass(frozen=True, slots=True)
class Tool:
    """One power of the model.

    Attributes:
        parameters: JSON Schema, draft 2020-12, of type object; extra arguments are refused by
            `additionalProperties: false`.
        handler: takes the checked arguments; returns JSON values; raises Failure to say no.
        changes: it changes something, so it never runs on arguments that were guessed.
        ends_round: a Failure of it ends the round at once.
        subject: names what a call is about; a later success with the same subject resolves an
            earlier failure. Default: the tool itself.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    handler: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
    changes: bool = False
    ends_round: bool = False
    subject: Callable[[Mapping[str, Any]], str] = field(default=lambda arguments: "")


class Rail:
    """Hooks around the loop. Override what is needed; a Failure raised in a hook is meant.

    Only `before_tool_call` may stop or rewrite: it returns the call that shall run, or raises
    Failure, which becomes the answer of the call.
    """

    async def before_run(self, prompt: str) -> str:
        """Return a section to add to the system prompt, or ''."""
        return ""

    async def before_model_call(self, messages: Sequence[Message]) -> Sequence[str]:
        """Return steering texts; each joins the history as a user message before the request."""
        return ()

    async def after_model_call(self, reply: Reply) -> None:
        """See what the model answered."""

    async def before_tool_call(self, call: ToolCall) -> ToolCall:
        """Return the call to run, changed or not; raise Failure to stop it."""
        return call

    async def after_tool_call(self, call: ToolCall, result: Mapping[str, Any]) -> None:
        """See the answer that the model will get."""

    async def after_run(self, round: Round) -> None:
        """See how the round ended."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run, its repairs included, may use. `None` means no limit was asked for.

    Attributes:
        turns: requests to the model.
        tool_calls: calls answered, skipped ones included.
        tokens: input and output together, estimated where the service does not say.
        usd: by the price table.
        timeout: seconds of wall time.
    """

    turns: int | None = 60
    tool_calls: int | None = 200
    tokens: int | None = None
    usd: float | None = None
    timeout: float | None = 1800.0


class Budget:
    """What is left of the limits of one run. Asked before each request, told after it.

    A request is refused when what was used already, plus what this one is reserved, would pass a
    limit; so a limit can be missed by at most the part of one answer that nobody could foresee.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.turns = 0
        self.tool_calls = 0
        self.usage = Usage()
        self._started = time.monotonic()

    def reserve_turn(self, expected: Usage = Usage()) -> None:
        """Count a request to the model. Raises Failure limit_reached."""
        after = self.usage + expected
        self._hold("turns", self.turns + 1, self.limits.turns, "--max-turns")
        self._hold("tokens", after.tokens, self.limits.tokens, "--max-tokens")
        self._hold("usd", after.usd, self.limits.usd, "--max-usd")
        self._hold_time()
        self.turns += 1

    def reserve_call(self) -> None:
        """Count a tool call. Raises Failure limit_reached."""
        self._hold("tool calls", self.tool_calls + 1, self.limits.tool_calls, "--max-tool-calls")
        self._hold_time()
        self.tool_calls += 1

    def commit(self, usage: Usage) -> None:
        """Add what a request really used."""
        self.usage += usage

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Cancel what runs inside when the time is up. Raises Failure limit_reached."""
        if self.limits.timeout is None:
            yield
            return
        try:
            async with asyncio.timeout(self._started + self.limits.timeout - time.monotonic()):
                yield
        except TimeoutError:
            raise self._passed("seconds", self.limits.timeout, "--timeout") from None

    def _hold_time(self) -> None:
        self._hold("seconds", time.monotonic() - self._started, self.limits.timeout, "--timeout")

    def _hold(self, what: str, used: float, limit: float | None, flag: str) -> None:
        if limit is not None and used > limit:
            raise self._passed(what, limit, flag)

    def _passed(self, what: str, limit: float, flag: str) -> Failure:
        return Failure(
            "limit_reached",
            f"The limit of {limit:g} {what} for this run is reached.",
            f"Raise it with {flag}, or make the task smaller.",
            {"limit": what},
        )


@dataclass(frozen=True, slots=True)
class ToolError:
    """A call that failed. It is resolved when a later call with the same subject succeeds."""

    tool: str
    subject: str
    code: str
    cause: str
    remedy: str
    resolved: bool = False


class Conversation:
    """What outlives a round: the history, the budget, and the errors of tools."""

    def __init__(self, messages: Iterable[Message], budget: Budget) -> None:
        self.messages = list(messages)
        self.budget = budget
        self.errors: list[ToolError] = []
        self.opened = False
        self._same_failure: Counter[str] = Counter()

    @property
    def unresolved(self) -> tuple[ToolError, ...]:
        """The errors that no later success has resolved."""
        return tuple(error for error in self.errors if not error.resolved)

    def failed(self, tool: str, subject: str, failure: Failure) -> None:
        """Remember a failed call."""
        self.errors.append(ToolError(tool, subject, failure.code, failure.cause, failure.remedy))

    def succeeded(self, tool: str, subject: str) -> None:
        """Resolve the earlier failures of the same tool and subject."""
        self.errors = [
            _resolved(error) if (error.tool, error.subject) == (tool, subject) else error
            for error in self.errors
        ]

    def repeats(self, call: ToolCall) -> int:
        """Count how often exactly this call has failed, this time included."""
        key = json.dumps([call.name, dict(call.arguments)], sort_keys=True, default=str)
        self._same_failure[key] += 1
        return self._same_failure[key]


def _resolved(error: ToolError) -> ToolError:
    return ToolError(error.tool, error.subject, error.code, error.cause, error.remedy, True)


RoundStatus = Literal["complete", "tool-failed", "call-repeated", "limit-reached", "model-failed"]


@dataclass(frozen=True, slots=True)
class Round:
    """One pass of the loop until the model stopped or something stopped it.

    Attributes:
        status: `complete` says only that the model stopped by itself.
        text: the last thing it said.
        failure: what ended the round, `None` for `complete`.
    """

    status: RoundStatus
    text: str
    failure: Failure | None = None


Shorten = Callable[[Sequence[Message]], "list[Message] | None"]
"""Makes a history shorter, or answers None where nothing can be cut."""

SAME_FAILURE_LIMIT = 3


async def run_agent(
    model: Model,
    conversation: Conversation,
    tools: Sequence[Tool],
    *,
    rails: Sequence[Rail] = (),
    shorten: Shorten | None = None,
) -> Round:
    """Ask the model and run its tools until it stops calling them.

    Raises whatever is neither a Failure nor an answer: that is a bug, or a cancellation.
    """
    desk = _Desk(conversation, tools, rails)
    text, nudged = "", False
    await _open(conversation, rails)
    try:
        while True:
            reply = await _ask(model, desk, shorten)
            text = reply.text or text
            if not reply.calls and (not reply.nudge or nudged):
                ended = Round("complete", text)
                break
            if not reply.calls:
                nudged = True
                conversation.messages.append({"role": "user", "content": reply.nudge})
                continue
            stopped = await desk.answer(reply.calls)
            if stopped:
                ended = Round(stopped.status, text, stopped.failure)
                break
    except Failure as failure:
        status: RoundStatus = "limit-reached" if failure.code == "limit_reached" else "model-failed"
        ended = Round(status, text, failure)
    for rail in rails:
        await rail.after_run(ended)
    return ended


async def _open(conversation: Conversation, rails: Sequence[Rail]) -> None:
    """Let the rails add to the system prompt, once for a conversation."""
    if conversation.opened:
        return
    conversation.opened = True
    first = conversation.messages[0] if conversation.messages else {"role": "none"}
    prompt = str(first.get("content", "")) if first["role"] == "system" else ""
    sections = [section for rail in rails if (section := await rail.before_run(prompt))]
    if sections and first["role"] == "system":
        first["content"] = "\n\n".join([prompt, *sections])
    elif sections:
        conversation.messages.insert(0, {"role": "system", "content": "\n\n".join(sections)})


async def _ask(model: Model, desk: _Desk, shorten: Shorten | None) -> Reply:
    """Make one request, a second one with a shorter history where the first was too long."""
    conversation = desk.conversation
    for rail in desk.rails:
        for text in await rail.before_model_call(conversation.messages):
            conversation.messages.append({"role": "user", "content": text})
    try:
        reply = await _request(model, desk)
    except Failure as failure:
        shorter = (
            shorten(conversation.messages)
            if shorten and failure.code == "context_too_long"
            else None
        )
        if shorter is None:
            raise
        conversation.messages[:] = shorter
        reply = await _request(model, desk)
    conversation.messages.append(reply.message)
    for rail in desk.rails:
        await rail.after_model_call(reply)
    return reply


async def _request(model: Model, desk: _Desk) -> Reply:
    budget = desk.conversation.budget
    messages, tools = desk.conversation.messages, desk.tools
    budget.reserve_turn(model.expect(messages, tools) if isinstance(model, Metered) else Usage())
    async with budget.running():
        reply = await model.reply(messages, tools)
    budget.commit(reply.usage)
    return reply


@dataclass(frozen=True, slots=True)
class _Stop:
    status: RoundStatus
    failure: Failure


class _Desk:
    """Answers tool calls: each exactly once, whatever happens."""

    def __init__(
        self, conversation: Conversation, tools: Sequence[Tool], rails: Sequence[Rail]
    ) -> None:
        self.conversation = conversation
        self.tools = tools
        self.rails = rails
        self._by_name = {tool.name: tool for tool in tools}

    async def answer(self, calls: Sequence[ToolCall]) -> _Stop | None:
        """Run the calls of one turn in order; after a stop the rest is answered as skipped."""
        stop: _Stop | None = None
        for call in calls:
            if stop:
                self._say(call, _skipped(stop.failure).as_json())
                continue
            try:
                stop = await self._run(call)
            except BaseException:
                # A bug or a cancellation: the history must stay one that a service accepts.
                self._say_cancelled(calls)
                raise
        return stop

    async def _run(self, call: ToolCall) -> _Stop | None:
        tool = self._by_name.get(call.name)
        stop: _Stop | None = None
        try:
            self.conversation.budget.reserve_call()
            for rail in self.rails:
                call = await rail.before_tool_call(call)
            result = await self._handle(tool, call)
        except Failure as failure:
            self.conversation.failed(call.name, _subject(tool, call), failure)
            stop = self._stop(tool, call, failure)
            result = failure.as_json()
        else:
            self.conversation.succeeded(call.name, _subject(tool, call))
        self._say(call, result)
        for rail in self.rails:
            await rail.after_tool_call(call, result)
        return stop

    async def _handle(self, tool: Tool | None, call: ToolCall) -> Mapping[str, Any]:
        if call.fault:
            raise call.fault
        if tool is None:
            raise _no_such_tool(call.name, self._by_name)
        if call.repaired and tool.changes:
            raise _guessed(call)
        check_arguments(tool, call.arguments)
        async with self.conversation.budget.running():
            return {"ok": True, **await tool.handler(call.arguments)}

    def _stop(self, tool: Tool | None, call: ToolCall, failure: Failure) -> _Stop | None:
        if failure.code == "limit_reached":
            return _Stop("limit-reached", failure)
        if tool is not None and tool.ends_round:
            return _Stop("tool-failed", failure)
        if self.conversation.repeats(call) >= SAME_FAILURE_LIMIT:
            return _Stop("call-repeated", _repeated(call, failure))
        return None

    def _say(self, call: ToolCall, result: Mapping[str, Any]) -> None:
        text = json.dumps(result, ensure_ascii=False, default=str)
        # A lone surrogate cannot be sent as UTF-8; it is shown as an escape instead.
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
        self.conversation.messages.append(
            {"role": "tool", "tool_call_id": call.id, "content": text}
        )

    def _say_cancelled(self, calls: Sequence[ToolCall]) -> None:
        answered = {message.get("tool_call_id") for message in self.conversation.messages}
        for call in calls:
            if call.id not in answered:
                self._say(call, {"ok": False, "code": "interrupted"})


def _subject(tool: Tool | None, call: ToolCall) -> str:
    return tool.subject(call.arguments) if tool else ""


def _skipped(cause: Failure) -> Failure:
    return Failure(
        "tool_call_skipped",
        f"An earlier call of this turn ended the round ({cause.code}), so this one did not run.",
        "Deal with that failure first.",
    )


def _no_such_tool(name: str, known: Iterable[str]) -> Failure:
    return Failure(
        "tool_unknown", f"There is no tool '{name}'.", f"Use one of: {', '.join(sorted(known))}."
    )


def _guessed(call: ToolCall) -> Failure:
    return Failure(
        "tool_arguments_invalid",
        f"The arguments of '{call.name}' were not valid JSON and could only be guessed.",
        "Call it again with valid JSON. Nothing was run.",
    )


def _repeated(call: ToolCall, failure: Failure) -> Failure:
    return Failure(
        "call_repeated",
        f"The same call of '{call.name}' failed {SAME_FAILURE_LIMIT} times ({failure.code}).",
        failure.remedy,
    )


_VALIDATORS: dict[int, tuple[Mapping[str, Any], Any]] = {}


def check_arguments(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Hold arguments against the tool's schema (JSON Schema, draft 2020-12).

    Raises:
        Failure: tool_arguments_invalid, with every violation in its cause.
    """
    try:
        json.dumps(dict(arguments), ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as error:
        raise Failure(
            "tool_arguments_invalid",
            f"The arguments of '{tool.name}' hold a lone surrogate, which is no character.",
            "Call it again with text that is valid Unicode. Nothing was run.",
        ) from error
    schema = tool.parameters
    kept = _VALIDATORS.get(id(schema))
    if kept is None or kept[0] is not schema:
        from jsonschema import Draft202012Validator  # costs 100 ms; `--help` needs none of it

        kept = _VALIDATORS[id(schema)] = (schema, Draft202012Validator(schema))
    errors = sorted(kept[1].iter_errors(dict(arguments)), key=lambda error: error.json_path)
    if errors:
        causes = "; ".join(f"{error.json_path}: {error.message}"[:300] for error in errors[:5])
        raise Failure(
            "tool_arguments_invalid",
            f"The arguments of '{tool.name}' do not fit its schema: {causes}",
            "Call it again with exactly the arguments that the schema names. Nothing was run.",
        )


ScriptStep = Reply | Callable[[], Awaitable[None]]


class ScriptedModel(Rail):
    """A model whose turns are fixed beforehand, one list of turns for each round.

    A turn is a Reply, or a step of the host: an async function called when its place comes. A
    round that runs out of turns ends. It is its own rail, which is how it learns that a round
    ended early and what is left of it must be dropped.
    """

    def __init__(self, rounds: Sequence[Sequence[ScriptStep]]) -> None:
        self._rounds = [list(turns) for turns in rounds]
        self._turns = self._rounds.pop(0) if self._rounds else []

    async def reply(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
        """Return the next fixed turn."""
        while self._turns:
            step = self._turns.pop(0)
            if isinstance(step, Reply):
                if not step.calls:
                    await self._host_steps()
                return step
            await step()
        return scripted("")

    async def after_run(self, round: Round) -> None:
        """Go on to the turns of the next round."""
        self._turns = self._rounds.pop(0) if self._rounds else []

    async def aclose(self) -> None:
        """Nothing is held open."""

    async def _host_steps(self) -> None:
        """Run the host's steps that stand behind the last word of the model."""
        while self._turns and not isinstance(self._turns[0], Reply):
            step = self._turns.pop(0)
            if not isinstance(step, Reply):
                await step()


def scripted(text: str, *calls: tuple[str, Mapping[str, Any]], turn: int = 0) -> Reply:
    """Build a fixed turn: what the model says and the (tool, arguments) that it calls."""
    made = tuple(
        ToolCall(f"call_{turn}_{index}", name, arguments)
        for index, (name, arguments) in enumerate(calls)
    )
    return Reply(text, made, assistant_message(text, made))


def assistant_message(text: str, calls: Sequence[ToolCall]) -> Message:
    """Build the history entry of an assistant turn."""
    message: Message = {"role": "assistant", "content": text if text or not calls else None}
    if calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": json.dumps(dict(call.arguments), ensure_ascii=False),
                },
            }
            for call in calls
        ]
    return message
