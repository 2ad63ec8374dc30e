"""Who wrote what in the work folder: after each script, once its process tree is dead.

A file is entered for a script when that script left it: its content, its inode or its time of
change differ from before the run. Everything else keeps its earlier entry, so that what an earlier
or failing version wrote never passes for the work of a later one, and what nobody recorded shows
as a difference between this list and the disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_runtime import Failure
from reread.files import ConfinedFolder
from reread.values import Made


@dataclass(frozen=True, slots=True)
class Seen:
    """One file at one moment. A script can set the time of modification, not that of change."""

    sha256: str
    inode: int
    ctime_ns: int


Snapshot = Mapping[str, Seen]


def snapshot(folder: ConfinedFolder, places: Sequence[str]) -> dict[str, Seen]:
    """Return every regular file below the places, links and other things left out."""
    found: dict[str, Seen] = {}
    for place in places:
        try:
            digests = folder.digests(place)
            for entry in folder.walk(place):
                if entry.kind == "file" and entry.path in digests:
                    found[entry.path] = Seen(digests[entry.path], entry.inode, entry.ctime_ns)
        except Failure:
            continue  # the place itself was replaced or removed: there is nothing of ours in it
    return found


class Ledger:
    """The last recorded write of each path of a work folder."""

    def __init__(self) -> None:
        self._made: dict[str, Made] = {}

    @property
    def made(self) -> Mapping[str, Made]:
        """Path → its last recorded write."""
        return dict(self._made)

    def find(self, path: str) -> Made | None:
        """Return the last recorded write of a path."""
        return self._made.get(path)

    def wrote(self, path: str, sha256: str) -> None:
        """Enter a file that a tool wrote."""
        self._made[path] = Made(sha256, "write_file", "", True)

    def enter(self, path: str, made: Made) -> None:
        """Enter what a record says of an earlier write."""
        self._made[path] = made

    def ran(
        self, script_sha256: str, *, ok: bool, before: Snapshot, after: Snapshot
    ) -> tuple[str, ...]:
        """Enter what a script left, drop what it removed, and return the paths that it left."""
        left = tuple(path for path, seen in sorted(after.items()) if before.get(path) != seen)
        for path in left:
            self._made[path] = Made(after[path].sha256, "script", script_sha256, ok)
        for path in before.keys() - after.keys():
            self._made.pop(path, None)
        return left
