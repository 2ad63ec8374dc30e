"""The GitHub Action: what it runs works, and no input can become a command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent


def action() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "action.yml").read_text("utf-8")))


def start(tmp_path: Path, **inputs: str) -> tuple[int, str, str]:
    """Run the step of the action as a runner would; returns status, output and its outputs."""
    step = next(s for s in action()["runs"]["steps"] if s.get("id") == "run")
    given = {
        name: re.sub(
            r"\$\{\{ inputs\.([\w-]+) \}\}",
            lambda found: inputs.get(found[1], action()["inputs"][found[1]]["default"]),
            value,
        )
        for name, value in step["env"].items()
    }
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    made = {
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_OUTPUT": str(tmp_path / "out"),
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": ":".join(sys.path),
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    ran = subprocess.run(
        command, cwd=tmp_path, env=made | given, capture_output=True, text=True, check=False
    )
    outputs = tmp_path / "out"
    return ran.returncode, ran.stdout + ran.stderr, outputs.read_text() if outputs.exists() else ""


class TestTheStep:
    def test_it_judges_files_and_leaves_a_junit_report(self, tmp_path: Path) -> None:
        (tmp_path / "good.json").write_text('{"a": 1}')
        (tmp_path / "bad.json").write_text("{")
        status, shown, outputs = start(tmp_path, files="good.json\nbad.json\n")
        assert status == 1, shown
        suite = ET.parse(tmp_path / "reread-junit.xml").getroot()[0]
        assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
        assert "junit=reread-junit.xml" in outputs

    def test_a_name_that_looks_like_a_command_is_a_name(self, tmp_path: Path) -> None:
        for name in ("$(touch owned).json", "a; touch owned.json", "`touch owned`.json"):
            (tmp_path / name).write_text('{"a": 1}')
        names = "$(touch owned).json\na; touch owned.json\n`touch owned`.json"
        status, shown, _ = start(tmp_path, files=names)
        assert status == 0, shown
        assert not (tmp_path / "owned").exists()

    def test_neither_files_nor_a_task_is_wrong_usage(self, tmp_path: Path) -> None:
        assert start(tmp_path)[0] == 2

    def test_a_task_without_a_service_is_told(self, tmp_path: Path) -> None:
        task = ROOT / "sample-data/tasks/monthly-summary.yaml"
        status, shown, _ = start(tmp_path, task=str(task))
        assert status == 5
        assert "model_not_configured" in shown


class TestTheFile:
    def test_no_input_is_put_into_a_script(self) -> None:
        for step in action()["runs"]["steps"]:
            assert "${{" not in step.get("run", "")

    def test_the_page_names_every_input(self) -> None:
        page = (ROOT / "docs" / "ci.md").read_text("utf-8")
        for name in action()["inputs"]:
            assert f"| `{name}` |" in page
