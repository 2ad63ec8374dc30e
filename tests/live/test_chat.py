"""The live model in the loop: limits, long runs, closing, what it learns and what it keeps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_runtime import Budget, Conversation, Failure, Limits, Message, Round, Tool, run_agent
from reread.models import Settings, open_model, shorten
from reread.models._prices import FREE, Price, find, load
from reread.models.chat import ChatModel
from tests.live.rules import violations
from tests.live.stand_in import (
    Answer,
    Answering,
    Asked,
    StandIn,
    as_events,
    as_json,
    chunk,
    completion,
    stand_in,
)

KEY = "sk-test-0123456789abcdefghij"
TASK: list[Message] = [
    {"role": "system", "content": "You work."},
    {"role": "user", "content": "Do the task."},
]


def tools(result: Mapping[str, Any] | None = None) -> list[Tool]:
    async def handler(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return result or {"done": True}

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    return [Tool("work", "Does some work.", schema, handler)]


def counted(asked: Asked) -> dict[str, int]:
    """What a service would count: a token for four letters."""
    read = len(json.dumps(asked.body)) // 4
    return {"prompt_tokens": read, "completion_tokens": 10, "total_tokens": read + 10}


def working(turns: int, usage: Mapping[str, int] | None = None) -> Answering:
    """A service that calls `work` so many times and then ends."""

    def answering(asked: Asked, number: int) -> Answer:
        calls = [("work", json.dumps({"n": number}))] if number < turns else []
        return as_json(completion(None if calls else "done", calls, usage=usage or counted(asked)))

    return answering


async def converse(
    answering: Answering,
    limits: Limits | None = None,
    *,
    price: Price = FREE,
    messages: Sequence[Message] = TASK,
    result: Mapping[str, Any] | None = None,
    **settings: Any,
) -> tuple[Round, StandIn, Conversation]:
    settings = {"stream": False, "timeout": 5, "attempts": 1, **settings}
    async with stand_in(answering) as service:
        made = Settings(KEY, "m", service.base_url, **settings)
        model = ChatModel(made, prices={"m": price}, backoff=0.01)
        conversation = Conversation([dict(m) for m in messages], Budget(limits or Limits()))
        try:
            ended = await run_agent(model, conversation, tools(result), shorten=shorten)
        finally:
            await model.aclose()
    return ended, service, conversation


class TestLimits:
    async def run(self, limits: Limits, **more: Any) -> tuple[Round, int]:
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        ended, service, _ = await converse(working(50, usage), limits, **more)
        return ended, len(service.asked)

    def test_of_tokens_hold_before_a_request(self) -> None:
        ended, requests = asyncio.run(self.run(Limits(tokens=350)))
        assert (ended.status, ended.failure and ended.failure.details) == (
            "limit-reached",
            {"limit": "tokens"},
        )
        assert requests <= 3

    def test_of_tokens_hold_before_the_very_first_request(self) -> None:
        long = [{"role": "user", "content": "x" * 10_000}]
        ended, requests = asyncio.run(self.run(Limits(tokens=500), messages=long))
        assert (ended.status, requests) == ("limit-reached", 0)

    def test_of_money_hold_before_a_request(self) -> None:
        price = Price(1000.0, None, 1000.0)
        ended, requests = asyncio.run(self.run(Limits(usd=0.35), price=price))
        assert ended.status == "limit-reached"
        assert 1 <= requests <= 3

    def test_reserve_the_whole_output_that_was_asked_for(self) -> None:
        options = {"max_tokens": 5000}
        ended, requests = asyncio.run(self.run(Limits(tokens=4000), options=options))
        assert (ended.status, requests) == ("limit-reached", 0)

    @pytest.mark.parametrize("said", [None, {}, {"prompt_tokens": None}, {"prompt_tokens": 0}])
    def test_hold_where_the_service_does_not_count(self, said: Any) -> None:
        def answering(asked: Asked, number: int) -> Answer:
            return as_json({**completion(None, [("work", "{}")]), "usage": said})

        ended, service, conversation = asyncio.run(converse(answering, Limits(tokens=2000)))
        assert ended.status == "limit-reached"
        assert conversation.budget.usage.estimated
        assert len(service.asked) < 20

    def test_of_time_hold_while_a_service_is_silent(self) -> None:
        def answering(asked: Asked, number: int) -> Answer:
            made = as_json(completion("late"))
            return Answer(made.status, made.headers, made.body, delay=5)

        ended, _, _ = asyncio.run(converse(answering, Limits(timeout=0.3)))
        assert ended.status == "limit-reached"

    def test_of_money_need_a_price(self) -> None:
        settings = Settings(KEY, "nobody-knows-it", "https://models.invalid/v1")
        with pytest.raises(Failure) as caught:
            open_model(settings, limits=Limits(usd=1.0))
        assert caught.value.code == "usage_invalid"

    def test_count_what_a_broken_stream_has_cost(self) -> None:
        whole = as_events(chunk({"content": "word " * 100}), chunk({}, "stop"))

        def answering(asked: Asked, number: int) -> Answer:
            return Answer(200, whole.headers, whole.body, cut_after=None if number else 400)

        _, service, conversation = asyncio.run(converse(answering, stream=True))
        assert len(service.asked) == 2
        assert conversation.budget.usage.estimated
        assert conversation.budget.usage.input_tokens > len(json.dumps(service.asked[0].body)) / 3


class TestPrices:
    def test_the_longest_pattern_counts(self) -> None:
        table = {"gpt-x*": Price(1, None, 1), "gpt-x-mini*": Price(2, None, 2)}
        assert find(table, "gpt-x-mini-2", local=False).input == 2

    def test_a_local_model_costs_nothing(self) -> None:
        assert find({}, "any", local=True).usd(10**6, 10**6) == 0
        assert find({}, "any", local=True).known

    def test_an_unknown_model_has_none(self) -> None:
        assert not find(load(), "nobody-knows-it", local=False).known

    def test_cached_tokens_cost_less(self) -> None:
        assert Price(10.0, 1.0, 0.0).usd(10**6, 0, cached=10**6) == pytest.approx(1.0)

    def test_a_file_of_ones_own_is_read(self, tmp_path: Path) -> None:
        own = tmp_path / "prices.yaml"
        own.write_text("models:\n  mine: {input: 3, output: 4, window: 100}\n")
        assert load(own) == {"mine": Price(3, None, 4, 100)}

    @pytest.mark.parametrize(
        "text", ["models: {m: {inputs: 3}}", "m: 3", "models: {m: {input: x}}"]
    )
    def test_a_wrong_file_is_refused_by_name(self, tmp_path: Path, text: str) -> None:
        own = tmp_path / "prices.yaml"
        own.write_text(text)
        with pytest.raises(Failure) as caught:
            load(own)
        assert caught.value.code == "usage_invalid"
        assert str(own) in caught.value.cause


class TestLongRuns:
    def test_are_shortened_before_the_window_is_full(self) -> None:
        price = Price(0.0, 0.0, 0.0, window=6000)
        big = {"text": "y" * 4000}
        ended, service, _ = asyncio.run(converse(working(12), price=price, result=big))
        assert ended.status == "complete"
        sizes = [len(json.dumps(asked.body)) for asked in service.asked]
        assert max(sizes) < 6000 * 4
        assert [violations(asked.body) for asked in service.asked] == [[]] * len(sizes)

    def test_count_no_turn_for_a_request_that_was_not_made(self) -> None:
        price = Price(0.0, 0.0, 0.0, window=6000)
        big = {"text": "y" * 4000}
        _, service, conversation = asyncio.run(converse(working(12), price=price, result=big))
        assert conversation.budget.turns == len(service.asked)

    def test_learn_the_window_from_the_service(self) -> None:
        def answering(asked: Asked, number: int) -> Answer:
            if len(json.dumps(asked.body)) > 20_000:
                text = "This model's maximum context length is 5000 tokens."
                return as_json({"error": {"message": text}}, 400)
            calls = [("work", json.dumps({"n": number}))] if number < 20 else []
            done = completion(None if calls else "done", calls, usage=counted(asked))
            return as_json(done)

        ended, service, _ = asyncio.run(converse(answering, result={"text": "y" * 4000}))
        assert ended.status == "complete"
        refused = [a for a in service.asked if len(json.dumps(a.body)) > 20_000]
        assert len(refused) == 1

    def test_that_cannot_be_shortened_end_with_a_name(self) -> None:
        def answering(asked: Asked, number: int) -> Answer:
            return as_json({"error": {"message": "prompt is too long"}}, 400)

        ended, service, _ = asyncio.run(converse(answering))
        assert ended.status == "model-failed"
        assert ended.failure is not None
        assert ended.failure.code == "context_too_long"
        assert len(service.asked) == 1

    def history(self, answers: int, skill: str = "") -> list[Message]:
        messages = [dict(message) for message in TASK]
        for n in range(answers):
            name = "activate_skill" if skill and n == 0 else "read_file"
            function = {"name": name, "arguments": "{}"}
            call = {"id": f"c{n}", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            content = (
                skill if name == "activate_skill" else json.dumps({"ok": True, "t": "z" * 9000})
            )
            messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": content})
        return messages

    def test_keep_system_task_and_skills(self) -> None:
        skill = "Do it so. " * 900
        before = self.history(8, skill)
        after = shorten(before)
        assert after is not None
        assert after[:2] == before[:2]
        assert after[3]["content"] == skill
        assert [m["role"] for m in after] == [m["role"] for m in before]

    def test_cut_to_head_and_tail_with_the_digest_of_the_whole(self) -> None:
        import hashlib

        before = self.history(8)
        after = shorten(before)
        assert after is not None
        whole = before[3]["content"]
        said = json.loads(after[3]["content"])
        assert said["sha256"] == hashlib.sha256(whole.encode()).hexdigest()
        assert (said["ok"], said["cut"], said["characters"]) == (True, True, len(whole))
        assert whole.startswith(said["head"])
        assert whole.endswith(said["tail"])

    def test_cut_a_second_time_keep_the_first_digest(self) -> None:
        once = shorten(self.history(8))
        assert once is not None
        twice = shorten(once)
        assert twice is not None
        assert json.loads(twice[3]["content"])["sha256"] == json.loads(once[3]["content"])["sha256"]

    def test_come_to_an_end_of_cutting(self) -> None:
        messages: list[Message] | None = self.history(8)
        for _ in range(20):
            shorter = shorten(messages) if messages else None
            if shorter is None:
                break
            assert len(json.dumps(shorter)) < len(json.dumps(messages))
            messages = shorter
        else:
            pytest.fail("it never ends")

    def test_leave_the_given_history_as_it_is(self) -> None:
        before = self.history(8)
        kept = json.dumps(before)
        shorten(before)
        assert json.dumps(before) == kept
