"""Verification and repair with a model service: real requests over loopback, answered by script."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from reread.files import ConfinedFolder
from tests.extensions.test_samples import ROOT, SHIPPED, copied
from tests.live.stand_in import Answer, Asked, as_json, completion, stand_in

FIXTURE = json.loads((SHIPPED / "repairs/second-round.json").read_text("utf-8"))


def turns() -> list[Answer]:
    """Return what the model says, request after request: each round's calls, then a word."""
    said = []
    for steps in FIXTURE["rounds"]:
        for step in steps:
            calls = [(call["tool"], _arguments(call["arguments"])) for call in step["calls"]]
            said.append(as_json(completion(step["say"] or None, calls=calls)))
        said.append(as_json(completion("Mended.")))
    return said


def _arguments(arguments: dict[str, Any]) -> str:
    texts = {
        key: (SHIPPED / "repairs" / value["$file"]).read_text("utf-8")
        if isinstance(value, dict)
        else value
        for key, value in arguments.items()
    }
    return json.dumps(texts)


async def _verify(
    package: Path, base_url: str, state: Path, flags: tuple[str, ...]
) -> tuple[int, dict[str, Any]]:
    environment = os.environ | {
        "HOME": str(state),
        "XDG_STATE_HOME": str(state / "state"),
        "OPENAI_API_KEY": "sk-not-a-real-key",
        "OPENAI_MODEL": "stand-in",
        "OPENAI_BASE_URL": base_url,
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(ROOT / "app.py"), "verify", str(package)),
        *("--live", "--json", *flags),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
    )
    stdout, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, json.loads(stdout.decode("utf-8").splitlines()[-1])


def verified(
    answers: list[Answer], package: Path, *flags: str
) -> tuple[int, dict[str, Any], list[Asked]]:
    async def go() -> tuple[int, dict[str, Any], list[Asked]]:
        async with stand_in(lambda asked, n: answers[min(n, len(answers) - 1)]) as service:
            code, report = await _verify(package, service.base_url, package.parent, flags)
            return code, report, service.asked

    return asyncio.run(go())


class TestRepairWithAService:
    def test_it_mends_the_package_in_the_rounds_that_its_answers_take(self, tmp_path: Path) -> None:
        code, report, asked = verified(turns(), copied("broken_words", tmp_path), "--repair")
        assert (code, report["ok"]) == (0, True)
        assert [one["codes"] for one in report["rounds"]] == FIXTURE["expect"]["rounds"]
        assert len(asked) == len(turns())

    def test_each_failure_is_handed_on_with_all_that_shows_it(self, tmp_path: Path) -> None:
        _, _, asked = verified(turns(), copied("broken_words", tmp_path), "--repair")
        told = asked[0].body["messages"][1]["content"]
        (finding,) = json.loads(told.partition("Findings:\n")[2])
        assert finding["code"] == "rail_hook_not_observed"
        assert {"query", "expected", "actual", "log"} <= finding.keys()

    def test_a_model_that_only_says_so_changes_nothing(self, tmp_path: Path) -> None:
        package = copied("broken_words", tmp_path)
        before = ConfinedFolder(package).digests(trust_cache=False)
        word = as_json(completion("All three layers pass."))
        code, report, _ = verified([word], package, "--repair")
        assert (code, report["ok"], len(report["rounds"])) == (1, False, 4)
        assert ConfinedFolder(package).digests(trust_cache=False) == before


class TestVerificationWithAService:
    def test_a_model_that_calls_the_tool_as_its_query_asks_lets_it_pass(
        self, tmp_path: Path
    ) -> None:
        arguments = {"title": "Orders", "columns": ["order"], "rows": [["A-1"]]}
        arguments["output_path"] = "outputs/orders.pdf"
        call = as_json(completion(calls=[("table_pdf", json.dumps(arguments))]))
        word = as_json(completion("The PDF is there."))
        code, report, asked = verified([call, word], copied("table_report", tmp_path))
        assert (code, report["ok"]) == (0, True), report
        assert "table_pdf" in json.dumps(asked[0].body["tools"])

    def test_one_that_answers_without_calling_it_is_named(self, tmp_path: Path) -> None:
        word = as_json(completion("I would rather write a letter."))
        code, report, _ = verified([word], copied("table_report", tmp_path))
        assert (code, report["ok"]) == (1, False)
        assert [one["code"] for one in report["findings"]] == ["tool_not_called"]
