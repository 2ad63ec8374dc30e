"""The table of cases: each file with the verdict that a person gave it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from reread import contracts
from reread.api import check_file
from reread.values import Evidence

CASES = Path(__file__).parent / "data" / "gate"
TABLE: list[dict[str, Any]] = json.loads((CASES / "manifest.json").read_text("utf-8"))["cases"]


def judged(case: dict[str, Any]) -> Evidence:
    """Judge a case as the command does, so that links beside the file are looked for as well."""
    contracts.validate(case["contract"], case["id"])
    path = CASES / case["file"]
    return check_file(path, format=case["format"], contract=case["contract"])


def named(case: dict[str, Any]) -> str:
    return f"{case['id']}-{case['kind']}"


def needs_extra(case: dict[str, Any], evidence: Evidence) -> bool:
    """Say whether an optional library is missing here, which is a state of its own."""
    return case["format"] == "parquet" and any(c.state == "not_run" for c in evidence.checks)


@pytest.mark.parametrize("case", TABLE, ids=named)
class TestEachCase:
    def test_its_verdict_is_the_one_of_the_table(self, case: dict[str, Any]) -> None:
        evidence = judged(case)
        if needs_extra(case, evidence):
            assert not evidence.ok
            return
        told = [(p.code, p.reason, p.cause) for p in evidence.problems]
        assert evidence.ok is (case["verdict"] == "accept"), told
        if case["code"]:
            assert {case["code"], *case["also"]} & {problem.code for problem in evidence.problems}

    def test_it_is_told_with_the_word_of_the_table(self, case: dict[str, Any]) -> None:
        evidence = judged(case)
        if case["verdict"] == "reject" and not needs_extra(case, evidence):
            assert case["reason"] in {problem.reason for problem in evidence.problems}

    def test_the_digest_is_of_the_bytes_that_were_seen(self, case: dict[str, Any]) -> None:
        evidence = judged(case)
        path = CASES / case["file"]
        there = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None
        assert evidence.sha256 == there == case["sha256"]


class TestTheTable:
    def test_the_same_file_gets_the_same_verdict_each_time(self) -> None:
        first = [judged(case) for case in TABLE]
        assert [judged(case) for case in TABLE] == first
