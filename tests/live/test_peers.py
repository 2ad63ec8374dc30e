"""The live model against a mock server that others wrote, which judges its client. Opt-in.

`llmock` answers as OpenAI does, with faults on request, and says at the end what a client did
wrong: a retry that came too early, a stream taken for whole that was cut. REREAD_PEERS=1.
"""

from __future__ import annotations

import asyncio
import json
import os
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from agent_runtime import Budget, Conversation, Limits, Round, Tool, run_agent
from reread.models import Settings
from reread.models.chat import ChatModel
from tests.live import peers

pytestmark = pytest.mark.skipif(
    os.environ.get("REREAD_PEERS") != "1", reason="starts somebody else's server: REREAD_PEERS=1"
)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    python = peers.environment("llmock", ["llmock==0.2.2"])
    port = peers.free_port()
    address = f"http://127.0.0.1:{port}"
    program = str(python.parent / "llmock")
    with peers.serving([program, "serve", "--port", str(port)], f"{address}/v1/models"):
        yield address


def told(server: str, path: str, body: Any = None) -> Any:
    """Talk to the server's own side."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{server}/_llmock/{path}", data, {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read() or b"null")


async def converse(server: str, *, stream: bool) -> tuple[Round, list[Mapping[str, Any]]]:
    ran: list[Mapping[str, Any]] = []

    async def handler(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        ran.append(arguments)
        return {"done": True}

    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    tool = Tool("get_weather", "Say the weather of a city.", schema, handler)
    settings = Settings("sk-test-peer", "gpt-4o-mini", f"{server}/v1", stream=stream, timeout=5)
    model = ChatModel(settings, prices={}, backoff=0.2)
    task = [{"role": "user", "content": "What is the weather in Oslo?"}]
    conversation = Conversation(task, Budget(Limits(turns=4, timeout=60)))
    try:
        ended = await run_agent(model, conversation, [tool])
    finally:
        await model.aclose()
    return ended, ran


FAULTS: dict[str, dict[str, Any]] = {
    "429": {"type": "fail", "status": 429, "retry_after": 1, "times": 2},
    "500": {"type": "fail", "status": 500, "times": 2},
    "503": {"type": "fail", "status": 503, "times": 1},
}
CALL_FAULTS = ("malformed_arguments", "unknown_tool")
STREAM_FAULTS = ("disconnect", "truncate", "malformed")


def arranged(server: str, *behaviors: dict[str, Any]) -> None:
    """Start anew with these faults."""
    told(server, "reset", {})
    if behaviors:
        told(server, "scenario", {"behaviors": list(behaviors)})


def verdict(server: str) -> list[Any]:
    """Return what the server holds against its client.

    Its warnings depend on when it notices that a connection was given up, so they do not count.
    """
    findings = told(server, "verdict")["findings"]
    return [finding for finding in findings if finding["severity"] == "error"]


@pytest.mark.parametrize("stream", [True, False])
class TestAPeer:
    def test_that_works_calls_the_tool(self, server: str, stream: bool) -> None:
        arranged(server)
        _, ran = asyncio.run(converse(server, stream=stream))
        assert ran
        assert verdict(server) == []

    @pytest.mark.parametrize("fault", list(FAULTS))
    def test_that_fails_is_borne_with(self, server: str, fault: str, stream: bool) -> None:
        arranged(server, FAULTS[fault])
        ended, ran = asyncio.run(converse(server, stream=stream))
        assert ended.status in ("complete", "limit-reached")
        assert ran
        assert verdict(server) == []

    @pytest.mark.parametrize("kind", CALL_FAULTS)
    def test_whose_call_is_wrong_runs_nothing(self, server: str, kind: str, stream: bool) -> None:
        arranged(server, {"type": "tool_fault", "kind": kind, "times": 1})
        ended, ran = asyncio.run(converse(server, stream=stream))
        assert (ended.status, ran) == ("complete", [])
        assert verdict(server) == []

    def test_that_refuses_is_not_asked_again(self, server: str, stream: bool) -> None:
        arranged(server, {"type": "fail", "status": 401, "times": 5})
        ended, _ = asyncio.run(converse(server, stream=stream))
        assert ended.failure is not None
        assert ended.failure.details["kind"] == "auth"
        assert verdict(server) == []


@pytest.mark.parametrize("kind", STREAM_FAULTS)
class TestAPeerWhoseStreamBreaks:
    def test_is_asked_again_and_never_taken_for_whole(self, server: str, kind: str) -> None:
        arranged(server, {"type": "stream_fault", "kind": kind, "after_chunks": 2, "times": 1})
        ended, ran = asyncio.run(converse(server, stream=True))
        assert ended.status in ("complete", "limit-reached")
        assert ran
        assert verdict(server) == []

    def test_for_ever_ends_with_a_name(self, server: str, kind: str) -> None:
        arranged(server, {"type": "stream_fault", "kind": kind, "after_chunks": 2, "times": None})
        ended, ran = asyncio.run(converse(server, stream=True))
        assert ended.failure is not None
        assert (ended.failure.code, ran) == ("model_failed", [])
