"""What is known of a batch: how many items are where, who works, what was used, what is down."""

from __future__ import annotations

import json
from typing import Any

from reread.batch import leases, service
from reread.batch.database import Database


def status(database: Database, batch: str) -> dict[str, Any] | None:
    """Return the state of a batch; None where the database knows none of that name."""
    rows = database.rows(
        "SELECT state, tokens, usd, limits, store FROM reread_batches WHERE id = :id", id=batch
    )
    if not rows:
        return None
    row = rows[0]
    states = database.rows(
        "SELECT state, COUNT(*) AS count FROM reread_items WHERE batch = :id GROUP BY state",
        id=batch,
    )
    found = service.breaker(database, batch)
    return {
        "batch": batch,
        "state": row["state"],
        "items": {str(state["state"]): int(state["count"]) for state in states},
        "workers": [str(worker["id"]) for worker in leases.living(database)],
        "tokens": int(row["tokens"]),
        "usd": round(float(row["usd"]), 6),
        "limits": json.loads(str(row["limits"])),
        "store": row["store"],
        "service_down": (
            {"seconds": round(found.down), "cause": found.why} if found is not None else None
        ),
    }


def cancel(database: Database, batch: str) -> bool:
    """Say that a batch is not to be gone on with; False where none of that name runs."""
    return bool(
        database.run(
            "UPDATE reread_batches SET state = 'cancelled' WHERE id = :id AND state = 'running'",
            id=batch,
        )
    )
