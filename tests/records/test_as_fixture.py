"""A recorded run, saved as a fixture, replays without a model and ends as it did."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent_runtime import Failure
from reread import fixtures, tasks
from reread.job import Job, perform
from reread.replay.as_fixture import save
from reread.values import Outcome
from tests.records.runs import SAMPLES, kinds, last_run, opened, record, run


def saved(place: Path, folder: Path, name: str = "again") -> fixtures.Fixture:
    workspace, folder_of_run = opened(place)
    return fixtures.load(str(save(workspace, folder_of_run, name, folder).path), SAMPLES)


def replayed(fixture: fixtures.Fixture, place: Path, **more: Any) -> Outcome:
    task = tasks.read_task(fixture.task)
    return asyncio.run(perform(Job(task=task, workspace=place, fixture=fixture, **more)))


class TestASavedRun:
    @pytest.mark.parametrize("name", ["success", "repair", "invalid", "crash", "blog", "tampered"])
    def test_it_ends_as_the_recorded_one(self, tmp_path: Path, name: str) -> None:
        first = run(name, tmp_path / "w")
        fixture = saved(tmp_path / "w", tmp_path / "f")
        again = replayed(fixture, tmp_path / "w2")
        assert (again.status, again.reason) == (first.status, first.reason)
        assert again.published == first.published
        assert kinds(last_run(tmp_path / "w2")) == kinds(last_run(tmp_path / "w"))
        assert fixture.expect["status"] == first.status

    def test_it_brings_the_file_that_was_replaced_and_the_word_for_it(self, tmp_path: Path) -> None:
        place = tmp_path / "w"
        (place / "outputs").mkdir(parents=True)
        (place / "outputs/summary.json").write_bytes(b"\x00 the older one")
        assert run("success", place, overwrites=("outputs/summary.json",)).ok
        again = replayed(saved(place, tmp_path / "f"), tmp_path / "w2")
        assert again.ok
        kept = last_run(tmp_path / "w2") / "replaced/outputs/summary.json"
        assert kept.read_bytes() == b"\x00 the older one"

    def test_it_carries_the_flag_for_a_proposal(self, tmp_path: Path) -> None:
        run("skip", tmp_path / "w")
        assert run("learn", tmp_path / "w", proposals=("inputs/skill-proposal.json",)).ok
        fixture = saved(tmp_path / "w", tmp_path / "f")
        assert fixture.options == ("--approve-skill-proposal", "inputs/skill-proposal.json")
        assert replayed(fixture, tmp_path / "w2", proposals=fixture.options[1:]).ok

    def test_its_scripts_are_not_taken_for_ours(self, tmp_path: Path) -> None:
        run("success", tmp_path / "w")
        replayed(saved(tmp_path / "w", tmp_path / "f"), tmp_path / "w2")
        assert record(last_run(tmp_path / "w"))["shipped_script"] is True
        assert record(last_run(tmp_path / "w2"))["shipped_script"] is False

    def test_a_file_of_the_user_is_never_replaced_by_it(self, tmp_path: Path) -> None:
        run("success", tmp_path / "w")
        fixture = saved(tmp_path / "w", tmp_path / "f")
        mine = tmp_path / "w2/inputs/orders.csv"
        mine.parent.mkdir(parents=True)
        mine.write_text("mine")
        replayed(fixture, tmp_path / "w2")
        assert mine.read_text() == "mine"


class TestWhatIsRefused:
    def test_an_input_that_has_changed_since(self, tmp_path: Path) -> None:
        run("success", tmp_path / "w")
        (tmp_path / "w/inputs/orders.csv").write_text("other")
        with pytest.raises(Failure, match="evidence_changed"):
            saved(tmp_path / "w", tmp_path / "f")

    @pytest.mark.parametrize("name", ["", "../up", "Upper", "a/b"])
    def test_a_name_that_is_a_path(self, tmp_path: Path, name: str) -> None:
        run("skip", tmp_path / "w")
        with pytest.raises(Failure, match="usage_invalid"):
            saved(tmp_path / "w", tmp_path / "f", name)

    def test_a_name_that_is_taken(self, tmp_path: Path) -> None:
        run("skip", tmp_path / "w")
        saved(tmp_path / "w", tmp_path / "f")
        with pytest.raises(Failure, match="usage_invalid"):
            saved(tmp_path / "w", tmp_path / "f")

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"task": "t"}', '{"task": 1, "rounds": []}'])
    def test_a_file_that_is_no_fixture(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "fixtures" / "x.json"
        path.parent.mkdir()
        path.write_text(text)
        with pytest.raises(Failure, match="fixture_invalid"):
            fixtures.load(str(path), SAMPLES)

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(Failure, match="fixture_unknown"):
            fixtures.load(str(tmp_path / "none.json"), SAMPLES)


class TestTheCommands:
    def test_record_and_fixture_work_together(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from app import main

        run("success", tmp_path / "w")
        target = tmp_path / "f"
        flags = ["--workspace", str(tmp_path / "w"), "--to", str(target), "--json"]
        assert main(["record", "--as-fixture", "mine", *flags]) == 0
        path = json.loads(capsys.readouterr().out)["fixture"]
        assert main(["--fixture", path, "--workspace", str(tmp_path / "w2"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["status"] == "complete"
