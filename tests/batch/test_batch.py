"""The command: what is done is skipped, limits hold over the whole batch, a service may be down."""

from __future__ import annotations

import json
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from tests.batch.program import PROGRAM, Place, account
from tests.batch.service import Service, serving


@pytest.fixture
def service() -> Iterator[Service]:
    with serving(delay=0.02) as running:
        yield running


@pytest.fixture
def place(tmp_path: Path, service: Service) -> Iterator[Place]:
    url = f"sqlite:///{tmp_path / 'place' / 'batches.sqlite'}"
    made = Place(tmp_path / "place", url, service.environment)
    yield made
    made.end()


def last(place: Place) -> dict[str, Any]:
    """Return the object that the last command has printed."""
    lines = (place.root / "output.log").read_text("utf-8").splitlines()
    found: dict[str, Any] = json.loads([line for line in lines if line.startswith("{")][-1])
    return found


class TestWhatIsDone:
    def test_a_second_start_asks_nothing(self, place: Place, service: Service) -> None:
        place.tasks(3)
        assert place.start().wait(60) == 0, place.output
        asked, results = service.asked.total(), place.results()
        assert place.start().wait(60) == 0
        assert (service.asked.total(), place.results()) == (asked, results)

    def test_an_item_whose_output_was_changed_is_done_again_and_no_other(
        self, place: Place, service: Service
    ) -> None:
        place.tasks(3)
        assert place.start().wait(60) == 0, place.output
        (place.batch / "items" / "00002" / "outputs" / "result.json").write_text("{}")
        asked = service.asked.total()
        assert place.start().wait(60) == 0, place.output
        assert service.asked.total() == asked + 4
        assert service.asked["t0002", 1] == 2
        assert [line["run_id"][-1] for line in place.results()] == ["1", "2", "1"]

    def test_an_item_that_was_removed_comes_back_from_the_store(
        self, place: Place, service: Service
    ) -> None:
        place.tasks(1)
        assert place.start().wait(60) == 0, place.output
        (place.batch / "items").rename(place.root / "elsewhere")
        assert place.start().wait(60) == 0, place.output
        account(place, 1, service)

    def test_a_changed_plan_is_refused(self, place: Place) -> None:
        place.tasks(1)
        assert place.start().wait(60) == 0, place.output
        plan = place.batch / "plan.json"
        plan.write_text(plan.read_text("utf-8").replace("t0001", "t0009"))
        done = place.action("resume")
        assert done.returncode == 1
        assert "record_invalid" in done.stderr

    def test_junit_has_a_case_for_each_item(self, place: Place) -> None:
        place.tasks(2)
        path = place.root / "junit.xml"
        assert place.start("--junit", str(path)).wait(60) == 0, place.output
        assert [case.get("name") for case in ET.parse(path).iter("testcase")] == [
            "00001 t0001",
            "00002 t0002",
        ]


class TestFixtures:
    def test_a_list_may_name_fixtures_and_one_that_fails_fails_the_batch(
        self, tmp_path: Path
    ) -> None:
        place = Place(tmp_path, f"sqlite:///{tmp_path / 'batches.sqlite'}")
        lines = [{"fixture": "success"}, {"fixture": "invalid"}]
        (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
        assert place.start(live=False).wait(90) == 1
        assert [line["status"] for line in place.results()] == ["complete", "validation-failed"]


class TestTheTemplate:
    def test_each_row_of_a_table_makes_a_task(self, place: Place, service: Service) -> None:
        place.tasks(1)
        template = place.root / "task.yaml"
        template.write_text(
            "name: made\ntext: Find item={{name}} of {{year}}.\nscript: optional\n"
            "artifacts:\n  - path: outputs/result.json\n"
        )
        table = place.root / "table.csv"
        table.write_text("name,year\nnorth,2024\nsouth,2025\n")
        command = [*PROGRAM, "batch", "--template", str(template), "--table", str(table)]
        command += ["--live", "--batches", str(place.batches)]
        assert place.popen(command).wait(60) == 0, place.output
        assert {name for name, _ in service.asked} == {"north", "south"}

    def test_a_column_that_is_missing_is_named(self, place: Place) -> None:
        place.tasks(1)
        template, table = place.root / "task.yaml", place.root / "table.csv"
        template.write_text("text: Of {{year}}.\nartifacts: [{path: outputs/a.json}]\n")
        table.write_text("name\nnorth\n")
        command = [*PROGRAM, "batch", "--template", str(template), "--table", str(table)]
        assert place.popen([*command, "--live", "--batches", str(place.batches)]).wait(60) == 2
        assert "task_invalid" in place.output
        assert "{{year}}" in place.output


class TestLimitsOverTheWholeBatch:
    def test_the_budget_is_never_passed(self, place: Place, service: Service) -> None:
        place.tasks(10)
        assert place.start("--max-tokens", "4000", "--workers", "2").wait(60) == 1
        status = json.loads(place.action("status").stdout)
        assert 0 < status["tokens"] <= 4000
        reasons = {line["reason"] for line in place.results() if line["status"] != "complete"}
        assert reasons == {"limit_reached"}

    def test_requests_keep_to_the_rate(self, place: Place, service: Service) -> None:
        place.tasks(4)
        process = place.start("--requests-per-minute", "6", "--at-once", "4")
        until(lambda: len(service.times) >= 6)
        time.sleep(2.0)
        assert len(service.times) == 6
        assert json.loads(place.action("cancel").stdout)["cancelled"]
        assert process.wait(60) == 1

    def test_at_most_so_many_items_run_at_once_over_all_workers(
        self, place: Place, service: Service
    ) -> None:
        place.tasks(6)
        service.delay = 0.1
        flags = ("--workers", "2", "--at-once", "2", "--max-at-once", "1")
        assert place.start(*flags).wait(60) == 0, place.output
        # One after the other: the requests of an item stand together.
        assert len(list(groupby(service.order))) == 6


class TestAServiceThatIsDown:
    def test_the_batch_pauses_says_so_and_goes_on(self, place: Place, service: Service) -> None:
        place.tasks(6)
        service.delay = 0.2
        process = place.start("--at-once", "3")
        until(lambda: service.asked.total() >= 5)
        service.down = True
        until(lambda: "paused:" in place.output, 40)
        service.down = False
        assert process.wait(90) == 0, place.output
        account(place, 6, service)

    def test_one_that_stays_down_stops_the_batch_and_fails_no_item(
        self, place: Place, service: Service
    ) -> None:
        place.tasks(4)
        service.down = True
        assert place.start("--outage", "3").wait(90) == 5, place.output
        assert {line["status"] for line in place.results()} == {"not-ended"}
        assert last(place)["reason"] == "batch_stopped"
        service.down = False
        done = place.action("resume")
        assert done.returncode == 0, done.stdout + done.stderr
        account(place, 4, service)


class TestCancel:
    def test_a_cancelled_batch_ends_and_can_be_gone_on_with(
        self, place: Place, service: Service
    ) -> None:
        place.tasks(8)
        service.delay = 0.3
        process = place.start("--at-once", "2")
        until(lambda: service.asked.total() >= 5)
        assert place.action("cancel").returncode == 0
        assert process.wait(30) == 1
        assert len(service.asked) < 32
        service.delay = 0.02
        done = place.action("resume")
        assert done.returncode == 0, done.stdout + done.stderr
        account(place, 8, service)

    def test_a_batch_that_nobody_knows_is_refused(self, place: Place) -> None:
        place.tasks(1)
        command = [*PROGRAM, "batch", "status", "b000", "--batches", str(place.batches)]
        assert place.popen(command).wait(30) == 2
        assert "batch_unknown" in place.output


def until(happens: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until something has happened."""
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
