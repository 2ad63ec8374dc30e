"""One process that works on batches, until it is told to stop or finds itself held for dead."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TextIO

from agent_runtime import Failure
from reread.batch import leases
from reread.batch.database import Database
from reread.batch.engine import Engine
from reread.batch.item import Bench
from reread.values import Code

PATIENCE = 10.0
"""Seconds that runs get to stop."""


class Worker:
    """A worker: a lease, an engine, and a heartbeat between them."""

    def __init__(
        self,
        database: Database,
        *,
        samples: Path,
        scratch: Path | None = None,
        store: str = "",
        heartbeat: float = leases.HEARTBEAT,
    ) -> None:
        self.database = database
        self.lease = leases.Lease(database, heartbeat)
        self.lost = False
        self.stop = threading.Event()
        base = scratch or Path(tempfile.gettempdir())
        base.mkdir(parents=True, exist_ok=True)
        self._scratch = Path(tempfile.mkdtemp(prefix="reread-worker-", dir=base))
        self.bench = Bench(database, self.lease.id, self._scratch, samples, store)

    def work(self) -> None:
        """Work until told to stop.

        Raises:
            Failure: worker_lost, when the others hold this worker for dead; database_failed.
        """
        self.database.prepare()
        self.lease.take()
        self.bench.alive.set()
        engine = Engine(self.bench)
        engine.launch()
        beating = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        beating.start()
        tick = min(self.lease.heartbeat / 4, 0.5)
        try:
            while not self.stop.is_set():
                self._look_around(engine)
                self.stop.wait(tick)
        finally:
            self.bench.alive.clear()
            engine.stop()
            if not self.lost:
                self.lease.leave()
            shutil.rmtree(self._scratch, ignore_errors=True)
        if self.lost:
            raise Failure(
                Code.worker_lost,
                f"The worker {self.lease.id} has missed its heartbeats; others have its work.",
                "Nothing is lost. See why it was held up, then start it again.",
            )

    def _beat(self) -> None:
        while not self.stop.is_set():
            if not self.lease.beat():
                self.lost = True
                self.bench.alive.clear()
                self.stop.set()
                return
            self.stop.wait(self.lease.heartbeat / 2)

    def _look_around(self, engine: Engine) -> None:
        """Learn what was cancelled or is down, and take over from the dead."""
        rows = self.database.rows("SELECT id FROM reread_batches WHERE state <> 'running'")
        self.bench.stopping = {str(row["id"]) for row in rows}
        rows = self.database.rows("SELECT batch FROM reread_breakers")
        self.bench.down = {str(row["batch"]) for row in rows}
        leases.expire(self.database)
        leases.recover(self.database, engine.pending, engine.give_back)


def serve(worker: Worker, *, attached: TextIO | None = None) -> None:
    """Work until a signal comes, or until whoever started this worker is gone.

    Raises:
        Failure: what `Worker.work` raises.
    """

    def stop(*_: object) -> None:
        worker.stop.set()
        threading.Thread(target=_give_up, daemon=True).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    if attached is not None:
        threading.Thread(target=_watch, args=(attached, stop), daemon=True).start()
    worker.work()


def _watch(stream: TextIO, stop: object) -> None:
    """Wait for the end of the pipe that the starting process holds open."""
    while stream.read(1):
        pass
    if callable(stop):
        stop()


def _give_up() -> None:
    """End the process when its runs do not stop; the others take over as after any death."""
    time.sleep(PATIENCE)
    sys.stderr.flush()
    os._exit(1)
