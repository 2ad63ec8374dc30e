"""doctor: what works on this machine."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.live.stand_in import Answer, Answering, Asked, as_json, completion, stand_in

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-test-0123456789abcdefghij"


async def doctor(
    *flags: str, environ: Mapping[str, str] | None = None
) -> tuple[int, dict[str, Any]]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENAI_")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "app.py", "doctor", "--json", *flags),
        cwd=ROOT,
        env={**kept, **(environ or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert KEY not in out.decode() + err.decode()
    return process.returncode or 0, json.loads(out)


def named(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    return next(finding for finding in found["findings"] if finding["name"] == name)


async def asked(answering: Answering) -> tuple[int, dict[str, Any]]:
    async with stand_in(answering) as service:
        environ = {"OPENAI_API_KEY": KEY, "OPENAI_MODEL": "m", "OPENAI_BASE_URL": service.base_url}
        return await doctor("--live", environ=environ)


def calling(asked: Asked, number: int) -> Answer:
    return as_json(completion(None, [("ready", '{"word": "ok"}')]))


class TestDoctor:
    def test_says_what_works_here(self) -> None:
        status, found = asyncio.run(doctor())
        names = {finding["name"] for finding in found["findings"]}
        assert {"python", "uv", "sandbox", "formats", "model"} <= names
        assert named(found, "python")["state"] == "works"
        assert (status == 0) == found["ok"]

    def test_gives_a_remedy_for_everything_that_does_not_work(self) -> None:
        _, found = asyncio.run(doctor("--live"))
        failed = [f for f in found["findings"] if f["state"] == "failed"]
        assert all(finding["remedy"] and finding["code"] for finding in failed)

    def test_asks_no_model_unless_told_to(self) -> None:
        _, found = asyncio.run(doctor())
        assert named(found, "model")["state"] == "skipped"

    def test_misses_a_model_only_where_one_is_wanted(self) -> None:
        status, found = asyncio.run(doctor("--live"))
        assert (status, named(found, "model")["code"]) == (5, "model_not_configured")

    def test_asks_the_service_for_a_call(self) -> None:
        _, found = asyncio.run(asked(calling))
        assert named(found, "model")["state"] == "works"

    def test_says_so_where_a_service_calls_no_tools(self) -> None:
        _, found = asyncio.run(asked(lambda request, number: as_json(completion("ok"))))
        assert named(found, "model")["state"] == "limited"

    @pytest.mark.parametrize("status", [401, 404])
    def test_names_what_the_service_says(self, status: int) -> None:
        body = {"error": {"message": f"no, {KEY}"}}
        exit_status, found = asyncio.run(asked(lambda request, number: as_json(body, status)))
        assert (exit_status, named(found, "model")["code"]) == (5, "model_failed")
