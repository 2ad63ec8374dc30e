"""The real openjiuwen. Its environment takes 600 MB and, the first time, minutes.

Opt-in: REREAD_OPENJIUWEN=1. What needs no environment is in test_breakages.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from reread.verify import Report, verify
from tests.extensions.packages import ported
from tests.extensions.real_runtime import ALONE, rows

needs_it = pytest.mark.skipif(
    os.environ.get("REREAD_OPENJIUWEN") != "1", reason="installs openjiuwen: REREAD_OPENJIUWEN=1"
)


def verified(package: Path, **how: str) -> Report:
    return asyncio.run(verify(package, record=False, **how))  # type: ignore[arg-type]


@needs_it
class TestTheRealRuntime:
    def test_a_sound_package_passes_and_the_report_names_the_release(self, tmp_path: Path) -> None:
        report = verified(ported(tmp_path))
        assert report.ok, report.findings
        assert report.runtime.startswith("openjiuwen 0.")

    def test_each_breakage_has_a_right_code(self) -> None:
        wrong = [(row.case["name"], row.codes) for row in rows(ALONE) if not row.right]
        assert wrong == []

    def test_a_package_that_ends_its_process_is_a_failure(self, tmp_path: Path) -> None:
        package = ported(tmp_path)
        tool = package / "tools/note_tool.py"
        text = tool.read_text("utf-8")
        tool.write_text(text.replace("        state = {}", "        os._exit(0)"), "utf-8")
        report = verified(package)
        assert not report.ok
        assert report.findings[0].problem.code == "verifier_crashed"


class TestWithoutIt:
    def test_an_environment_that_cannot_be_made_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("UV_OFFLINE", "1")
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
        report = verified(ported(tmp_path / "package"))
        assert [one.problem.code for one in report.findings] == ["environment_unusable"]
        assert report.layers == {"L1": "passed", "L2": "failed", "L3": "not_run"}
