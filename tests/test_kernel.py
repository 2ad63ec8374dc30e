"""The kernel: rounds, one answer for each call, limits, rails, cancellation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

from agent_runtime import (
    Budget,
    Conversation,
    Failure,
    Limits,
    Message,
    Rail,
    Reply,
    Round,
    ScriptedModel,
    Tool,
    ToolCall,
    Usage,
    assistant_message,
    run_agent,
    scripted,
)

Handler = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]

TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


async def echo(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"text": arguments["text"]}


async def refuse(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    raise Failure("tool_failed", f"'{arguments['text']}' is refused.", "Say something else.")


def tool(name: str = "echo", handler: Handler = echo, **more: Any) -> Tool:
    return Tool(name, "for the test", TEXT, handler, **more)


def conversation(**limits: Any) -> Conversation:
    return Conversation([{"role": "user", "content": "go"}], Budget(Limits(**limits)))


def run(
    talk: Conversation, *turns: Reply, tools: Sequence[Tool] = (), rails: Sequence[Rail] = ()
) -> Round:
    model = ScriptedModel([turns])
    return asyncio.run(run_agent(model, talk, tools or (tool(),), rails=(model, *rails)))


def answers(talk: Conversation) -> list[dict[str, Any]]:
    return [json.loads(m["content"]) for m in talk.messages if m["role"] == "tool"]


def call(text: Any = "hi", name: str = "echo") -> tuple[str, dict[str, Any]]:
    return name, {"text": text}


class TestEachCallGetsOneAnswer:
    def test_a_call_runs_its_tool_and_the_answer_joins_the_history(self) -> None:
        talk = conversation()
        assert run(talk, scripted("", call()), scripted("done")).status == "complete"
        assert answers(talk) == [{"ok": True, "text": "hi"}]

    def test_the_answers_stand_in_the_order_of_the_calls(self) -> None:
        talk = conversation()
        run(talk, scripted("", call("a"), call("b")), scripted("done"))
        assert [m.get("tool_call_id") for m in talk.messages if m["role"] == "tool"] == [
            "call_0_0",
            "call_0_1",
        ]

    def test_an_unknown_tool_is_answered_with_the_names_that_exist(self) -> None:
        talk = conversation()
        run(talk, scripted("", call(name="fly")), scripted("done"))
        assert answers(talk)[0]["code"] == "tool_unknown"
        assert "echo" in answers(talk)[0]["remedy"]

    def test_arguments_that_do_not_fit_never_reach_the_tool(self) -> None:
        talk = conversation()
        for wrong in ({"text": 1}, {}, {"text": "x", "approved": True}):
            run(talk, scripted("", ("echo", wrong)), scripted("done"))
        assert [answer["code"] for answer in answers(talk)] == ["tool_arguments_invalid"] * 3

    def test_guessed_arguments_never_reach_a_tool_that_changes_something(self) -> None:
        talk = conversation()
        guessed = ToolCall("c1", "echo", {"text": "x"}, repaired=True)
        reply = Reply("", (guessed,), assistant_message("", (guessed,)))
        run(talk, reply, scripted("done"), tools=(tool(changes=True),))
        assert answers(talk)[0]["code"] == "tool_arguments_invalid"

    def test_guessed_arguments_may_reach_a_tool_that_only_reads(self) -> None:
        talk = conversation()
        guessed = ToolCall("c1", "echo", {"text": "x"}, repaired=True)
        reply = Reply("", (guessed,), assistant_message("", (guessed,)))
        run(talk, reply, scripted("done"))
        assert answers(talk)[0]["ok"] is True

    def test_a_call_that_came_broken_is_answered_with_its_fault(self) -> None:
        talk = conversation()
        broken = ToolCall("c1", "echo", {}, fault=Failure("model_output_cut", "cut", "again"))
        run(talk, Reply("", (broken,), assistant_message("", (broken,))), scripted("done"))
        assert answers(talk)[0]["code"] == "model_output_cut"

    def test_a_lone_surrogate_in_a_result_can_still_be_sent(self) -> None:
        talk = conversation()
        run(talk, scripted("", call("\ud800")), scripted("done"))
        for message in talk.messages:
            json.dumps(message, ensure_ascii=False) if message["role"] == "tool" else None
        sent = next(m["content"] for m in talk.messages if m["role"] == "tool")
        assert sent.encode("utf-8")


class TestAToolThatEndsTheRound:
    def test_its_failure_ends_the_round_and_the_rest_is_skipped(self) -> None:
        talk = conversation()
        ending = tool("run", refuse, ends_round=True)
        ended = run(
            talk, scripted("", call(name="run"), call()), scripted("never"), tools=(ending, tool())
        )
        assert ended.status == "tool-failed"
        assert [a["code"] for a in answers(talk)] == ["tool_failed", "tool_call_skipped"]

    def test_a_failure_of_another_tool_goes_to_the_model(self) -> None:
        talk = conversation()
        ended = run(
            talk, scripted("", call(name="no")), scripted("I see"), tools=(tool("no", refuse),)
        )
        assert (ended.status, ended.text) == ("complete", "I see")

    def test_an_error_that_is_no_failure_is_a_bug_and_propagates_with_every_call_answered(
        self,
    ) -> None:
        async def broken(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
            raise ZeroDivisionError

        talk = conversation()
        with pytest.raises(ZeroDivisionError):
            run(talk, scripted("", call(name="bad"), call()), tools=(tool("bad", broken), tool()))
        assert len(answers(talk)) == 2


class TestErrorsOfTools:
    def test_a_later_success_with_the_same_subject_resolves_an_error(self) -> None:
        async def first_fails(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
            if not seen:
                seen.append(1)
                raise Failure("tool_failed", "not yet", "again")
            return {}

        seen: list[int] = []
        talk = conversation()
        run(
            talk,
            scripted("", call()),
            scripted("", call()),
            scripted("ok"),
            tools=(tool(handler=first_fails),),
        )
        assert [error.resolved for error in talk.errors] == [True]
        assert talk.unresolved == ()

    def test_success_with_another_subject_does_not(self) -> None:
        async def picky(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
            if arguments["text"] == "a":
                raise Failure("tool_failed", "no", "other")
            return {}

        talk = conversation()
        picky_tool = tool(handler=picky, subject=lambda arguments: str(arguments.get("text")))
        run(
            talk,
            scripted("", call("a")),
            scripted("", call("b")),
            scripted("ok"),
            tools=(picky_tool,),
        )
        assert [error.subject for error in talk.unresolved] == ["a"]

    def test_the_same_failing_call_three_times_ends_the_round(self) -> None:
        talk = conversation()
        turns = [scripted("", call(name="no")) for _ in range(9)]
        ended = run(talk, *turns, tools=(tool("no", refuse),))
        assert ended.status == "call-repeated"
        assert ended.failure and ended.failure.code == "call_repeated"
        assert len(answers(talk)) == 3

    def test_different_failing_calls_do_not(self) -> None:
        talk = conversation()
        turns = [scripted("", call(str(n), "no")) for n in range(5)]
        assert run(talk, *turns, scripted("x"), tools=(tool("no", refuse),)).status == "complete"


class TestLimits:
    def test_no_request_is_made_beyond_the_turns(self) -> None:
        talk = conversation(turns=2)
        ended = run(talk, *[scripted("", call(str(n))) for n in range(9)])
        assert (ended.status, talk.budget.turns) == ("limit-reached", 2)

    def test_a_call_beyond_the_limit_is_answered_and_ends_the_round(self) -> None:
        talk = conversation(tool_calls=1)
        ended = run(talk, scripted("", call("a"), call("b"), call("c")), scripted("never"))
        assert ended.status == "limit-reached"
        assert [a.get("code", "ok") for a in answers(talk)] == [
            "ok",
            "limit_reached",
            "tool_call_skipped",
        ]

    def test_tokens_that_were_used_stop_the_next_request(self) -> None:
        talk = conversation(tokens=100)
        spent = Reply("", (), {"role": "assistant", "content": "x"}, Usage(90, 20))
        assert run(talk, spent).status == "complete"
        assert run(talk, scripted("more")).status == "limit-reached"

    def test_a_reservation_that_would_pass_the_limit_is_refused(self) -> None:
        budget = Budget(Limits(usd=0.10))
        budget.reserve_turn(Usage(usd=0.10))
        with pytest.raises(Failure, match="limit_reached"):
            budget.reserve_turn(Usage(usd=0.11))

    def test_time_ends_a_tool_that_hangs(self) -> None:
        async def hang(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
            await asyncio.sleep(60)
            return {}

        talk = conversation(timeout=0.05)
        ended = run(talk, scripted("", call()), tools=(tool(handler=hang),))
        assert ended.status == "limit-reached"
        assert answers(talk)[0]["code"] == "limit_reached"

    def test_the_budget_outlives_the_round(self) -> None:
        talk = conversation(turns=3)
        model = ScriptedModel([[scripted("one")], [scripted("two")]])

        async def twice() -> None:
            await run_agent(model, talk, (tool(),), rails=(model,))
            await run_agent(model, talk, (tool(),), rails=(model,))

        asyncio.run(twice())
        assert talk.budget.turns == 2


class TestCancellation:
    def test_every_call_has_an_answer_afterwards_so_that_the_history_can_be_sent(self) -> None:
        async def hang(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
            started.set()
            await asyncio.sleep(60)
            return {}

        talk = conversation()
        model = ScriptedModel([[scripted("", call("a"), call("b"))]])

        async def cancelled() -> None:
            task = asyncio.create_task(run_agent(model, talk, (tool(handler=hang),)))
            await started.wait()
            task.cancel()
            await task

        started = asyncio.Event()
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(cancelled())
        assert [answer["code"] for answer in answers(talk)] == ["interrupted", "interrupted"]


class Watch(Rail):
    """A rail that notes its hooks, stops one call and rewrites another."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def before_run(self, prompt: str) -> str:
        self.seen.append("before_run")
        return "Be brief."

    async def before_model_call(self, messages: Sequence[Message]) -> Sequence[str]:
        self.seen.append("before_model_call")
        return ("Hurry.",) if len(self.seen) < 3 else ()

    async def after_model_call(self, reply: Reply) -> None:
        self.seen.append("after_model_call")

    async def before_tool_call(self, call: ToolCall) -> ToolCall:
        self.seen.append("before_tool_call")
        if call.arguments["text"] == "stop":
            raise Failure("tool_stopped", "not this one", "another")
        return ToolCall(call.id, call.name, {"text": "rewritten"})

    async def after_tool_call(self, call: ToolCall, result: Mapping[str, Any]) -> None:
        self.seen.append("after_tool_call")

    async def after_run(self, round: Round) -> None:
        self.seen.append(f"after_run {round.status}")


class TestRails:
    def test_all_six_hooks_are_called_around_a_turn(self) -> None:
        watch = Watch()
        run(conversation(), scripted("", call()), scripted("x"), rails=(watch,))
        assert watch.seen == [
            "before_run",
            "before_model_call",
            "after_model_call",
            "before_tool_call",
            "after_tool_call",
            "before_model_call",
            "after_model_call",
            "after_run complete",
        ]

    def test_a_section_joins_the_system_prompt_and_a_steering_text_the_history(self) -> None:
        talk = conversation()
        run(talk, scripted("x"), rails=(Watch(),))
        assert talk.messages[0] == {"role": "system", "content": "Be brief."}
        assert {"role": "user", "content": "Hurry."} in talk.messages

    def test_a_rail_rewrites_a_call(self) -> None:
        talk = conversation()
        run(talk, scripted("", call("hi")), scripted("x"), rails=(Watch(),))
        assert answers(talk)[0]["text"] == "rewritten"

    def test_a_rail_stops_a_call_and_the_model_hears_why(self) -> None:
        talk = conversation()
        run(talk, scripted("", call("stop")), scripted("x"), rails=(Watch(),))
        assert answers(talk)[0]["code"] == "tool_stopped"

    def test_a_rewritten_call_is_checked_against_the_schema_too(self) -> None:
        class Wrong(Rail):
            async def before_tool_call(self, call: ToolCall) -> ToolCall:
                return ToolCall(call.id, call.name, {"text": 1})

        talk = conversation()
        run(talk, scripted("", call()), scripted("x"), rails=(Wrong(),))
        assert answers(talk)[0]["code"] == "tool_arguments_invalid"


class TestAHistoryThatIsTooLong:
    def test_it_is_shortened_once_and_asked_again(self) -> None:
        class Full:
            async def reply(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
                if len(messages) > 1:
                    raise Failure("context_too_long", "8,193 tokens", "shorten")
                return scripted("fits")

            async def aclose(self) -> None: ...

        talk = Conversation(
            [{"role": "user", "content": str(n)} for n in range(3)], Budget(Limits())
        )
        ended = asyncio.run(
            run_agent(Full(), talk, (), shorten=lambda messages: list(messages[:1]))
        )
        assert (ended.status, ended.text) == ("complete", "fits")

    def test_where_nothing_can_be_cut_the_round_ends_with_its_code(self) -> None:
        class Full:
            async def reply(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
                raise Failure("context_too_long", "8,193 tokens", "shorten")

            async def aclose(self) -> None: ...

        ended = asyncio.run(run_agent(Full(), conversation(), (), shorten=lambda messages: None))
        assert ended.status == "model-failed"
        assert ended.failure and ended.failure.code == "context_too_long"
