"""The whole program with a live model: what it leaves behind, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.live.stand_in import Answer, Answering, Asked, as_json, completion, stand_in

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-test-0123456789abcdefghij"
SCRIPT = """\
# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
import json, os, pathlib
print(dict(os.environ))
pathlib.Path("outputs/sum.json").write_text(json.dumps({"sum": 42}))
"""


def at_work(asked: Asked, number: int) -> Answer:
    """Write a script, run it, say so."""
    steps: list[list[tuple[str, str]]] = [
        [("write_file", json.dumps({"path": "scripts/sum.py", "content": SCRIPT}))],
        [("run_python", json.dumps({"path": "scripts/sum.py"}))],
    ]
    calls = steps[number] if number < len(steps) else []
    return as_json(completion(None if calls else "done", calls))


async def program(
    folder: Path, answering: Answering, *flags: str, key: str = KEY
) -> tuple[int, dict[str, Any], str]:
    """Run it in a folder. Returns (exit status, result object, everything printed)."""
    async with stand_in(answering) as service:
        asked = {"API_KEY": key, "MODEL": "m", "BASE_URL": service.base_url}
        environ = {**os.environ, **{f"OPENAI_{name}": value for name, value in asked.items()}}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "app.py", "--live", "--json", "--no-stream", "--no-skills"),
            *("--task", "Write the sum of 40 and 2.", "--output", "outputs/sum.json"),
            *("--workspace", str(folder), *flags),
            cwd=ROOT,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), 120)
    return process.returncode or 0, json.loads(out), out.decode() + err.decode()


def left_behind(folder: Path) -> bytes:
    """Everything that a run wrote, names included."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return b"\n".join([str(path).encode() + path.read_bytes() for path in files])


class TestALiveRun:
    def test_is_complete_when_the_disk_says_so(self, tmp_path: Path) -> None:
        status, result, printed = asyncio.run(program(tmp_path, at_work))
        assert (status, result["status"]) == (0, "complete"), printed
        assert json.loads((tmp_path / "outputs" / "sum.json").read_text()) == {"sum": 42}

    def test_that_only_talks_is_not(self, tmp_path: Path) -> None:
        status, result, _ = asyncio.run(
            program(tmp_path, lambda asked, number: as_json(completion("It is done.")))
        )
        assert (status, result["runtime_status"]) == (1, "complete")
        assert result["status"] != "complete"

    def test_ends_with_the_limit_that_it_reached(self, tmp_path: Path) -> None:
        status, result, _ = asyncio.run(program(tmp_path, at_work, "--max-turns", "2"))
        assert (status, result["reason"]) == (4, "limit_reached")

    def test_ends_with_what_the_service_said(self, tmp_path: Path) -> None:
        body = {"error": {"message": f"Incorrect API key provided: {KEY}"}}
        status, result, printed = asyncio.run(
            program(tmp_path, lambda asked, number: as_json(body, 401))
        )
        assert (status, result["reason"]) == (5, "model_failed")
        assert KEY not in printed


class TestTheKeyOfALiveRun:
    @pytest.mark.parametrize("end", ["", "\n", "\r\n"])
    def test_is_in_nothing_that_it_leaves_behind(self, tmp_path: Path, end: str) -> None:
        _, _, printed = asyncio.run(program(tmp_path, at_work, key=KEY + end))
        assert KEY.encode() not in left_behind(tmp_path)
        assert KEY not in printed

    def test_is_in_nothing_after_a_failure(self, tmp_path: Path) -> None:
        def answering(asked: Asked, number: int) -> Answer:
            return Answer(200, {"content-type": "text/html"}, f"<title>{KEY}</title>".encode())

        _, _, printed = asyncio.run(program(tmp_path, answering, key=KEY + "\n"))
        assert KEY.encode() not in left_behind(tmp_path)
        assert KEY not in printed

    def test_is_not_in_the_environment_of_a_script(self, tmp_path: Path) -> None:
        _, _, printed = asyncio.run(program(tmp_path, at_work))
        kept = left_behind(tmp_path) + printed.encode()
        assert b"OPENAI_" not in kept
