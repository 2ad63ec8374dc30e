"""One item of a batch on one worker: prepare, run, collect.

Each may happen more than once, so each leads to the same end: what was recorded is restored and
gone on with, and only the attempt with the highest fence may say how the item ended. A worker that
was held up and overtaken changes nothing any more.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from agent_runtime import Failure, Model
from reread import fixtures, models, summary, tasks
from reread.batch import service
from reread.batch.database import Database
from reread.batch.journal import Journal, restore
from reread.batch.plan import Item
from reread.batch.store import Store, open_store
from reread.files import ConfinedFolder
from reread.job import Job, go_on, perform
from reread.values import Code, Outcome, Permissions, Task

ATTEMPTS = 25
"""After so many workers have died over an item, it is the item."""
RESULT_FOLDERS = ("runs", "outputs", "drafts", "skills", "inputs")


@dataclass(frozen=True, slots=True)
class BatchInfo:
    """What a worker knows of a batch: what was fixed at its start."""

    id: str
    store: Store
    options: Mapping[str, Any]
    skills: Mapping[str, str]
    allowed: service.Allowed


@dataclass(slots=True)
class Bench:
    """What a worker works with.

    Attributes:
        scratch: a folder of this worker alone.
        store: used instead of the one that a batch names; '' for that one.
        stopping: batches that are not to be gone on with, kept up to date by the heartbeat.
    """

    database: Database
    worker: str
    scratch: Path
    samples: Path
    store: str = ""
    alive: threading.Event = field(default_factory=threading.Event)
    stopping: set[str] = field(default_factory=set)
    down: set[str] = field(default_factory=set)
    _known: dict[str, BatchInfo] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def batch(self, id: str) -> BatchInfo:
        """Return what is known of a batch, read once."""
        with self._lock:
            if id not in self._known:
                self._known[id] = self._read(id)
            return self._known[id]

    def _read(self, id: str) -> BatchInfo:
        row = self.database.rows(
            "SELECT plan, store, limits FROM reread_batches WHERE id = :id", id=id
        )[0]
        store = open_store(self.store or str(row["store"]))
        head = json.loads(store.get_blob(str(row["plan"])))
        allowed = service.allowed_from(json.loads(str(row["limits"])))
        return BatchInfo(id, store, head["options"], head["skills"], allowed)


def prepare(bench: Bench, batch: str, digest: str) -> str:
    """See that the item is in the store before anything is spent on it, and return its digest."""
    if not bench.batch(batch).store.has_blob(digest):
        raise Failure(
            Code.store_failed,
            f"The item {digest[:12]}… of the batch '{batch}' is not in the store.",
            "Give each worker the store of the batch: --store URL.",
        )
    return digest


def run(bench: Bench, batch: str, number: int, digest: str) -> dict[str, Any]:
    """Do an item and return the digest of its result, with the fence that it was done under."""
    info = bench.batch(batch)
    item = Item(**json.loads(info.store.get_blob(digest)))
    while batch not in bench.stopping:
        fence, generation, attempts = _claim(bench, batch, number)
        if attempts > ATTEMPTS:
            return _kept(info, fence, _never(attempts))
        attempt = _Attempt(bench, info, item, fence, generation)
        try:
            result, down = attempt.go()
        finally:
            shutil.rmtree(attempt.scratch, ignore_errors=True)
        if not bench.alive.is_set():
            _leave_to_others()
        if batch in bench.stopping and result["outcome"]["reason"] == Code.interrupted:
            break
        if not down:
            return _kept(info, fence, result)
        _wait_for_service(bench, info)
    return {"fence": -1, "result": ""}


def collect(bench: Bench, batch: str, number: int, ran: Mapping[str, Any]) -> str:
    """Say how an item ended, if this attempt may; return `ended`, `released` or `overtaken`."""
    if ran["fence"] < 0:
        bench.database.run(
            f"UPDATE reread_items SET state = 'planned', changed = {bench.database.clock} "
            "WHERE batch = :batch AND number = :number AND worker = :worker "
            "AND state = 'running'",
            batch=batch,
            number=number,
            worker=bench.worker,
        )
        return "released"
    changed = bench.database.run(
        "UPDATE reread_items SET state = 'ended', result = :result, "
        f"changed = {bench.database.clock} WHERE batch = :batch AND number = :number "
        "AND fence = :fence AND state IN ('running', 'ended')",
        batch=batch,
        number=number,
        fence=ran["fence"],
        result=ran["result"],
    )
    return "ended" if changed else "overtaken"


def _claim(bench: Bench, batch: str, number: int) -> tuple[int, int, int]:
    """Take the next fence of an item; whoever had an earlier one is overtaken from here on."""

    def act() -> tuple[int, int, int]:
        with bench.database.writing() as connection:
            row = connection.execute(
                sa.text(
                    "UPDATE reread_items SET fence = fence + 1, attempts = attempts + 1, "
                    f"state = 'running', worker = :worker, changed = {bench.database.clock} "
                    "WHERE batch = :batch AND number = :number "
                    "RETURNING fence, generation, attempts"
                ),
                {"batch": batch, "number": number, "worker": bench.worker},
            ).one()
            return int(row.fence), int(row.generation), int(row.attempts)

    return bench.database.patiently(act)


def _wait_for_service(bench: Bench, info: BatchInfo) -> None:
    """Wait until the service may be asked again; stop the batch when it stays away for too long."""
    while bench.alive.is_set() and info.id not in bench.stopping:
        found = service.breaker(bench.database, info.id)
        if found is None:
            return
        if found.down > info.allowed.outage:
            _stop(bench.database, info.id, found.why)
            bench.stopping.add(info.id)
            return
        if found.wait <= 0 and service.probe(bench.database, info.id):
            bench.down.discard(info.id)
            return
        time.sleep(min(max(found.wait, 0.1), 0.5))


def _leave_to_others() -> None:
    """Wait for the end of this process: the step stays unfinished, so that another goes on."""
    threading.Event().wait()


def _stop(database: Database, batch: str, why: str) -> None:
    database.run(
        "UPDATE reread_batches SET state = :state WHERE id = :id AND state = 'running'",
        id=batch,
        state=f"stopped: {why[:500]}",
    )


def _kept(info: BatchInfo, fence: int, result: Mapping[str, Any]) -> dict[str, Any]:
    data = json.dumps(result, ensure_ascii=False, sort_keys=True, default=str)
    return {"fence": fence, "result": info.store.put_blob(data.encode("utf-8", "backslashreplace"))}


def _never(attempts: int) -> dict[str, Any]:
    failure = Failure(
        Code.worker_lost,
        f"{attempts - 1} workers have died while they did this item.",
        "See what it does to the machine, such as the memory that it needs; then start it alone.",
    )
    return {"outcome": _error(failure), "files": {}}


def _error(failure: Failure) -> dict[str, Any]:
    return {"status": "error", "reason": str(failure.code), "run_id": "", **failure.as_json()}


class _Attempt:
    """One try at an item under one fence."""

    def __init__(
        self, bench: Bench, info: BatchInfo, item: Item, fence: int, generation: int
    ) -> None:
        self.bench, self.info, self.item = bench, info, item
        self.scratch = bench.scratch / f"{info.id}-{item.number}-{fence}"
        self.run_id = f"{info.id}-{item.number:05d}-{generation}"
        self.entries = f"{info.id}/{item.number:05d}/{generation:04d}"
        self.place = f"{self.entries}/{fence:06d}-{bench.worker}"
        self.governed: service.Governed | None = None

    def go(self) -> tuple[dict[str, Any], bool]:
        """Return the result, and whether the service was down, so that there is none yet."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        try:
            self._fill()
            outcome = asyncio.run(self._run())
        except Failure as failure:
            return {"outcome": _error(failure), "files": {}}, False
        except Exception as error:  # a bug of ours must end this item, not the worker
            cause = f"{type(error).__name__}: {error}"[:500]
            found = Failure(Code.internal_error, cause, "Report it with the task.")
            return {"outcome": _error(found), "files": {}}, False
        if self.governed is not None and self.governed.down:
            return {"outcome": summary.outcome(outcome), "files": {}}, True
        return {"outcome": summary.outcome(outcome), "files": self._keep()}, False

    def _fill(self) -> None:
        """Lay out the workspace: inputs, skills, and the record as far as it has come."""
        files = {f"skills/{path}": sha256 for path, sha256 in self.info.skills.items()}
        for path, sha256 in {**files, **self.item.inputs}.items():
            target = self.scratch / path
            target.parent.mkdir(parents=True, exist_ok=True)
            self.info.store.fetch(sha256, target)

    async def _run(self) -> Outcome:
        folder = self.scratch / "runs" / self.run_id
        restored = restore(self.info.store, self.entries, folder)
        journal = Journal(self.info.store, self.place, folder)
        job = self._job()
        doing = asyncio.ensure_future(
            go_on(job, listeners=(journal,)) if restored else perform(job, listeners=(journal,))
        )
        while True:
            done, _ = await asyncio.wait({doing}, timeout=0.25)
            if done:
                return await doing
            if self.info.id in self.bench.stopping or not self.bench.alive.is_set():
                return await self._cancel(doing)

    async def _cancel(self, doing: asyncio.Future[Outcome]) -> Outcome:
        doing.cancel()
        try:
            return await doing
        except asyncio.CancelledError:
            return Outcome("incomplete", self.run_id, reason=Code.interrupted)

    def _job(self) -> Job:
        played = self.item.fixture
        return Job(
            task=self._task(),
            workspace=self.scratch,
            fixture=fixtures.load(played, self.bench.samples) if played else None,
            settings=None if played else models.settings_from_environment(),
            api=str(self.info.options.get("api", "chat")),
            run_id=self.run_id,
            govern=None if played else self._govern,
        )

    def _task(self) -> Task:
        task = tasks.from_record(self.item.task)
        options = self.info.options
        allowed = task.permissions
        permissions = Permissions(
            network=allowed.network,
            version_specifiers=allowed.version_specifiers,
            builds=allowed.builds,
            unsandboxed=bool(options.get("unsandboxed")),
            require_sandbox=str(options.get("require_sandbox", "")),
        )
        limit = self.info.allowed.usd
        limits = task.limits
        if limit is not None:
            # The item's own limit makes the model refuse to start without a price.
            limits = replace(limits, usd=min(limit, limits.usd or limit))
        return replace(task, permissions=permissions, limits=limits)

    def _govern(self, model: Model) -> Model:
        id = self.info.id
        found = service.breaker(self.bench.database, id)
        self.governed = service.Governed(
            model,
            service.Desk(self.bench.database, id, self.info.allowed),
            alive=self.bench.alive.is_set,
            is_open=lambda: id in self.bench.down,
            probing=found is not None,
        )
        return self.governed

    def _keep(self) -> dict[str, str]:
        """Put what the item left into the store and return path → digest."""
        kept = {}
        folder = ConfinedFolder(self.scratch)
        given = {f"skills/{path}" for path in self.info.skills}
        for name in RESULT_FOLDERS:
            if not (self.scratch / name).is_dir():
                continue
            for path, sha256 in folder.digests(name).items():
                if path in given or path == "runs/.lock":
                    continue
                if path not in self.item.inputs:
                    with folder.open(path) as stream:
                        self.info.store.put_stream(stream, sha256)
                kept[path] = sha256
        return kept
