"""Who wrote what in the work folder: after each script, once its process tree is dead.

A file is entered for a script when that script left it: its content, its inode or its time of
change differ from before the run. Everything else keeps its earlier entry, so that what an earlier
or failing version wrote never passes for the work of a later one, and what nobody recorded shows
as a difference between this list and the disk. What appears in a folder that could not be looked
into before the run is nobody's: it may have been there all the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_runtime import Failure
from reread.files import ConfinedFolder
from reread.values import Made


@dataclass(frozen=True, slots=True)
class Seen:
    """One file at one moment. A script can set the time of modification, not that of change.

    sha256: '' for a folder that could not be looked into.
    """

    sha256: str
    inode: int
    ctime_ns: int


Snapshot = Mapping[str, Seen]


UNSEEN = Seen("", 0, 0)


def snapshot(folder: ConfinedFolder, places: Sequence[str]) -> dict[str, Seen]:
    """Return every regular file below the places, links and other things left out.

    A folder that is closed, or holds too much to be listed, stands in it as `UNSEEN`.
    """
    found: dict[str, Seen] = {}
    for place in places:
        try:
            digests = folder.digests(place)
            entries = list(folder.walk(place))
        except Failure:
            found[place] = UNSEEN  # too large, or replaced or removed
            continue
        filled = {entry.path.rpartition("/")[0] for entry in entries}
        for entry in entries:
            if entry.kind == "file" and entry.path in digests:
                found[entry.path] = Seen(digests[entry.path], entry.inode, entry.ctime_ns)
            elif entry.kind == "folder" and entry.path not in filled:
                found |= _closed(folder, entry.path)
    return found


def _closed(folder: ConfinedFolder, path: str) -> dict[str, Seen]:
    """Return a folder as unseen, unless it is really empty."""
    try:
        empty = not any(folder.walk(path))
    except Failure:
        empty = False
    return {} if empty else {path: UNSEEN}


def _is_below(path: str, folders: Sequence[str]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)


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
        hidden = [path for path, seen in before.items() if seen == UNSEEN]
        closed = [path for path, seen in after.items() if seen == UNSEEN]
        changed = sorted(path for path, seen in after.items() if before.get(path) != seen)
        left = tuple(
            path
            for path in changed
            if path not in closed and (path in before or not _is_below(path, hidden))
        )
        for path in [path for path in self._made if path in changed or _is_below(path, closed)]:
            del self._made[path]
        for path in left:
            self._made[path] = Made(after[path].sha256, "script", script_sha256, ok)
        for path in before.keys() - after.keys():
            self._made.pop(path, None)
        return left
