"""The tables beside the engine's own: batches, items, workers, requests and breakers.

Small statements, each true by itself. Where two workers want the same thing, the statement that
changes the row decides, not what was read before it.

SQLite is opened with a write-ahead log and `synchronous=NORMAL`: a killed process loses nothing; a
power cut can lose the last moments, and what was lost is done again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from agent_runtime import Failure
from reread.values import Code

T = TypeVar("T")
PATIENCE = 300.0
"""Seconds that a database may be away before an operation on it is given up."""

TABLES = (
    """CREATE TABLE IF NOT EXISTS reread_batches (
        id TEXT PRIMARY KEY, state TEXT NOT NULL, plan TEXT NOT NULL, store TEXT NOT NULL,
        limits TEXT NOT NULL, tokens BIGINT NOT NULL DEFAULT 0,
        usd DOUBLE PRECISION NOT NULL DEFAULT 0, created DOUBLE PRECISION NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS reread_items (
        batch TEXT NOT NULL, number INTEGER NOT NULL, state TEXT NOT NULL, digest TEXT NOT NULL,
        generation INTEGER NOT NULL, queued INTEGER NOT NULL, fence INTEGER NOT NULL,
        attempts INTEGER NOT NULL, worker TEXT, result TEXT, changed DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (batch, number))""",
    """CREATE INDEX IF NOT EXISTS reread_items_changed ON reread_items (batch, changed)""",
    """CREATE TABLE IF NOT EXISTS reread_workers (
        id TEXT PRIMARY KEY, machine TEXT NOT NULL, pid INTEGER NOT NULL,
        born DOUBLE PRECISION NOT NULL, beat DOUBLE PRECISION NOT NULL,
        heartbeat DOUBLE PRECISION NOT NULL, state TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS reread_requests (
        id TEXT PRIMARY KEY, batch TEXT NOT NULL, at DOUBLE PRECISION NOT NULL,
        tokens BIGINT NOT NULL, usd DOUBLE PRECISION NOT NULL)""",
    """CREATE INDEX IF NOT EXISTS reread_requests_at ON reread_requests (batch, at)""",
    """CREATE TABLE IF NOT EXISTS reread_breakers (
        batch TEXT PRIMARY KEY, failures INTEGER NOT NULL, since DOUBLE PRECISION NOT NULL,
        until DOUBLE PRECISION NOT NULL, why TEXT NOT NULL)""",
)


def default_url(batches: Path) -> str:
    """Return the URL of the embedded database of a folder of batches."""
    return f"sqlite:///{batches.resolve() / 'batches.sqlite'}"


class Database:
    """One engine, for our tables and, on SQLite, for the durable engine's too."""

    def __init__(self, url: str) -> None:
        """Take a URL; nothing is opened yet.

        Raises:
            Failure: usage_invalid, for a URL that is neither SQLite's nor PostgreSQL's.
        """
        try:
            parsed = make_url(url)
        except sa.exc.ArgumentError as error:
            raise _no_database(url) from error
        self.url = url
        self.sqlite = parsed.get_backend_name() == "sqlite"
        if not self.sqlite and parsed.get_backend_name() not in ("postgresql", "postgres"):
            raise _no_database(url)
        self.engine: Engine = _sqlite(url, parsed) if self.sqlite else _postgresql(url)

    @property
    def shown(self) -> str:
        """The URL without its password."""
        return str(make_url(self.url).render_as_string(hide_password=True))

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a connection in a transaction that no other writer of SQLite can come between."""
        with self.engine.connect() as connection:
            if self.sqlite:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def run(self, statement: str, **values: Any) -> int:
        """Change something in one statement and return how many rows it changed."""

        def act() -> int:
            with self.writing() as connection:
                return int(connection.execute(sa.text(statement), values).rowcount)

        return self.patiently(act)

    def rows(self, statement: str, **values: Any) -> list[Mapping[str, Any]]:
        """Return what a query finds."""

        def act() -> list[Mapping[str, Any]]:
            with self.engine.connect() as connection:
                found = connection.execute(sa.text(statement), values).mappings().all()
                return [dict(row) for row in found]

        return self.patiently(act)

    def patiently(self, act: Callable[[], T]) -> T:
        """Do something, again where the database was away for a while.

        Raises:
            Failure: database_failed, after `PATIENCE` seconds or for what no waiting helps.
        """
        until, wait = time.monotonic() + PATIENCE, 0.1
        while True:
            try:
                return act()
            except (OperationalError, InterfaceError) as error:
                if time.monotonic() + wait > until:
                    raise self.failed(error) from error
            except DBAPIError as error:
                if not error.connection_invalidated:
                    raise self.failed(error) from error
            time.sleep(wait)
            wait = min(wait * 2, 2.0)

    def prepare(self) -> None:
        """Make the tables that are missing, the engine's own too.

        Raises:
            Failure: database_failed, where the database cannot be reached or written.
        """
        from dbos import DBOS

        try:
            DBOS.migrate(self.url)
            with self.writing() as connection:
                if not self.sqlite:
                    # Two that start at once would both find a table missing and both make it.
                    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7235610)")
                for statement in TABLES:
                    connection.exec_driver_sql(statement)
        except (sa.exc.SQLAlchemyError, OSError) as error:
            raise self.failed(error) from error

    def failed(self, error: Exception) -> Failure:
        """Return the failure of a database, without its password."""
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        return Failure(
            Code.database_failed,
            f"The database {self.shown} does not work: {first[:300]}",
            "See that it runs and can be written, then: python app.py batch resume ID",
        )

    @property
    def clock(self) -> str:
        """SQL for the seconds since 1970 by the clock that all workers share."""
        if self.sqlite:
            return "((julianday('now') - 2440587.5) * 86400.0)"
        return "extract(epoch FROM clock_timestamp())"

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()


def _sqlite(url: str, parsed: sa.engine.URL) -> Engine:
    if parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = sa.create_engine(url, pool_size=8, max_overflow=56, pool_timeout=60)

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        # What the durable engine sets on connections that it makes itself, and the two settings
        # that make a step 14 times cheaper.
        connection.isolation_level = "IMMEDIATE"
        connection.execute("PRAGMA busy_timeout=30000")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")

    return engine


def _postgresql(url: str) -> Engine:
    driver = make_url(url).set(drivername="postgresql+psycopg")
    return sa.create_engine(driver, pool_size=4, max_overflow=12, pool_pre_ping=True)


def _no_database(url: str) -> Failure:
    return Failure(
        Code.usage_invalid,
        f"'{url.partition('@')[2] or url}' is no URL of SQLite or PostgreSQL.",
        "Write it like sqlite:////path/batches.sqlite or postgresql://user@host/name.",
    )
