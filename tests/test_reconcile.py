"""Facts that lie outside of one file: numbers that must agree, and links that must reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reread.values import Expected, Outcome
from tests.workplace import HEADER, RUN, SAY_SO, SCRIPT, Workplace, write

ROWS = "name,amount\na,10.5\nb,20\nc,\n"


def run(
    root: Path, equation: dict[str, Any], summary: str, report: str = "Total: 1,030.50"
) -> Outcome:
    """Run a task whose summary has one equation to hold."""
    artifacts = (
        Expected("outputs/summary.json", "json", {"equal": [equation]}),
        Expected("outputs/report.md", "md"),
    )
    place = Workplace(root / "w", artifacts=artifacts)
    (place.root / "inputs/rows.csv").write_text(ROWS)
    text = f"# Report\n\n{report} euros in all, from the rows of the extract that has an amount.\n"
    script = HEADER + (
        "from pathlib import Path\n"
        f"Path('outputs/summary.json').write_text({summary!r})\n"
        f"Path('outputs/report.md').write_text({text!r})\n"
    )
    return place.run(write(SCRIPT, script), RUN, SAY_SO)


def reasons(outcome: Outcome) -> list[str]:
    return [problem.reason for problem in outcome.artifacts[0].problems]


HOLDS: list[tuple[str, dict[str, Any], str]] = [
    (
        "a key equals the rows of an input",
        {"this": {"key": "rows"}, "that": {"file": "inputs/rows.csv", "fact": "rows"}},
        '{"rows": 3}',
    ),
    (
        "counted and rejected rows make up the input",
        {
            "this": {"file": "inputs/rows.csv", "fact": "rows"},
            "that": {"key": "counted"},
            "plus": {"key": "rejected"},
        },
        '{"counted": 2, "rejected": 1}',
    ),
    (
        "the output is the input less the rejects",
        {
            "this": {"key": "counted"},
            "that": {"file": "inputs/rows.csv", "fact": "rows"},
            "minus": {"key": "rejected"},
        },
        '{"counted": 2, "rejected": 1}',
    ),
    (
        "a total equals the sum of a column",
        {"this": {"key": "total"}, "that": {"file": "inputs/rows.csv", "column": "amount"}},
        '{"total": 30.5}',
    ),
    (
        "a total equals the number after a text of another artifact",
        {"this": {"key": "total"}, "that": {"file": "outputs/report.md", "after": "Total:"}},
        '{"total": 1030.5}',
    ),
    (
        "a difference within the tolerance",
        {
            "this": {"key": "total"},
            "that": {"file": "inputs/rows.csv", "column": "amount"},
            "tolerance": 0.01,
        },
        '{"total": 30.505}',
    ),
]


class TestNumbersThatMustAgree:
    @pytest.mark.parametrize(("what", "equation", "summary"), HOLDS, ids=[h[0] for h in HOLDS])
    def test_hold(self, tmp_path: Path, what: str, equation: dict[str, Any], summary: str) -> None:
        assert run(tmp_path, equation, summary).status == "complete", what

    @pytest.mark.parametrize(("what", "equation", "summary"), HOLDS, ids=[h[0] for h in HOLDS])
    def test_one_off_is_found(
        self, tmp_path: Path, what: str, equation: dict[str, Any], summary: str
    ) -> None:
        wrong = summary.replace(": 2", ": 1").replace(": 3", ": 4").replace(": 1030", ": 1031")
        outcome = run(tmp_path, equation, wrong)
        assert (outcome.status, reasons(outcome)) == ("validation-failed", ["facts_differ"]), what

    def test_a_number_that_is_not_there_is_no_agreement(self, tmp_path: Path) -> None:
        equation = {"this": {"key": "nothing"}, "that": {"key": "total"}}
        assert reasons(run(tmp_path, equation, '{"total": 1}')) == ["fact_missing"]

    def test_a_file_that_is_not_there_is_no_agreement(self, tmp_path: Path) -> None:
        equation = {"this": {"key": "total"}, "that": {"file": "inputs/no.csv", "fact": "rows"}}
        assert reasons(run(tmp_path, equation, '{"total": 1}')) == ["fact_missing"]

    def test_text_is_no_number(self, tmp_path: Path) -> None:
        equation = {"this": {"key": "total"}, "that": {"key": "total"}}
        assert reasons(run(tmp_path, equation, '{"total": "many"}')) == ["fact_missing"]


class TestLinksThatMustReach:
    def judge(self, root: Path, target: str) -> str:
        artifacts = (Expected("drafts/a.md", "md", {"local_links_exist": True}),)
        place = Workplace(root / "w", artifacts=artifacts, script="optional")
        (place.root / "inputs/notes.md").write_text("notes")
        (place.root / "inputs/link.md").symlink_to("/etc/hostname")
        text = f"# A text\n\nThese words say where to read on: [here]({target}).\n"
        return place.run(write("drafts/a.md", text), SAY_SO).status

    @pytest.mark.parametrize(
        "target", ["../inputs/notes.md", "a.md", "https://example.org/x", "#top"]
    )
    def test_reach(self, tmp_path: Path, target: str) -> None:
        assert self.judge(tmp_path, target) == "complete"

    @pytest.mark.parametrize(
        "target",
        ["../inputs/none.md", "../inputs/link.md", "../../../record.json", "/etc/hostname"],
    )
    def test_do_not(self, tmp_path: Path, target: str) -> None:
        assert self.judge(tmp_path, target) == "validation-failed"
