"""The live model in the loop: limits, long runs, closing, what it learns and what it keeps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_runtime import Budget, Conversation, Failure, Limits, Message, Round, Tool, run_agent
from reread.models import Settings, open_model, settings_from_environment, shorten
from reread.models import _transport as transport
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


class TestConnections:
    def test_are_closed_after_an_answer_a_failure_and_a_cancellation(self) -> None:
        async def run() -> None:
            await converse(working(2))
            await converse(lambda asked, number: as_json({"error": {"message": "no"}}, 401))
            slow = as_json(completion("late"))
            waiting = asyncio.create_task(
                converse(lambda a, n: Answer(slow.status, slow.headers, slow.body, delay=9))
            )
            await asyncio.sleep(0.1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

        asyncio.run(run())
        assert transport._OPEN == {}

    def test_are_shared_by_runs_of_one_loop(self) -> None:
        async def run() -> int:
            async with stand_in(working(0)) as service:
                settings = Settings(KEY, "m", service.base_url, stream=False)
                models = [ChatModel(settings, prices={}) for _ in range(3)]
                for model in models:
                    await model.reply(TASK, tools())
                shared = len(transport._OPEN)
                for model in models:
                    await model.aclose()
                    await model.aclose()
                return shared

        assert asyncio.run(run()) == 1
        assert transport._OPEN == {}

    def test_carry_the_key_and_say_who_asks(self) -> None:
        _, service, _ = asyncio.run(converse(working(0)))
        headers = service.asked[0].headers
        assert headers["authorization"] == f"Bearer {KEY}"
        assert headers["content-type"] == "application/json"
        assert "openai" in headers["user-agent"].lower()

    def test_follow_no_redirect_with_the_key(self) -> None:
        elsewhere = {"location": "http://127.0.0.1:9/v1/chat/completions"}
        ended, service, _ = asyncio.run(converse(lambda a, n: Answer(307, elsewhere)))
        assert ended.status == "model-failed"
        assert len(service.asked) == 1

    def test_that_nobody_accepts_are_named(self) -> None:
        async def run() -> None:
            model = ChatModel(
                Settings(KEY, "m", "http://127.0.0.1:9/v1", attempts=1), prices={}, backoff=0.01
            )
            try:
                await model.reply(TASK, tools())
            finally:
                await model.aclose()

        with pytest.raises(Failure) as caught:
            asyncio.run(run())
        assert caught.value.code == "model_failed"
        assert "127.0.0.1:9" in caught.value.cause
        assert caught.value.details["kind"] == "network"


class TestTheKey:
    @pytest.mark.parametrize("end", ["", "\n", "\r\n", " "])
    def test_may_end_with_a_line_break(self, end: str) -> None:
        found = settings_from_environment({"OPENAI_API_KEY": KEY + end, "OPENAI_MODEL": "m"})
        assert found.key == KEY

    @pytest.mark.parametrize(
        "key", ["sk-test-\u00e4bcdefgh", "sk-te st-abcdefgh", "sk-a\nb-abcdefgh"]
    )
    def test_that_no_header_can_carry_is_refused_unseen(self, key: str) -> None:
        with pytest.raises(Failure) as caught:
            settings_from_environment({"OPENAI_API_KEY": key, "OPENAI_MODEL": "m"})
        assert caught.value.code == "model_not_configured"
        assert "abcdefgh" not in str(caught.value)

    def test_is_not_in_the_words_of_the_settings(self) -> None:
        assert KEY not in repr(Settings(KEY, "m"))

    @pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
    def test_is_not_in_a_failure_even_where_the_service_repeats_it(self, status: int) -> None:
        import traceback

        async def run() -> str:
            body = {"error": {"message": f"Bearer {KEY} is wrong, {KEY}", "code": KEY}}
            try:
                async with stand_in(lambda a, n: as_json(body, status)) as service:
                    settings = Settings(KEY, "m", service.base_url, stream=False, attempts=0)
                    model = ChatModel(settings, prices={})
                    try:
                        await model.reply(TASK, tools())
                    finally:
                        await model.aclose()
            except Failure as failure:
                chained = traceback.format_exception(failure)
                seen: BaseException | None = failure
                while seen is not None:
                    chained.append(repr(seen.args))
                    seen = seen.__context__
                return "".join([*chained, json.dumps(failure.as_json())])
            return ""

        said = asyncio.run(run())
        assert "model_failed" in said
        assert KEY not in said

    @pytest.mark.parametrize("name", ["OPENAI_API_KEY", "OPENAI_MODEL"])
    def test_and_the_model_must_be_there(self, name: str) -> None:
        environ = {"OPENAI_API_KEY": KEY, "OPENAI_MODEL": "m"}
        with pytest.raises(Failure) as caught:
            settings_from_environment({**environ, name: "  "})
        assert caught.value.code == "model_not_configured"
        assert name in caught.value.cause

    @pytest.mark.parametrize(
        ("given", "used"),
        [
            ("", "https://api.openai.com/v1"),
            ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1"),
            ("http://127.0.0.1:8080/v1/chat/completions", "http://127.0.0.1:8080/v1"),
        ],
    )
    def test_goes_to_the_address_that_is_meant(self, given: str, used: str) -> None:
        environ = {"OPENAI_API_KEY": KEY, "OPENAI_MODEL": "m", "OPENAI_BASE_URL": given}
        assert settings_from_environment(environ).base_url == used

    @pytest.mark.parametrize(
        "url", ["127.0.0.1:8080", "ftp://x/v1", "http://", "http://x:99999/v1"]
    )
    def test_goes_nowhere_else(self, url: str) -> None:
        environ = {"OPENAI_API_KEY": KEY, "OPENAI_MODEL": "m", "OPENAI_BASE_URL": url}
        with pytest.raises(Failure) as caught:
            settings_from_environment(environ)
        assert caught.value.code == "model_not_configured"


class TestStreams:
    @pytest.mark.parametrize("pieces", [1, 7, 100, 0])
    def test_may_arrive_in_any_pieces(self, pieces: int) -> None:
        def answering(asked: Asked, number: int) -> Answer:
            return as_events(
                chunk({"role": "assistant", "content": "é"}),
                chunk({"content": "😀"}),
                chunk({}, "stop"),
                pieces=pieces,
            )

        ended, _, _ = asyncio.run(converse(answering, stream=True))
        assert ended.text == "é😀"

    def test_that_were_not_asked_for_are_read(self) -> None:
        answer = as_events(chunk({"content": "42"}), chunk({}, "stop"))
        plain = Answer(200, {"content-type": "application/json"}, answer.body)
        assert asyncio.run(converse(lambda asked, number: answer))[0].text == "42"
        assert asyncio.run(converse(lambda asked, number: plain))[0].text == "42"

    def test_that_were_asked_for_may_be_plain(self) -> None:
        ended, _, _ = asyncio.run(converse(working(1), stream=True))
        assert ended.text == "done"

    def test_tell_how_they_go_on(self) -> None:
        told: list[str] = []

        async def run() -> None:
            def answering(asked: Asked, number: int) -> Answer:
                if number == 0:
                    return as_json({"error": {"message": "overloaded"}}, 503)
                return as_events(chunk({"content": "42"}), chunk({}, "stop"))

            async with stand_in(answering) as service:
                settings = Settings(KEY, "m", service.base_url)
                model = ChatModel(
                    settings, prices={}, backoff=0.01, tell=lambda kind, data: told.append(kind)
                )
                await model.reply(TASK, tools())
                await model.aclose()

        asyncio.run(run())
        assert told == ["model.again"]
