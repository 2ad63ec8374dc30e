"""What a person sees while a run goes on: on a pipe, on a terminal, at the end."""

from __future__ import annotations

import io
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reread import view
from tests.records.runs import ROOT, run


def lines_of(fixture: str, place: Path) -> str:
    stream = io.StringIO()
    run(fixture, place, view.Lines(stream))
    return stream.getvalue()


class TestOnAPipe:
    def test_each_thing_that_is_done_is_a_line_with_its_time(self, tmp_path: Path) -> None:
        lines = lines_of("success", tmp_path / "w").splitlines()
        assert all(line.split()[0].endswith("s") for line in lines)
        for word in ("read_file", "write_file", "exit code 0", "outputs/report.md", "gate: 3 of 3"):
            assert any(word in line for line in lines), word

    def test_what_failed_says_its_code(self, tmp_path: Path) -> None:
        shown = lines_of("crash", tmp_path / "w")
        assert "script_failed" in shown
        assert "artifact_not_created" in shown

    def test_nothing_moves(self, tmp_path: Path) -> None:
        assert "\x1b" not in lines_of("success", tmp_path / "w")
        assert "\r" not in lines_of("success", tmp_path / "w2")


class TestALine:
    def test_control_characters_are_shown_and_do_nothing(self) -> None:
        data = {"name": "read_file", "result": {"ok": True, "path": "a\x1b[2Jb\u202e"}}
        assert view.line_of("tool.answered", data) == "✓ read_file a\\x1b[2Jb\\u202e"

    def test_it_is_cut(self) -> None:
        data = {"name": "x" * 1000, "result": {"ok": True}}
        assert len(view.line_of("tool.answered", data)) == view.MAX_LINE

    @pytest.mark.parametrize(
        ("kind", "data", "shown"),
        [
            ("model.asked", {"messages": 3}, "waiting for the model: 3 messages"),
            ("model.progress", {"tokens": 12, "text": "so far"}, "the model writes: 12 tokens"),
            ("dependencies", {"requirements": ["pandas"]}, "preparing the environment: pandas"),
            ("script.output", {"text": "one\ntwo\n\n"}, "the script runs: two"),
            ("gate.checking", {"path": "outputs/a.pdf"}, "the gate reads the files: outputs/a.pdf"),
        ],
    )
    def test_what_goes_on_has_its_words(
        self, kind: str, data: dict[str, object], shown: str
    ) -> None:
        assert view.doing_of(kind, data).startswith(shown)


class TestOnATerminal:
    def test_the_moving_line_says_what_and_for_how_long(self, tmp_path: Path) -> None:
        argv = ["--fixture", "slow", "--workspace", str(tmp_path / "w"), "--timeout", "3"]
        shown = on_terminal([sys.executable, str(ROOT / "app.py"), *argv])
        assert "the script runs · 1 s" in shown
        assert "limit_reached" in shown
        assert "record: " in shown
        assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h")  # the cursor is back


def on_terminal(command: list[str]) -> str:
    """Run a program on a terminal and return all that it wrote there, without colours."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "NO_COLOR": "1", "COLUMNS": "120"}
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown, end = b"", time.monotonic() + 60
    while time.monotonic() < end:
        ready, _, _ = select.select([ours], [], [], 0.2)
        try:
            piece = os.read(ours, 65536) if ready else b""
        except OSError:  # the other side is closed
            break
        shown += piece
        if not ready and process.poll() is not None:
            break
    process.wait(10)
    os.close(ours)
    text = shown.decode("utf-8", "replace")
    for code in ("\x1b[1m", "\x1b[2m", "\x1b[0m", "\x1b[36m", "\x1b[2;3m"):
        text = text.replace(code, "")
    return text


class TestTheEnd:
    def test_it_says_where_the_files_and_the_record_are(self, tmp_path: Path) -> None:
        place = tmp_path / "w"
        stream = io.StringIO()
        outcome = run("success", place)
        view.last(outcome, place, kept=True, stream=stream)
        shown = stream.getvalue()
        assert f"files:  {place}\n" in shown
        assert (place / "runs" / outcome.run_id / "record.json").is_file()
        assert f"record: {place / 'runs' / outcome.run_id / 'record.json'}\n" in shown

    def test_files_that_failed_are_where_they_were_made(self, tmp_path: Path) -> None:
        place = tmp_path / "w"
        stream = io.StringIO()
        outcome = run("invalid", place)
        view.last(outcome, place, kept=True, stream=stream)
        assert f"files:  {place / 'runs' / outcome.run_id / 'work'}\n" in stream.getvalue()
        assert outcome.reason in stream.getvalue()
