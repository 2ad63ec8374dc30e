"""Real runs for the tests of records: whole ones, and ones that kill themselves at an event."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reread import fixtures, tasks
from reread.files import ConfinedFolder
from reread.job import Job, perform
from reread.records import EVENTS, RECORD, Listener
from reread.values import Outcome
from reread.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample-data"

fork = multiprocessing.get_context("fork") if hasattr(os, "fork") else None


def job(fixture: str, workspace: Path, **more: Any) -> Job:
    loaded = fixtures.load(fixture, SAMPLES)
    task = tasks.read_task(loaded.task)
    return Job(task=task, workspace=workspace, samples=ROOT, fixture=loaded, **more)


def run(fixture: str, workspace: Path, *listeners: Listener, **more: Any) -> Outcome:
    return asyncio.run(perform(job(fixture, workspace, **more), listeners=listeners))


class KillAt:
    """A listener that kills its own process, as nothing can catch it, after the n-th event."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "script.output" or kind.startswith("gate.check"):
            return  # shown only; no line of the record
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def killed(fixture: str, workspace: Path, number: int, **more: Any) -> bool:
    """Run in a child that dies at an event; False where it ended before that."""
    assert fork is not None
    child = fork.Process(
        target=run, args=(fixture, workspace, KillAt(number)), kwargs=more, daemon=True
    )
    child.start()
    child.join(60)
    return child.exitcode == -signal.SIGKILL


def last_run(workspace: Path) -> Path:
    return max(path for path in (workspace / "runs").iterdir() if path.is_dir())


def events(run: Path) -> list[dict[str, Any]]:
    lines = (run / EVENTS).read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in lines]


def kinds(run: Path) -> list[str]:
    return [event["kind"] for event in events(run)]


def record(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / RECORD).read_text("utf-8")))


def opened(workspace: Path) -> tuple[Workspace, ConfinedFolder]:
    made = Workspace(workspace)
    return made, made.folder.subfolder(f"runs/{last_run(workspace).name}")


def files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
