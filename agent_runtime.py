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

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

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
    """

    text: str
    calls: tuple[ToolCall, ...]
    message: Message
    usage: Usage = Usage()


class Model(Protocol):
    """Whatever answers a history with text and calls."""

    async def reply(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
        """Answer. Raises Failure (`model_failed`, `limit_reached`, …) when there is no answer."""
        ...

    async def aclose(self) -> None:
        """Release connections. Called on every path, also after a failure; safe to call twice."""
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
