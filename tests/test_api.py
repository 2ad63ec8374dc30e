"""The Python API: the examples of its page, run as they stand."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import reread
from reread import Failure, check_file

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs/api.md").read_text("utf-8"), re.DOTALL)
SAID = ["True ", "complete {", "proven: True"]


@pytest.mark.parametrize("number", range(3))
def test_each_example_of_the_page_runs(tmp_path: Path, number: int) -> None:
    (tmp_path / "summary.json").write_text('{"total": 1}')
    shutil.copy(ROOT / "sample-data/tasks/monthly-summary.yaml", tmp_path / "task.yaml")
    ran = subprocess.run(
        [sys.executable, "-c", EXAMPLES[number]],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(SAID[number])


def test_every_name_of_the_package_can_be_had() -> None:
    for name in reread.__all__:
        assert getattr(reread, name) is not None


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        reread.nothing  # noqa: B018 - the access is the test


def test_a_file_that_is_missing_is_a_finding() -> None:
    evidence = check_file("nowhere.json")
    assert [str(problem.code) for problem in evidence.problems] == ["artifact_not_created"]


def test_a_format_that_is_not_known_is_a_failure() -> None:
    with pytest.raises(Failure, match="usage_invalid"):
        check_file("a.xyz")
