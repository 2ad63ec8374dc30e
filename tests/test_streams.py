"""The program where its streams are closed, full, or take no more than ASCII."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

APP = Path(__file__).resolve().parent.parent / "app.py"


def started(redirected: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Start the program by a shell, which can close what it is given."""
    command = f'exec "$0" "$@" {redirected}'
    return subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, str(APP), *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        env={**os.environ, **env},
        check=False,
    )


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "a.json"
    path.write_text('{"total": 42}')
    return path


@pytest.mark.skipif(os.name == "nt", reason="needs a shell that closes streams")
class TestStreams:
    @pytest.mark.parametrize("redirected", [">&-", ">&- 2>&- <&-", "<&-", "2>&-"])
    def test_closed_ones_do_not_change_the_verdict(self, good: Path, redirected: str) -> None:
        ran = started(redirected, "check", str(good))
        assert (ran.returncode, ran.stderr) == (0, "")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_a_full_disk_behind_them_does_not_change_it_either(self, good: Path) -> None:
        ran = started(">/dev/full", "check", "--json", str(good))
        assert (ran.returncode, ran.stderr) == (0, "")

    def test_ascii_is_enough(self, good: Path) -> None:
        ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        ran = started("", "check", str(good), PYTHONIOENCODING="ascii", **ascii_only)
        assert (ran.returncode, ran.stderr) == (0, "")


class TestASystemThatRefuses:
    def test_a_cache_that_cannot_be_written_ends_in_a_result(self, tmp_path: Path) -> None:
        taken = tmp_path / "taken"
        taken.write_text("a file")
        ran = started("", REREAD_CACHE_DIR=str(taken))
        result = json.loads(ran.stdout.splitlines()[-1])
        assert (ran.returncode, result["status"], result["reason"]) == (1, "error", "write_failed")
        assert "Traceback" not in ran.stderr
