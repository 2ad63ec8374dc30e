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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from agent_runtime import Failure
from reread.files import ConfinedFolder
from reread.values import Code

EVENTS_SCHEMA = "reread.event/1"
RECORD_SCHEMA = "reread.record/1"
EVENTS = "events.jsonl"
RECORD = "record.json"
JOURNAL = "publish.json"
REPORT = "report.html"
"""A page that shows the record; no part of it, and made again at any time."""
RECORD_LIMIT = 1 << 30
PLACES = (
    *("scripts", "locks", "logs", "replaced"),
    *("work/scripts", "work/outputs", "work/drafts"),
)
"""The folders of a run, for when one of them holds too much."""

_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=str)
"""Made once: to make one for each line takes as long as the line."""

Listener = Callable[[str, Mapping[str, Any]], None]
"""Told of each event after it is on disk: its kind and its data."""


class Record:
    """The record of one run while it is being written."""

    def __init__(
        self, folder: ConfinedFolder, listeners: tuple[Listener, ...] = (), *, after: int = 0
    ) -> None:
        """Open the record; `after` is the number of events that a resumed run has already."""
        self.folder = folder
        self.listeners = list(listeners)
        self.started = time.monotonic()
        self._number = after
        # The folder is the program's own and new, so a plain append is enough, and one write call
        # for each line keeps lines whole.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        self._descriptor = os.open(folder.root / EVENTS, flags, 0o644)
        if after:
            self._drop_torn_line()

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
        self._append(as_line(line))
        self.tell(kind, data)

    def tell(self, kind: str, data: Mapping[str, Any]) -> None:
        """Show something that is not worth a line in the record, such as a chunk of output."""
        for listener in self.listeners:
            listener(kind, data)

    def _append(self, line: bytes) -> None:
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
        except OSError as error:
            raise Failure(
                Code.write_failed,
                f"'{self.folder.root / EVENTS}' cannot be written: {error.strerror}.",
                "Make room on the disk, then go on: python app.py resume RUN.",
            ) from error

    def _drop_torn_line(self) -> None:
        """Remove what a crash cut off, so that the next line starts a line."""
        data = (self.folder.root / EVENTS).read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.ftruncate(self._descriptor, whole)

    def finish(self, record: Mapping[str, Any]) -> None:
        """Write `record.json`: the run has ended."""
        write_record(self.folder, record)

    def close(self) -> None:
        """Release the file; safe to call twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def as_line(value: Mapping[str, Any]) -> bytes:
    """Return one line of JSON with sorted keys; a lone surrogate becomes an escape."""
    return (_ENCODER.encode(value) + "\n").encode("utf-8", "backslashreplace")


def write_record(folder: ConfinedFolder, record: Mapping[str, Any]) -> None:
    """Write `record.json` with the digests of everything else in the run's folder, and its own.

    The record's own digest finds damage and careless edits. It is no signature: whoever can write
    the folder can make another one. Keep `record.json` or its digest elsewhere to know better.
    """
    files, unlisted = digests(folder)
    whole = {**record, "schema": RECORD_SCHEMA, "files": files}
    if unlisted:
        whole["unlisted"] = unlisted
    folder.write(RECORD, as_line({**whole, "digest": digest(whole)}))


def digests(folder: ConfinedFolder) -> tuple[dict[str, str], list[str]]:
    """Return path → digest of what lies in a run's folder, and the places with too much to list.

    A script decides what is in its places, so nothing that it leaves there may keep a run from
    being recorded: names that no path may have, files that are closed, more than can be listed.
    """
    unlisted: list[str] = []
    try:
        found = folder.digests(trust_cache=False)
    except Failure:
        found, unlisted = _by_place(folder)
    apart = (RECORD, JOURNAL, REPORT)
    return {path: sha for path, sha in found.items() if path not in apart}, unlisted


def _by_place(folder: ConfinedFolder) -> tuple[dict[str, str], list[str]]:
    found: dict[str, str] = {}
    unlisted: list[str] = []
    for place in PLACES:
        try:
            found |= folder.digests(place, trust_cache=False)
        except Failure:
            unlisted.append(place)
    events = folder.sha256(EVENTS)
    return found | ({EVENTS: events} if events else {}), unlisted


def read_record(folder: ConfinedFolder) -> dict[str, Any]:
    """Return a finished record.

    Raises:
        Failure: record_invalid, when it is missing, malformed or not what it was.
    """
    try:
        value = json.loads(folder.read(RECORD, limit=RECORD_LIMIT))
    except Failure as failure:
        raise _invalid(folder, f"it has none ({failure.code}), so the run has not ended") from None
    except ValueError as error:
        raise _invalid(folder, f"it is not JSON: {str(error)[:200]}") from None
    if not isinstance(value, dict) or value.get("schema") != RECORD_SCHEMA:
        raise _invalid(folder, f"its schema is not {RECORD_SCHEMA}")
    whole = {key: item for key, item in value.items() if key != "digest"}
    if value.get("digest") != digest(whole):
        raise _invalid(folder, "it does not have the digest that it was written with")
    return value


def read_events(folder: ConfinedFolder) -> tuple[dict[str, Any], ...]:
    """Return the events of a run; a last line that a crash cut off is left out.

    Raises:
        Failure: record_invalid, for a line that is no event.
    """
    lines = folder.read(EVENTS, limit=RECORD_LIMIT).split(b"\n")
    try:
        events = tuple(json.loads(line) for line in lines[:-1])
    except ValueError as error:
        raise _invalid(folder, f"{EVENTS} has a broken line: {str(error)[:200]}") from None
    if any(not isinstance(e, dict) or e.get("schema") != EVENTS_SCHEMA for e in events):
        raise _invalid(folder, f"{EVENTS} has a line that is no {EVENTS_SCHEMA}")
    return events


@contextmanager
def sound(folder: ConfinedFolder) -> Iterator[None]:
    """Take what does not fit while a record is read for a record that is not sound.

    Raises:
        Failure: record_invalid.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _invalid(folder, f"{type(error).__name__}: {str(error)[:200]}") from error


def _invalid(folder: ConfinedFolder, why: str) -> Failure:
    return Failure(
        Code.record_invalid,
        f"'{folder.root}' has no sound record: {why}.",
        "Use the folder of a run that has ended; python app.py resume RUN goes on with one that "
        "was cut off.",
    )


def digest(value: Mapping[str, Any]) -> str:
    """Return the sha256 of a value's one canonical JSON form."""
    return hashlib.sha256(as_line(value)).hexdigest()
