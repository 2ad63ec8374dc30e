"""What all workers of a batch may ask of the model service together: rate, budget and breaker.

A request is entered before it goes out, with what it is expected to cost, and that counts from then
on; so a worker that dies with a request in flight has spent it. A service that is down opens the
breaker: nobody asks any more, the runs are put aside as their records stand, and one worker tries
again after a while.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from agent_runtime import Failure, Message, Metered, Model, Reply, Tool, Usage
from reread.batch.database import Database
from reread.values import Code

WINDOW = 60.0
FIRST_PAUSE = 2.0
LONGEST_PAUSE = 60.0
PASSING = frozenset({"server", "network", "rate_limit", "quota", "auth"})
"""Kinds of trouble that are no fault of the task; another item would meet the same."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a batch may use. None: no limit was asked for."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    tokens: int | None = None
    usd: float | None = None
    outage: float = 900.0

    @property
    def limited(self) -> bool:
        """Requests must be entered before they go out."""
        return any((self.requests_per_minute, self.tokens_per_minute, self.budgeted))

    @property
    def budgeted(self) -> bool:
        """There is a budget over the whole batch."""
        return self.tokens is not None or self.usd is not None


class Desk:
    """Where the workers of a batch enter their requests."""

    def __init__(self, database: Database, batch: str, allowed: Allowed) -> None:
        self.database = database
        self.batch = batch
        self.allowed = allowed

    def enter(self, expected: Usage) -> tuple[str, float]:
        """Enter a request and return its name, or '' and the seconds to wait.

        Raises:
            Failure: limit_reached, when the budget of the batch does not hold it.
        """
        return self.database.patiently(lambda: self._enter(expected))

    def _enter(self, expected: Usage) -> tuple[str, float]:
        with self.database.writing() as connection:
            suffix = "" if self.database.sqlite else " FOR UPDATE"
            row = connection.execute(
                sa.text(
                    f"SELECT tokens, usd, {self.database.clock} AS now FROM reread_batches "
                    f"WHERE id = :batch{suffix}"
                ),
                {"batch": self.batch},
            ).one()
            self._hold("tokens", row.tokens + expected.tokens, self.allowed.tokens)
            self._hold("USD", row.usd + expected.usd, self.allowed.usd)
            now = float(row.now)
            wait = self._wait(connection, now, expected.tokens)
            if wait > 0:
                return "", wait
            name = secrets.token_hex(8)
            values = {"id": name, "batch": self.batch, "at": now, "tokens": expected.tokens}
            connection.execute(
                sa.text(
                    "INSERT INTO reread_requests (id, batch, at, tokens, usd) "
                    "VALUES (:id, :batch, :at, :tokens, :usd)"
                ),
                {**values, "usd": expected.usd},
            )
            self._add(connection, expected.tokens, expected.usd)
            return name, 0.0

    def settle(self, name: str, expected: Usage, used: Usage) -> None:
        """Replace what was expected of a request by what it used."""

        def act() -> None:
            with self.database.writing() as connection:
                connection.execute(
                    sa.text(
                        "UPDATE reread_requests SET tokens = :tokens, usd = :usd WHERE id = :id"
                    ),
                    {"id": name, "tokens": used.tokens, "usd": used.usd},
                )
                self._add(connection, used.tokens - expected.tokens, used.usd - expected.usd)

        self.database.patiently(act)

    def _add(self, connection: sa.engine.Connection, tokens: int, usd: float) -> None:
        connection.execute(
            sa.text(
                "UPDATE reread_batches SET tokens = tokens + :tokens, usd = usd + :usd "
                "WHERE id = :batch"
            ),
            {"tokens": tokens, "usd": usd, "batch": self.batch},
        )

    def _hold(self, what: str, after: float, limit: float | None) -> None:
        if limit is not None and after > limit:
            raise Failure(
                Code.limit_reached,
                f"The budget of {limit:g} {what} for the whole batch is reached.",
                f"Raise it: python app.py batch resume {self.batch} --max-{what.lower()} N",
                {"limit": what.lower(), "batch": self.batch},
            )

    def _wait(self, connection: sa.engine.Connection, now: float, tokens: int) -> float:
        """Return how long the rate keeps this request waiting."""
        rpm, tpm = self.allowed.requests_per_minute, self.allowed.tokens_per_minute
        if not rpm and not tpm:
            return 0.0
        rows = connection.execute(
            sa.text(
                "SELECT at, tokens FROM reread_requests WHERE batch = :batch AND at > :since "
                "ORDER BY at"
            ),
            {"batch": self.batch, "since": now - WINDOW},
        ).all()
        wait = 0.0
        if rpm and len(rows) >= rpm:
            wait = float(rows[len(rows) - rpm].at) + WINDOW - now
        used = sum(int(row.tokens) for row in rows)
        for row in rows if tpm else ():
            if used + tokens <= (tpm or 0):
                break
            used -= int(row.tokens)
            wait = max(wait, float(row.at) + WINDOW - now)
        return wait


@dataclass(frozen=True, slots=True)
class Breaker:
    """A service that is down.

    Attributes:
        wait: seconds until somebody may try again; below 0 it is time.
        down: seconds since it was found down.
    """

    failures: int
    wait: float
    down: float
    why: str


def breaker(database: Database, batch: str) -> Breaker | None:
    """Return the open breaker of a batch; None while the service answers."""
    rows = database.rows(
        f"SELECT failures, until - {database.clock} AS wait, {database.clock} - since AS down, why "
        "FROM reread_breakers WHERE batch = :batch",
        batch=batch,
    )
    if not rows:
        return None
    row = rows[0]
    return Breaker(int(row["failures"]), float(row["wait"]), float(row["down"]), str(row["why"]))


def trip(database: Database, batch: str, why: str) -> None:
    """Open the breaker, or keep it open for longer after a try that failed too."""
    pause = f"LEAST({LONGEST_PAUSE}, {FIRST_PAUSE} * POWER(2, reread_breakers.failures))"
    if database.sqlite:
        pause = f"MIN({LONGEST_PAUSE}, {FIRST_PAUSE} * (1 << MIN(reread_breakers.failures, 10)))"
    database.run(
        "INSERT INTO reread_breakers (batch, failures, since, until, why) "
        f"VALUES (:batch, 1, {database.clock}, {database.clock} + {FIRST_PAUSE}, :why) "
        "ON CONFLICT (batch) DO UPDATE SET failures = reread_breakers.failures + 1, "
        f"until = {database.clock} + {pause}, why = :why "
        f"WHERE reread_breakers.until < {database.clock} + {FIRST_PAUSE}",
        batch=batch,
        why=why[:500],
    )


def probe(database: Database, batch: str, hold: float = 30.0) -> bool:
    """Try to be the one who asks a service that was down; true for exactly one at a time."""
    return bool(
        database.run(
            f"UPDATE reread_breakers SET until = {database.clock} + :hold "
            f"WHERE batch = :batch AND until <= {database.clock}",
            batch=batch,
            hold=hold,
        )
    )


def close(database: Database, batch: str) -> None:
    """Close the breaker: the service has answered."""
    database.run("DELETE FROM reread_breakers WHERE batch = :batch", batch=batch)


class Governed:
    """A model whose requests go through the desk, and which knows when the service is down.

    Attributes:
        down: why the service counts as down, '' while it does not.
    """

    def __init__(
        self,
        model: Model,
        desk: Desk,
        *,
        alive: Callable[[], bool],
        is_open: Callable[[], bool],
        probing: bool,
    ) -> None:
        self._model = model
        self._desk = desk
        self._alive = alive
        self._is_open = is_open
        self._probing = probing
        self.down = ""

    def expect(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Usage:
        """Foresee what the next request costs."""
        return self._model.expect(messages, tools) if isinstance(self._model, Metered) else Usage()

    async def reply(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
        """Ask, once the rate and the budget allow it.

        Raises:
            Failure: limit_reached; model_failed, with `down` set where no task is to blame.
        """
        if not self._alive():
            raise _lost()
        if self._is_open() and not self._probing:
            self.down = "another item found the service down"
            raise Failure(Code.model_failed, self.down, "The batch goes on when it answers again.")
        expected = self.expect(messages, tools)
        name = await self._entered(expected)
        try:
            reply = await self._model.reply(messages, tools)
        except Failure as failure:
            if failure.code == Code.model_failed and failure.details.get("kind") in PASSING:
                self.down = failure.cause
                await asyncio.to_thread(trip, self._desk.database, self._desk.batch, failure.cause)
            raise
        if name:
            await asyncio.to_thread(self._desk.settle, name, expected, reply.usage)
        if self._probing or self._is_open():
            self._probing = False
            await asyncio.to_thread(close, self._desk.database, self._desk.batch)
        return reply

    async def aclose(self) -> None:
        """Release the connections."""
        await self._model.aclose()

    async def _entered(self, expected: Usage) -> str:
        if not self._desk.allowed.limited:
            return ""
        while True:
            name, wait = await asyncio.to_thread(self._desk.enter, expected)
            if name:
                return name
            await asyncio.sleep(min(wait, 5.0))
            if not self._alive():
                raise _lost()


def allowed_from(value: Mapping[str, Any]) -> Allowed:
    """Make the limits of a batch from its row."""
    names = ("requests_per_minute", "tokens_per_minute", "tokens", "usd", "outage")
    return Allowed(**{name: value[name] for name in names if value.get(name) is not None})


def _lost() -> Failure:
    return Failure(
        Code.worker_lost,
        "This worker has missed its heartbeats, so others go on with its work.",
        "Nothing is lost. See why it was held up, then start it again.",
    )
