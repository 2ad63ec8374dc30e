"""The samples: right numbers, files that parse, skills that keep the strict rules.

The numbers are computed here once more, by other code than that of the sample scripts.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

from reread import contracts, fixtures, tasks
from reread.scripts import check_syntax, parse_header
from reread.skills import Skills
from reread.values import Permissions

ROOT = Path(__file__).resolve().parent.parent
DATA, SKILLS = ROOT / "sample-data", ROOT / "sample-skills"
INPUTS = DATA / "inputs"
DELIVERABLES = {
    "table-to-xlsx": "xlsx",
    "deck-from-data": "pptx",
    "pdf-report": "pdf",
    "chart": "png",
}
MONTHS = {"Apr": 4, "May": 5, "Jun": 6}


def lines(name: str) -> list[list[str]]:
    """Return the rows of an input without its header."""
    with (INPUTS / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))[1:]


def month(text: str) -> int:
    """Return the month of a date in any of the forms of the extract; 0 for none."""
    for pattern in (r"\d{4}[-/](\d\d)[-/]\d\d", r"\d\d\.(\d\d)\.\d{4}"):
        if found := re.fullmatch(pattern, text):
            return int(found.group(1))
    named = re.fullmatch(r"([A-Z][a-z]{2}) \d\d, \d{4}", text)
    return MONTHS[named.group(1)] if named else 0


def orders() -> list[tuple[int, str, str, Fraction]]:
    """Return month, region, customer and revenue of every order that counts."""
    once = dict.fromkeys(map(tuple, lines("orders.csv")))
    return [
        (month(date), region.strip().capitalize() or "Unknown", customer, revenue(pieces, price))
        for _, date, region, customer, _, pieces, price in once
        if re.fullmatch(r"\d+", pieces) and month(date)
    ]


def revenue(pieces: str, price: str) -> Fraction:
    """Return an order's worth, exactly."""
    return int(pieces) * Fraction(price.lstrip("€ "))


def sums(pairs: Any) -> dict[str, float]:
    """Return the sum for each key, rounded to cents."""
    found: Counter[str] = Counter()
    for key, value in pairs:
        found[key] += value
    return {key: round(float(value), 2) for key, value in found.items()}


class Place(unittest.TestCase):
    """A folder as a script finds it."""

    def setUp(self) -> None:
        """Make the folder, with the inputs in it."""
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)
        shutil.copytree(INPUTS, self.root / "inputs")
        for name in ("outputs", "drafts"):
            (self.root / name).mkdir()

    def run_script(self, name: str) -> None:
        """Run a sample script that has no dependencies."""
        command = [sys.executable, "-I", str(DATA / "scripts" / name)]
        subprocess.run(command, cwd=self.root, check=True, capture_output=True, timeout=60)

    def read(self, path: str) -> Any:
        """Return a JSON file that a script left."""
        return json.loads((self.root / path).read_text(encoding="utf-8"))


class TheDemosNumbersAreRight(Place):
    """`summarize.py` against the same numbers by other means."""

    def setUp(self) -> None:
        """Run the demo's script."""
        super().setUp()
        self.run_script("summarize.py")
        self.summary = self.read("outputs/summary.json")

    def test_every_row_is_counted_or_rejected(self) -> None:
        """Compare the three counts."""
        read, counted = len(lines("orders.csv")), len(orders())
        self.assertEqual(self.summary["rows_read"], read)
        self.assertEqual(self.summary["orders_counted"], counted)
        self.assertEqual(self.summary["rows_rejected"], read - counted)
        self.assertEqual(sum(self.summary["rejected_by_reason"].values()), read - counted)

    def test_revenue_by_month_and_by_region(self) -> None:
        """Compare each sum to the cent."""
        by_month = sums((f"2026-{month:02}", value) for month, _, _, value in orders())
        by_region = sums((region, value) for _, region, _, value in orders())
        self.assertEqual(self.summary["revenue_by_month"], by_month)
        self.assertEqual(self.summary["revenue_by_region"], by_region)
        self.assertEqual(self.summary["revenue_total"], round(sum(by_month.values()), 2))

    def test_the_three_largest_customers_in_their_order(self) -> None:
        """Compare names and sums."""
        by_customer = sums((customer, value) for _, _, customer, value in orders())
        largest = sorted(by_customer.items(), key=lambda item: -item[1])[:3]
        self.assertEqual(
            [(one["customer"], one["revenue"]) for one in self.summary["top_customers"]], largest
        )

    def test_the_report_says_what_was_left_out(self) -> None:
        """Look for the numbers in the text."""
        report = (self.root / "outputs/report.md").read_text(encoding="utf-8")
        left_out = len(lines("orders.csv")) - len(orders())
        self.assertIn(f"{left_out} of {len(lines('orders.csv'))} rows", report)
        self.assertIn(f"{self.summary['revenue_total']:,.2f} EUR", report)

    def test_the_data_are_as_untidy_as_the_notes_say(self) -> None:
        """Find each kind of disorder in the extract."""
        rows = lines("orders.csv")
        self.assertGreater(len(rows), 300)
        self.assertGreater(len(rows), len(set(map(tuple, rows))))
        self.assertEqual(len({re.sub(r"[A-Za-z0-9]", "x", row[1]) for row in rows if row[1]}), 4)
        self.assertTrue({"", "n/a"} <= {row[5] for row in rows})
        self.assertTrue(any(not row[3].isascii() for row in rows))


class TheDeliverablesNumbersAreRight(Place):
    """What the other scripts hand to the builders."""

    def test_the_workbook_holds_each_order_once_and_sums_by_month(self) -> None:
        """Compare rows, those left out, and each cell of the summary."""
        self.run_script("orders_workbook.py")
        sheets = {sheet["name"]: sheet for sheet in self.read("drafts/workbook.json")["sheets"]}
        self.assertEqual(len(sheets["Orders"]["rows"]), len(orders()))
        left_out = len(lines("orders.csv")) - len(orders())
        self.assertEqual(len(sheets["Left out"]["rows"]), left_out)
        regions = [column["name"] for column in sheets["By month"]["columns"][1:-1]]
        wanted = sums(((m, region), value) for m, region, _, value in orders())
        found = {
            (int(row[0][-2:]), region): cell["value"]
            for row in sheets["By month"]["rows"]
            for region, cell in zip(regions, row[1:-1], strict=True)
        }
        self.assertEqual(found, wanted)

    def test_the_deck_counts_every_request(self) -> None:
        """Compare the tiles and the last bar with the file."""
        self.run_script("service_desk_deck.py")
        slides = self.read("drafts/deck.json")["slides"]
        opened = sum(int(row[2]) for row in lines("service-desk.csv"))
        waiting = opened - sum(int(row[3]) for row in lines("service-desk.csv"))
        self.assertEqual(slides[0]["figures"][0]["value"], f"{opened:,}")
        self.assertEqual(slides[2]["chart"]["series"][0]["values"][-1], waiting)
        drawn = [sum(one["values"]) for one in slides[1]["chart"]["series"]]
        self.assertEqual(sum(drawn), opened)

    def test_the_report_and_the_chart_leave_gaps_open(self) -> None:
        """Compare gaps, the highest reading, and how often it was too warm."""
        self.run_script("cold_store_report.py")
        chart, report = self.read("drafts/chart.json"), self.read("drafts/report.json")
        once = dict.fromkeys(map(tuple, lines("cold-store.csv")))
        second = [float(v.replace(",", ".")) for _, n, v in once if n == "二号冷库" and is_value(v)]
        drawn = [value for value in chart["series"][1]["values"] if value is not None]
        self.assertCountEqual(drawn, second)
        warm = sum(value > -18 for value in second)
        self.assertEqual(report["blocks"][1]["figures"][1]["value"], str(warm))
        self.run_script("cold_store_chart.py")
        again = self.read("drafts/chart.json")
        self.assertEqual(again["series"][1]["values"], chart["series"][1]["values"])


def is_value(text: str) -> bool:
    """Say whether a reading is one: not missing, and not the logger's sign for no sensor."""
    return text not in ("", "n/a", "-127.0")


class EverySampleParses(unittest.TestCase):
    """Tasks, fixtures, scripts, contracts."""

    def test_each_fixture_names_a_task_and_states_what_is_right(self) -> None:
        """Load all, and the task of each."""
        for folder in (DATA, *(SKILLS / name / "tests" for name in DELIVERABLES)):
            for name in fixtures.names(folder):
                with self.subTest(folder=folder, fixture=name):
                    fixture = fixtures.load(name, folder)
                    self.assertTrue(fixture.about and fixture.rounds)
                    self.assertEqual(set(fixture.expect), {"status", "exit_code", "codes"})
                    tasks.checked(tasks.read_task(fixture.task))

    def test_each_task_is_shown_by_a_fixture_and_finds_its_inputs(self) -> None:
        """Compare both lists."""
        shown = {fixtures.load(name, DATA).task.name for name in fixtures.names(DATA)}
        self.assertEqual(shown, {path.name for path in (DATA / "tasks").iterdir()})
        for path in (DATA / "tasks").iterdir():
            for name in tasks.read_task(path).inputs:
                self.assertTrue((DATA / name).is_file(), name)

    def test_each_script_has_a_header_that_is_allowed(self) -> None:
        """Parse every script but the one that is broken on purpose."""
        found = [*DATA.glob("scripts/*.py"), *SKILLS.glob("*/script*/*.py")]
        for path in found:
            with self.subTest(path=path.name):
                check_syntax(path.read_bytes(), path.name)
                parse_header(path.read_bytes(), Permissions())

    def test_each_deliverable_ships_its_contract(self) -> None:
        """Read gate.yaml of each, and what it speaks of."""
        for name, suffix in DELIVERABLES.items():
            contract = contracts.read((SKILLS / name / "gate.yaml").read_text("utf-8"), name)
            self.assertEqual(contract["formats"], [suffix])
            self.assertGreater(len(contract), 1)


class EverySkillKeepsTheStrictRules(unittest.TestCase):
    """SA-5, checked here without the loader, and then with it."""

    def test_front_matter_body_and_references(self) -> None:
        """Read each SKILL.md by hand."""
        for folder in sorted(path.parent for path in SKILLS.glob("*/SKILL.md")):
            with self.subTest(skill=folder.name):
                text = (folder / "SKILL.md").read_text(encoding="utf-8")
                head, body = text.removeprefix("---\n").split("\n---\n", 1)
                keys = re.findall(r"^([a-z]+):", head, re.MULTILINE)
                self.assertEqual(keys, ["name", "description", "triggers", "references"])
                self.assertIn(f"name: {folder.name}\n", head)
                triggers, references = head.split("triggers:")[1].split("references:")
                found = re.findall(r"^  - (.+)$", triggers, re.MULTILINE)
                self.assertTrue(1 <= len(found) <= 12 and max(map(len, found)) <= 80)
                self.assertTrue(any(not one.isascii() for one in found))
                named = re.findall(r"^  - (.+)$", references, re.MULTILINE)
                self.assertTrue(1 <= len(named) <= 4)
                self.assertTrue(all((folder / name).is_file() for name in named))
                self.assertRegex(body, r"(?m)^# \S")

    def test_the_loader_takes_them_all(self) -> None:
        """Scan them."""
        skills = Skills(SKILLS, profile="seed")
        skills.scan()
        folders = {path.parent.name for path in SKILLS.glob("*/SKILL.md")}
        self.assertEqual(set(skills.names), folders)
        self.assertEqual([found for found in skills.diagnostics if found.code[0] == "E"], [])


class EachSkillsOwnTestsHold(unittest.TestCase):
    """`skills test`, as the owner of a catalogue runs it; the builders' packages are installed."""

    def test_prompts_select_what_they_should_and_runs_end_complete(self) -> None:
        """Run the tests of every sample skill through the command line."""
        for folder in sorted(path.parent for path in SKILLS.glob("*/tests.yaml")):
            with self.subTest(skill=folder.name):
                if folder.name == "pdf-report" and not has_chinese_font():
                    self.skipTest("no font with Chinese letters (Debian: fonts-noto-cjk)")
                command = [sys.executable, str(ROOT / "app.py"), "skills", "test", str(folder)]
                ran = subprocess.run(command, capture_output=True, text=True, timeout=600)
                self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)


def has_chinese_font() -> bool:
    """Say whether a font that the builder knows is installed where Linux keeps fonts."""
    return any(Path("/usr/share/fonts").rglob("NotoSansCJK-Regular.*"))


class TheTemporaryPathIsFoundAlone(unittest.TestCase):
    """PR-7."""

    SCRIPT = SKILLS / "python-runner" / "script" / "get_temp_path.py"

    def test_as_a_script(self) -> None:
        """Run it and look at the line that it prints."""
        with tempfile.TemporaryDirectory() as folder:
            ran = subprocess.run(
                [sys.executable, "-I", self.SCRIPT],
                env={"TMPDIR": folder, "TEMP": folder, "TMP": folder},
                capture_output=True,
                text=True,
                check=True,
                timeout=30,
            )
            path = Path(ran.stdout.strip())
            self.assertEqual(path.parent, Path(folder))
            self.assertRegex(path.name, r"^uv_script_\d{14}_[0-9a-f]+\.py$")
            self.assertFalse(path.exists())

    def test_as_a_module(self) -> None:
        """Import it and ask twice."""
        spec = importlib.util.spec_from_file_location("get_temp_path", self.SCRIPT)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.assertEqual(module.get_temp_dir(), Path(tempfile.gettempdir()))
        first, second = module.get_temp_file_path(), module.get_temp_file_path()
        self.assertNotEqual(first, second)
        self.assertEqual(first.parent, module.get_temp_dir())
