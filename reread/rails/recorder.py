"""Writes every turn and every answer into the record, before anything follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_runtime import Message, Rail, Reply, Round, ToolCall
from reread.records import Record
from reread.summary import usage


class Recorder(Rail):
    """The rail of the record."""

    def __init__(self, record: Record) -> None:
        self._record = record

    async def before_model_call(self, messages: Sequence[Message]) -> Sequence[str]:
        """Say that a request goes out; one without an answer was in flight when the run died."""
        self._record.event("model.asked", {"messages": len(messages)})
        return ()

    async def after_model_call(self, reply: Reply) -> None:
        """Keep the whole turn, as the service wants it back."""
        self._record.event(
            "model.replied",
            {
                "text": reply.text,
                "calls": [_call(call) for call in reply.calls],
                "message": reply.message,
                "usage": usage(reply.usage),
                "nudge": reply.nudge,
            },
        )

    async def before_tool_call(self, call: ToolCall) -> ToolCall:
        """Say what is about to run."""
        self._record.event("tool.called", _call(call))
        return call

    async def after_tool_call(self, call: ToolCall, result: Mapping[str, Any]) -> None:
        """Keep the answer that the model gets."""
        self._record.event("tool.answered", {"id": call.id, "name": call.name, "result": result})

    async def after_run(self, round: Round) -> None:
        """Say how the round ended."""
        failure = round.failure.as_json() if round.failure else None
        self._record.event("round.ended", {"status": round.status, "failure": failure})


def _call(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "name": call.name,
        "arguments": dict(call.arguments),
        "fault": call.fault.as_json() if call.fault else None,
        "repaired": call.repaired,
    }
