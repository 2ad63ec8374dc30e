"""Every read and write inside a folder that others can change.

Models, scripts and extensions write where the program reads. A path that was checked by name can
mean another file a moment later, so nothing here goes by name: each operation walks down from the
root over open descriptors, follows no link, takes regular files only, and replaces in one step.

Proves: nothing outside the root is read or written, whatever is swapped meanwhile.
Does not prove: anything about who may write in the folder, nor about the root itself and what is
above it. `ConfinedFolder.label` says how the walk is made on this system.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from agent_runtime import Failure
from reread.files.content import chunks, kind_of, open_regular, read_all, sha256_of
from reread.files.directory import (
    HAS_DESCRIPTORS,
    Directory,
    descend,
    link_refused,
    not_found,
    read_failed,
    write_failed,
)
from reread.files.locks import held
from reread.files.names import MAX_DEPTH, check_name, folded, printable
from reread.files.replace import ANY, Anything, Expect, check_target, put, settle_mode, staged
from reread.values import Code

__all__ = ["ANY", "Anything", "ConfinedFolder", "Entry", "Expect", "Written", "check_name"]

MAX_ENTRIES = 100_000
Kind = Literal["file", "folder", "link", "other"]


@dataclass(frozen=True, slots=True)
class Written:
    """A file as it was read back from disk after a write. `size` in bytes."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that a walk found.

    Attributes:
        path: relative to the folder that was walked from; may hold what `check_name` refuses,
            since others made it. Show it with `printable`.
        nlink: more than 1 for a file that has another name somewhere.
    """

    path: str
    kind: Kind
    size: int
    mtime_ns: int
    inode: int
    nlink: int


class ConfinedFolder:
    """A folder and everything below it; nothing else can be reached through it.

    Paths are relative, written with '/', and follow the rules of `check_name`. Every method that
    takes one can raise path_not_allowed, path_not_found and read_failed.

    Attributes:
        root: absolute path of the folder.
        label: how names are resolved here, and what that leaves open.
    """

    def __init__(self, root: Path, *, hard_links: bool = False) -> None:
        """Take a folder that the caller trusts to be the one meant.

        Args:
            hard_links: also take files that have a second name, as copies made by link have.
        """
        self._base = root.resolve()
        self._prefix: tuple[str, ...] = ()
        self._hard_links = hard_links
        self._digests: dict[str, tuple[tuple[int, ...], str]] = {}
        self.label = "descriptor walk" if HAS_DESCRIPTORS else "by name, best effort"

    @property
    def root(self) -> Path:
        """The absolute path, for showing and for handing to a sandbox."""
        return self._base.joinpath(*self._prefix)

    def __repr__(self) -> str:
        return f"ConfinedFolder({str(self.root)!r})"

    def subfolder(self, relative: str, *, hard_links: bool | None = None) -> ConfinedFolder:
        """Return the folder inside; it is still found from this one's root at each use."""
        inner = ConfinedFolder(
            self._base, hard_links=self._hard_links if hard_links is None else hard_links
        )
        inner._prefix = self._prefix + check_name(relative)
        inner._folder(()).close()
        return inner

    def open(self, relative: str) -> BinaryIO:
        """Open a regular file for reading.

        Raises:
            Failure: not_a_regular_file.
        """
        return os.fdopen(self._open(check_name(relative)), "rb")

    def read(self, relative: str, *, limit: int | None = None) -> bytes:
        """Return the bytes of a file, at most `limit` of them.

        Raises:
            Failure: not_a_regular_file, file_too_large.
        """
        with self.open(relative) as stream:
            return read_all(stream.fileno(), relative, limit)

    def read_text(self, relative: str, *, limit: int | None = None) -> str:
        """Return the text of a UTF-8 file of at most `limit` bytes.

        Raises:
            Failure: not_a_regular_file, file_too_large, not_utf8.
        """
        data = self.read(relative, limit=limit)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Failure(
                Code.not_utf8,
                f"'{printable(relative)}' is not UTF-8 text: byte {error.start} is "
                f"0x{data[error.start]:02x}.",
                "Read it in a script, with the encoding or the library that it needs.",
            ) from error

    def sha256(self, relative: str) -> str | None:
        """Return the digest of a file's bytes, None where there is none.

        Raises:
            Failure: not_a_regular_file.
        """
        try:
            with self.open(relative) as stream:
                return sha256_of(stream.fileno())
        except Failure as failure:
            if failure.code == Code.path_not_found:
                return None
            raise
        except OSError as error:
            raise read_failed(error, relative) from error

    def write(
        self, relative: str, data: bytes, *, expect: Expect = ANY, make_parents: bool = True
    ) -> Written:
        """Put bytes at a path in one step and return what is on disk then.

        Args:
            expect: what must be there at the moment of replacement.

        Raises:
            Failure: not_a_regular_file, changed_meanwhile, write_failed.
        """
        parts = check_name(relative)
        with self._folder(parts[:-1], make=make_parents) as parent:
            key = (*parent.identity, folded(parts[-1]))
            with held(key):
                old = check_target(
                    parent, parts[-1], relative, expect=expect, hard_links=self._hard_links
                )
                with staged(parent, [data], old, relative) as temporary:
                    put(parent, temporary, parent, parts[-1], expect=expect, shown=relative)
        return self._written(relative, hashlib.sha256(data).hexdigest())

    def move(
        self, relative: str, target: ConfinedFolder, target_relative: str, *, expect: Expect = ANY
    ) -> Written:
        """Move a file to a path of another folder in one step.

        Args:
            expect: what must be at the target at the moment of replacement.

        Raises:
            Failure: not_a_regular_file, changed_meanwhile, write_failed.
        """
        parts, new = check_name(relative), check_name(target_relative)
        with (
            self._folder(parts[:-1]) as here,
            target._folder(new[:-1], make=True) as there,
            held((*here.identity, folded(parts[-1])), (*there.identity, folded(new[-1]))),
        ):
            old = check_target(
                there, new[-1], target_relative, expect=expect, hard_links=target._hard_links
            )
            fd = open_regular(here, parts[-1], relative, hard_links=self._hard_links)
            try:
                digest = sha256_of(fd)
                settle_mode(fd, old)
                os.fsync(fd)
                put(here, parts[-1], there, new[-1], expect=expect, shown=target_relative)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise write_failed(error, target_relative) from error
                os.lseek(fd, 0, os.SEEK_SET)
                with staged(there, chunks(fd), old, target_relative) as temporary:
                    put(there, temporary, there, new[-1], expect=expect, shown=target_relative)
                here.unlink(parts[-1])
            finally:
                os.close(fd)
            here.sync()
        return target._written(target_relative, digest)

    def make_folder(self, relative: str) -> None:
        """Make a folder and those above it; one that is there already is fine.

        Raises:
            Failure: write_failed.
        """
        self._folder(check_name(relative), make=True).close()

    def remove(self, relative: str) -> None:
        """Remove a file, a link itself, or an empty folder.

        Raises:
            Failure: write_failed.
        """
        parts = check_name(relative)
        with self._folder(parts[:-1]) as parent:
            found = parent.stat(parts[-1])
            if found is None:
                raise not_found(parent, parts[-1], relative)
            remove = parent.rmdir if stat.S_ISDIR(found.st_mode) else parent.unlink
            try:
                remove(parts[-1])
                parent.sync()
            except OSError as error:
                raise write_failed(error, relative) from error

    def walk(
        self, relative: str = "", *, depth: int = MAX_DEPTH, entries: int = MAX_ENTRIES
    ) -> Iterator[Entry]:
        """Yield everything below a folder, parents first, names sorted, links not followed.

        Raises:
            Failure: folder_too_large, when it is deeper than `depth` or has more `entries`.
        """
        start = check_name(relative) if relative else ()
        waiting = [start]
        count = 0
        while waiting:
            parts = waiting.pop()
            inner = []
            for name, found in self._list(parts):
                count += 1
                if count > entries or len(parts) - len(start) >= depth:
                    raise _folder_too_large(relative, depth, entries)
                path = (*parts, name)
                if stat.S_ISDIR(found.st_mode):
                    inner.append(path)
                yield _entry("/".join(path), found)
            waiting.extend(reversed(inner))

    def digests(self, relative: str = "", *, trust_cache: bool = True) -> dict[str, str]:
        """Return path → sha256 of every regular file below a folder; nothing where there is none.

        Args:
            trust_cache: take the digest of before where inode, size and times say the same.

        Raises:
            Failure: folder_too_large.
        """
        found = {}
        for entry in self.walk(relative):
            if entry.kind == "file":
                fd = self._open(tuple(entry.path.split("/")), hard_links=True)
                try:
                    found[entry.path] = sha256_of(fd)
                finally:
                    os.close(fd)
        return found

    @contextmanager
    def _descending(self, parts: Sequence[str]) -> Iterator[Directory]:
        try:
            root = Directory.at(str(self._base))
        except FileNotFoundError as error:
            raise Failure(
                Code.path_not_found,
                f"The folder '{self._base}' does not exist.",
                f"Make it: mkdir -p '{self._base}'",
            ) from error
        except OSError as error:
            if self._base.is_symlink():
                raise link_refused(str(self._base)) from error
            raise read_failed(error, str(self._base)) from error
        yield root

    def _folder(self, parts: Sequence[str], *, make: bool = False) -> Directory:
        with self._descending(parts) as root:
            return descend(root, (*self._prefix, *parts), make=make)

    def _open(self, parts: Sequence[str], *, hard_links: bool | None = None) -> int:
        allowed = self._hard_links if hard_links is None else hard_links
        with self._folder(parts[:-1]) as parent:
            return open_regular(parent, parts[-1], "/".join(parts), hard_links=allowed)

    def _list(self, parts: Sequence[str]) -> list[tuple[str, os.stat_result]]:
        with self._folder(parts) as folder:
            return folder.entries()

    def _written(self, relative: str, digest: str) -> Written:
        with self.open(relative) as stream:
            size = os.fstat(stream.fileno()).st_size
            now = sha256_of(stream.fileno())
        if now != digest:
            raise Failure(
                Code.changed_meanwhile,
                f"'{printable(relative)}' was written and changed again at once.",
                "Find out what else writes there, then write it again.",
                {"sha256": now},
            )
        return Written(relative, size, now)


def _entry(path: str, found: os.stat_result) -> Entry:
    kinds: dict[str, Kind] = {"file": "file", "folder": "folder", "link": "link"}
    kind = kinds.get(kind_of(found), "other")
    return Entry(path, kind, found.st_size, found.st_mtime_ns, found.st_ino, found.st_nlink)


def _folder_too_large(relative: str, depth: int, entries: int) -> Failure:
    return Failure(
        Code.folder_too_large,
        f"'{printable(relative) or '.'}' has more than {entries} entries or {depth} levels.",
        "Keep only what is needed there.",
    )
