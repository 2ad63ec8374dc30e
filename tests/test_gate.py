"""The gate's own conditions: who made a file, when, and whether it is still that file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from agent_runtime import Failure, Limits
from reread import gate
from reread.values import Check, Evidence, Expected
from tests.workplace import (
    FAILS_AFTERWARDS,
    GOOD,
    HEADER,
    NOTHING,
    OUTPUT,
    RUN,
    SAY_SO,
    SCRIPT,
    Workplace,
    call,
    codes,
    host,
    write,
)


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path / "w")


class TestDoneIsProvenFromDisk:
    def test_a_file_that_a_script_of_this_run_made_is_published(self, place: Workplace) -> None:
        outcome = place.run(write(SCRIPT, GOOD), RUN, SAY_SO)
        assert outcome.status == "complete"
        assert (place.root / OUTPUT).read_text().startswith('{"orders"')

    def test_saying_so_is_not_doing_so(self, place: Workplace) -> None:
        outcome = place.run(SAY_SO)
        assert (outcome.runtime_status, outcome.status) == ("complete", "validation-failed")
        assert codes(outcome) == {"artifact_not_created", "script_not_run"}

    def test_a_file_that_only_write_file_made_is_not_from_a_script(self, place: Workplace) -> None:
        outcome = place.run(write(OUTPUT, '{"orders": 295}'), SAY_SO)
        assert codes(outcome) == {"artifact_not_from_script", "script_not_run"}

    def test_it_is_enough_where_the_task_needs_no_script(self, tmp_path: Path) -> None:
        place = Workplace(tmp_path / "w", script="optional")
        assert place.run(write(OUTPUT, '{"orders": 295}'), SAY_SO).status == "complete"

    def test_nothing_is_published_unless_every_artifact_is_proven(self, tmp_path: Path) -> None:
        artifacts = (Expected(OUTPUT, "json"), Expected("outputs/b.txt", "txt"))
        place = Workplace(tmp_path / "w", artifacts=artifacts)
        outcome = place.run(write(SCRIPT, GOOD), RUN, SAY_SO)
        assert outcome.status == "validation-failed"
        assert list((place.root / "outputs").iterdir()) == []
        assert outcome.artifacts[0].ok


class TestAnEarlierVersionProvesNothing:
    def test_what_a_failing_version_left_is_not_the_work_of_an_empty_one(
        self, place: Workplace
    ) -> None:
        first = [write(SCRIPT, FAILS_AFTERWARDS), RUN]
        place.task = replace(place.task, repairs=1)
        outcome = place.run(*first, more=[[write(SCRIPT, NOTHING), RUN, SAY_SO]])
        assert outcome.status == "validation-failed"
        assert "artifact_not_from_script" in codes(outcome)

    def test_a_later_version_that_makes_it_anew_is_its_maker(self, place: Workplace) -> None:
        place.task = replace(place.task, repairs=1)
        first = [write(SCRIPT, FAILS_AFTERWARDS), RUN]
        outcome = place.run(*first, more=[[write(SCRIPT, GOOD), RUN, SAY_SO]])
        assert outcome.status == "complete"

    def test_a_script_that_changed_after_its_run_is_not_the_one_that_ran(
        self, place: Workplace
    ) -> None:
        outcome = place.run(write(SCRIPT, GOOD), RUN, write(SCRIPT, NOTHING), SAY_SO)
        assert codes(outcome) == {"script_changed_since_run"}

    def test_a_script_that_is_gone_is_not_the_one_that_ran(self, place: Workplace) -> None:
        place.open()
        gone = host((place.work / SCRIPT).unlink)
        assert codes(place.run(write(SCRIPT, GOOD), RUN, gone, SAY_SO)) == {
            "script_changed_since_run"
        }

    def test_a_script_given_as_code_is_read_again_where_it_was_kept(self, place: Workplace) -> None:
        outcome = place.run(call("run_python", code=GOOD), SAY_SO)
        assert outcome.status == "complete"
        assert Path(outcome.runs[0].path).name.startswith("uv_script_")


class TestAChangeAfterTheRunIsFound:
    def test_by_anybody_else(self, place: Workplace) -> None:
        place.open()
        tamper = host(lambda: (place.work / OUTPUT).write_text('{"orders": 296, "total": 1.0}'))
        outcome = place.run(write(SCRIPT, GOOD), RUN, tamper, SAY_SO)
        assert codes(outcome) == {"artifact_changed_since_run"}

    def test_with_the_same_size_and_the_old_time(self, place: Workplace) -> None:
        place.open()

        def lie() -> None:
            file = place.work / OUTPUT
            before = file.stat()
            file.write_text(file.read_text().replace("295", "296"))
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

        outcome = place.run(write(SCRIPT, GOOD), RUN, host(lie), SAY_SO)
        assert codes(outcome) == {"artifact_changed_since_run"}

    def test_by_the_model_itself(self, place: Workplace) -> None:
        outcome = place.run(write(SCRIPT, GOOD), RUN, write(OUTPUT, '{"orders": 296}'), SAY_SO)
        assert "artifact_not_from_script" in codes(outcome)

    def test_a_file_that_appears_from_nowhere_is_nobodys(self, place: Workplace) -> None:
        place.open()
        plant = host(lambda: (place.work / OUTPUT).write_text('{"orders": 295, "total": 1.0}'))
        outcome = place.run(write(SCRIPT, NOTHING), RUN, plant, SAY_SO)
        assert "artifact_not_from_script" in codes(outcome)

    def test_a_link_in_its_place_is_not_read(self, place: Workplace) -> None:
        place.open()

        def swap() -> None:
            (place.work / OUTPUT).unlink()
            (place.work / OUTPUT).symlink_to("/etc/hostname")

        outcome = place.run(write(SCRIPT, GOOD), RUN, host(swap), SAY_SO)
        assert "artifact_unreadable" in codes(outcome)
        assert not outcome.artifacts[0].read


class TestTheUsersOldFile:
    def test_needs_its_approval_before_a_token_is_spent(self, place: Workplace) -> None:
        (place.root / OUTPUT).write_text("{}")
        with pytest.raises(Failure, match="approval_required"):
            place.open()

    def test_is_kept_when_it_is_replaced(self, place: Workplace) -> None:
        (place.root / OUTPUT).write_text('{"mine": 1}')
        place.approve(OUTPUT)
        outcome = place.run(write(SCRIPT, GOOD), RUN, SAY_SO)
        kept = place.root / "runs" / outcome.run_id / "replaced" / OUTPUT
        assert (outcome.status, kept.read_text()) == ("complete", '{"mine": 1}')

    def test_that_changed_during_the_run_is_not_replaced(self, place: Workplace) -> None:
        (place.root / OUTPUT).write_text('{"mine": 1}')
        place.approve(OUTPUT)
        edit = host(lambda: (place.root / OUTPUT).write_text('{"mine": 2}'))
        outcome = place.run(write(SCRIPT, GOOD), RUN, edit, SAY_SO)
        assert (outcome.status, outcome.reason) == ("validation-failed", "publish_failed")
        assert (place.root / OUTPUT).read_text() == '{"mine": 2}'

    def test_of_yesterday_does_not_pass_for_todays(self, place: Workplace) -> None:
        (place.root / OUTPUT).write_text('{"orders": 295, "total": 266451.25}')
        place.approve(OUTPUT)
        assert "artifact_not_created" in codes(place.run(SAY_SO))


class TestTheOrderOfVerdicts:
    def test_an_open_tool_error_leaves_a_good_artifact_incomplete(self, place: Workplace) -> None:
        escape = write("../out.txt", "x")
        outcome = place.run(write(SCRIPT, GOOD), RUN, escape, SAY_SO)
        assert (outcome.status, outcome.reason) == ("incomplete", "path_not_allowed")
        assert not (place.root / OUTPUT).exists()

    def test_a_bad_artifact_comes_before_an_open_tool_error(self, place: Workplace) -> None:
        assert place.run(write("../out.txt", "x"), SAY_SO).status == "validation-failed"

    def test_a_limit_comes_before_both(self, tmp_path: Path) -> None:
        place = Workplace(tmp_path / "w", limits=Limits(turns=1))
        outcome = place.run(write(SCRIPT, GOOD), RUN, SAY_SO)
        assert (outcome.status, outcome.reason) == ("incomplete", "limit_reached")

    def test_calls_after_a_failed_script_are_skipped(self, place: Workplace) -> None:
        outcome = place.run(write(SCRIPT, HEADER + "1/0\n"), RUN, SAY_SO)
        assert outcome.runtime_status == "tool-failed"
        assert outcome.turns == 2


class TestZeroChecksIsNotAPass:
    def evidence(self, *checks: Check) -> Evidence:
        return Evidence("a", "json", "0" * 64, 1, checks)

    def test_no_check_at_all(self) -> None:
        assert not self.evidence().ok

    def test_an_identity_check_that_could_not_run(self) -> None:
        assert not self.evidence(
            Check("a", "identity", "passed"), Check("b", "identity", "not_run")
        ).ok

    def test_only_a_contract_that_holds(self) -> None:
        assert not self.evidence(Check("a", "contract", "passed")).ok

    def test_a_substance_check_that_could_not_run_is_shown_and_passes(self) -> None:
        assert self.evidence(
            Check("a", "identity", "passed"), Check("b", "substance", "not_run")
        ).ok

    def test_a_task_without_artifacts(self) -> None:
        assert not gate.Verdict((), ()).ok
