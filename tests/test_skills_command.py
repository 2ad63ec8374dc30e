"""app.py skills: what a person and a continuous integration see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "data" / "skills"
SKILL = """---
name: tally
description: Counts things.
triggers:
  - tally
  - 计数
references: []
---

# Tally

Count.
"""
SCRIPT = """# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
import json, pathlib
pathlib.Path("outputs/tally.json").write_text(json.dumps({"rows": VALUE}))
"""


def skills(
    *arguments: str | Path, cwd: Path = ROOT, state: Path | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({"XDG_STATE_HOME": str(state)} if state else {})}
    return subprocess.run(
        [sys.executable, str(ROOT / "app.py"), "skills", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment,
    )


def answer(*arguments: str | Path, cwd: Path = ROOT) -> dict[str, Any]:
    return dict(json.loads(skills(*arguments, "--json", cwd=cwd).stdout))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "skills" / "tally").mkdir(parents=True)
    (tmp_path / "skills" / "tally" / "SKILL.md").write_text(SKILL, "utf-8")
    (tmp_path / "skills" / "broken").mkdir()
    (tmp_path / "skills" / "broken" / "SKILL.md").write_text("no fence")
    return tmp_path


class TestList:
    def test_it_shows_the_skills_and_what_was_left_out(self, workspace: Path) -> None:
        done = skills("list", "--workspace", workspace)
        assert done.returncode == 0
        assert "tally" in done.stdout
        assert "E-FM-MISSING" in done.stdout

    def test_its_json_holds_every_finding(self, workspace: Path) -> None:
        value = answer("list", "--workspace", workspace)
        assert [one["name"] for one in value["skills"]] == ["tally"]
        found = {(one["code"], one["skill"]) for one in value["diagnostics"]}
        assert found == {("E-FM-MISSING", "broken"), ("W-UNKNOWN-FIELD", "tally")}

    def test_without_a_workspace_it_shows_the_samples(self, tmp_path: Path) -> None:
        names = [one["name"] for one in answer("list", cwd=tmp_path)["skills"]]
        assert "python-runner" in names

    def test_a_root_that_came_with_the_data_asks_for_a_word(
        self, workspace: Path, tmp_path: Path
    ) -> None:
        root = workspace / "inputs" / "skills"
        (workspace / "skills" / "tally").rename(workspace / "moved")
        root.mkdir(parents=True)
        (workspace / "moved").rename(root / "tally")
        state = tmp_path / "state"
        asked = ("list", "--workspace", workspace, "--skills-root", root)
        assert skills(*asked, state=state).returncode == 3
        assert skills(*asked, "--trust-skills", state=state).returncode == 0
        assert skills(*asked, state=state).returncode == 0


class TestExplain:
    def test_it_says_for_each_skill_what_and_why(self, workspace: Path) -> None:
        done = skills("explain", "请计数", "--workspace", workspace)
        assert done.returncode == 0
        assert "tally: selected" in done.stdout
        assert "'计数' at 1-3" in done.stdout

    def test_a_negation_is_named(self, workspace: Path) -> None:
        done = skills("explain", "Do not tally it.", "--workspace", workspace)
        assert "tally: suppressed, negated by 'do not'" in done.stdout

    def test_a_named_skill_that_is_unknown_is_wrong_usage(self, workspace: Path) -> None:
        done = skills("explain", "x", "--skill", "tallly", "--workspace", workspace)
        assert done.returncode == 2
        assert "skill_unknown" in done.stderr

    def test_its_json_holds_each_choice(self, workspace: Path) -> None:
        value = answer("explain", "tally", "--workspace", workspace)
        assert value["chosen"] == ["tally"]
        assert value["choices"][0] | {"rule": ""} == {
            "skill": "tally",
            "outcome": "selected",
            "rule": "",
            "trigger": "tally",
            "matched": "tally",
            "start": 0,
            "end": 5,
        }


class TestValidate:
    def test_a_tree_with_a_broken_skill_ends_with_1(self, workspace: Path) -> None:
        done = skills("validate", workspace)
        assert done.returncode == 1
        assert "1 of 2 skills hold" in done.stdout

    def test_the_profile_decides(self) -> None:
        path = CASES / "C32-client-fields"
        assert skills("validate", path).returncode == 0
        assert skills("validate", path, "--profile", "standard-strict").returncode == 1
        assert skills("validate", path, "--profile", "seed").returncode == 1

    def test_the_report_for_continuous_integration_names_the_findings(
        self, workspace: Path, tmp_path: Path
    ) -> None:
        report = tmp_path / "report.xml"
        skills("validate", workspace, "--junit", report)
        suite = ET.parse(report).getroot()[0]
        assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
        assert "E-FM-MISSING" in ET.tostring(suite, "unicode")

    def test_nothing_to_validate_is_wrong_usage(self, tmp_path: Path) -> None:
        assert skills("validate", tmp_path).returncode == 2

    def test_the_samples_hold(self) -> None:
        assert skills("validate", ROOT / "sample-skills").returncode == 0


class TestTest:
    def add_tests(self, workspace: Path, text: str, value: str = "[1, 2]") -> Path:
        skill = workspace / "skills" / "tally"
        for name in ("fixtures", "tasks", "scripts"):
            (skill / "tests" / name).mkdir(parents=True)
        (skill / "tests.yaml").write_text(text, "utf-8")
        (skill / "tests" / "scripts" / "tally.py").write_text(SCRIPT.replace("VALUE", value))
        (skill / "tests" / "tasks" / "tally.yaml").write_text(
            "name: tally\ntext: Make a tally.\nartifacts:\n  - path: outputs/tally.json\n"
            "    format: json\nrepairs: 0\n"
        )
        fixture = {
            "about": "a tally",
            "task": "tasks/tally.yaml",
            "expect": {"status": "complete"},
            "rounds": [
                [
                    {
                        "calls": [
                            {
                                "tool": "write_file",
                                "arguments": {
                                    "path": "scripts/tally.py",
                                    "content": {"$file": "scripts/tally.py"},
                                },
                            }
                        ]
                    },
                    {"calls": [{"tool": "run_python", "arguments": {"path": "scripts/tally.py"}}]},
                    {"say": "Done."},
                ]
            ],
        }
        (skill / "tests" / "fixtures" / "tally.json").write_text(json.dumps(fixture))
        return skill

    def test_prompts_and_a_run_that_hold_end_with_0(self, workspace: Path) -> None:
        skill = self.add_tests(
            workspace,
            "selected: [Please tally this, 请计数]\nnot_selected: [Totally different]\n"
            "runs: [tally]\n",
        )
        done = skills("test", skill)
        assert (done.returncode, "4 of 4 hold" in done.stdout) == (0, True), done.stdout

    def test_a_prompt_that_selects_something_else_ends_with_1(self, workspace: Path) -> None:
        skill = self.add_tests(workspace, "selected: [Count this]\nnot_selected: [tally it]\n")
        done = skills("test", skill)
        assert (done.returncode, "0 of 2 hold" in done.stdout) == (1, True)

    def test_a_run_that_the_gate_refuses_ends_with_1(self, workspace: Path) -> None:
        skill = self.add_tests(workspace, "runs: [tally]\n", value="open('/nowhere')")
        assert skills("test", skill).returncode == 1

    @pytest.mark.parametrize("text", ["selectd: [x]\n", "selected: x\n", "- a\n", "runs: [none]\n"])
    def test_tests_that_cannot_be_read_are_wrong_usage(self, workspace: Path, text: str) -> None:
        assert skills("test", self.add_tests(workspace, text)).returncode == 2


class TestPropose:
    def test_the_sample_is_shown_as_it_would_be_written(self) -> None:
        done = skills("propose", ROOT / "sample-data" / "inputs" / "skill-proposal.json")
        assert done.returncode == 0
        assert "skills/explain-cache/SKILL.md" in done.stdout
        assert '  - "缓存检查"' in done.stdout

    def test_hidden_characters_are_written_out_and_named(self, tmp_path: Path) -> None:
        value = {
            "name": "a",
            "description": "b",
            "triggers": ["cc"],
            "content": "# T\n\u202eevil\u2069\n",
        }
        (tmp_path / "p.json").write_text(json.dumps(value))
        done = skills("propose", tmp_path / "p.json")
        assert "U+202E" in done.stdout
        assert "\u202e" not in done.stdout

    def test_one_that_cannot_be_used_says_why(self, tmp_path: Path) -> None:
        (tmp_path / "p.json").write_text('{"name": "a", "name": "b"}')
        done = skills("propose", tmp_path / "p.json")
        assert done.returncode == 1
        assert "proposal_invalid" in done.stderr
