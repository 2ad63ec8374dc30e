"""The schemas of events and records: real ones fit, and broken ones do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from reread import records
from tests.records.runs import ROOT, events, last_run, record, run

FIXTURES = ("success", "repair", "invalid", "crash", "learn", "skip", "stale")


def validator(name: str) -> Draft202012Validator:
    schema = json.loads((ROOT / "reread" / f"{name}.schema.json").read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=FormatChecker())


@pytest.fixture(scope="module", params=FIXTURES)
def done(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("schemas") / "w"
    run(request.param, place)
    return last_run(place)


class TestRealOnesFit:
    def test_every_event(self, done: Path) -> None:
        schema = validator("event")
        wrong = [error.message for line in events(done) for error in schema.iter_errors(line)]
        assert wrong == []

    def test_the_record(self, done: Path) -> None:
        assert [error.message for error in validator("record").iter_errors(record(done))] == []

    def test_events_are_numbered_without_a_gap(self, done: Path) -> None:
        numbers = [line["number"] for line in events(done)]
        assert numbers == list(range(1, len(numbers) + 1))


class TestBrokenOnesDoNot:
    @pytest.mark.parametrize(
        "change",
        [
            {"schema": "reread.event/2"},
            {"number": 0},
            {"kind": "Made Up"},
            {"kind": "model.replied", "data": {}},
            {"kind": "file.written", "data": {"path": "a", "sha256": "short", "bytes": 1}},
            {"extra": 1},
        ],
    )
    def test_an_event(self, change: dict[str, Any]) -> None:
        good = {
            "schema": records.EVENTS_SCHEMA,
            "number": 1,
            "at": "2026-01-01T00:00:00+00:00",
            "seconds": 0.0,
            "kind": "run.ended",
            "data": {"status": "complete", "reason": ""},
        }
        assert validator("event").is_valid(good)
        assert not validator("event").is_valid({**good, **change})

    def test_a_record_that_says_complete_with_a_file_that_is_not_proven(
        self, tmp_path: Path
    ) -> None:
        assert run("success", tmp_path / "w").ok
        value = record(last_run(tmp_path / "w"))
        value["outcome"]["artifacts"][0]["ok"] = False
        assert not validator("record").is_valid(value)
