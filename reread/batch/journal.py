"""The record of a run in the store, while it grows, so that another worker can go on with it.

Whatever must not be asked or done again goes up before anything follows from it: each recorded turn
of the model, each answer of a tool, each file that a script left. One attempt writes below one
folder, which carries the number of its fence: what an overtaken worker still writes is below a
lower number and nobody reads it.

Proves: what is restored is what was recorded, file by file with its digest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reread import records
from reread.batch.store import Store, failed
from reread.files import ConfinedFolder

SENT = frozenset(
    {"run.started", "run.resumed", "model.replied", "tool.answered", "round.ended", "gate.read"}
)
LEFT = frozenset(
    {"file.written", "skill.activated", "skill.created", "script.ran", "host.step", "tool.answered"}
)
"""Events after which a file of the run's folder may be new."""


@dataclass(slots=True)
class Journal:
    """Sends a run's events and files to the store. It is a listener of the record.

    Attributes:
        place: folder of entries of this attempt.
        run: `runs/<id>` on this worker.
        sent: path → digest of what the store has.
    """

    store: Store
    place: str
    run: Path
    sent: dict[str, str] = field(default_factory=dict)
    closed: bool = False
    _at: int = 0
    _next: int = 0
    _touched: bool = True
    _folder: ConfinedFolder | None = None

    def __call__(self, kind: str, data: Mapping[str, Any]) -> None:
        """Take note of an event that is on disk."""
        self._touched = self._touched or kind in LEFT
        if kind == "round.ended" and data["status"] == "model-failed":
            # The run may go on from here once the service answers again.
            self.closed = True
        if kind in SENT and not self.closed:
            self.flush()

    def flush(self) -> None:
        """Send what is new."""
        folder = self._folder = self._folder or ConfinedFolder(self.run)
        files = self._files(folder) if self._touched else {}
        self._touched = False
        with folder.open(records.EVENTS) as stream:
            stream.seek(self._at)
            text = stream.read()
        text = text[: text.rfind(b"\n") + 1]
        entry = {"events": text.decode("utf-8"), "files": files}
        data = json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self.store.put(f"{self.place}/{self._next:06d}", data)
        self._at += len(text)
        self._next += 1

    def _files(self, folder: ConfinedFolder) -> dict[str, str | None]:
        """Send the files that changed; None stands for one that is gone."""
        now = folder.digests("")
        now.pop(records.EVENTS, None)
        now.pop(records.RECORD, None)
        changed: dict[str, str | None] = {}
        for path, sha256 in now.items():
            if self.sent.get(path) != sha256:
                with folder.open(path) as stream:
                    self.store.put_stream(stream, sha256)
                changed[path] = sha256
        changed |= dict.fromkeys(self.sent.keys() - now.keys())
        self.sent = dict(now)
        return changed


def restore(store: Store, item: str, run: Path) -> bool:
    """Write the run's folder as far as the last attempt sent it; False where none has started.

    Raises:
        Failure: store_failed.
    """
    events, files = _read(store, item)
    if not events:
        return False
    for name in ("outputs", "drafts", "scripts"):
        (run / "work" / name).mkdir(parents=True, exist_ok=True)
    for path, sha256 in files.items():
        target = run / path
        target.parent.mkdir(parents=True, exist_ok=True)
        store.fetch(sha256, target)
    (run / records.EVENTS).write_bytes(events)
    return True


def _read(store: Store, item: str) -> tuple[bytes, dict[str, str]]:
    attempts: dict[str, list[str]] = {}
    for name in store.list(item):
        place, _, _ = name.rpartition("/")
        attempts.setdefault(place, []).append(name)
    for place in sorted(attempts, reverse=True):
        if attempts[place][0] == f"{place}/{0:06d}":
            return _merged(store, place, attempts[place])
    return b"", {}


def _merged(store: Store, place: str, names: list[str]) -> tuple[bytes, dict[str, str]]:
    events, files = b"", dict[str, str]()
    for number, name in enumerate(names):
        data = store.get(name) if name == f"{place}/{number:06d}" else None
        if data is None:
            break  # what comes after a gap was sent by nobody who could know it
        try:
            entry = json.loads(data)
        except ValueError as error:
            raise failed(f"the entry '{name}' is not JSON") from error
        events += entry["events"].encode("utf-8", "surrogatepass")
        for path, sha256 in entry["files"].items():
            if sha256 is None:
                files.pop(path, None)
            else:
                files[path] = sha256
    return events, files
