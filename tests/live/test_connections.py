"""Connections of a live model, its key, and its streams."""

from __future__ import annotations

import asyncio
import json

import pytest

from agent_runtime import Failure
from reread.models import Settings, settings_from_environment
from reread.models import _transport as transport
from reread.models.chat import ChatModel
from tests.live.stand_in import Answer, Asked, as_events, as_json, chunk, completion, stand_in
from tests.live.test_chat import KEY, TASK, converse, tools, working


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


class TestAnAddressWithCredentials:
    def test_is_refused_and_they_are_not_shown(self) -> None:
        environ = {"OPENAI_API_KEY": "k", "OPENAI_MODEL": "m"}
        with pytest.raises(Failure) as refused:
            settings_from_environment({**environ, "OPENAI_BASE_URL": "http://me:hunter2@a.test/v1"})
        assert refused.value.code == "model_not_configured"
        assert "hunter2" not in str(refused.value)
