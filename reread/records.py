"""The run's folder: what happened, line by line, and how it ended.

`events.jsonl` is appended and flushed before an effect is reported; `record.json` is written last
and in one step, so that it is there exactly when the run has ended.

Proves: nothing. It keeps what `audit` compares with the disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from reread.files import ConfinedFolder

EVENTS_SCHEMA = "reread.event/1"
RECORD_SCHEMA = "reread.record/1"
EVENTS = "events.jsonl"
RECORD = "record.json"

Listener = Callable[[str, Mapping[str, Any]], None]
"""Told of each event after it is on disk: its kind and its data."""


class Record:
    """The record of one run while it is being written."""

    def __init__(self, folder: ConfinedFolder, listeners: tuple[Listener, ...] = ()) -> None:
        self.folder = folder
        self.listeners = list(listeners)
        self.started = time.monotonic()
        self._number = 0
        # The folder is the program's own and new, so a plain append is enough, and one write call
        # for each line keeps lines whole.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        self._descriptor = os.open(folder.root / EVENTS, flags, 0o644)

    @property
    def seconds(self) -> float:
        """Wall time since the record was opened."""
        return time.monotonic() - self.started

    def event(self, kind: str, data: Mapping[str, Any]) -> None:
        """Append one event, then tell the listeners."""
        self._number += 1
        line = {
            "schema": EVENTS_SCHEMA,
            "number": self._number,
            "at": datetime.now(UTC).isoformat(),
            "seconds": round(self.seconds, 4),
            "kind": kind,
            "data": data,
        }
        os.write(self._descriptor, as_line(line))
        self.tell(kind, data)

    def tell(self, kind: str, data: Mapping[str, Any]) -> None:
        """Show something that is not worth a line in the record, such as a chunk of output."""
        for listener in self.listeners:
            listener(kind, data)

    def finish(self, record: Mapping[str, Any]) -> None:
        """Write `record.json`: the run has ended."""
        events = self.folder.sha256(EVENTS)
        whole = {**record, "events": {"count": self._number, "sha256": events}}
        self.folder.write(RECORD, as_line(whole))

    def close(self) -> None:
        """Release the file; safe to call twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def as_line(value: Mapping[str, Any]) -> bytes:
    """Return one line of JSON with sorted keys; a lone surrogate becomes an escape."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def digest(value: Mapping[str, Any]) -> str:
    """Return the sha256 of a value's one canonical JSON form."""
    return hashlib.sha256(as_line(value)).hexdigest()
