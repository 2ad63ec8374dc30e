"""Which skills a task selects: every example, both languages, and the trace that explains it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reread.skills.folding import fold
from reread.skills.selection import MAX_AUTOMATIC, Choice, choose
from reread.skills.skill import Skill

DATA = Path(__file__).parent / "data" / "selection"
HANDED: dict[str, Any] = json.loads((DATA / "cases.json").read_text("utf-8"))
MORE: dict[str, Any] = json.loads((DATA / "more.json").read_text("utf-8"))
SEMANTIC = {"S69", "S72"}
"""No trigger occurs in these; what they mean is left to the model, which sees the catalog."""


def skills(*sources: dict[str, Any]) -> list[Skill]:
    return [
        Skill(
            one["name"], one["name"], one.get("description", "-"), triggers=tuple(one["triggers"])
        )
        for source in sources
        for one in source["skills"]
    ]


def selected(choices: tuple[Choice, ...]) -> list[str]:
    return [one.skill for one in choices if one.outcome == "selected"]


def only(task: str, *triggers: str, name: str = "s") -> Choice:
    return choose(task, [Skill(name, name, "-", triggers=triggers)])[0]


class TestTheHandedCases:
    @pytest.mark.parametrize("case", HANDED["cases"], ids=lambda case: case["id"])
    def test_nothing_is_selected_that_a_careful_person_would_not(self, case: Any) -> None:
        found = selected(choose(case["task"], skills(HANDED)))
        assert set(found) <= {*case["expected"], *case["acceptable_extra"]}

    @pytest.mark.parametrize(
        "case",
        [case for case in HANDED["cases"] if case["id"] not in SEMANTIC],
        ids=lambda case: case["id"],
    )
    def test_everything_that_is_asked_for_is_selected_in_order(self, case: Any) -> None:
        found = selected(choose(case["task"], skills(HANDED)))
        assert [name for name in found if name in case["expected"]] == case["expected"]


class TestFurtherCases:
    @pytest.mark.parametrize("case", MORE["cases"], ids=lambda case: case["task"][:40])
    def test_the_selection_is_exactly_this(self, case: Any) -> None:
        assert selected(choose(case["task"], skills(HANDED, MORE))) == case["expected"]


class TestTheTrace:
    def test_it_names_the_trigger_the_words_and_their_place(self) -> None:
        task = "Please: ＢＬＯＧ　posts today"
        one = only(task, "blog post")
        assert (one.outcome, one.trigger, one.rule) == ("selected", "blog post", "inflected")
        assert task[one.start : one.end] == one.matched == "ＢＬＯＧ　posts"

    def test_a_negated_skill_says_by_which_word(self) -> None:
        one = only("请不要翻译", "翻译")
        assert (one.outcome, one.rule) == ("suppressed", "negated by '不要'")

    def test_a_hit_in_code_is_a_suggestion(self) -> None:
        one = only("rename `chart` to `graph`", "chart")
        assert (one.outcome, one.rule) == ("suggested", "in code")

    def test_a_skill_without_a_hit_says_whether_it_had_triggers(self) -> None:
        assert only("hello", "chart").rule == "no trigger occurs"
        assert only("hello").rule == "it declares no triggers"

    def test_what_the_limit_cuts_off_is_named(self) -> None:
        many = [Skill(f"s{i}", f"s{i}", "-", triggers=(f"word{i}",)) for i in range(6)]
        choices = choose("word5 word4 word3 word2 word1 word0", many)
        assert selected(choices) == ["s5", "s4", "s3", "s2"][:MAX_AUTOMATIC]
        cut = [one.skill for one in choices if one.rule.startswith("cut off")]
        assert cut == ["s1", "s0"]

    def test_the_longer_of_two_overlapping_triggers_wins_and_is_named(self) -> None:
        both = [
            Skill("short", "short", "-", triggers=("review",)),
            Skill("long", "long", "-", triggers=("code review",)),
        ]
        choices = choose("a code review", both)
        assert selected(choices) == ["long"]
        assert choices[1].rule == "inside the longer trigger 'code review' of long"

    def test_a_skill_whose_metadata_was_guessed_is_never_selected_by_trigger(self) -> None:
        one = Skill("s", "s", "-", triggers=("chart",), salvaged=True)
        assert choose("chart", [one])[0].outcome == "skipped"


class TestNamesInTheTask:
    @pytest.mark.parametrize(
        "task",
        [
            "$my-skill go",
            "/my-skill go",
            "use /my-skill",
            "use the my-skill skill",
            "用my-skill技能",
        ],
    )
    def test_a_named_skill_needs_no_trigger(self, task: str) -> None:
        assert only(task, name="my-skill").outcome == "selected"

    @pytest.mark.parametrize(
        "task", ["GET /my-skill returns 500", "a/my-skill/b", "$my-skill-2", "my-skill is a name"]
    )
    def test_what_looks_similar_names_nothing(self, task: str) -> None:
        assert only(task, name="my-skill").outcome != "selected"

    def test_a_veto_by_name_wins_over_a_trigger(self) -> None:
        one = only("Don't use the my-skill skill, but make a chart.", "chart", name="my-skill")
        assert one.outcome == "suppressed"


class TestSelectionIsDeterministic:
    @settings(max_examples=60, deadline=None)
    @given(st.text(max_size=80), st.randoms(use_true_random=False))
    def test_the_order_of_the_skills_does_not_matter(self, task: str, random: Any) -> None:
        known = skills(HANDED)
        shuffled = list(known)
        random.shuffle(shuffled)
        first, second = choose(task, known), choose(task, shuffled)
        assert [one for one in first if one.trigger] == [one for one in second if one.trigger]

    @settings(max_examples=100, deadline=None)
    @given(st.text(max_size=60))
    def test_the_folded_text_leads_back_to_the_original(self, text: str) -> None:
        folded = fold(text)
        for index in range(len(folded.text)):
            start, end = folded.place(index, index + 1)
            assert 0 <= start < end <= len(text)
