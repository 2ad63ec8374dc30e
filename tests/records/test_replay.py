"""replay: the same turns again, and the first step at which they lead elsewhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reread import records
from reread.replay.again import Replay, replay
from tests.records.runs import events, files, killed, last_run, opened, run
from tests.records.test_crash import go_on


def again(place: Path, scratch: Path) -> Replay:
    scratch.mkdir()
    workspace, folder = opened(place)
    return asyncio.run(replay(workspace, folder, scratch))


def altered(place: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the events of the last run."""
    lines = events(last_run(place))
    for line in lines:
        change(line)
    path = last_run(place) / records.EVENTS
    path.write_bytes(b"".join(records.as_line(line) for line in lines))


class TestTheSameAgain:
    @pytest.mark.parametrize(
        "fixture", ["success", "repair", "invalid", "crash", "skip", "stale", "tampered", "blog"]
    )
    def test_nothing_diverges_and_nothing_is_touched(self, tmp_path: Path, fixture: str) -> None:
        place = tmp_path / "w"
        run(fixture, place)
        before = {path: path.read_bytes() for path in files(place)}
        found = again(place, tmp_path / "s")
        assert found.divergence == ""
        assert found.steps > 0
        assert {path: path.read_bytes() for path in files(place)} == before

    def test_a_skill_is_created_again_in_the_copy_alone(self, tmp_path: Path) -> None:
        place = tmp_path / "w"
        run("skip", place)
        run("learn", place, proposals=("inputs/skill-proposal.json",))
        assert again(place, tmp_path / "s").divergence == ""

    def test_a_run_that_was_cut_off_and_gone_on_with(self, tmp_path: Path) -> None:
        for number in (17, 19):  # before and after the first word of the second round
            place = tmp_path / f"w{number}"
            assert killed("repair", place, number)
            assert go_on(place).ok
            assert again(place, tmp_path / f"s{number}").divergence == ""


class TestADivergence:
    def test_another_output_is_shown_as_a_diff(self, tmp_path: Path) -> None:
        place = tmp_path / "w"
        run("success", place)
        orders = place / "inputs/orders.csv"
        orders.write_text("\n".join(orders.read_text("utf-8").splitlines()[:-1]), "utf-8")
        found = again(place, tmp_path / "s")
        assert not found.ok
        removed = [line for line in found.divergence.splitlines() if line.startswith("-")]
        added = [line for line in found.divergence.splitlines() if line.startswith("+")]
        assert any("outputs/summary.json" in line for line in removed)
        assert any("outputs/summary.json" in line for line in added)

    def test_another_exit_code_is_shown_as_a_diff(self, tmp_path: Path) -> None:
        place = tmp_path / "w"
        run("success", place)
        (place / "inputs/orders.csv").write_text("no,columns\n1,2\n", "utf-8")
        found = again(place, tmp_path / "s")
        assert '-  "exit_code": 0' in found.divergence
        assert '+  "exit_code": 1' in found.divergence

    def test_other_arguments_are_shown_as_a_diff(self, tmp_path: Path) -> None:
        place = tmp_path / "w"
        run("success", place)

        def change(line: dict[str, Any]) -> None:
            if line["kind"] == "tool.called" and line["data"]["name"] == "read_file":
                line["data"]["arguments"]["path"] = "inputs/orders.csv"

        altered(place, change)
        found = again(place, tmp_path / "s")
        assert found.steps == 0
        assert '-  "path": "inputs/orders.csv"' in found.divergence
        assert '+  "path": "inputs/source-notes.md"' in found.divergence

    def test_a_step_that_is_missing_is_shown(self, tmp_path: Path) -> None:
        place = tmp_path / "w"
        run("success", place)
        path = last_run(place) / records.EVENTS
        kept = [line for line in events(last_run(place)) if line["kind"] != "gate.read"]
        path.write_bytes(b"".join(records.as_line(line) for line in kept))
        assert '"gate"' in again(place, tmp_path / "s").divergence


class TestTheCommand:
    def test_it_ends_with_one_and_says_where(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from app import main

        place = tmp_path / "w"
        run("success", place)
        assert main(["replay", "--workspace", str(place), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["ok"]
        (place / "inputs/orders.csv").write_text("no,columns\n", "utf-8")
        assert main(["replay", "--workspace", str(place)]) == 1
        assert "replay_diverged" in capsys.readouterr().out
