"""Traces: spans of a real run, in the exporter of the real SDK, by the conventions for AI."""

from __future__ import annotations

import importlib.util
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from reread.rails.otel import Traces, tracing, wanted
from tests.records.runs import run


def there() -> bool:
    try:
        return importlib.util.find_spec("opentelemetry.sdk") is not None
    except ModuleNotFoundError:
        return False


needs_sdk = pytest.mark.skipif(
    not there() and not os.environ.get("REREAD_ALL_TESTS"), reason="no opentelemetry-sdk here"
)


def spans_of(fixture: str, place: Path) -> list[Any]:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    run(fixture, place, Traces(provider.get_tracer("test")))
    return list(exporter.get_finished_spans())


@pytest.fixture(scope="module")
def spans(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    return spans_of("success", tmp_path_factory.mktemp("otel") / "w")


@needs_sdk
class TestSpansOfARun:
    def test_the_run_holds_each_turn_each_tool_and_the_gate(self, spans: list[Any]) -> None:
        names = [span.name for span in spans]
        assert names.count("chat success") == 4
        assert [n for n in names if n.startswith("execute_tool")] == [
            "execute_tool read_file",
            "execute_tool write_file",
            "execute_tool run_python",
        ]
        assert names[-2:] == ["gate", "invoke_agent reread"]
        agent = spans[-1]
        assert all(span.parent.span_id == agent.context.span_id for span in spans[:-1])
        assert {span.context.trace_id for span in spans} == {agent.context.trace_id}

    def test_they_carry_what_the_conventions_ask_for(self, spans: list[Any]) -> None:
        chat = next(span for span in spans if span.name == "chat success")
        assert chat.kind.name == "CLIENT"
        assert chat.attributes["gen_ai.operation.name"] == "chat"
        assert chat.attributes["gen_ai.request.model"] == "success"
        assert {"gen_ai.provider.name", "gen_ai.usage.input_tokens"} <= set(chat.attributes)
        tool = next(span for span in spans if span.name == "execute_tool run_python")
        assert tool.attributes["gen_ai.tool.name"] == "run_python"
        assert tool.attributes["gen_ai.tool.call.id"]

    def test_nothing_that_was_said_or_written_is_in_them(self, spans: list[Any]) -> None:
        whole = " ".join(span.to_json() for span in spans)
        assert "I look at the notes" not in whole
        assert "defaultdict" not in whole

    def test_failures_are_errors_with_their_code(self, tmp_path: Path) -> None:
        spans = spans_of("crash", tmp_path / "w")
        tool = next(span for span in spans if span.name == "execute_tool run_python")
        assert (tool.status.status_code.name, tool.attributes["error.type"]) == (
            "ERROR",
            "script_failed",
        )
        assert spans[-1].status.status_code.name == "ERROR"
        assert all(span.end_time is not None for span in spans)


class TestTheSwitch:
    @pytest.mark.parametrize(
        ("environ", "asked"),
        [
            ({}, False),
            ({"OTEL_TRACES_EXPORTER": "none"}, False),
            ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
            ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, True),
            ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}, False),
        ],
    )
    def test_only_the_environment_turns_it_on(self, environ: dict[str, str], asked: bool) -> None:
        assert wanted(environ) is asked

    def test_nothing_is_loaded_where_nobody_asks(self) -> None:
        with tracing({}) as listeners:
            assert listeners == ()

    @needs_sdk
    def test_spans_reach_a_collector(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        taken: list[tuple[str, int]] = []

        class Collector(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                taken.append((self.path, len(body)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        server = HTTPServer(("127.0.0.1", 0), Collector)
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        assert run("skip", tmp_path / "w").status == "validation-failed"
        server.shutdown()
        server.server_close()
        assert [path for path, _ in taken] == ["/v1/traces"]
        assert taken[0][1] > 100
