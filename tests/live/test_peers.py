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

from agent_runtime import Budget, Conversation, Failure, Limits, Round, Tool, run_agent
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


FAULTS: dict[str, list[dict[str, Any]]] = {
    "none": [],
    "429": [{"type": "fail", "status": 429, "retry_after": 1, "times": 2}],
    "500": [{"type": "fail", "status": 500, "times": 2}],
    "503": [{"type": "fail", "status": 503, "times": 1}],
}
STREAM_FAULTS = ("disconnect", "truncate", "bad_chunk")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("fault", list(FAULTS))
class TestAPeerThatFails:
    def test_is_borne_with_until_it_answers(self, server: str, fault: str, stream: bool) -> None:
        told(server, "reset", {})
        told(server, "scenario", {"behaviors": FAULTS[fault]})
        ended, _ = asyncio.run(converse(server, stream=stream))
        assert ended.status in ("complete", "limit-reached"), ended
        verdict = told(server, "verdict")
        assert not verdict.get("violations") and not verdict.get("findings"), verdict


@pytest.mark.parametrize("kind", STREAM_FAULTS)
class TestAPeerWhoseStreamBreaks:
    def test_is_never_taken_for_whole(self, server: str, kind: str) -> None:
        told(server, "reset", {})
        behavior = {"type": "stream_fault", "kind": kind, "after_chunks": 2}
        told(server, "scenario", {"behaviors": [behavior]})
        ended, ran = asyncio.run(converse(server, stream=True))
        assert ended.status == "model-failed" or ran == [] or ended.status == "complete"
        verdict = told(server, "verdict")
        assert "truncated_stream_accepted" not in json.dumps(verdict.get("violations", ""))


class TestAPeerThatRefuses:
    def test_is_not_asked_again(self, server: str) -> None:
        told(server, "reset", {})
        told(server, "scenario", {"behaviors": [{"type": "fail", "status": 401, "times": 5}]})
        ended, _ = asyncio.run(converse(server, stream=False))
        assert isinstance(ended.failure, Failure)
        assert ended.failure.details["kind"] == "auth"
        assert "retried_non_retryable" not in json.dumps(told(server, "verdict"))
