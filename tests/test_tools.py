"""The model's tools: what they refuse, and what they say then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reread.records import read_events
from tests.workplace import GOOD, HEADER, RUN, SAY_SO, SCRIPT, Workplace, answers, call, write


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path / "w")


def answer(place: Workplace, *turns: Any) -> list[Any]:
    """Run these turns and return what the tools answered."""
    session = place.open()
    place.run(*turns, SAY_SO)
    return answers(read_events(session.work.run))


class TestReadFile:
    def test_it_returns_content_and_digest(self, place: Workplace) -> None:
        (place.root / "inputs/a.txt").write_text("héllo", encoding="utf-8")
        (result,) = answer(place, call("read_file", path="inputs/a.txt"))
        assert (result["content"], result["bytes"]) == ("héllo", 6)

    def test_exactly_64_kib_are_read_and_one_byte_more_is_not(self, place: Workplace) -> None:
        (place.root / "inputs/fits").write_bytes(b"x" * 65536)
        (place.root / "inputs/more").write_bytes(b"x" * 65537)
        fits, more = answer(
            place, call("read_file", path="inputs/fits"), call("read_file", path="inputs/more")
        )
        assert (fits["ok"], more["code"]) == (True, "file_too_large")

    def test_text_that_is_not_utf8_is_named_with_its_byte(self, place: Workplace) -> None:
        (place.root / "inputs/a.csv").write_bytes(b"caf\xe9")
        (result,) = answer(place, call("read_file", path="inputs/a.csv"))
        assert result["code"] == "not_utf8"
        assert "0xe9" in result["cause"]

    def test_earlier_results_are_seen_below_previous(self, place: Workplace) -> None:
        (place.root / "outputs/old.txt").write_text("old")
        (result,) = answer(place, call("read_file", path="previous/outputs/old.txt"))
        assert result["content"] == "old"

    def test_records_of_runs_are_out_of_reach(self, place: Workplace) -> None:
        (result,) = answer(place, call("read_file", path="runs/x/record.json"))
        assert result["code"] == "path_not_found"

    @pytest.mark.parametrize("path", ["/etc/hostname", "../x", "inputs/../../x", "inputs/./a", ""])
    def test_paths_that_leave_are_refused(self, place: Workplace, path: str) -> None:
        (result,) = answer(place, call("read_file", path=path))
        assert result["code"] in ("path_not_allowed", "tool_arguments_invalid")

    def test_a_link_among_the_inputs_is_not_followed(self, place: Workplace) -> None:
        (place.root / "inputs/link").symlink_to("/etc/hostname")
        (result,) = answer(place, call("read_file", path="inputs/link"))
        assert result["code"] == "path_not_allowed"

    def test_a_fifo_is_not_waited_for(self, place: Workplace) -> None:
        import os

        os.mkfifo(place.root / "inputs/pipe")
        (result,) = answer(place, call("read_file", path="inputs/pipe"))
        assert result["code"] == "not_a_regular_file"


class TestWriteFile:
    def test_it_says_what_is_on_disk_then(self, place: Workplace) -> None:
        (result,) = answer(place, write("drafts/a.md", "# Text"))
        assert (result["bytes"], len(result["sha256"])) == (6, 64)

    @pytest.mark.parametrize(
        "path",
        ["inputs/a", "skills/a/SKILL.md", "runs/a", "a.txt", "previous/outputs/a", "outputs"],
    )
    def test_other_folders_are_refused(self, place: Workplace, path: str) -> None:
        (result,) = answer(place, write(path, "x"))
        assert result["code"] == "path_not_allowed"

    def test_an_approved_argument_is_refused(self, place: Workplace) -> None:
        (result,) = answer(place, call("write_file", path="drafts/a", content="x", approved=True))
        assert result["code"] == "tool_arguments_invalid"

    def test_rewriting_its_own_file_needs_no_approval(self, place: Workplace) -> None:
        first, second = answer(place, write("drafts/a", "1"), write("drafts/a", "2"))
        assert first["ok"] and second["ok"]


class TestText:
    @pytest.mark.parametrize(
        "turn", [write("drafts/a.txt", "\ud800"), call("run_python", code=f"{HEADER}x = '\ud800'")]
    )
    def test_a_lone_surrogate_is_refused_and_ends_nothing(
        self, place: Workplace, turn: Any
    ) -> None:
        (refused,) = answer(place, turn)
        assert refused["code"] == "tool_arguments_invalid"


class TestRunPython:
    def test_path_and_code_exclude_each_other(self, place: Workplace) -> None:
        (both,) = answer(place, call("run_python", path=SCRIPT, code=GOOD))
        assert both["code"] == "tool_arguments_invalid"

    def test_one_of_path_and_code_is_needed(self, place: Workplace) -> None:
        (none,) = answer(place, call("run_python"))
        assert none["code"] == "tool_arguments_invalid"

    def test_the_whole_traceback_is_shown_and_the_file_stays(self, place: Workplace) -> None:
        session = place.open()
        place.run(write(SCRIPT, HEADER + "def f():\n    1/0\nf()\n"), RUN, SAY_SO)
        result = answers(read_events(session.work.run))[-1]
        assert result["code"] == "script_failed"
        assert "ZeroDivisionError" in result["stderr"]
        assert "in f" in result["stderr"]
        assert (session.work.folder.root / SCRIPT).is_file()

    def test_code_that_does_not_parse_makes_no_file(self, place: Workplace) -> None:
        import tempfile

        before = set(Path(tempfile.gettempdir()).glob("uv_script_*"))
        (result,) = answer(place, call("run_python", code=HEADER + "def broken(:\n"))
        assert result["code"] == "script_syntax_error"
        assert "line 4" in result["cause"]
        assert set(Path(tempfile.gettempdir()).glob("uv_script_*")) == before

    def test_a_script_from_outside_of_scripts_is_refused(self, place: Workplace) -> None:
        (result,) = answer(place, call("run_python", path="drafts/a.py"))
        assert result["code"] == "path_not_allowed"

    def test_scripts_cannot_change_inputs_or_earlier_results(self, place: Workplace) -> None:
        (place.root / "inputs/a.txt").write_text("mine")
        (place.root / "outputs/b.txt").write_text("mine")
        attack = HEADER + (
            "for path in ('inputs/a.txt', 'previous/outputs/b.txt', 'scripts/make.py'):\n"
            "    try:\n        open(path, 'w').write('x')\n"
            "    except OSError as error:\n        print(path, type(error).__name__)\n"
        )
        session = place.open()
        place.run(write(SCRIPT, attack), RUN, SAY_SO)
        result = answers(read_events(session.work.run))[-1]
        assert len(result["stdout"].splitlines()) == 3
        assert (place.root / "inputs/a.txt").read_text() == "mine"
        assert (place.root / "outputs/b.txt").read_text() == "mine"
