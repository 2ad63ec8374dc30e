"""Who is alive, and whose work goes on elsewhere: what the open engine lacks.

Each worker writes a heartbeat. One that has missed two is dead; one whose process is gone from this
machine is dead at once. Dead is for ever: the statement that says so and the heartbeat exclude each
other, and a worker that finds itself dead stops. Work that hangs on anyone who is not alive goes
back to its queue, which the engine does for exactly one caller.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path

import psutil

from reread.batch.database import Database

HEARTBEAT = 5.0
MISSED = 2
"""A worker is dead after so many heartbeats."""


class Lease:
    """The life of one worker, as the others see it."""

    def __init__(self, database: Database, heartbeat: float = HEARTBEAT) -> None:
        self.database = database
        self.heartbeat = heartbeat
        self.machine = machine()
        name = socket.gethostname().split(".")[0][:24]
        self.id = f"{name}-{os.getpid()}-{secrets.token_hex(4)}"

    def take(self) -> None:
        """Enter this process among the living."""
        self.database.run(
            "INSERT INTO reread_workers (id, machine, pid, born, beat, heartbeat, state) "
            f"VALUES (:id, :machine, :pid, :born, {self.database.clock}, :heartbeat, 'alive')",
            id=self.id,
            machine=self.machine,
            pid=os.getpid(),
            born=psutil.Process().create_time(),
            heartbeat=self.heartbeat,
        )

    def beat(self) -> bool:
        """Say that this worker is alive; False when the others hold it for dead."""
        return bool(
            self.database.run(
                f"UPDATE reread_workers SET beat = {self.database.clock} "
                "WHERE id = :id AND state = 'alive'",
                id=self.id,
            )
        )

    def leave(self) -> None:
        """Say that this worker is gone, so that nobody waits for it."""
        self.database.run("UPDATE reread_workers SET state = 'left' WHERE id = :id", id=self.id)


def expire(database: Database) -> None:
    """Declare those dead who have missed their heartbeats, or whose process is gone from here."""
    database.run(
        "UPDATE reread_workers SET state = 'dead' WHERE state = 'alive' "
        f"AND beat < {database.clock} - {MISSED} * heartbeat"
    )
    here = database.rows(
        "SELECT id, pid, born FROM reread_workers WHERE state = 'alive' AND machine = :machine",
        machine=machine(),
    )
    for row in here:
        if not _runs(int(row["pid"]), float(row["born"])):
            database.run(
                "UPDATE reread_workers SET state = 'dead' WHERE id = :id AND state = 'alive'",
                id=row["id"],
            )


def recover(database: Database, pending: Callable[[], set[str]], give: Callable[[str], int]) -> int:
    """Give back the work of everyone who is not alive and return how many items that were.

    Args:
        pending: returns the workers that have unfinished work.
        give: gives back the work of one; the engine lets exactly one caller do it.
    """
    owners = pending()
    if not owners:
        return 0
    alive = {str(row["id"]) for row in living(database)}
    return sum(give(owner) for owner in sorted(owners - alive))


def living(database: Database) -> list[dict[str, object]]:
    """Return the workers that are alive, with the seconds since their last heartbeat."""
    return [
        dict(row)
        for row in database.rows(
            f"SELECT id, pid, heartbeat, {database.clock} - beat AS ago FROM reread_workers "
            "WHERE state = 'alive' ORDER BY id"
        )
    ]


def machine() -> str:
    """Return what a process id means something within: this boot, and this namespace of ids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{socket.gethostname()} {psutil.boot_time():.0f}"


def _runs(pid: int, born: float) -> bool:
    """Say whether a process is still the one that was entered; ids are used again."""
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - born) < 0.05 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
