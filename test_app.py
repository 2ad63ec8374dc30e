"""The promises of the program, kept as a user would see them: through the command line.

Each fixture states the status and the exit code that are right; the table runs them all. Everything
here starts real processes and reads real files.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reread import fixtures, plugins, tools

ROOT = Path(__file__).resolve().parent
APP = ROOT / "app.py"
SAMPLE_DATA = ROOT / "sample-data"

TOOLS = (
    "activate_skill",
    "create_skill",
    "match_skills",
    "read_file",
    "read_skill_file",
    "run_python",
    "write_file",
)
RESULT_KEYS = {
    "status",
    "runtime_status",
    "selected_skills",
    "available_skills",
    "scans",
    "tool_errors",
    "artifact_check",
}
CHECK_KEYS = {"ok", "path", "artifact_read", "sha256", "errors", "semantic_correctness"}
NEEDS_NETWORK = {"table-to-xlsx", "deck-from-data", "pdf-report", "chart"}


@dataclass(frozen=True)
class Ran:
    """What a run of the program left on the screen."""

    exit_code: int
    lines: list[str]
    stderr: str

    @property
    def result(self) -> dict[str, Any]:
        """The object of the last line."""
        value: dict[str, Any] = json.loads(self.lines[-1])
        return value


def app(*arguments: str | Path, env: dict[str, str] | None = None) -> Ran:
    """Run the program as a user does, without a model's credentials."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    ran = subprocess.run(
        [sys.executable, APP, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        env=clean | (env or {}),
        check=False,
    )
    return Ran(ran.returncode, ran.stdout.splitlines(), ran.stderr)


class Workplace(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self) -> None:
        """Make the folder."""
        folder = tempfile.TemporaryDirectory(prefix="reread-test-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name) / "w"

    def run_here(self, *arguments: str | Path) -> Ran:
        """Run the program on the test's workspace."""
        return app("--workspace", self.root, *arguments)


class EveryFixtureEndsAsItSays(Workplace):
    """SA-15 and the table of fixtures."""

    def test_status_exit_code_and_codes_are_those_of_the_fixture_file(self) -> None:
        """Run each fixture and each of its variants."""
        for name in fixtures.names(SAMPLE_DATA):
            if name in NEEDS_NETWORK and os.environ.get("REREAD_OFFLINE"):
                continue
            value = json.loads((SAMPLE_DATA / "fixtures" / f"{name}.json").read_text("utf-8"))
            variants = [{"options": [], "expect": value["expect"]}, *value.get("variants", [])]
            for variant in variants:
                with self.subTest(fixture=name, options=variant["options"]):
                    self.ends_as(name, variant)

    def ends_as(self, name: str, variant: dict[str, Any]) -> None:
        """Hold one run against what the fixture says."""
        with tempfile.TemporaryDirectory(prefix="reread-test-") as folder:
            place = Path(folder) / "w"
            ran = app("--fixture", name, "--workspace", place, *variant["options"])
            expect = variant["expect"]
            self.assertEqual(
                (ran.result["status"], ran.exit_code),
                (expect["status"], expect["exit_code"]),
                ran.lines[-1] + ran.stderr,
            )
            found = {error["code"] for error in ran.result.get("tool_errors", ())}
            found |= {e["code"] for e in ran.result.get("artifact_check", {}).get("errors", ())}
            found.add(ran.result.get("reason", ""))
            self.assertLessEqual(set(expect.get("codes", ())), found, ran.lines[-1])
            if expect["status"] != "complete":
                proven = [p for p in (place / "outputs").glob("*") if p.name not in BEFORE]
                self.assertEqual(proven, [], "a run that is not complete has published something")


BEFORE = {"summary.json"}  # what the fixture `stale` puts there beforehand


class TheFirstAndTheLastLine(Workplace):
    """SA-1 and SA-2."""

    def test_the_demo_is_the_default(self) -> None:
        """`python app.py` runs the fixture `success`."""
        ran = app()
        self.assertEqual(ran.exit_code, 0, ran.stderr)
        self.assertTrue(ran.lines[0].startswith("mode=fixture scenario=success ("), ran.lines[0])
        self.assertEqual(ran.result["status"], "complete")

    def test_the_last_line_has_its_keys_in_order(self) -> None:
        """Keys are sorted, and the promised ones are there."""
        ran = self.run_here()
        keys = list(ran.result)
        self.assertEqual(keys, sorted(keys))
        self.assertLessEqual(RESULT_KEYS, set(keys))
        self.assertLessEqual(CHECK_KEYS, set(ran.result["artifact_check"]))
        self.assertEqual(ran.result["artifact_check"]["semantic_correctness"], "not-assessed")

    def test_a_temporary_workspace_is_removed_after_a_complete(self) -> None:
        """And only then."""
        with tempfile.TemporaryDirectory() as folder:
            ran = app(env={"TMPDIR": folder})
            self.assertEqual(ran.exit_code, 0)
            self.assertEqual(list(Path(folder).glob("reread-*")), [])

    def test_it_is_kept_and_shown_otherwise(self) -> None:
        """A person can look at what failed."""
        with tempfile.TemporaryDirectory() as folder:
            ran = app("--fixture", "invalid", env={"TMPDIR": folder})
            self.assertEqual(ran.exit_code, 1)
            kept = Path(ran.result["workspace"])
            self.assertTrue((kept / "runs" / ran.result["run_id"] / "record.json").is_file())
            self.assertIn(str(kept), "\n".join(ran.lines[:-1]))

    def test_json_prints_the_object_alone(self) -> None:
        """Nothing else is on standard output."""
        ran = self.run_here("--json")
        self.assertEqual(len(ran.lines), 1)

    def test_quiet_prints_the_first_and_the_last_line(self) -> None:
        """Nothing in between."""
        self.assertEqual(len(self.run_here("--quiet").lines), 2)

    def test_no_colour_codes_go_into_a_pipe(self) -> None:
        """Plain lines when not a terminal."""
        self.assertNotIn("\x1b", "".join(self.run_here().lines))


class TheToolsOfTheModel(unittest.TestCase):
    """A file in tools/ is a power."""

    def test_their_names_are_exactly_these(self) -> None:
        """Whoever adds one changes this list knowingly."""
        self.assertEqual(plugins.names(tools), TOOLS)

    def test_none_takes_an_approval(self) -> None:
        """SA-10: no tool has an `approved` argument."""
        for name in TOOLS:
            text = (ROOT / "reread" / "tools" / f"{name}.py").read_text("utf-8")
            self.assertNotIn("approved=", text)


class NothingOfTheUsersIsLost(Workplace):
    """SA-10: an existing output needs its approval by digest."""

    def setUp(self) -> None:
        """Put a file where the demo's output goes."""
        super().setUp()
        (self.root / "outputs").mkdir(parents=True)
        self.old = self.root / "outputs" / "summary.json"
        self.old.write_text('{"mine": true}')

    def test_without_approval_nothing_starts(self) -> None:
        """Exit 3, before a request is made."""
        ran = self.run_here()
        self.assertEqual((ran.exit_code, ran.result["reason"]), (3, "approval_required"))
        self.assertEqual(self.old.read_text(), '{"mine": true}')
        self.assertEqual(list((self.root / "runs").glob("*/record.json")), [])

    def test_with_approval_it_is_replaced_and_the_old_one_kept(self) -> None:
        """The record folder keeps what was replaced."""
        ran = self.run_here("--approve-overwrite", "outputs/summary.json")
        self.assertEqual(ran.exit_code, 0, ran.lines[-1])
        kept = self.root / "runs" / ran.result["run_id"] / "replaced" / "outputs" / "summary.json"
        self.assertEqual(kept.read_text(), '{"mine": true}')
        self.assertNotEqual(self.old.read_text(), '{"mine": true}')

    def test_an_approval_of_other_bytes_is_refused(self) -> None:
        """The digest that was looked at is not what is there."""
        ran = self.run_here("--approve-overwrite", "outputs/summary.json@" + "0" * 12)
        self.assertEqual((ran.exit_code, ran.result["reason"]), (3, "approval_stale"))


class BadInputIsNamedAndNothingIsLost(Workplace):
    """Each gives a code, a cause with the offending value, and a remedy."""

    def refused(self, code: str, exit_code: int, value: str, *arguments: str | Path) -> None:
        """Run and hold the refusal against what is promised."""
        ran = self.run_here(*arguments)
        result = ran.result
        self.assertEqual((result["reason"], ran.exit_code), (code, exit_code), ran.lines[-1])
        self.assertIn(value, result["cause"])
        self.assertTrue(result["remedy"])
        self.assertIn(code, ran.stderr)

    def task_file(self, text: str) -> Path:
        """Write a task file."""
        path = self.root.parent / "task.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    def test_an_unknown_skill(self) -> None:
        """Explicit names are exact."""
        self.refused("skill_unknown", 2, "flying", "--skill", "flying")

    def test_an_unknown_fixture(self) -> None:
        """The known names are listed."""
        self.refused("fixture_unknown", 2, "nope", "--fixture", "nope")

    def test_skills_named_and_excluded_at_once(self) -> None:
        """SA-6."""
        self.refused("usage_invalid", 2, "write-blog", "--skill", "write-blog", "--no-skills")

    def test_a_workspace_that_is_a_file(self) -> None:
        """It stays as it is."""
        self.root.write_text("mine")
        self.refused("workspace_invalid", 2, str(self.root))
        self.assertEqual(self.root.read_text(), "mine")

    def test_a_workspace_that_cannot_be_made(self) -> None:
        """Below a file there is no folder."""
        (self.root.parent / "f").write_text("mine")
        ran = app("--workspace", self.root.parent / "f" / "w")
        self.assertEqual((ran.exit_code, ran.result["reason"]), (2, "workspace_invalid"))

    def test_a_task_file_with_a_typo_in_a_key(self) -> None:
        """File, line and the nearest key are named."""
        path = self.task_file("text: do it\nartifacts:\n  - pth: outputs/a.json\n")
        self.refused("task_invalid", 2, "line 3", path)

    def test_a_task_file_that_is_not_there(self) -> None:
        """The path is named."""
        self.refused("task_invalid", 2, "nowhere.yaml", "nowhere.yaml")

    def test_an_output_outside_the_permitted_folders(self) -> None:
        """Only outputs/ and drafts/."""
        self.refused("path_not_allowed", 2, "inputs/a.json", "--output", "inputs/a.json")

    def test_an_output_that_climbs_out(self) -> None:
        """Parent folders are refused."""
        self.refused("path_not_allowed", 2, "..", "--output", "outputs/../../a.json")

    def test_two_artifacts_with_one_path(self) -> None:
        """Case twins count as one."""
        self.refused(
            "task_invalid",
            2,
            "outputs/A.json",
            "--output",
            "outputs/a.json",
            "--output",
            "outputs/A.json",
        )

    def test_a_suffix_that_no_format_has(self) -> None:
        """The known formats are named."""
        self.refused("usage_invalid", 2, "a.xyz", "--output", "outputs/a.xyz")

    def test_a_task_without_an_artifact(self) -> None:
        """Nothing could be proven."""
        self.refused("no_artifact_declared", 2, "no artifact", "--task", "do something")

    def test_an_input_that_is_missing(self) -> None:
        """The path and where it was looked for are named."""
        path = self.task_file(
            "text: do it\ninputs: [inputs/none.csv]\nartifacts: [{path: outputs/a.json}]\n"
        )
        self.refused("path_not_found", 2, "inputs/none.csv", path)

    def test_live_without_credentials(self) -> None:
        """SA-1: an error, never a fixture."""
        ran = self.run_here("--live")
        self.assertEqual((ran.exit_code, ran.result["reason"]), (5, "model_not_configured"))
        self.assertNotIn("mode=fixture", "".join(ran.lines))


LISTENS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs are born deaf to it
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


class ARunCanBeInterrupted(Workplace):
    """SA-17."""

    def test_ctrl_c_in_the_middle_of_a_script_leaves_nothing_running_and_nothing_changed(
        self,
    ) -> None:
        """The script's processes are gone, the record says interrupted, exit 130."""
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                LISTENS,
                APP,
                "--fixture",
                "slow",
                "--timeout",
                "60",
                "--workspace",
                self.root,
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started = self.wait_for("runs/*/work/outputs/started.txt")
        process.send_signal(signal.SIGINT)
        stdout, _ = process.communicate(timeout=60)
        result = json.loads(stdout.splitlines()[-1])
        self.assertEqual((process.returncode, result["reason"]), (130, "interrupted"))
        (record,) = self.root.glob("runs/*/record.json")
        outcome = json.loads(record.read_text("utf-8"))["outcome"]
        self.assertEqual((outcome["status"], outcome["reason"]), ("incomplete", "interrupted"))
        self.assertEqual(list((self.root / "outputs").iterdir()), [])
        size = started.stat().st_size
        time.sleep(0.5)  # the script appends every 50 ms; a dead one does not
        self.assertEqual(started.stat().st_size, size)

    def test_being_told_to_terminate_ends_it_as_cleanly(self) -> None:
        """As a service manager does it."""
        process = subprocess.Popen(
            [sys.executable, APP, "--fixture", "slow", "--timeout", "60", "--workspace", self.root],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.wait_for("runs/*/work/outputs/started.txt")
        process.terminate()
        stdout, _ = process.communicate(timeout=60)
        self.assertEqual(
            (process.returncode, json.loads(stdout.splitlines()[-1])["reason"]),
            (130, "interrupted"),
        )

    def wait_for(self, pattern: str) -> Path:
        """Return the file once it is there."""
        for _ in range(600):
            found = list(self.root.glob(pattern))
            if found:
                return found[0]
            time.sleep(0.05)
        raise AssertionError(f"{pattern} did not appear")


if __name__ == "__main__":
    unittest.main()
