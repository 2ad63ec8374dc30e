"""A whole live run over real HTTP: the program as a user starts it, a stand-in as the service."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.live.stand_in import Answer, Asked, as_events, as_json, chunk, completion, stand_in

ROOT = Path(__file__).resolve().parent.parent.parent
KEY = "sk-not-a-real-key-0123456789"

SCRIPT = (ROOT / "sample-data/scripts/summarize.py").read_text("utf-8")
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "inputs/source-notes.md"}),
    ("write_file", {"path": "scripts/summarize.py", "content": SCRIPT}),
    ("run_python", {"path": "scripts/summarize.py"}),
]


def turn(number: int, *, streamed: bool) -> Answer:
    """Return what a well-behaved model would say in its n-th turn."""
    if number >= len(CALLS):
        text = "Both files are made."
        if streamed:
            return as_events(chunk({"role": "assistant", "content": text}), chunk({}, "stop"))
        return as_json(completion(text))
    name, arguments = CALLS[number]
    function = {"name": name, "arguments": json.dumps(arguments)}
    if not streamed:
        return as_json(completion(None, calls=[(function["name"], function["arguments"])]))
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
    return as_events(chunk({"role": "assistant", "tool_calls": [call]}), chunk({}, "tool_calls"))


async def run_app(base_url: str, workspace: Path, *flags: str) -> tuple[int, list[str]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(ROOT / "app.py"),
        "--live",
        "--workspace",
        str(workspace),
        *flags,
        cwd=ROOT,
        env=os.environ
        | {"OPENAI_API_KEY": KEY, "OPENAI_MODEL": "stand-in", "OPENAI_BASE_URL": base_url},
        stdout=asyncio.subprocess.PIPE,
    )
    stdout, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, stdout.decode("utf-8").splitlines()


class TestAWholeLiveRun:
    @pytest.mark.parametrize("streamed", [True, False])
    def test_it_ends_complete(self, tmp_path: Path, streamed: bool) -> None:
        async def go() -> tuple[int, list[str], list[Asked]]:
            async with stand_in(lambda asked, n: turn(n, streamed=streamed)) as service:
                flags = [] if streamed else ["--no-stream"]
                code, lines = await run_app(service.base_url, tmp_path / "w", *flags)
                return code, lines, service.asked

        code, lines, asked = asyncio.run(go())
        result = json.loads(lines[-1])
        assert (code, result["status"]) == (0, "complete"), lines[-1]
        assert lines[0] == "mode=live"
        assert [request.body.get("stream", False) for request in asked] == [streamed] * 4
        assert (tmp_path / "w/outputs/summary.json").is_file()

    def test_the_key_is_in_nothing_that_the_run_leaves_behind(self, tmp_path: Path) -> None:
        async def go() -> list[str]:
            async with stand_in(lambda asked, n: turn(n, streamed=True)) as service:
                return (await run_app(service.base_url, tmp_path / "w"))[1]

        lines = asyncio.run(go())
        assert KEY not in "\n".join(lines)
        left = [path for path in (tmp_path / "w").rglob("*") if path.is_file()]
        assert left
        assert [path for path in left if KEY.encode() in path.read_bytes()] == []

    def test_a_service_that_fails_ends_with_its_own_exit_status(self, tmp_path: Path) -> None:
        async def go() -> tuple[int, list[str]]:
            wrong = as_json({"error": {"message": "no such model"}}, 404)
            async with stand_in(lambda asked, n: wrong) as service:
                return await run_app(service.base_url, tmp_path / "w")

        code, lines = asyncio.run(go())
        result = json.loads(lines[-1])
        assert (code, result["status"], result["reason"]) == (5, "error", "model_failed")

    def test_a_limit_ends_with_its_own_exit_status(self, tmp_path: Path) -> None:
        async def go() -> tuple[int, list[str], list[Asked]]:
            async with stand_in(lambda asked, n: turn(n % 2, streamed=True)) as service:
                code, lines = await run_app(service.base_url, tmp_path / "w", "--max-turns", "3")
                return code, lines, service.asked

        code, lines, asked = asyncio.run(go())
        result = json.loads(lines[-1])
        assert (code, result["status"], result["reason"]) == (4, "incomplete", "limit_reached")
        assert len(asked) == 3
