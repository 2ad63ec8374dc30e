"""Starts a batch, keeps its workers alive, and gathers its results.

It does no item itself and may die at any moment: everything it knows is in the plan, the database,
the store and on disk, and a second start goes on from there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from agent_runtime import Failure
from reread.batch import gather, leases, plan
from reread.batch.database import Database
from reread.batch.engine import Queue
from reread.batch.store import Store, open_store
from reread.values import Code

TICK = 0.2
CHUNK = 500
QUICK_DEATHS = 5
Ended = Callable[[plan.Item, Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Start:
    """How a batch is to be worked on.

    Attributes:
        workers: processes to start here; 0 leaves the work to others.
        at_once: items at once in each worker.
        at_once_all: items at once over all workers.
        limits: what `service.allowed_from` reads.
        samples: where the fixtures of the workers come from.
        program: how this program is called, for the workers.
    """

    workers: int = 1
    at_once: int = 4
    at_once_all: int | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    heartbeat: float = leases.HEARTBEAT
    store: str = ""
    retry: bool = False
    samples: Path = Path()
    program: tuple[str, ...] = ()


class Batch:
    """One batch, seen from the place that started it."""

    def __init__(self, folder: Path, database: Database, start: Start) -> None:
        self.folder = folder
        self.id = folder.name
        self.database = database
        self.start = start
        self.plan = plan.load(folder)
        self.store: Store = open_store(start.store or str(folder.parent / "store"))
        self.results: dict[int, dict[str, Any]] = {}
        self._items = {item.number: item for item in self.plan.items}
        self._seen = 0.0
        database.prepare()
        self.queue = Queue(database)

    def enter(self) -> int:
        """Enter the batch and queue what is not done; return how many are done already.

        Raises:
            Failure: store_failed, database_failed.
        """
        digests = {item.number: self._digest(item) for item in self.plan.items}
        self._enter_batch()
        self._enter_items(digests)
        self.queue.open(self.id, self.start.at_once, self.start.at_once_all)
        rows = {int(row["number"]): row for row in self._rows()}
        done = {number for number, row in rows.items() if self._done(number, row)}
        begun = self.queue.unfinished(self.id)
        todo = sorted(rows.keys() - done - begun.keys())
        for at in range(0, len(todo), CHUNK):
            self._queue([rows[number] for number in todo[at : at + CHUNK]])
        return len(done)

    def watch(self, ended: Ended, tick: Callable[[], None]) -> str:
        """Gather results until every item has ended; return why it stopped before, or ''.

        Raises:
            Failure: worker_lost, when workers started here cannot live.
        """
        children = Children(self)
        try:
            while True:
                for number, result in self._news():
                    ended(self._items[number], result)
                if len(self.results) == len(self._items):
                    self._close()
                    return ""
                children.look_after()
                state = str(self._row()["state"])
                if state != "running" and not self._running():
                    return state
                tick()
                time.sleep(TICK)
        finally:
            children.stop()

    def write(self) -> list[dict[str, Any]]:
        """Write results.jsonl and return its lines."""
        lines = [gather.line(item, self.results.get(item.number)) for item in self.plan.items]
        gather.write_results(self.folder, lines)
        return lines

    def close(self) -> None:
        """Release what is open."""
        self.queue.destroy()
        self.database.close()

    def _digest(self, item: plan.Item) -> str:
        data = json.dumps(plan.item_json(item), ensure_ascii=False, sort_keys=True)
        return self.store.put_blob(data.encode("utf-8", "surrogatepass"))

    def _enter_batch(self) -> None:
        head = {"options": dict(self.plan.options), "skills": dict(self.plan.skills)}
        values = {
            "id": self.id,
            "plan": self.store.put_blob(json.dumps(head, sort_keys=True).encode()),
            "store": self.store.url,
            "limits": json.dumps(dict(self.start.limits)),
        }
        self.database.run(
            "INSERT INTO reread_batches (id, state, plan, store, limits, created) "
            f"VALUES (:id, 'running', :plan, :store, :limits, {self.database.clock}) "
            "ON CONFLICT (id) DO UPDATE SET state = 'running', store = :store, limits = :limits",
            **values,
        )
        self.database.run("DELETE FROM reread_breakers WHERE batch = :id", id=self.id)

    def _enter_items(self, digests: Mapping[int, str]) -> None:
        values = [
            {"batch": self.id, "number": number, "digest": digest}
            for number, digest in digests.items()
        ]

        def act() -> None:
            with self.database.writing() as connection:
                connection.execute(
                    sa.text(
                        "INSERT INTO reread_items (batch, number, state, digest, generation, "
                        "queued, fence, attempts, changed) VALUES (:batch, :number, 'planned', "
                        ":digest, 1, 0, 0, 0, 0) ON CONFLICT (batch, number) DO NOTHING"
                    ),
                    values,
                )

        self.database.patiently(act)

    def _done(self, number: int, row: Mapping[str, Any]) -> bool:
        """Say whether an item is done; one whose evidence has changed is to be done anew."""
        if row["state"] != "ended":
            return False
        place = self.folder / self._items[number].folder
        try:
            result = gather.result_of(self.store, str(row["result"]))
            if not place.exists() and result["files"]:
                gather.lay_out(self.store, result, place)
        except Failure:
            return self._again(number)  # the store has lost it
        complete = result["outcome"]["status"] == "complete"
        if gather.holds(place, result) and (complete or not self.start.retry):
            self.results[number] = result
            return True
        return self._again(number)

    def _again(self, number: int) -> bool:
        self.database.run(
            "UPDATE reread_items SET state = 'planned', result = NULL, attempts = 0, "
            "generation = generation + 1 WHERE batch = :batch AND number = :number",
            batch=self.id,
            number=number,
        )
        return False

    def _queue(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Queue items under a new name each, so that the engine takes them for new."""
        raised = [{**row, "queued": int(row["queued"]) + 1} for row in rows]

        def act() -> None:
            with self.database.writing() as connection:
                connection.execute(
                    sa.text(
                        "UPDATE reread_items SET state = 'queued', queued = :queued "
                        "WHERE batch = :batch AND number = :number"
                    ),
                    [
                        {"batch": self.id, "number": row["number"], "queued": row["queued"]}
                        for row in raised
                    ],
                )

        self.database.patiently(act)
        self.queue.add(self.id, raised)

    def _news(self) -> list[tuple[int, dict[str, Any]]]:
        """Lay out what has ended since, and return it."""
        rows = self.database.rows(
            "SELECT number, result, changed FROM reread_items WHERE batch = :batch "
            "AND state = 'ended' AND changed > :seen ORDER BY changed",
            batch=self.id,
            seen=self._seen - 2.0,  # a transaction may end later than its clock says
        )
        news = []
        for row in rows:
            number = int(row["number"])
            self._seen = max(self._seen, float(row["changed"]))
            if number in self.results:
                continue
            result = gather.result_of(self.store, str(row["result"]))
            if result["files"]:
                gather.lay_out(self.store, result, self.folder / self._items[number].folder)
            self.results[number] = result
            news.append((number, result))
        return news

    def _running(self) -> int:
        return len(
            self.database.rows(
                "SELECT number FROM reread_items WHERE batch = :batch AND state = 'running'",
                batch=self.id,
            )
        )

    def _close(self) -> None:
        """Say that the batch has ended; its queue would be asked for nothing for ever."""
        self.database.run(
            "UPDATE reread_batches SET state = 'ended' WHERE id = :id AND state = 'running'",
            id=self.id,
        )
        self.queue.close(self.id)

    def _row(self) -> Mapping[str, Any]:
        return self.database.rows(
            "SELECT state, tokens, usd FROM reread_batches WHERE id = :id", id=self.id
        )[0]

    def _rows(self) -> list[Mapping[str, Any]]:
        return self.database.rows(
            "SELECT number, state, digest, queued, result FROM reread_items WHERE batch = :batch",
            batch=self.id,
        )


class Children:
    """The workers that run on this machine for this batch; one that dies is started again."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._processes: list[subprocess.Popen[bytes]] = []
        self._born: list[float] = []
        self._deaths = 0
        self._log = batch.folder / "workers.log"

    def look_after(self) -> None:
        """Start those that are missing, and those again that died.

        Raises:
            Failure: worker_lost, when they die as soon as they start.
        """
        while len(self._processes) < self._batch.start.workers:
            self._processes.append(self._spawn())
            self._born.append(time.monotonic())
        for at, process in enumerate(self._processes):
            if process.poll() is None:
                continue
            if (process.returncode or 0) > 0:  # a signal came from outside, and says nothing
                quick = time.monotonic() - self._born[at] < 3.0
                self._deaths = self._deaths + 1 if quick else 0
            if self._deaths > QUICK_DEATHS:
                raise Failure(
                    Code.worker_lost,
                    f"Workers end as soon as they start (exit {process.returncode}): "
                    f"{self._last_words()}",
                    f"See {self._log}, then: python app.py batch resume {self._batch.id}",
                )
            self._processes[at] = self._spawn()
            self._born[at] = time.monotonic()

    def stop(self) -> None:
        """End the workers; what they have not finished is taken up at the next start."""
        for process in self._processes:
            if process.stdin:
                process.stdin.close()
        for process in self._processes:
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _spawn(self) -> subprocess.Popen[bytes]:
        start = self._batch.start
        command = [
            *(start.program or (sys.executable, "-m", "app")),
            "worker",
            "--attached",
            "--heartbeat",
            str(start.heartbeat),
            "--samples",
            str(start.samples),
        ]
        if start.store:
            command += ["--store", self._batch.store.url]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                # Not as a flag: everybody on the machine sees those, and the URL has a password.
                env={**os.environ, "REREAD_DATABASE_URL": self._batch.database.url},
            )

    def _last_words(self) -> str:
        lines = self._log.read_text("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else "no word"
