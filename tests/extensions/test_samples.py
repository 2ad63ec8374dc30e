"""The packages that ship: one sound, one broken, and two repairs that end as they say."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
SHIPPED = ROOT / "sample-data" / "extensions"


def app(*arguments: str | Path, state: Path) -> tuple[int, dict[str, Any]]:
    """Run the program with a state folder of the test's own; return exit status and result."""
    ran = subprocess.run(
        [sys.executable, str(ROOT / "app.py"), *map(str, arguments)],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(state), "XDG_STATE_HOME": str(state / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, json.loads(ran.stdout.splitlines()[-1])


def copied(name: str, place: Path) -> Path:
    return Path(shutil.copytree(SHIPPED / name, place / name))


class TestTheSoundOne:
    def test_it_passes_all_three_layers_and_is_loaded_by_a_run(self, tmp_path: Path) -> None:
        package = copied("table_report", tmp_path)
        code, report = app("verify", package, "--json", state=tmp_path)
        assert (code, report["ok"]) == (0, True)
        code, result = app("--extension", package, "--workspace", tmp_path / "w", state=tmp_path)
        assert (code, result["status"]) == (0, "complete")
        (events,) = (tmp_path / "w/runs").glob("*/events.jsonl")
        assert '"extension.loaded"' in events.read_text("utf-8")


class TestOneThatHasNotPassed:
    def test_it_is_not_loaded(self, tmp_path: Path) -> None:
        package = copied("table_report", tmp_path)
        code, result = app("--extension", package, state=tmp_path)
        assert (code, result["reason"]) == (3, "extension_not_verified")

    def test_a_person_can_say_so_for_exactly_these_bytes(self, tmp_path: Path) -> None:
        package = copied("table_report", tmp_path)
        code, result = app("--approve-extension", package, state=tmp_path)
        assert (code, result["status"]) == (0, "complete")

    def test_a_change_after_its_verification_is_found(self, tmp_path: Path) -> None:
        package = copied("table_report", tmp_path)
        assert app("verify", package, "--json", state=tmp_path)[0] == 0
        with (package / "layout.py").open("a") as stream:
            stream.write("# changed\n")
        code, result = app("--extension", package, state=tmp_path)
        assert (code, result["reason"]) == (3, "extension_not_verified")


class TestRepair:
    def test_the_second_round_mends_it(self, tmp_path: Path) -> None:
        package = copied("broken_words", tmp_path)
        fixture = SHIPPED / "repairs/second-round.json"
        flags = ("--repair", "--fixture", fixture, "--json")
        code, report = app("verify", package, *flags, state=tmp_path)
        assert (code, report["ok"], len(report["rounds"])) == (0, True, 3)
        assert app("verify", package, "--json", state=tmp_path)[0] == 0

    def test_one_that_is_never_mended_is_left_as_it_was(self, tmp_path: Path) -> None:
        package = copied("broken_words", tmp_path)
        before = {p: p.read_bytes() for p in package.rglob("*") if p.is_file()}
        flags = ("--repair", "--fixture", SHIPPED / "repairs/never.json", "--json")
        code, report = app("verify", package, *flags, state=tmp_path)
        assert (code, report["ok"], len(report["rounds"])) == (1, False, 4)
        assert {p: p.read_bytes() for p in package.rglob("*") if p.is_file()} == before
