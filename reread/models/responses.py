"""The Responses API, for the services that have it, behind the same model.

The history stays the loop's own, in the words of Chat Completions; here it is said in the other
API's words and back. Nothing is stored at the service: each request carries the whole history, and
reasoning that the service encrypted goes back to it as it came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_runtime import Message, Tool
from reread.models._dialect import Ear, Encoder, Heard, function
from reread.models._history import Wire
from reread.models._profile import Profile

ITEMS = "responses_items"
"""Field of a history's assistant message that keeps the items as the service sent them."""
_RENAMED = {"max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}


class Responses:
    """The Responses API."""

    path = "/responses"
    items = "input"

    def encoder(self) -> Encoder:
        """Return an encoder that keeps what it has encoded."""
        return Wire(_said)

    def head(
        self, wanted: Mapping[str, Any], tools: Sequence[Tool], profile: Profile, *, stream: bool
    ) -> dict[str, Any]:
        """Return the request without its input; nothing is stored at the service."""
        asked = {_RENAMED.get(name, name): value for name, value in wanted.items()}
        strict = bool(asked.pop("strict", False)) and profile.strict
        extra = {"store": False, "include": ["reasoning.encrypted_content"]}
        made = profile.parameters({**extra, **asked})
        if stream:
            made["stream"] = True
        if tools:
            # `strict` is on by default in this API, and the schemas of tools need not be strict.
            made["tools"] = [
                {"type": "function", "strict": strict, **function(tool, profile, strict=False)}
                for tool in tools
            ]
        else:
            made.pop("tool_choice", None)
        return made

    def ear(self) -> Ear:
        """Return a collector of events."""
        return _Ear()

    def plain(self, value: Mapping[str, Any]) -> Heard:
        """Read a whole response."""
        output = value.get("output")
        usage = value.get("usage") if isinstance(value.get("usage"), dict) else None
        status = str(value.get("status") or "completed")
        if value.get("error") or not isinstance(output, list) or status in ("failed", "cancelled"):
            return Heard(None, "", usage, value.get("error") or {"message": f"it ended {status}"})
        items = [item for item in output if isinstance(item, dict)]
        return Heard(_message(items), _finish(value, status), usage)


class _Ear:
    """Collects the events of a stream; the last one repeats the whole response."""

    def __init__(self) -> None:
        self._items: dict[int, dict[str, Any]] = {}
        self._whole: Mapping[str, Any] | None = None
        self._error: Any = None

    def add(self, event: Mapping[str, Any]) -> tuple[str, str]:
        kind = str(event.get("type") or "")
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            response = event.get("response")
            self._whole = response if isinstance(response, dict) else None
        elif kind == "error" or event.get("error"):
            self._error = event.get("error") or dict(event)
        elif kind == "response.output_item.done" and isinstance(event.get("item"), dict):
            at = event.get("output_index")
            self._items[at if isinstance(at, int) else len(self._items)] = dict(event["item"])
        elif kind in ("response.output_text.delta", "response.reasoning_summary_text.delta"):
            delta = event.get("delta")
            shown = "text" if "output_text" in kind else "reasoning"
            return shown, delta if isinstance(delta, str) else ""
        return "", ""

    def heard(self) -> Heard:
        if self._error or self._whole is None:
            return Heard(None if self._error else {}, "", None, self._error)
        # Some services leave the output of the last event empty; what came before it counts then.
        items = [self._items[at] for at in sorted(self._items)]
        return Responses().plain({**self._whole, "output": self._whole.get("output") or items})


def _finish(value: Mapping[str, Any], status: str) -> str:
    if status != "incomplete":
        return "stop"
    details = value.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else ""
    return str(reason or "length")


def _message(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the items of an answer as one assistant message."""
    texts, refusals, calls = [], [], []
    for item in items:
        if item.get("type") == "message":
            for part in item.get("content") or ():
                if isinstance(part, dict):
                    texts.append(str(part.get("text") or ""))
                    refusals.append(str(part.get("refusal") or ""))
        elif item.get("type") == "function_call":
            named = {"name": item.get("name"), "arguments": item.get("arguments")}
            calls.append({"id": item.get("call_id") or item.get("id"), "function": named})
    made: dict[str, Any] = {"role": "assistant", "content": "".join(texts) or None}
    if calls:
        made["tool_calls"] = calls
    if any(refusals):
        made["refusal"] = "".join(refusals)
    reasoning = [dict(item) for item in items if item.get("type") == "reasoning"]
    return {**made, ITEMS: reasoning} if reasoning else made


def _said(message: Message) -> list[dict[str, Any]]:
    """Return a message of the history as items of an input."""
    role = message["role"]
    if role == "tool":
        output = {"call_id": message["tool_call_id"], "output": message["content"]}
        return [{"type": "function_call_output", **output}]
    items = [dict(item) for item in message.get(ITEMS) or () if item.get("encrypted_content")]
    if message.get("content"):
        items.append({"role": role, "content": message["content"]})
    for call in message.get("tool_calls") or ():
        named = {"call_id": call["id"], **call["function"]}
        items.append({"type": "function_call", **named})
    return items
