"""The one way to the files of a folder that others can change.

Proves: nothing outside the root is read or written, whatever is swapped meanwhile.
Does not prove: anything about who may write in the folder, nor about the root itself and what is
above it. `ConfinedFolder.label` says how names are resolved on this system.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from agent_runtime import Failure
from reread.files import listing
from reread.files.content import chunks, digest, open_regular, read_all, sha256_of
from reread.files.directory import (
    HAS_DESCRIPTORS,
    Directory,
    descend,
    link_refused,
    not_a_folder,
    not_found,
    read_failed,
    write_failed,
)
from reread.files.listing import MAX_ENTRIES, Digests, Entry
from reread.files.locks import held
from reread.files.names import MAX_DEPTH, check_name, printable
from reread.files.removal import remove_tree
from reread.files.replace import (
    ANY,
    Expect,
    Place,
    Watch,
    Written,
    check_target,
    identity,
    put,
    read_back,
    settle_mode,
    staged,
    sweep,
    unwatched,
)
from reread.values import Code


class ConfinedFolder:
    """A folder and everything below it; nothing else can be reached through it.

    Paths are relative, written with '/', and follow the rules of `check_name`. Every method that
    takes one can raise path_not_allowed, path_not_found and read_failed.

    Attributes:
        root: absolute path of the folder.
        label: how names are resolved here, and what that leaves open.
    """

    def __init__(
        self, root: Path, *, descriptors: bool = HAS_DESCRIPTORS, watch: Watch = unwatched
    ) -> None:
        """Take a folder that the caller trusts to be the one meant.

        Args:
            descriptors: False goes by name, as on a system that cannot open folders.
            watch: told how far each write has come; what it raises ends the write there.
        """
        self._base = root.resolve()
        self._prefix: tuple[str, ...] = ()
        self._descriptors = descriptors
        self._watch = watch
        self._digests = Digests()

    @property
    def root(self) -> Path:
        """The absolute path, for showing and for handing to a sandbox."""
        return self._base.joinpath(*self._prefix)

    @property
    def label(self) -> str:
        """Say how names are resolved here, for people."""
        if self._descriptors:
            return "open folders, no link followed"
        return "by name, checked before and after: a swap in between is not found out"

    def __repr__(self) -> str:
        return f"ConfinedFolder({str(self.root)!r})"

    def subfolder(self, relative: str) -> ConfinedFolder:
        """Return the folder inside; it is still found from this one's root at each use."""
        inner = ConfinedFolder(self._base, descriptors=self._descriptors, watch=self._watch)
        inner._prefix = self._prefix + check_name(relative)
        inner._digests = self._digests
        inner._folder(()).close()
        return inner

    def open(self, relative: str) -> BinaryIO:
        """Open a regular file for reading.

        Raises:
            Failure: not_a_regular_file.
        """
        parts = check_name(relative)
        with self._folder(parts[:-1]) as parent:
            return os.fdopen(open_regular(parent, parts[-1], relative), "rb")

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
        """Read a file and return its digest, None where there is none; no cache is asked.

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
            target = Place(parent, parts[-1], relative)
            try:
                check_target(target, expect)
                return _store([data], digest(data), target, expect, self._watch)
            except OSError as error:
                raise write_failed(error, relative) from error

    def move(
        self, relative: str, target: ConfinedFolder, target_relative: str, *, expect: Expect = ANY
    ) -> Written:
        """Move a file to a path of another folder in one step and return what is on disk then.

        Between two file systems it is copied, and so is a file with a second name, which would
        go on changing what was moved. A kill loses neither file, but can leave the replaced one
        under the name of the moved one.

        Args:
            expect: what must be at the target at the moment of replacement.

        Raises:
            Failure: not_a_regular_file, changed_meanwhile, write_failed.
        """
        parts, new = check_name(relative), check_name(target_relative)
        with self._folder(parts[:-1]) as here, target._folder(new[:-1], make=True) as there:
            old, fresh = Place(here, parts[-1], relative), Place(there, new[-1], target_relative)
            try:
                return _move(old, fresh, expect, target._watch)
            except OSError as error:
                raise write_failed(error, target_relative) from error

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
            try:
                found = parent.stat(parts[-1])
                if found is None:
                    raise not_found(parent, parts[-1], relative)
                remove = parent.rmdir if stat.S_ISDIR(found.st_mode) else parent.unlink
                remove(parts[-1])
                parent.sync()
            except OSError as error:
                raise write_failed(error, relative) from error

    def remove_tree(self, relative: str) -> None:
        """Remove a folder and everything in it, as deep and as locked as it may be.

        Raises:
            Failure: write_failed; path_not_allowed for a link.
        """
        parts = check_name(relative)
        with self._folder(parts[:-1]) as parent:
            try:
                remove_tree(parent, parts[-1])
                parent.sync()
            except FileNotFoundError as error:
                raise not_found(parent, parts[-1], relative) from error
            except OSError as error:
                if (found := parent.peek(parts[-1])) and not stat.S_ISDIR(found.st_mode):
                    raise not_a_folder(parent, parts[-1], relative, error) from error
                raise write_failed(error, relative) from error

    def walk(
        self, relative: str = "", *, depth: int = MAX_DEPTH, entries: int = MAX_ENTRIES
    ) -> Iterator[Entry]:
        """Yield everything below a folder, parents first, names sorted, links not followed.

        What vanishes meanwhile and folders that cannot be opened are not gone into.

        Raises:
            Failure: folder_too_large, when it is deeper than `depth` or has more `entries`.
        """
        start = check_name(relative) if relative else ()
        return listing.walk(self._folder, start, depth=depth, entries=entries)

    def digests(self, relative: str = "", *, trust_cache: bool = True) -> dict[str, str]:
        """Return path → sha256 of every regular file below a folder; nothing where there is none.

        A file that cannot be read has no digest.

        Args:
            trust_cache: take the digest of before where inode, size and times say the same.

        Raises:
            Failure: folder_too_large.
        """
        start = check_name(relative) if relative else ()
        try:
            return listing.digests(self._folder, start, self._digests, trust_cache=trust_cache)
        except Failure as failure:
            if failure.code == Code.path_not_found:
                return {}
            raise

    def sweep(self) -> int:
        """Remove what killed writers left unfinished, here and below, and count it.

        A writer that is still at work keeps its file.
        """
        swept = 0
        for parts in [(), *(tuple(e.path.split("/")) for e in self.walk() if e.kind == "folder")]:
            with self._folder(parts) as folder:
                swept += sweep(folder)
        return swept

    def _folder(self, parts: Sequence[str], *, make: bool = False) -> Directory:
        above = len(self._prefix)
        return descend(self._root(), (*self._prefix, *parts), make=make, above=above)

    def _root(self) -> Directory:
        try:
            return Directory.at(str(self._base), descriptors=self._descriptors)
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


def _store(
    data: Iterable[bytes], sha256: str, target: Place, expect: Expect, watch: Watch
) -> Written:
    with staged(target, data, watch) as temporary, held(target.folder):
        put(temporary, target, expect=expect, watch=watch)
        return read_back(target, sha256)


def _move(source: Place, target: Place, expect: Expect, watch: Watch) -> Written:
    old = check_target(target, expect)
    fd = open_regular(source.folder, source.name, source.shown)
    try:
        sha256 = sha256_of(fd)
        if os.fstat(fd).st_nlink > 1:
            return _copy(fd, sha256, source, target, expect, watch)
        try:
            settle_mode(fd, old)
            os.fsync(fd)
            source = dataclasses.replace(source, identity=identity(os.fstat(fd)))
            return _rename(sha256, source, target, expect, watch)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            return _copy(fd, sha256, source, target, expect, watch)
    finally:
        os.close(fd)


def _rename(sha256: str, source: Place, target: Place, expect: Expect, watch: Watch) -> Written:
    with held(source.folder, target.folder):
        put(source, target, expect=expect, watch=watch)
        source.folder.sync()
        return read_back(target, sha256)


def _copy(
    fd: int, sha256: str, source: Place, target: Place, expect: Expect, watch: Watch
) -> Written:
    os.lseek(fd, 0, os.SEEK_SET)
    written = _store(chunks(fd), sha256, target, expect, watch)
    source.folder.unlink(source.name)
    source.folder.sync()
    return written
