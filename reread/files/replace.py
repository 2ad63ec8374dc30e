"""Putting a file in its place in one step, so that any moment shows the old one or the new one.

New bytes go into a temporary file in the same folder, are synced, and take the name by rename.
Where the caller said what must be there, old and new are exchanged, the old one is looked at while
it is out of reach of others, and put back if it is not the one that was meant.

Proves: no reader, crash or kill sees half a file; nothing is lost that was not named by digest.
Does not prove: that a disk keeps what it said it synced. Without an exchange (see `exchange`) the
old file is looked at right before the rename, and a change in between would be lost.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from agent_runtime import Failure
from reread.files.content import check_regular, open_regular, sha256_of
from reread.files.directory import Directory, check_twin, write_failed
from reread.files.names import printable
from reread.values import Code


@dataclass(frozen=True, slots=True)
class Anything:
    """Whatever is there may be replaced."""


ANY: Final = Anything()
Expect = str | None | Anything
"""What must be at the target: a sha256, None for nothing, ANY for no question asked."""

_PERMISSIONS = 0o777  # never suid, sgid or sticky


def check_target(
    parent: Directory, name: str, shown: str, *, expect: Expect, hard_links: bool
) -> os.stat_result | None:
    """Look at what a write would replace, before anything is written.

    Raises:
        Failure: path_not_allowed (link, hard link, twin), not_a_regular_file, changed_meanwhile.
    """
    check_twin(parent, name, shown)
    found = parent.stat(name)
    if found is not None:
        check_regular(found, shown, hard_links=hard_links)
    if not isinstance(expect, Anything):
        _check_expected(_digest(parent, name, shown) if found else None, expect, shown)
    return found


@contextmanager
def staged(
    parent: Directory, data: Iterable[bytes], old: os.stat_result | None, shown: str
) -> Iterator[str]:
    """Write `data` to a temporary file beside the target, synced, and give its name.

    Raises:
        Failure: write_failed; the temporary file is gone then.
    """
    name = f".rr-{secrets.token_hex(4)}"
    try:
        fd = parent.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except OSError as error:
        raise write_failed(error, shown) from error
    try:
        try:
            _fill(fd, data)
            settle_mode(fd, old)
            os.fsync(fd)
        finally:
            os.close(fd)
        yield name
    except OSError as error:
        raise write_failed(error, shown) from error
    finally:
        with suppress(FileNotFoundError):
            parent.unlink(name)


def settle_mode(fd: int, old: os.stat_result | None) -> None:
    """Give an open file the permissions and the owner of the one that it replaces."""
    now = os.fstat(fd)
    wanted = (old or now).st_mode & _PERMISSIONS
    if old is not None and hasattr(os, "fchown") and (old.st_uid, old.st_gid) != _owner(now):
        with suppress(PermissionError):
            os.fchown(fd, old.st_uid, old.st_gid)
    if hasattr(os, "fchmod"):
        os.fchmod(fd, wanted)


def put(
    source: Directory, name: str, target: Directory, new: str, *, expect: Expect, shown: str
) -> None:
    """Move a finished file to its name, if what is there is what was expected.

    Raises:
        Failure: changed_meanwhile, write_failed.
        OSError: EXDEV, where the two folders are on different file systems.
    """
    if not isinstance(expect, Anything):
        _check_expected(_digest(target, new, shown), expect, shown)
    source.rename(name, target, new)
    target.sync()


def _fill(fd: int, data: Iterable[bytes]) -> None:
    for chunk in data:
        view = memoryview(chunk)
        while view:
            view = view[os.write(fd, view) :]


def _owner(found: os.stat_result) -> tuple[int, int]:
    return found.st_uid, found.st_gid


def _digest(parent: Directory, name: str, shown: str) -> str | None:
    if parent.stat(name) is None:
        return None
    fd = open_regular(parent, name, shown, hard_links=True)
    try:
        return sha256_of(fd)
    finally:
        os.close(fd)


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
