"""A run that is killed at any of its events: what is left, and how it goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent_runtime import Failure
from reread.job import recover, resume
from reread.models import Settings
from reread.replay.audit import audit
from reread.values import Outcome
from reread.workspace import Workspace
from tests.records.runs import ROOT, fork, killed, kinds, last_run, opened, record, run

pytestmark = pytest.mark.skipif(fork is None, reason="needs fork")

OLD = b'{"old": true}'
TARGET = "outputs/summary.json"
FILES = (TARGET, "outputs/report.md")


def no_service() -> Settings:
    raise AssertionError("a fixture asks no service")


def go_on(workspace: Path) -> Outcome:
    name = last_run(workspace).name
    return asyncio.run(resume(Workspace(workspace), name, no_service, samples=ROOT))


def with_old_file(place: Path) -> Path:
    (place / "outputs").mkdir(parents=True)
    (place / TARGET).write_bytes(OLD)
    return place


EVENTS_OF_SUCCESS = 23


class TestAKillAtEveryEvent:
    @pytest.mark.parametrize("number", range(1, EVENTS_OF_SUCCESS + 1))
    def test_nothing_is_lost_nothing_is_claimed_and_the_run_goes_on(
        self, tmp_path: Path, number: int
    ) -> None:
        place = with_old_file(tmp_path / "w")
        assert killed("success", place, number, overwrites=(TARGET,))
        before = kinds(last_run(place))
        assert len(before) == number
        assert not (last_run(place) / "record.json").exists()  # so it never says complete

        workspace = Workspace(place)
        with workspace.held():  # the lock died with its process
            recovered = recover(workspace)
        kept = [path for path in (place, last_run(place) / "replaced") if (path / TARGET).is_file()]
        assert OLD in [(path / TARGET).read_bytes() for path in kept]
        if recovered:
            assert record(last_run(place))["outcome"]["status"] == "complete"
        else:
            assert not (place / FILES[1]).exists()
            assert (place / TARGET).read_bytes() == OLD
            outcome = go_on(place)
            assert (outcome.status, outcome.turns, outcome.tool_calls) == ("complete", 4, 3)
        after = kinds(last_run(place))
        assert after.count("model.replied") == 4  # no recorded turn was asked again
        assert after.count("script.ran") == after.count("file.written") == 1
        assert audit(workspace.folder, opened(place)[1]).problems == ()

    def test_the_number_of_events_is_the_one_above(self, tmp_path: Path) -> None:
        assert run("success", tmp_path / "w").ok
        assert len(kinds(last_run(tmp_path / "w"))) == EVENTS_OF_SUCCESS


class TestARunWithARepair:
    @pytest.mark.parametrize("number", [10, 16, 17, 18, 24])
    def test_it_goes_on_in_the_round_in_which_it_was(self, tmp_path: Path, number: int) -> None:
        place = tmp_path / "w"
        assert killed("repair", place, number)
        outcome = go_on(place)
        assert (outcome.status, outcome.rounds) == ("complete", 2)
        after = kinds(last_run(place))
        assert (after.count("script.ran"), after.count("round.ended")) == (2, 2)

    def test_it_may_be_killed_again_and_again(self, tmp_path: Path) -> None:
        place = tmp_path / "w"
        assert killed("repair", place, 8)
        workspace = Workspace(place)
        torn = last_run(place) / "events.jsonl"
        for _ in range(2):  # a line that was cut off by the next crash
            with torn.open("ab") as stream:
                stream.write(b'{"schema": "reread.event/1", "numb')
            assert len(kinds(last_run(place))) == 8
        assert go_on(place).status == "complete"
        assert kinds(last_run(place))[8] == "run.resumed"
        assert audit(workspace.folder, opened(place)[1]).ok


class TestASkillThatWasBeingCreated:
    def approved(self, place: Path, number: int) -> None:
        run("skip", place)  # brings the samples along
        assert killed("learn", place, number, proposals=("inputs/skill-proposal.json",))

    @pytest.mark.parametrize("back", [0, 1])
    def test_it_is_created_once(self, tmp_path: Path, back: int) -> None:
        run("skip", tmp_path / "first")
        run("learn", tmp_path / "first", proposals=("inputs/skill-proposal.json",))
        number = kinds(last_run(tmp_path / "first")).index("skill.created") + 1
        self.approved(tmp_path / "w", number)
        if back:  # the skill is there, and the line that tells of it is not
            lines = last_run(tmp_path / "w") / "events.jsonl"
            whole = lines.read_bytes().splitlines(keepends=True)
            lines.write_bytes(b"".join(whole[:-1]))
        outcome = go_on(tmp_path / "w")
        assert (outcome.status, outcome.scans, outcome.tool_errors) == ("complete", 2, ())
        skill = record(last_run(tmp_path / "w"))["approvals"]["spent"]
        assert [word["subject"] for word in skill] == ["skill-proposal:explain-cache"]


class TestARunThatHasEnded:
    def test_there_is_nothing_to_go_on_with(self, tmp_path: Path) -> None:
        run("skip", tmp_path / "w")
        with pytest.raises(Failure) as refused:
            go_on(tmp_path / "w")
        assert refused.value.code == "usage_invalid"
