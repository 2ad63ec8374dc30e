"""Starts batches and workers as processes, kills them, and reads what they left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from reread.files import ConfinedFolder
from reread.replay.audit import audit
from tests.batch.service import SERIAL, Service

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (sys.executable, str(ROOT / "app.py"))


@dataclass(slots=True)
class Place:
    """A folder with a list of tasks and a database to do them with."""

    root: Path
    database_url: str
    environment: Mapping[str, str] = field(default_factory=dict)
    heartbeat: float = 1.0
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def batches(self) -> Path:
        """Where batches lie."""
        return self.root / "batches"

    @property
    def batch(self) -> Path:
        """The folder of the one batch."""
        (found,) = (path.parent for path in self.batches.glob("*/plan.json"))
        return found

    def tasks(self, count: int) -> Path:
        """Write a list of tasks for the service of the tests."""
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / "workspace" / "skills").mkdir(parents=True, exist_ok=True)
        (self.root / "workspace" / "inputs").mkdir(exist_ok=True)
        path = self.root / "tasks.jsonl"
        path.write_text("".join(json.dumps(_line(n)) + "\n" for n in range(1, count + 1)))
        return path

    def start(self, *flags: str, live: bool = True) -> subprocess.Popen[str]:
        """Start `batch` on the list of tasks."""
        command = [*PROGRAM, "batch", str(self.root / "tasks.jsonl"), *self._flags(live), *flags]
        return self.popen(command)

    def worker(self, *flags: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        """Start a worker of its own."""
        command = [*PROGRAM, "worker", "--heartbeat", str(self.heartbeat), *flags]
        return self.popen(command, cwd=cwd)

    def action(self, name: str, *flags: str) -> subprocess.CompletedProcess[str]:
        """Call `batch status|resume|cancel` on the one batch."""
        command = [*PROGRAM, "batch", name, self.batch.name, "--batches", str(self.batches), *flags]
        return subprocess.run(
            command, env=self._env(), capture_output=True, text=True, timeout=90, check=False
        )

    def popen(self, command: Sequence[str], cwd: Path | None = None) -> subprocess.Popen[str]:
        """Start a process whose output is kept in a file."""
        with (self.root / "output.log").open("a") as log:
            process = subprocess.Popen(
                command, env=self._env(), stdout=log, stderr=log, text=True, cwd=cwd
            )
        self.processes.append(process)
        return process

    def end(self) -> None:
        """Kill whatever of this place is still running."""
        for process in self.processes:
            for child in children(process.pid):
                kill(child)
            kill(process.pid)
            process.wait(10)

    def results(self) -> list[dict[str, Any]]:
        """Return the lines of results.jsonl."""
        text = (self.batch / "results.jsonl").read_text("utf-8")
        return [json.loads(line) for line in text.splitlines()]

    @property
    def output(self) -> str:
        """What all processes have printed, for the message of a failed test."""
        logs = [self.root / "output.log", *self.batches.glob("*/workers.log")]
        return "\n".join(log.read_text("utf-8", "replace")[-4000:] for log in logs)

    def _flags(self, live: bool) -> list[str]:
        flags = ["--batches", str(self.batches), "--heartbeat", str(self.heartbeat)]
        if live:
            flags += ["--live", "--workspace", str(self.root / "workspace")]
        return flags

    def _env(self) -> dict[str, str]:
        return {**os.environ, "REREAD_DATABASE_URL": self.database_url, **self.environment}


def _line(number: int) -> dict[str, Any]:
    name = f"t{number:04d}"
    task = {
        "name": name,
        "text": f"Find the values of item={name} and leave outputs/result.json.",
        "script": "optional",
        "artifacts": [{"path": "outputs/result.json", "contract": {"required_keys": ["values"]}}],
    }
    return {"name": name, "task": task}


def children(pid: int) -> list[int]:
    """Return the workers that a process has started."""
    try:
        found = psutil.Process(pid).children()
        return [child.pid for child in found if "worker" in child.cmdline()]
    except psutil.Error:
        return []


def kill(pid: int) -> None:
    """kill -9, where the process is still there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def account(place: Place, count: int, service: Service) -> None:
    """Hold everything that a batch left against what it must be."""
    results = place.results()
    assert [line["item"] for line in results] == list(range(1, count + 1))
    assert {line["status"] for line in results} == {"complete"}, place.output
    for line in results:
        folder = place.batch / line["workspace"]
        run = folder / "runs" / line["run_id"]
        assert [path.name for path in (folder / "runs").iterdir()] == [line["run_id"]]
        assert audit(ConfinedFolder(folder), ConfinedFolder(run)).ok
        assert json.loads((folder / "outputs" / "result.json").read_bytes())["item"] == line["name"]
    twice = {turn: serials for turn, serials in recorded(place).items() if len(serials) != 1}
    assert twice == {}, f"recorded turns that were asked again: {twice}"
    assert len(recorded(place)) == 4 * count
    assert {turn for turn in service.asked} >= {(f"t{n:04d}", 4) for n in range(1, count + 1)}


def recorded(place: Place) -> dict[tuple[str, int], set[int]]:
    """Return (item, turn) → the serials of the answers that any attempt has recorded."""
    found: dict[tuple[str, int], set[int]] = defaultdict(set)
    entries = place.batches / "store" / "entries" / place.batch.name
    for attempt in sorted(path for path in entries.glob("*/*/*") if path.is_dir()):
        turn = 0
        for entry in sorted(attempt.iterdir()):
            if entry.name.startswith("."):
                continue
            for text in json.loads(entry.read_bytes())["events"].splitlines():
                event = json.loads(text)
                if event["kind"] == "model.replied":
                    turn += 1
                    serial = SERIAL.search(event["data"]["text"])
                    assert serial is not None
                    found[attempt.parent.parent.name, turn].add(int(serial[1]))
    return found
