"""What a person sees of a batch: a line for each item that ends, and what keeps it waiting."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from reread.batch import service
from reread.batch.coordinator import Batch
from reread.batch.plan import Item

EVERY = 2.0


class View:
    """Plain lines; on a terminal the last one is a counter that is written anew."""

    def __init__(self, batch: Batch, *, quiet: bool) -> None:
        self._batch = batch
        self._out = None if quiet else sys.stdout
        self._live = bool(self._out and self._out.isatty())
        self._next = 0.0
        self._down = ""
        self._counted: Counter[str] = Counter()

    def began(self, done: int) -> None:
        """Name the batch and how much of it is done already."""
        batch = self._batch
        self._counted.update(str(r["outcome"]["status"]) for r in batch.results.values())
        kept = f", {done} of them done already" if done else ""
        self._say(f"batch {batch.id}: {len(batch.plan.items)} items{kept}")
        self._say(f"  {batch.start.workers} workers here, {batch.database.shown}")

    def ended(self, item: Item, result: Mapping[str, Any]) -> None:
        """Say how an item ended."""
        outcome = result["outcome"]
        status = str(outcome["status"])
        self._counted[status] += 1
        why = f"  {outcome['reason']}: {str(outcome.get('cause', ''))[:100]}" * (
            status != "complete"
        )
        total = len(self._batch.plan.items)
        self._say(f"  {self._counted.total()}/{total} {item.number:05d} {item.name} {status}{why}")

    def tick(self) -> None:
        """Say now and then what goes on."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY
        found = service.breaker(self._batch.database, self._batch.id)
        down = found.why if found else ""
        if down != self._down:
            self._down = down
            self._say(f"  paused: {down}" if down else "  the service answers again")
        if self._live and self._out:
            counts = ", ".join(f"{count} {name}" for name, count in self._counted.items())
            self._out.write(f"\r\x1b[2K  {counts or 'nothing has ended yet'}")
            self._out.flush()

    def close(self) -> None:
        """Leave the last line."""
        if self._live and self._out:
            self._out.write("\r\x1b[2K")

    def _say(self, text: str) -> None:
        if self._out:
            self._out.write(f"\r\x1b[2K{text}\n" if self._live else f"{text}\n")
            self._out.flush()
