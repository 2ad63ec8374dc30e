"""The Responses API behind the same model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from agent_runtime import Budget, Conversation, Limits, Round, Tool, run_agent
from reread.models import Settings
from reread.models.chat import ChatModel
from reread.models.responses import Responses
from tests.live.stand_in import Answer, Answering, Asked, StandIn, as_events, as_json, stand_in

TASK = ({"role": "system", "content": "You work."}, {"role": "user", "content": "Do the task."})
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc="}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "work",
    "arguments": '{"n": 1}',
    "status": "completed",
}


def said(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}


def response(*output: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 30, "output_tokens": 5, "total_tokens": 35}
    made = {"id": "resp_1", "object": "response", "status": "completed", "output": list(output)}
    return {**made, "usage": usage, **more}


def streamed(*output: Mapping[str, Any], **more: Any) -> Answer:
    items = [
        {"type": "response.output_item.done", "output_index": at, "item": item}
        for at, item in enumerate(output)
    ]
    last = {"type": "response.completed", "response": response(*output, **more)}
    delta = {"type": "response.output_text.delta", "delta": "so"}
    return as_events({"type": "response.created"}, delta, *items, last, done=False)


async def converse(
    answering: Answering, *, stream: bool = True
) -> tuple[Round, StandIn, list[Any]]:
    ran: list[Any] = []

    async def handler(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        ran.append(dict(arguments))
        return {"done": True}

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    async with stand_in(answering) as service:
        settings = Settings("key-of-the-test", "m", service.base_url, stream=stream, attempts=1)
        model = ChatModel(settings, dialect=Responses(), prices={}, backoff=0.01)
        conversation = Conversation([dict(m) for m in TASK], Budget(Limits()))
        try:
            tool = Tool("work", "Does some work.", schema, handler)
            ended = await run_agent(model, conversation, [tool])
        finally:
            await model.aclose()
    return ended, service, ran


def two_turns(stream: bool) -> Answering:
    def answering(asked: Asked, number: int) -> Answer:
        output = (REASONING, CALL) if number == 0 else (said("done"),)
        return streamed(*output) if stream else as_json(response(*output))

    return answering


def violations(body: Mapping[str, Any]) -> list[str]:
    """Hold a request against the API's own types."""
    from openai.types.responses import response_create_params as params
    from pydantic import TypeAdapter, ValidationError

    kind = "Streaming" if body.get("stream") else "NonStreaming"
    adapter: Any = TypeAdapter(getattr(params, f"ResponseCreateParams{kind}"))
    try:
        adapter.validate_python(dict(body))
    except ValidationError as error:
        return [str(error)]
    return []


@pytest.mark.parametrize("stream", [True, False])
class TestTheResponsesApi:
    def test_runs_the_loop(self, stream: bool) -> None:
        ended, _, ran = asyncio.run(converse(two_turns(stream), stream=stream))
        assert (ended.status, ended.text, ran) == ("complete", "done", [{"n": 1}])

    def test_is_asked_in_its_own_types(self, stream: bool) -> None:
        _, service, _ = asyncio.run(converse(two_turns(stream), stream=stream))
        assert [asked.path for asked in service.asked] == ["/v1/responses"] * 2
        assert [violations(asked.body) for asked in service.asked] == [[], []]

    def test_gets_its_calls_answered_and_its_reasoning_back(self, stream: bool) -> None:
        _, service, _ = asyncio.run(converse(two_turns(stream), stream=stream))
        items = service.asked[1].body["input"][2:]
        kinds = [item["type"] for item in items]
        assert kinds == ["reasoning", "function_call", "function_call_output"]
        assert items[0] == REASONING
        assert items[1]["call_id"] == items[2]["call_id"] == "call_1"
        assert json.loads(items[2]["output"])["ok"] is True

    def test_stores_nothing_at_the_service(self, stream: bool) -> None:
        _, service, _ = asyncio.run(converse(two_turns(stream), stream=stream))
        assert [asked.body["store"] for asked in service.asked] == [False, False]

    def test_that_is_cut_off_runs_nothing(self, stream: bool) -> None:
        def answering(asked: Asked, number: int) -> Answer:
            if number:
                return two_turns(stream)(asked, 1)
            cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
            return streamed(CALL, **cut) if stream else as_json(response(CALL, **cut))

        ended, service, ran = asyncio.run(converse(answering, stream=stream))
        assert (ended.status, ran) == ("complete", [])
        assert "model_output_cut" in json.dumps(service.asked[1].body)

    def test_that_fails_is_asked_again(self, stream: bool) -> None:
        def answering(asked: Asked, number: int) -> Answer:
            if number:
                return two_turns(stream)(asked, 1)
            broken = {"status": "failed", "error": {"code": "server_error", "message": "oops"}}
            if not stream:
                return as_json(response(**broken))
            event = {"type": "response.failed", "response": response(**broken)}
            return as_events(event, done=False)

        ended, service, _ = asyncio.run(converse(answering, stream=stream))
        assert (ended.status, len(service.asked)) == ("complete", 2)

    def test_that_refuses_is_a_refusal(self, stream: bool) -> None:
        refusal = {"type": "refusal", "refusal": "I will not."}
        item = {"type": "message", "role": "assistant", "content": [refusal]}

        def answering(asked: Asked, number: int) -> Answer:
            return streamed(item) if stream else as_json(response(item))

        ended, _, _ = asyncio.run(converse(answering, stream=stream))
        assert ended.failure is not None
        assert ended.failure.code == "model_refused"


class TestAStreamOfTheResponsesApi:
    def test_that_ends_early_is_asked_again(self) -> None:
        def answering(asked: Asked, number: int) -> Answer:
            if number:
                return two_turns(True)(asked, 1)
            return as_events({"type": "response.output_text.delta", "delta": "The"}, done=False)

        ended, service, _ = asyncio.run(converse(answering))
        assert (ended.text, len(service.asked)) == ("done", 2)
