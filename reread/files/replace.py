"""Putting a file in its place in one step, so that any moment shows the old one or the new one.

New bytes go into a temporary file in the same folder, are synced, and take the name by rename.
Where the caller said what must be there, the two are exchanged, the old one is looked at while it
is out of everybody's way, and put back if it is not the one that was meant.

Proves: no reader, crash or kill sees half a file; no file that was not named by its digest is
lost; what takes the name is the file that was written, not one that was put there instead.
Does not prove: that a disk keeps what it said it synced. Where a system cannot exchange names, the
old file is looked at right before the rename, and a change between the two would be lost; so would
one that was made in the instant before the exchange, were the program killed in the instant after.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Literal

from agent_runtime import Failure
from reread.files.content import check_regular, open_regular, sha256_of
from reread.files.directory import Directory, check_twin, write_failed
from reread.files.locks import held, try_lock
from reread.files.names import TEMPORARY, printable
from reread.files.swap import UNSUPPORTED, exchange, rename_new
from reread.values import Code


@dataclass(frozen=True, slots=True)
class Anything:
    """Whatever is there may be replaced."""


ANY: Final = Anything()
Expect = str | None | Anything
"""What must be at the target: a sha256, None for nothing, ANY for no question asked."""

Identity = tuple[int, int]
"""Device and inode."""

Moment = Literal["opened", "written", "synced", "exchanged", "renamed"]
Watch = Callable[[Moment], None]
"""Told how far a write has come: after the temporary file is opened, written and synced, after an
exchange while the old file still lies under the other name, and when only the new one is left,
before it is read back."""


def unwatched(moment: Moment) -> None:
    """Let a write go on."""


_PERMISSIONS = 0o777  # never suid, sgid or sticky


@dataclass(frozen=True, slots=True)
class Written:
    """A file as it was read back from disk after a write. `size` in bytes."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Place:
    """One name in an open folder.

    Attributes:
        shown: the path by which it is shown.
        identity: of the file that was opened there, for one that is about to be renamed.
    """

    folder: Directory
    name: str
    shown: str
    identity: Identity | None = None

    def look(self) -> os.stat_result | None:
        """Look at it without following it; None where there is nothing."""
        return self.folder.stat(self.name)

    def sha256(self) -> str | None:
        """Read the digest of the regular file there; None where there is nothing."""
        if self.look() is None:
            return None
        fd = open_regular(self.folder, self.name, self.shown)
        try:
            return sha256_of(fd)
        finally:
            os.close(fd)


def check_target(place: Place, expect: Expect) -> os.stat_result | None:
    """Look at what a write would replace.

    Raises:
        Failure: path_not_allowed (link, hard link, twin), not_a_regular_file, changed_meanwhile.
    """
    found = place.look()
    if found is None:
        check_twin(place.folder, place.name, place.shown)
    else:
        check_regular(found, place.shown)
        _check_single(found, place.shown)
    if not isinstance(expect, Anything):
        _check_expected(place.sha256(), expect, place.shown)
    return found


@contextmanager
def staged(place: Place, data: Iterable[bytes], watch: Watch) -> Iterator[Place]:
    """Write `data` to a temporary file beside the target, synced, and give its place.

    It is locked as long as it is used, which keeps `sweep` away from it.

    Raises:
        Failure: write_failed; the temporary file is gone then.
    """
    name = f".reread-{secrets.token_hex(8)}.part"
    try:
        fd = place.folder.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except OSError as error:
        raise write_failed(error, place.shown) from error
    try:
        try_lock(fd)
        watch("opened")
        _fill(fd, data)
        watch("written")
        settle_mode(fd, place.look())
        os.fsync(fd)
        mine = identity(os.fstat(fd))
        watch("synced")
        if os.name == "nt":
            os.close(fd)
            fd = -1  # Windows renames no open file
        yield Place(place.folder, name, place.shown, mine)
    except OSError as error:
        raise write_failed(error, place.shown) from error
    finally:
        with suppress(FileNotFoundError):
            place.folder.unlink(name)
        if fd >= 0:
            os.close(fd)


def settle_mode(fd: int, old: os.stat_result | None) -> None:
    """Give an open file the permissions and the owner of the one that it replaces."""
    now = os.fstat(fd)
    if old is not None and not stat.S_ISREG(old.st_mode):
        old = None
    wanted = (old or now).st_mode & _PERMISSIONS
    if old is not None and hasattr(os, "fchown") and _owner(old) != _owner(now):
        with suppress(PermissionError):
            os.fchown(fd, old.st_uid, old.st_gid)
    if hasattr(os, "fchmod"):
        os.fchmod(fd, wanted)


def identity(found: os.stat_result | None) -> Identity | None:
    """Return device and inode, None for nothing."""
    return None if found is None else (found.st_dev, found.st_ino)


def put(source: Place, target: Place, *, expect: Expect, watch: Watch) -> None:
    """Move a finished file to its name, if what is there is what was expected.

    Both folders must be held. The source must carry its identity; its name is free afterwards.

    Raises:
        Failure: changed_meanwhile, path_not_allowed, not_a_regular_file.
        OSError: EXDEV, where the two folders are on different file systems.
    """
    check_target(target, expect)
    if identity(source.look()) != source.identity:
        raise _not_ours(target)
    try:
        _rename(source, target, expect, watch)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        source.folder.rename(source.name, target.folder, target.name)
    watch("renamed")
    if identity(target.look()) != source.identity:
        _take_away_link(target)
        raise _not_ours(target)
    target.folder.sync()


def read_back(place: Place, expect: str) -> Written:
    """Read what is on disk after a write.

    Raises:
        Failure: changed_meanwhile, path_not_found, path_not_allowed, not_a_regular_file.
    """
    fd = open_regular(place.folder, place.name, place.shown)
    try:
        size, now = os.fstat(fd).st_size, sha256_of(fd)
    finally:
        os.close(fd)
    if now != expect:
        raise Failure(
            Code.changed_meanwhile,
            f"'{printable(place.shown)}' was written and changed again at once.",
            "Find out what else writes there, then write it again.",
            {"sha256": now},
        )
    return Written(place.shown, size, now)


def sweep(folder: Directory) -> int:
    """Remove the unfinished files that writers left here when they were killed; count them."""
    swept = 0
    with held(folder):
        for name in filter(TEMPORARY.fullmatch, folder.names()):
            with suppress(OSError):
                swept += _remove_if_unused(folder, name)
    return swept


def _remove_if_unused(folder: Directory, name: str) -> bool:
    found = folder.stat(name)
    if found is None or stat.S_ISDIR(found.st_mode):
        return False
    if not stat.S_ISREG(found.st_mode):
        folder.unlink(name)  # no writer of ours makes these
        return True
    fd = folder.open(name)
    try:
        unused = try_lock(fd)
        if unused:
            folder.unlink(name)
        return unused
    finally:
        os.close(fd)


def _rename(source: Place, target: Place, expect: Expect, watch: Watch) -> None:
    if isinstance(expect, Anything):
        source.folder.rename(source.name, target.folder, target.name)
    elif expect is None:
        try:
            rename_new(source.folder, source.name, target.folder, target.name)
        except FileExistsError:
            _check_expected(target.sha256(), None, target.shown)
            raise
    else:
        _exchange(source, target, expect, watch)


def _exchange(source: Place, target: Place, expect: str, watch: Watch) -> None:
    try:
        exchange(source.folder, source.name, target.folder, target.name)
    except FileNotFoundError:
        _check_expected(target.sha256(), expect, target.shown)
        raise
    old = Place(source.folder, source.name, target.shown)
    try:
        watch("exchanged")
        _check_single(old.look(), target.shown)
        _check_expected(old.sha256(), expect, target.shown)
    except BaseException:  # an interrupt here must not cost the old file either
        exchange(source.folder, source.name, target.folder, target.name)
        if identity(source.look()) != source.identity:
            # Someone put a newer file there between the two; the newest one stays.
            exchange(source.folder, source.name, target.folder, target.name)
        raise
    source.folder.unlink(source.name)


def _fill(fd: int, data: Iterable[bytes]) -> None:
    for chunk in data:
        view = memoryview(chunk)
        while view:
            view = view[os.write(fd, view) :]


def _owner(found: os.stat_result) -> tuple[int, int]:
    return found.st_uid, found.st_gid


def _take_away_link(target: Place) -> None:
    """Remove what took the name in the place of our own file, if somebody put a link there.

    A regular file stays: it can be somebody's own, put there right after ours.
    """
    found = target.look()
    if found is not None and not stat.S_ISREG(found.st_mode):
        with suppress(OSError):
            target.folder.unlink(target.name)


def _not_ours(target: Place) -> Failure:
    return Failure(
        Code.changed_meanwhile,
        f"'{printable(target.shown)}' was exchanged for something else while it was written.",
        "Find out what else writes in that folder, then write it again.",
    )


def _check_single(found: os.stat_result | None, shown: str) -> None:
    if found is not None and found.st_nlink > 1 and stat.S_ISREG(found.st_mode):
        raise Failure(
            Code.path_not_allowed,
            f"'{printable(shown)}' has {found.st_nlink} hard links, so it is a file of another "
            "folder too.",
            f"Make it a file of its own: cp '{printable(shown)}' copy && "
            f"mv copy '{printable(shown)}'",
        )


def _check_expected(now: str | None, expect: str | None, shown: str) -> None:
    if now == expect:
        return
    there = f"has sha256 {now[:12]}… now" if now else "does not exist now"
    wanted = f"sha256 {expect[:12]}… was expected" if expect else "nothing was expected there"
    raise Failure(
        Code.changed_meanwhile,
        f"'{printable(shown)}' {there}, and {wanted}.",
        "Look at what is there, then decide again.",
        {"sha256": now},
    )
