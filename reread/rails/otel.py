"""Traces of a run as OpenTelemetry spans, by the semantic conventions for generative AI.

A listener of the record, switched on by the OTEL_* variables of the environment. What was said,
written or read is not sent: names, models, tokens, codes and digests only.

Does not prove: anything. A service that takes no spans changes nothing about a run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from reread import extras
from reread.records import Listener

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

SWITCHES = (
    "OTEL_TRACES_EXPORTER",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
)
AGENT = "reread"


def wanted(environ: Mapping[str, str]) -> bool:
    """Say whether the environment asks for traces."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    return any(environ.get(name, "none").lower() not in ("", "none") for name in SWITCHES)


@contextmanager
def tracing(environ: Mapping[str, str] | None = None) -> Iterator[tuple[Listener, ...]]:
    """Yield the listener that sends spans, or nothing where the environment asks for none.

    Raises:
        Failure: dependency_missing, where spans are asked for and the packages are not there.
    """
    if not wanted(os.environ if environ is None else environ):
        yield ()
        return
    extras.need("opentelemetry.sdk")
    extras.need("opentelemetry.exporter.otlp.proto.http")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over the name given here.
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": AGENT}
    provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    traces = Traces(provider.get_tracer(AGENT))
    try:
        yield (traces,)
    finally:
        traces.close()
        provider.shutdown()


class Traces:
    """A listener that makes spans of events: the run, each turn, each tool, each gate."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._run: Span | None = None
        self._turn: Span | None = None
        self._gate: Span | None = None
        self._tools: dict[str, Span] = {}
        self._origin: Mapping[str, Any] = {}

    def __call__(self, kind: str, data: Mapping[str, Any]) -> None:
        """Take one event."""
        act = getattr(self, "_on_" + kind.replace(".", "_"), None)
        if act is not None:
            act(data)

    def close(self) -> None:
        """End what is still open, as after a bug or a cancellation."""
        for span in (*self._tools.values(), self._turn, self._gate, self._run):
            if span is not None:
                span.end()
        self._tools.clear()
        self._turn = self._gate = self._run = None

    def _on_run_started(self, data: Mapping[str, Any]) -> None:
        self._origin = data.get("origin") or {}
        self._run = self._open(
            f"invoke_agent {AGENT}",
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": AGENT,
                "gen_ai.conversation.id": data["run_id"],
                "reread.task.name": data["task"].get("name", ""),
                "reread.skills": tuple(data["skills"]["selected"]),
            },
        )

    _on_run_resumed = _on_run_started

    def _on_model_asked(self, data: Mapping[str, Any]) -> None:
        model = str(self._origin.get("model") or self._origin.get("fixture") or "unknown")
        self._end(self._turn)  # one that was never answered
        self._turn = self._open(
            f"chat {model}",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": self._provider(),
                "gen_ai.request.model": model,
            },
            client=True,
        )

    def _provider(self) -> str:
        """Return who answers: the well-known name, or the host of another service."""
        service = str(self._origin.get("service", ""))
        return "openai" if service == "api.openai.com" else service or "fixture"

    def _on_model_replied(self, data: Mapping[str, Any]) -> None:
        if self._turn is None:
            return
        usage = data["usage"]
        self._turn.set_attribute("gen_ai.usage.input_tokens", usage["input_tokens"])
        self._turn.set_attribute("gen_ai.usage.output_tokens", usage["output_tokens"])
        reason = "tool_calls" if data["calls"] else "stop"
        self._turn.set_attribute("gen_ai.response.finish_reasons", (reason,))
        self._end(self._turn)
        self._turn = None

    def _on_tool_called(self, data: Mapping[str, Any]) -> None:
        self._tools[data["id"]] = self._open(
            f"execute_tool {data['name']}",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": data["name"],
                "gen_ai.tool.call.id": data["id"],
                "gen_ai.tool.type": "function",
            },
        )

    def _on_tool_answered(self, data: Mapping[str, Any]) -> None:
        result = data["result"]
        span = self._tools.pop(data["id"], None)
        if span is not None and not result.get("ok"):
            self._failed(span, str(result.get("code", "tool_failed")))
        self._end(span)

    def _on_script_ran(self, data: Mapping[str, Any]) -> None:
        for span in self._tools.values():
            span.set_attribute("reread.script.sha256", data["sha256"])
            span.set_attribute("reread.sandbox", data["isolation"]["mechanism"])

    def _on_round_ended(self, data: Mapping[str, Any]) -> None:
        failure = data.get("failure") or {}
        if self._turn is not None:
            self._failed(self._turn, str(failure.get("code", data["status"])))
            self._end(self._turn)
            self._turn = None
        self._gate = self._open("gate", {"reread.round.status": data["status"]})

    def _on_gate_read(self, data: Mapping[str, Any]) -> None:
        if self._gate is None:
            return
        self._gate.set_attribute("reread.gate.ok", data["ok"])
        for evidence in data["artifacts"]:
            facts = {"path": evidence["path"], "ok": evidence["ok"], "format": evidence["format"]}
            self._gate.add_event("reread.artifact", facts)
        self._end(self._gate)
        self._gate = None

    def _on_run_ended(self, data: Mapping[str, Any]) -> None:
        if self._run is not None:
            self._run.set_attribute("reread.status", data["status"])
            if data["reason"]:
                self._failed(self._run, str(data["reason"]))
        self.close()

    def _open(self, name: str, attributes: Mapping[str, Any], *, client: bool = False) -> Span:
        from opentelemetry.trace import SpanKind, set_span_in_context

        return self._tracer.start_span(
            name,
            context=set_span_in_context(self._run) if self._run is not None else None,
            kind=SpanKind.CLIENT if client else SpanKind.INTERNAL,
            attributes=dict(attributes),
        )

    def _failed(self, span: Span, code: str) -> None:
        from opentelemetry.trace import Status, StatusCode

        span.set_attribute("error.type", code)
        span.set_status(Status(StatusCode.ERROR, code))

    def _end(self, span: Span | None) -> None:
        if span is not None:
            span.end()
