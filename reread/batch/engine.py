"""The durable engine underneath: DBOS, with one workflow for each item.

The workflow is three generic steps that never change their order, so prompts, skills and tasks may.
Steps return digests, never a history. Values are JSON: the engine's default would unpickle whatever
stands in the database, so reading a pickle is refused altogether.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from dbos import DBOS, DBOSClient, DBOSConfig
from dbos._serialization import DBOSDefaultSerializer, DBOSPortableJSON

from reread.batch import item
from reread.batch.database import Database
from reread.batch.item import Bench

APPLICATION = "reread"
VERSION = "reread-batch-1"
"""Fixed: the engine leaves alone what another version has begun. Raise it only with the steps."""
POLL = 0.1
RECOVERIES = 10_000
"""Beyond what `item.ATTEMPTS` allows, so that the item says itself why it was given up."""


def refuse_pickles() -> None:
    """Keep the engine from running code that stands in a row of the database."""

    def refuse(_: str) -> NoReturn:
        raise ValueError("a pickled value in the database is not read")

    DBOSDefaultSerializer.deserialize = refuse  # type: ignore[method-assign, assignment]


class Engine:
    """The engine inside of a worker."""

    def __init__(self, bench: Bench) -> None:
        """Say which steps an item has; nothing runs yet."""
        refuse_pickles()
        logging.getLogger("dbos").setLevel(logging.ERROR)
        self._bench = bench
        config: DBOSConfig = {
            "name": APPLICATION,
            "system_database_url": bench.database.url,
            "executor_id": bench.worker,
            "application_version": VERSION,
            "serializer": DBOSPortableJSON,
            "log_level": "ERROR",
            "run_migrations": False,
        }
        if bench.database.sqlite:
            config["system_database_engine"] = bench.database.engine
        DBOS(config=config)
        _register(bench)

    def launch(self) -> None:
        """Begin to take items."""
        DBOS.launch()

    def stop(self) -> None:
        """Take no more items."""
        DBOS.destroy(workflow_completion_timeout_sec=0)

    def pending(self) -> set[str]:
        """Return the workers that have unfinished items."""
        found = DBOS.list_workflows(status="PENDING", load_input=False, load_output=False)
        return {str(status.executor_id) for status in found}

    def give_back(self, worker: str) -> int:
        """Give the unfinished items of a dead worker back to their queues."""
        return len(DBOS._recover_pending_workflows([worker]))


def _register(bench: Bench) -> None:
    @DBOS.step(name="prepare")
    def prepare(batch: str, digest: str) -> str:
        return item.prepare(bench, batch, digest)

    @DBOS.step(name="run")
    def run(batch: str, number: int, digest: str) -> dict[str, Any]:
        return item.run(bench, batch, number, digest)

    @DBOS.step(name="collect")
    def collect(batch: str, number: int, ran: dict[str, Any]) -> str:
        return item.collect(bench, batch, number, ran)

    @DBOS.workflow(name="item", max_recovery_attempts=RECOVERIES)
    def whole(batch: str, number: int, digest: str) -> str:
        ran = run(batch, number, prepare(batch, digest))
        return collect(batch, number, ran)


class Queue:
    """The engine from outside: what starts, watches and cancels items."""

    def __init__(self, database: Database) -> None:
        refuse_pickles()
        logging.getLogger("dbos").setLevel(logging.ERROR)
        self._database = database
        self._client = DBOSClient(
            system_database_engine=database.engine,
            serializer=DBOSPortableJSON,
            application_name=APPLICATION,
        )

    def open(self, batch: str, at_once: int, at_once_all: int | None) -> None:
        """Make the queue of a batch, or set its limits anew."""
        self._client.register_queue(
            batch,
            worker_concurrency=min(at_once, at_once_all or at_once),
            global_concurrency=at_once_all,
            polling_interval_sec=POLL,
            on_conflict="always_update",
            application_name=APPLICATION,
        )

    def add(self, batch: str, items: Iterable[Mapping[str, Any]]) -> None:
        """Queue items, with their rows, in one transaction."""

        def act() -> None:
            with self._database.writing() as connection:
                for row in items:
                    name = f"{batch}.{row['number']}.{row['queued']}"
                    self._client.enqueue_in_transaction(
                        connection,
                        {
                            "workflow_name": "item",
                            "queue_name": batch,
                            "workflow_id": name,
                            "app_version": VERSION,
                        },
                        batch,
                        row["number"],
                        row["digest"],
                    )

        self._database.patiently(act)

    def unfinished(self, batch: str) -> dict[int, str]:
        """Return item number → state, for what the engine has queued or begun."""
        found = self._client.list_workflows(
            queue_name=batch, status=["ENQUEUED", "PENDING"], load_input=False, load_output=False
        )
        return {int(status.workflow_id.split(".")[1]): str(status.status) for status in found}

    def cancel(self, batch: str) -> None:
        """Take what has not begun out of the queue."""
        found = self._client.list_workflows(
            queue_name=batch, status="ENQUEUED", load_input=False, load_output=False
        )
        names = [status.workflow_id for status in found]
        for at in range(0, len(names), 500):
            self._client.cancel_workflows(names[at : at + 500])

    def close(self, batch: str) -> None:
        """Remove the queue of a batch that has ended."""
        self._client.delete_queue(batch)

    def pending(self) -> set[str]:
        """Return the workers that have unfinished items."""
        found = self._client.list_workflows(status="PENDING", load_input=False, load_output=False)
        return {str(status.executor_id) for status in found}

    def destroy(self) -> None:
        """Close the connections."""
        self._client.destroy()
