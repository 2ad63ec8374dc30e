"""A live run that was cut off: what was paid for is not asked again. Over real HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reread import tasks
from reread.job import Job, perform, resume
from reread.models import Settings
from reread.workspace import Workspace
from tests.live.stand_in import Answer, Asked, as_json, completion, stand_in
from tests.records.runs import ROOT, KillAt, fork, kinds, last_run, record, run

SCRIPT = (ROOT / "sample-data/scripts/summarize.py").read_text("utf-8")
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "inputs/source-notes.md"}),
    ("write_file", {"path": "scripts/summarize.py", "content": SCRIPT}),
    ("run_python", {"path": "scripts/summarize.py"}),
]


def turn(asked: Asked) -> Answer:
    """Answer by how far the conversation in the request has come."""
    said = sum(1 for message in asked.body["messages"] if message["role"] == "assistant")
    if said >= len(CALLS):
        return as_json(completion("Both files are made."))
    name, arguments = CALLS[said]
    return as_json(completion(None, calls=[(name, json.dumps(arguments))]))


def settings(base_url: str) -> Settings:
    return Settings("none", "m", base_url, stream=False)


def live(base_url: str, place: Path, number: int) -> None:
    """Do the sample task with a service, and die at an event; 0 never does."""
    task = tasks.read_task(ROOT / "sample-data/tasks/monthly-summary.yaml")
    job = Job(task=task, workspace=place, samples=ROOT, settings=settings(base_url))
    asyncio.run(perform(job, listeners=(KillAt(number),)))


async def cut_off_and_gone_on(place: Path, number: int, *, in_flight: bool) -> list[Asked]:
    """Return what the service was asked by a run that dies and by the one that goes on."""
    child: list[Any] = []

    def answering(asked: Asked, n: int) -> Answer:
        if in_flight and n == number:
            os.kill(child[0].pid, signal.SIGKILL)
        return turn(asked)

    assert fork is not None
    async with stand_in(answering) as service:
        at = 0 if in_flight else number
        child.append(fork.Process(target=live, args=(service.base_url, place, at), daemon=True))
        child[0].start()
        await asyncio.to_thread(child[0].join, 60)
        assert child[0].exitcode == -signal.SIGKILL
        before, recorded = len(service.asked), kinds(last_run(place)).count("model.replied")
        name = last_run(place).name
        outcome = await resume(Workspace(place), name, lambda: settings(service.base_url))
        assert outcome.status == "complete"
        assert len(service.asked) - before == 4 - recorded
        return service.asked


@pytest.mark.skipif(fork is None, reason="needs fork")
class TestALiveRunThatWasCutOff:
    # after an answer · the file was written · the script ran · its answer · the last word
    @pytest.mark.parametrize("number", [3, 10, 17, 18, 20])
    def test_a_recorded_turn_is_never_asked_again(self, tmp_path: Path, number: int) -> None:
        place = tmp_path / "w"
        asked = asyncio.run(cut_off_and_gone_on(place, number, in_flight=False))
        assert len(asked) == 4
        after = kinds(last_run(place))
        assert (after.count("file.written"), after.count("script.ran")) == (1, 1)
        assert record(last_run(place))["outcome"]["status"] == "complete"
        assert record(last_run(place))["origin"]["mode"] == "live"

    def test_the_one_in_flight_is_asked_again_and_the_record_says_so(self, tmp_path: Path) -> None:
        place = tmp_path / "w"
        asked = asyncio.run(cut_off_and_gone_on(place, 1, in_flight=True))
        assert len(asked) == 5
        after = kinds(last_run(place))
        assert (after.count("model.asked"), after.count("model.replied")) == (5, 4)


class TestTwoProcesses:
    def test_the_second_is_told_who_works_there_and_changes_nothing(self, tmp_path: Path) -> None:
        place = tmp_path / "w"
        argv = [sys.executable, str(ROOT / "app.py"), "--workspace", str(place), "--json"]
        with subprocess.Popen([*argv, "--fixture", "slow"], stdout=subprocess.PIPE) as first:
            while not (place / "runs").is_dir() or not any((place / "runs").glob("*/events.jsonl")):
                assert first.poll() is None
                subprocess.run(["sleep", "0.05"], check=True)
            second = subprocess.run(argv, capture_output=True, text=True, check=False)
            first.send_signal(signal.SIGKILL)
        assert second.returncode == 1
        told = json.loads(second.stdout.splitlines()[-1])
        assert told["reason"] == "workspace_locked"
        assert str(first.pid) in told["cause"]
        assert len([path for path in (place / "runs").iterdir() if path.is_dir()]) == 1
        assert run("success", place).ok  # the lock died with its process
