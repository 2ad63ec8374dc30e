"""What is inside a folder: the walk over everything below it, and the digests of its files.

A digest of before is taken again only where device, inode, size and both times say that nothing
was written since; the change time cannot be set by a program, so a reset mtime is found out.
A file that changed as recently as it was read is not remembered: clocks are coarser than writes.

Proves: a file that a program which has ended rewrote has the digest of its bytes now.
Does not prove: that about a program still running, which can hold a page of the file mapped and
write it without the times moving at once; nor on a machine whose clock was set back. Where it
counts, ask for `trust_cache=False` or for the file's own `sha256`.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from agent_runtime import Failure
from reread.files.content import kind_of, open_regular, sha256_of
from reread.files.directory import Directory, read_failed
from reread.files.names import MAX_DEPTH, TEMPORARY, encodable, printable
from reread.values import Code

MAX_ENTRIES = 100_000
Kind = Literal["file", "folder", "link", "other"]
Opener = Callable[[Sequence[str]], Directory]
"""Opens the folder at the given components below the root."""

_SETTLED = 2_000_000_000
"""Nanoseconds after which a change has another time on every file system (FAT counts in twos)."""
_TIMES_TELL = os.name != "nt"  # there the third time is of creation and never moves
_Key = tuple[int, int]
_State = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Entry:
    r"""One thing that a walk found.

    Attributes:
        path: relative to the root of the `ConfinedFolder`. Others made it, so `check_name` may
            refuse it; bytes that are no UTF-8 stand in it as \udcxx.
        nlink: more than 1 for a file that has another name somewhere.
        ctime_ns: of the last change of content, name or mode; no program can set it.
    """

    path: str
    kind: Kind
    size: int
    mtime_ns: int
    inode: int
    nlink: int
    ctime_ns: int


class Digests:
    """Digests of files by device and inode, as good as the times of the file system."""

    def __init__(self) -> None:
        self._known: dict[_Key, tuple[_State, str]] = {}

    def get(self, found: os.stat_result) -> str | None:
        """Return the digest of the file that looks so, None where it must be read."""
        state, sha256 = self._known.get((found.st_dev, found.st_ino), (None, ""))
        return sha256 if state == _state(found) else None

    def read(self, fd: int) -> str:
        """Read an open file, and remember its digest if nothing changed lately. Raises OSError."""
        before, now = os.fstat(fd), time.time_ns()
        sha256 = sha256_of(fd)
        state, key = _state(before), (before.st_dev, before.st_ino)
        settled = max(before.st_mtime_ns, before.st_ctime_ns) < now - _SETTLED
        if _TIMES_TELL and settled and state == _state(os.fstat(fd)):
            if len(self._known) >= MAX_ENTRIES:
                self._known.clear()
            self._known[key] = (state, sha256)
        return sha256


def walk(
    opened: Opener, start: Sequence[str], *, depth: int = MAX_DEPTH, entries: int = MAX_ENTRIES
) -> Iterator[Entry]:
    """Yield everything below a folder, parents first, names sorted, links not followed.

    Raises:
        Failure: folder_too_large, when it is deeper than `depth` or has more `entries`.
    """
    for folder, parts, found in _levels(opened, start, depth=depth, entries=entries):
        folder.close()
        for name, state in found:
            yield _entry((*parts, name), state)


def digests(
    opened: Opener, start: Sequence[str], known: Digests, *, trust_cache: bool
) -> dict[str, str]:
    """Return path → sha256 of every regular file below a folder that can be read.

    Raises:
        Failure: folder_too_large.
    """
    result = {}
    for folder, parts, found in _levels(opened, start, depth=MAX_DEPTH, entries=MAX_ENTRIES):
        with folder:
            for name, state in found:
                if stat.S_ISREG(state.st_mode):
                    sha256 = known.get(state) if trust_cache else None
                    sha256 = sha256 or _read(folder, name, known)
                    if sha256 is not None:
                        result[encodable("/".join((*parts, name)))] = sha256
    return result


def _read(folder: Directory, name: str, known: Digests) -> str | None:
    """Read one file; None for one that vanished, was swapped, or must not be read by us."""
    with suppress(Failure, OSError):
        fd = open_regular(folder, name, name)
        try:
            return known.read(fd)
        finally:
            os.close(fd)
    return None


_Level = tuple[Directory, tuple[str, ...], list[tuple[str, os.stat_result]]]


def _levels(opened: Opener, start: Sequence[str], *, depth: int, entries: int) -> Iterator[_Level]:
    """Yield each folder, open, with what is in it; the caller closes it."""
    waiting = [tuple(start)]
    count = 0
    while waiting:
        parts = waiting.pop()
        folder = _open_level(opened, parts, top=len(parts) == len(start))
        if folder is None:
            continue
        try:
            found = [item for item in folder.entries() if not _is_unfinished(*item)]
        except OSError as error:
            folder.close()
            raise read_failed(error, "/".join(parts)) from error
        count += len(found)
        if count > entries or (found and len(parts) - len(start) >= depth):
            folder.close()
            raise _folder_too_large("/".join(start), depth, entries)
        inner = [(*parts, name) for name, state in found if stat.S_ISDIR(state.st_mode)]
        waiting.extend(reversed(inner))
        yield folder, parts, found


def _open_level(opened: Opener, parts: Sequence[str], *, top: bool) -> Directory | None:
    """Open a folder; one that vanished, was swapped for a link or is closed to us is left out."""
    try:
        return opened(parts)
    except Failure:
        if top:
            raise
        return None


def _is_unfinished(name: str, found: os.stat_result) -> bool:
    return bool(TEMPORARY.fullmatch(name)) and stat.S_ISREG(found.st_mode)


def _entry(parts: Sequence[str], found: os.stat_result) -> Entry:
    kinds: dict[str, Kind] = {"file": "file", "folder": "folder", "link": "link"}
    return Entry(
        path=encodable("/".join(parts)),
        kind=kinds.get(kind_of(found), "other"),
        size=found.st_size,
        mtime_ns=found.st_mtime_ns,
        inode=found.st_ino,
        nlink=found.st_nlink,
        ctime_ns=found.st_ctime_ns,
    )


def _state(found: os.stat_result) -> _State:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _folder_too_large(relative: str, depth: int, entries: int) -> Failure:
    return Failure(
        Code.folder_too_large,
        f"'{printable(relative) or '.'}' has more than {entries} entries or {depth} levels.",
        "Keep only what is needed there.",
    )
