"""What is sent of a history: in the order that services ask for, encoded once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_runtime import Message
from reread.models._history import NOT_ANSWERED, Wire
from reread.models._profile import Profile
from tests.live.rules import violations

SYSTEM: Message = {"role": "system", "content": "You work."}
TASK: Message = {"role": "user", "content": "Do it."}


def asking(*ids: str, **more: Any) -> Message:
    calls = [
        {"id": name, "type": "function", "function": {"name": "work", "arguments": "{}"}}
        for name in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def answer(name: str, text: str = "{}") -> Message:
    return {"role": "tool", "tool_call_id": name, "content": text}


def sent(messages: list[Message], profile: Profile | None = None) -> list[Message]:
    return [json.loads(item) for item in Wire().encode(messages, profile or Profile())]


class TestAHistory:
    def test_that_is_right_is_sent_as_it_is(self) -> None:
        messages = [SYSTEM, TASK, asking("a", "b"), answer("a"), answer("b")]
        assert sent(messages) == messages

    def test_with_calls_that_nobody_answered_gets_answers(self) -> None:
        made = sent([TASK, asking("a", "b"), answer("a"), {"role": "user", "content": "Go on."}])
        assert made[3] == {"role": "tool", "tool_call_id": "b", "content": NOT_ANSWERED}
        assert violations({"model": "m", "messages": made}) == []

    @pytest.mark.parametrize(
        "messages",
        [
            [TASK, answer("nobody")],
            [TASK, asking("a"), answer("a"), answer("a", "again")],
            [TASK, asking("a"), answer("b"), answer("a")],
            [TASK, {"role": "assistant", "content": ""}, TASK],
            [TASK, {"role": "assistant", "content": None, "reasoning_content": "hm"}],
            [{"role": "developer", "content": "You work."}, TASK],
        ],
    )
    def test_that_is_wrong_is_put_right(self, messages: list[Message]) -> None:
        assert violations({"model": "m", "messages": sent(messages)}) == []

    def test_with_half_a_character_is_utf_8(self) -> None:
        assert sent([{"role": "user", "content": "a\ud83d"}])[0]["content"] == "a\ufffd"

    def test_for_a_host_that_wants_no_user_after_a_tool_joins_them(self) -> None:
        messages = [TASK, asking("a"), answer("a", "4"), {"role": "user", "content": "Go on."}]
        made = sent(messages, Profile(fold_users=True))
        assert [m["role"] for m in made] == ["user", "assistant", "tool"]
        assert made[-1]["content"] == "4\n\nGo on."

    def test_for_a_host_whose_roles_alternate_joins_neighbours(self) -> None:
        made = sent([TASK, TASK, {"role": "assistant", "content": "x"}, TASK], Profile(merge=True))
        assert [m["role"] for m in made] == ["user", "assistant", "user"]

    def test_for_a_host_without_system_goes_into_the_first_user_message(self) -> None:
        made = sent([SYSTEM, TASK], Profile(no_system=True))
        assert made == [{"role": "user", "content": "You work.\n\nDo it."}]

    def test_for_a_host_with_short_ids_keeps_calls_and_answers_together(self) -> None:
        made = sent([TASK, asking("call_of_19_letters_"), answer("call_of_19_letters_")])
        short = sent(
            [TASK, asking("call_of_19_letters_"), answer("call_of_19_letters_")],
            Profile(short_ids=True),
        )
        assert made[1]["tool_calls"][0]["id"] == "call_of_19_letters_"
        assert short[1]["tool_calls"][0]["id"] == short[2]["tool_call_id"]
        assert len(short[2]["tool_call_id"]) == 9
        assert short[2]["tool_call_id"].isalnum()

    def test_for_a_strict_host_carries_no_field_that_it_does_not_know(self) -> None:
        made = sent([TASK, asking("a", reasoning="hm"), answer("a")], Profile(unknown_fields=False))
        assert set(made[1]) == {"role", "content", "tool_calls"}

    @pytest.mark.parametrize("content", [None, "", " "])
    def test_has_for_no_content_what_the_host_takes(self, content: str | None) -> None:
        made = sent([TASK, asking("a"), answer("a")], Profile(empty_content=content))
        assert made[1]["content"] == content


class TestEncodingOnce:
    def test_a_growing_history_is_encoded_as_a_new_one_would_be(self) -> None:
        wire, messages = Wire(), [SYSTEM, TASK]
        for turn in range(6):
            assert wire.encode(messages, Profile()) == Wire().encode(messages, Profile())
            messages.append(asking(f"a{turn}"))
            assert wire.encode(messages, Profile()) == Wire().encode(messages, Profile())
            messages.append(answer(f"a{turn}", "x" * turn))

    def test_a_message_that_changed_in_place_is_encoded_anew(self) -> None:
        wire, messages = Wire(), [dict(SYSTEM), dict(TASK), asking("a"), answer("a"), dict(TASK)]
        wire.encode(messages, Profile())
        messages[0]["content"] = "You rest."
        messages[3]["content"] = "7"
        assert wire.encode(messages, Profile()) == Wire().encode(messages, Profile())

    def test_a_history_that_was_shortened_is_encoded_anew(self) -> None:
        wire, messages = Wire(), [SYSTEM, TASK, asking("a"), answer("a", "x" * 99), TASK]
        wire.encode(messages, Profile())
        shorter = [*messages[:3], answer("a", "x"), TASK]
        assert wire.encode(shorter, Profile()) == Wire().encode(shorter, Profile())
        assert wire.encode(messages[:2], Profile()) == Wire().encode(messages[:2], Profile())

    def test_what_was_encoded_is_used_again(self) -> None:
        wire, messages = Wire(), [SYSTEM, TASK, asking("a"), answer("a")]
        first = wire.encode(messages, Profile())
        second = wire.encode([*messages, TASK], Profile())
        assert all(old is new for old, new in zip(first[:2], second[:2], strict=True))
