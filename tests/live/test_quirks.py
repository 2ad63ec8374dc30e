"""Other people's servers: each known quirk over real HTTP, and what the loop makes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from agent_runtime import Failure
from reread.models import Settings
from reread.models.chat import ChatModel
from tests.live.quirks import (
    ATTEMPTS,
    CASES,
    KEY,
    answer_of,
    case_named,
    check_adjust,
    good,
    history_of,
    of,
    options_of,
    play,
    tools,
    wrong,
)
from tests.live.rules import violations
from tests.live.stand_in import Answer, Asked, stand_in


class TestEachQuirk:
    @pytest.mark.parametrize("name", [case["id"] for case in CASES])
    def test_leads_to_the_outcome_that_is_right(self, name: str) -> None:
        case = case_named(name)
        bad = 2 if "then" in case["expect"] else 1
        if case["expect"]["outcome"] == "adjust" and not violations(
            {"model": "m", "messages": history_of(case)}
        ):
            bad = 1
        elif case["expect"]["outcome"] == "adjust" and "image" not in json.dumps(case):
            bad = 0  # what the service would refuse is mended before it is sent
        seen = asyncio.run(play(case, bad=bad))
        if "then" in case["expect"]:
            assert list(check_adjust(case["expect"]["then"], seen)) == []
        else:
            assert wrong(case, seen) == []

    @pytest.mark.parametrize("name", [case["id"] for case in CASES])
    def test_leads_to_requests_that_the_api_takes(self, name: str) -> None:
        case = case_named(name)
        if "image" in json.dumps(case):
            pytest.skip("its history is wrong on purpose until the service says so")
        seen = asyncio.run(play(case))
        assert [violations(asked.body) for asked in seen.asked] == [[]] * len(seen.asked)

    @pytest.mark.parametrize("name", [case["id"] for case in CASES])
    def test_that_never_clears_ends_by_itself(self, name: str) -> None:
        seen = asyncio.run(play(case_named(name), bad=None, turns=6))
        assert len(seen.asked) <= 12
        made = seen.messages[len(history_of(case_named(name))) :]
        answered = [m["tool_call_id"] for m in made if m["role"] == "tool"]
        called = [c["id"] for m in made for c in m.get("tool_calls") or ()]
        assert answered == called

    @pytest.mark.parametrize("name", of("retry"))
    def test_is_asked_again_no_more_often_than_it_helps(self, name: str) -> None:
        case = case_named(name)
        if "then" in case["expect"]:
            pytest.skip("it changes the request instead")
        seen = asyncio.run(play({**case, "response": _soon(case["response"])}, bad=None))
        assert len(seen.asked) <= 1 + case["expect"].get("max", ATTEMPTS)
        assert seen.round.status == "model-failed"

    @pytest.mark.parametrize("name", of("adjust"))
    def test_is_remembered_for_the_host_and_the_model(self, name: str) -> None:
        assert asyncio.run(_second_run(case_named(name))) == 1


def _soon(response: Mapping[str, Any]) -> dict[str, Any]:
    headers = response.get("headers", {})
    return {**response, "headers": {**headers, **({"retry-after": "0"} if headers else {})}}


async def _second_run(case: Mapping[str, Any]) -> int:
    """Return how many requests a second model needs after a first one has learned."""

    mended = bool(violations({"model": "m", "messages": history_of(case)}))

    def answering(asked: Asked, number: int) -> Answer:
        return answer_of(case) if number == 0 and not mended else good(asked)

    async with stand_in(answering) as service:
        settings = Settings(KEY, "m", service.base_url, options_of(case), stream=case["stream"])
        bodies = []
        for _ in range(2):
            model = ChatModel(settings, backoff=0.01)
            before = len(service.asked)
            try:
                await model.reply(history_of(case), tools([]))
            except Failure:
                return 99
            finally:
                await model.aclose()
            bodies.append(service.asked[-1].body)
        assert bodies[0] == bodies[1]
        return len(service.asked) - before


class TestGuessedArguments:
    @pytest.mark.parametrize(
        "name", [case["id"] for case in CASES if case["expect"].get("repaired")]
    )
    def test_never_run_on_a_tool_that_changes_something(self, name: str) -> None:
        seen = asyncio.run(play(case_named(name), changes=True))
        assert seen.ran == []
        assert [answer["code"] for answer in seen.answers()] == ["tool_arguments_invalid"]
