"""What the engine does not do by itself, or does by default in a way that would hurt."""

from __future__ import annotations

import base64
import json
import pickle
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_runtime import Failure, Usage
from reread.batch import item, leases, service
from reread.batch.database import Database
from reread.batch.engine import POLL, VERSION, Queue, refuse_pickles
from reread.batch.item import Bench
from tests.batch.program import ROOT, Place
from tests.batch.service import Service, serving


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    made = Database(database_url)
    made.prepare()
    yield made
    made.close()


def entered(database: Database, *, items: int = 1) -> Queue:
    """Enter a batch `b1` with items that nobody works on."""
    database.run(
        "INSERT INTO reread_batches (id, state, plan, store, limits, created) "
        "VALUES ('b1', 'running', '', '', '{}', 0)"
    )
    for number in range(1, items + 1):
        database.run(
            "INSERT INTO reread_items (batch, number, state, digest, generation, queued, fence, "
            "attempts, changed) VALUES ('b1', :number, 'queued', '', 1, 1, 0, 0, 0)",
            number=number,
        )
    queue = Queue(database)
    queue.open("b1", 1, None)
    queue.add("b1", [{"number": n, "queued": 1, "digest": ""} for n in range(1, items + 1)])
    return queue


def bench(database: Database, worker: str, tmp_path: Path) -> Bench:
    return Bench(database, worker, tmp_path, tmp_path)


class TestTakingOver:
    def test_a_worker_that_missed_two_heartbeats_is_dead_and_cannot_come_back(
        self, database: Database
    ) -> None:
        lease = leases.Lease(database, heartbeat=0.2)
        lease.machine = "another machine"
        lease.take()
        assert lease.beat()
        leases.expire(database)
        assert lease.beat()
        time.sleep(0.6)
        leases.expire(database)
        assert not lease.beat()
        assert leases.living(database) == []

    def test_a_worker_whose_process_is_gone_from_this_machine_is_dead_at_once(
        self, database: Database
    ) -> None:
        lease = leases.Lease(database, heartbeat=60)
        lease.take()
        leases.expire(database)
        assert [worker["id"] for worker in leases.living(database)] == [lease.id]
        database.run("UPDATE reread_workers SET born = born - 1000")  # the id is used again
        leases.expire(database)
        assert leases.living(database) == []

    def test_only_the_work_of_those_who_are_not_alive_is_given_back(
        self, database: Database
    ) -> None:
        lease = leases.Lease(database)
        lease.take()
        given: list[str] = []

        def give(worker: str) -> int:
            given.append(worker)
            return 1

        assert leases.recover(database, lambda: {lease.id, "dead"}, give) == 1
        assert given == ["dead"]

    def test_the_engine_gives_a_dead_workers_item_back_exactly_once(
        self, database: Database
    ) -> None:
        """And with that its place under the limit for all workers, which it would hold for ever."""
        queue = entered(database)
        system = queue._client._sys_db
        made = queue._client.retrieve_queue("b1")
        assert made is not None
        taken, _ = system.start_queued_workflows(made, "dead", VERSION, None)
        assert taken == ["b1.1.1"]
        assert queue.pending() == {"dead"}
        given = [system.reenqueue_for_recovery("b1.1.1", ["dead"], "b1") for _ in range(2)]
        assert given == [True, False]
        assert queue.unfinished("b1") == {1: "ENQUEUED"}
        queue.destroy()


class TestTheFence:
    def test_who_was_overtaken_cannot_say_how_an_item_ended(
        self, database: Database, tmp_path: Path
    ) -> None:
        entered(database).destroy()
        first, second = (bench(database, name, tmp_path) for name in ("w1", "w2"))
        old, *_ = item._claim(first, "b1", 1)
        new, *_ = item._claim(second, "b1", 1)
        assert item.collect(first, "b1", 1, {"fence": old, "result": "old"}) == "overtaken"
        assert item.collect(second, "b1", 1, {"fence": new, "result": "new"}) == "ended"
        assert item.collect(first, "b1", 1, {"fence": old, "result": "old"}) == "overtaken"
        assert database.rows("SELECT result FROM reread_items")[0]["result"] == "new"

    def test_collecting_twice_is_the_same_as_once(self, database: Database, tmp_path: Path) -> None:
        entered(database).destroy()
        worker = bench(database, "w1", tmp_path)
        fence, *_ = item._claim(worker, "b1", 1)
        ran = {"fence": fence, "result": "r"}
        assert [item.collect(worker, "b1", 1, ran) for _ in range(2)] == ["ended", "ended"]


class TestTheBudget:
    def test_a_request_counts_before_it_goes_out_and_stays_counted_without_an_answer(
        self, database: Database
    ) -> None:
        entered(database).destroy()
        desk = service.Desk(database, "b1", service.Allowed(tokens=100))
        desk.enter(Usage(60))
        with pytest.raises(Failure) as refused:
            desk.enter(Usage(60))
        assert refused.value.code == "limit_reached"

    def test_an_answer_replaces_what_was_expected(self, database: Database) -> None:
        entered(database).destroy()
        desk = service.Desk(database, "b1", service.Allowed(tokens=100))
        name, _ = desk.enter(Usage(60))
        desk.settle(name, Usage(60), Usage(10, 5))
        assert database.rows("SELECT tokens FROM reread_batches")[0]["tokens"] == 15

    def test_tokens_a_minute_make_a_request_wait(self, database: Database) -> None:
        entered(database).destroy()
        desk = service.Desk(database, "b1", service.Allowed(tokens_per_minute=100))
        assert desk.enter(Usage(90))[1] == 0
        name, wait = desk.enter(Usage(20))
        assert name == ""
        assert 55 < wait <= 60


class TestTheBreaker:
    def test_exactly_one_worker_asks_a_service_that_was_down(self, database: Database) -> None:
        entered(database).destroy()
        service.trip(database, "b1", "it is down")
        assert not service.probe(database, "b1")
        database.run("UPDATE reread_breakers SET until = 0")
        assert [service.probe(database, "b1") for _ in range(3)] == [True, False, False]
        service.close(database, "b1")
        assert service.breaker(database, "b1") is None

    def test_each_failed_try_makes_the_pause_longer(self, database: Database) -> None:
        entered(database).destroy()
        waits = []
        for _ in range(4):
            service.trip(database, "b1", "it is down")
            found = service.breaker(database, "b1")
            assert found is not None
            waits.append(found.wait)
            database.run("UPDATE reread_breakers SET until = 0")
        assert waits == sorted(waits)
        assert waits[-1] > 10


class TestWhatStandsInTheDatabase:
    def test_a_pickle_is_not_read(self, tmp_path: Path) -> None:
        from dbos._serialization import DBOSDefaultSerializer, DBOSPortableJSON, deserialize_value

        class Attack:
            def __reduce__(self) -> tuple[object, tuple[str]]:
                return Path.touch, (str(tmp_path / "ran"),)

        refuse_pickles()
        planted = base64.b64encode(pickle.dumps(Attack())).decode()
        with pytest.raises(ValueError, match="not read"):
            deserialize_value(planted, DBOSDefaultSerializer.name(), DBOSPortableJSON)
        assert not (tmp_path / "ran").exists()

    def test_steps_leave_digests_in_json_and_the_journal_of_sqlite_is_written_ahead(
        self, tmp_path: Path
    ) -> None:
        with serving(delay=0.0) as running:
            place = Place(tmp_path, f"sqlite:///{tmp_path / 'b.sqlite'}", running.environment)
            place.tasks(2)
            assert place.start().wait(60) == 0, place.output
        with sqlite3.connect(tmp_path / "b.sqlite") as connection:
            outputs = connection.execute("SELECT output FROM operation_outputs").fetchall()
            kinds = connection.execute("SELECT DISTINCT serialization FROM workflow_status")
            versions = connection.execute(
                "SELECT DISTINCT application_version FROM workflow_status"
            )
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert kinds.fetchall() == [("portable_json",)]
            assert versions.fetchall() == [(VERSION,)]
        connection.close()
        assert len(outputs) == 6
        assert all(len(json.dumps(json.loads(output))) < 200 for (output,) in outputs)

    def test_the_queue_is_asked_much_more_often_than_once_a_second(self) -> None:
        assert POLL <= 0.2


class TestImports:
    def test_the_engine_is_imported_by_batch_and_worker_alone(self) -> None:
        users = {
            path.relative_to(ROOT).as_posix()
            for path in (ROOT / "reread").rglob("*.py")
            if any(
                line.strip().startswith(("from dbos", "import dbos"))
                for line in path.read_text("utf-8").splitlines()
            )
        }
        assert users == {"reread/batch/database.py", "reread/batch/engine.py"}

    def test_a_single_run_loads_neither_the_engine_nor_a_database(self) -> None:
        code = (
            "import sys, app, reread.job, reread.commands.batch, reread.commands.worker\n"
            "print(sorted({'dbos', 'sqlalchemy', 'reread.batch'} & set(sys.modules)))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "[]"


class TestPasswords:
    def test_the_shown_url_has_none(self) -> None:
        made = Database("postgresql://someone:secret@127.0.0.1:1/x")
        assert "secret" not in made.shown
        assert "secret" not in str(made.failed(ValueError("no")))

    def test_workers_do_not_get_it_on_their_command_line(
        self, tmp_path: Path, server: object
    ) -> None:
        import psutil

        from tests.batch.postgres import Cluster
        from tests.batch.program import children

        assert isinstance(server, Cluster)
        url = server.new_database().replace("postgres@", "postgres:secret@")
        with serving(delay=0.5) as running:
            place = Place(tmp_path, url, running.environment)
            place.tasks(1)
            process = place.start()
            found = _wait_for_worker(process.pid, children)
            assert "secret" not in " ".join(psutil.Process(found).cmdline())
            assert process.wait(60) == 0, place.output


def _wait_for_worker(pid: int, children: object) -> int:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        found = children(pid) if callable(children) else []
        if found:
            return int(found[0])
        time.sleep(0.05)
    raise AssertionError("no worker was started")


__all__ = ["Service"]
