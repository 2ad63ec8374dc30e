"""Each benchmark that needs no program of others works; how fast anything was is not asked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import names

ROOT = Path(__file__).resolve().parent.parent
NEEDS_DOWNLOADS = {"gate_corpora"}
SECONDS = 300
if os.environ.get("REREAD_ALL_TESTS") != "1":
    pytest.importorskip("dbos", reason="the extra 'batch' is not installed")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


@pytest.mark.parametrize("name", [name for name in names() if name not in NEEDS_DOWNLOADS])
def test_it_measures_something_and_says_so(name: str) -> None:
    done = run(name, "--quick")
    # 1 says that a promise about speed did not hold, which a busy machine may be to blame for.
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    assert len(re.findall(r"\d+(?:\.\d+)?", done.stdout)) >= 2, done.stdout


def test_an_unknown_name_is_told_with_those_that_there_are() -> None:
    done = run("no_such_thing")
    assert done.returncode == 2
    assert "run_python" in done.stderr
