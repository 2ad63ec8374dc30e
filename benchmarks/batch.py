"""What a batch costs over calling execute(): per no-op task, in throughput, and after a kill.

    python -m benchmarks.batch [--tasks N] [--postgresql]

SQLite is measured with its write-ahead log and `synchronous=NORMAL`, PostgreSQL with its defaults
(every commit is on disk). "No-op" is the durable part alone: queue, claim, three steps, fence,
result. Throughput is whole runs of a fixed conversation with four turns, gate and record included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent_runtime import Reply, ScriptedModel, scripted
from reread.approvals import Approvals
from reread.run import execute
from reread.session import open_session
from reread.skills import Skills
from reread.values import Expected, Task
from reread.workspace import Workspace

HELP = "overhead of a batch per no-op task, throughput against a plain loop, time to recover"
ROOT = Path(__file__).resolve().parent.parent
TURNS = 4


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--tasks", type=int, default=100, help="tasks of a measurement")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--at-once", type=int, default=16, help="items at once in each worker")
    parser.add_argument("--quick", action="store_true", help="eight tasks, on SQLite alone")
    parser.add_argument("--postgresql", action="store_true", help="also on a server of its own")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print one line of JSON for each result."""
    count = 8 if arguments.quick else arguments.tasks
    plain = _plain_loop(count)
    _say("plain loop over execute()", tasks=count, per_second=round(count / plain, 1))
    for name, database in _databases(arguments.postgresql and not arguments.quick):
        with database as new:
            _say(f"no-op, {name}", **_no_ops(new(), count))
            _say(
                f"batch, {name}",
                **_batch(new(), count, arguments.workers, arguments.at_once, plain),
            )
            _say(f"restart after kill -9, {name}", **_restart(new()))
    return 0


def _say(what: str, **values: Any) -> None:
    print(json.dumps({"what": what, **values}), flush=True)


def _databases(postgresql: bool) -> Iterator[tuple[str, Any]]:
    yield "sqlite", _sqlite()
    if postgresql:
        yield "postgresql", _postgresql()


@contextmanager
def _sqlite() -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as folder:
        yield lambda: f"sqlite:///{tempfile.mkdtemp(dir=folder)}/batches.sqlite"


@contextmanager
def _postgresql() -> Iterator[Any]:
    from tests.batch import postgres

    with postgres.cluster() as server:
        yield server.new_database


def turns(name: str) -> list[Reply]:
    """Return the turns of a task: a note twice, the file, the last word."""
    note = {"path": "drafts/note.md", "content": f"# Note\n\nWhat {name} has found so far.\n"}
    content = json.dumps({"item": name, "values": [3, 5, 8, 13]})
    result = {"path": "outputs/result.json", "content": content}
    return [
        scripted("", ("write_file", note), turn=1),
        scripted("", ("write_file", note), turn=2),
        scripted("", ("write_file", result), turn=3),
        scripted("It is done.", turn=4),
    ]


def task(name: str) -> Task:
    """Return a task that needs no script."""
    artifacts = (Expected("outputs/result.json", "json"),)
    return Task(f"Find the values of item={name}.", artifacts, name=name, script="optional")


def _plain_loop(count: int) -> float:
    """Return the seconds that a loop over execute() takes, a workspace for each task."""
    with tempfile.TemporaryDirectory() as folder:
        _one(Path(folder) / "warm")
        began = time.perf_counter()
        for number in range(count):
            _one(Path(folder) / str(number))
        return time.perf_counter() - began


def _one(folder: Path) -> None:
    workspace = Workspace(folder)
    session = open_session(
        task(folder.name), workspace, Skills(folder / "skills"), Approvals(), shipped=True
    )
    model = ScriptedModel([turns(folder.name)])
    outcome = asyncio.run(execute(model, session, rails=(model,)))
    if not outcome.ok:
        raise SystemExit(f"a task is {outcome.status}: {outcome.cause}")


def _no_ops(url: str, count: int) -> dict[str, Any]:
    """Queue items that are ended already as far as the run goes, and wait for the last."""
    code = NO_OPS.format(count=count)
    done = subprocess.run(
        [sys.executable, "-c", code, url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


NO_OPS = """
import json, os, sys, tempfile, threading, time
from pathlib import Path
import psutil
from reread.batch import item
from reread.batch.database import Database
from reread.batch.engine import Queue
from reread.batch.worker import Worker
count = {count}
item.prepare = lambda bench, batch, digest: digest
def nothing(bench, batch, number, digest):
    fence, _, _ = item._claim(bench, batch, number)
    return dict(fence=fence, result="0" * 64)
item.run = nothing
database = Database(sys.argv[1])
database.prepare()
database.run("INSERT INTO reread_batches (id, state, plan, store, limits, created) "
             "VALUES ('b', 'running', '', '', '{{}}', 0)")
rows = [dict(number=n, queued=1, digest="d") for n in range(1, count + 1)]
with database.writing() as connection:
    for row in rows:
        connection.exec_driver_sql(
            "INSERT INTO reread_items (batch, number, state, digest, generation, queued, fence, "
            "attempts, changed) VALUES ('b', %d, 'queued', 'd', 1, 1, 0, 0, 0)" % row["number"])
queue = Queue(database)
queue.open("b", 64, None)
began = time.perf_counter()
queue.add("b", rows)
queued = time.perf_counter() - began
worker = Worker(Database(sys.argv[1]), samples=Path("."))
threading.Thread(target=worker.work, daemon=True).start()
ended = lambda: database.rows("SELECT COUNT(*) AS n FROM reread_items WHERE state='ended'")[0]["n"]
while not ended():
    time.sleep(0.01)
began, first = time.perf_counter(), ended()
cpu = psutil.Process().cpu_times()
while ended() < count:
    time.sleep(0.05)
seconds = time.perf_counter() - began
used = psutil.Process().cpu_times()
cpu_ms = 1000 * (used.user + used.system - cpu.user - cpu.system)
print(json.dumps(dict(tasks=count, queue_ms=round(1000 * queued / count, 2),
    ms=round(1000 * seconds / (count - first), 1), cpu_ms=round(cpu_ms / (count - first), 1),
    memory_mb=round(psutil.Process().memory_info().rss / 1e6))), flush=True)
worker.stop.set()
os._exit(0)
"""


def _batch(url: str, count: int, workers: int, at_once: int, plain: float) -> dict[str, Any]:
    """Return the throughput of a whole batch, from its first result to its last."""
    folder = Path(tempfile.mkdtemp())
    try:
        flags = ["--batches", str(folder / "batches"), "--workers", str(workers)]
        flags += ["--at-once", str(at_once)]
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "app.py"), *_scripted(folder, count), *flags],
            env={**os.environ, "REREAD_DATABASE_URL": url},
            stdout=subprocess.PIPE,
            text=True,
        )
        lines = process.stdout or ()
        ends = [time.perf_counter() for line in lines if line.endswith(" complete\n")]
        if process.wait() != 0 or len(ends) != count:
            raise SystemExit("the batch is not complete")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    rate = (count - 1) / (ends[-1] - ends[0])
    return {
        "tasks": count,
        "workers": workers,
        "at_once": at_once,
        "first_result_s": round(ends[0] - began, 2),
        "per_second": round(rate, 1),
        "of_plain_loop": round(rate * plain / count, 2),
        "whole_s": round(time.perf_counter() - began, 1),
    }


def _scripted(folder: Path, count: int) -> list[str]:
    """Write a fixture with the turns of the plain loop, and a list that names it; return flags."""
    samples = folder / "samples"
    for name in ("fixtures", "inputs"):
        (samples / name).mkdir(parents=True)
    (folder / "workspace" / "skills").mkdir(parents=True)
    steps = [
        {
            "say": turn.text,
            "calls": [{"tool": c.name, "arguments": dict(c.arguments)} for c in turn.calls],
        }
        for turn in turns("all")
    ]
    fixture = {"about": "four turns", "task": "none", "expect": {}, "rounds": [steps]}
    (samples / "fixtures" / "four.json").write_text(json.dumps(fixture))
    value = {
        "text": "Find the values.",
        "script": "optional",
        "artifacts": [{"path": "outputs/result.json"}],
    }
    lines = [json.dumps({"name": f"t{n}", "task": value}) + "\n" for n in range(count)]
    (folder / "tasks.jsonl").write_text("".join(lines))
    flags = ["batch", str(folder / "tasks.jsonl"), "--fixture", "four"]
    return [*flags, "--samples", str(samples), "--workspace", str(folder / "workspace")]


def _restart(url: str) -> dict[str, Any]:
    """Kill everything in the middle of a run and start it again."""
    from tests.batch.program import Place, children, kill
    from tests.batch.service import serving

    folder = Path(tempfile.mkdtemp())
    try:
        with serving(delay=0.5) as service:
            place = Place(folder, url, service.environment, heartbeat=1.0)
            place.tasks(2)
            process = place.start()
            _wait(lambda: service.asked.total() >= 3)
            workers = children(process.pid)
            kill(process.pid)
            for pid in workers:
                kill(pid)
            process.wait()
            asked, began = service.asked.total(), time.perf_counter()
            again = place.start()
            _wait(lambda: service.asked.total() > asked)
            restarted = time.perf_counter() - began
            again.wait()
            place.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {"restart_to_resumed_turn_s": round(restarted, 2)}


def _wait(happens: Any) -> None:
    until = time.perf_counter() + 60
    while not happens():
        if time.perf_counter() > until:
            raise SystemExit("it did not happen within a minute")
        time.sleep(0.01)


def main() -> int:
    """Measure from the command line."""
    parser = argparse.ArgumentParser(description=HELP)
    configure(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    raise SystemExit(main())
