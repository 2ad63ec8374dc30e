"""Opening a regular file inside an open folder, and reading its bytes.

Proves: what was opened is a regular file, by its descriptor. A FIFO, device or socket is refused
and never waited for.
Does not prove: that the file has no second name elsewhere. Reading one does no harm, and package
managers and backups make many; only replacing looks at that.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator

from agent_runtime import Failure
from reread.files.directory import Directory, link_refused, not_found, read_failed
from reread.files.names import printable
from reread.values import Code

_CHUNK = 1 << 20


def open_regular(parent: Directory, name: str, shown: str) -> int:
    """Open a file for reading and return its descriptor.

    Raises:
        Failure: path_not_found, path_not_allowed (a link), not_a_regular_file, read_failed.
    """
    try:
        fd = parent.open(name)
    except FileNotFoundError as error:
        raise not_found(parent, name, shown) from error
    except OSError as error:
        raise _not_opened(parent, name, shown, error) from error
    try:
        check_regular(os.fstat(fd), shown)
    except Failure:
        os.close(fd)
        raise
    return fd


def check_regular(found: os.stat_result, shown: str) -> None:
    """Refuse what is no regular file.

    Raises:
        Failure: path_not_allowed, not_a_regular_file.
    """
    if stat.S_ISLNK(found.st_mode):
        raise link_refused(shown)
    if not stat.S_ISREG(found.st_mode):
        raise Failure(
            Code.not_a_regular_file,
            f"'{printable(shown)}' is a {kind_of(found)}, not a regular file.",
            "Name a file; list the folder to see what is there.",
        )


def kind_of(found: os.stat_result) -> str:
    """Name what a mode says: file, folder, link, FIFO, socket or device."""
    kinds = {
        stat.S_IFREG: "file",
        stat.S_IFDIR: "folder",
        stat.S_IFLNK: "link",
        stat.S_IFIFO: "FIFO",
        stat.S_IFSOCK: "socket",
    }
    return kinds.get(stat.S_IFMT(found.st_mode), "device")


def chunks(fd: int) -> Iterator[bytes]:
    """Yield the bytes of an open file from where it stands to its end. Raises OSError."""
    size = min(os.fstat(fd).st_size + 1, _CHUNK)  # small files cost no large buffer
    while chunk := os.read(fd, size):
        yield chunk


def sha256_of(fd: int) -> str:
    """Return the digest of the rest of an open file. Raises OSError."""
    digest = hashlib.sha256()
    for chunk in chunks(fd):
        digest.update(chunk)
    return digest.hexdigest()


def digest(data: bytes) -> str:
    """Return the sha256 of bytes as everything here writes it: 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def read_all(fd: int, shown: str, limit: int | None) -> bytes:
    """Read an open file to its end.

    Raises:
        Failure: file_too_large, read_failed.
    """
    data = bytearray()
    try:
        if limit is not None and (size := os.fstat(fd).st_size) > limit:
            raise _too_large(shown, size, limit)
        for chunk in chunks(fd):
            data += chunk
            if limit is not None and len(data) > limit:
                raise _too_large(shown, len(data), limit)
    except OSError as error:
        raise read_failed(error, shown) from error
    return bytes(data)


def _too_large(shown: str, size: int, limit: int) -> Failure:
    return Failure(
        Code.file_too_large,
        f"'{printable(shown)}' has {size} bytes; at most {limit} are read here.",
        "Read it in a script, or name a smaller file.",
    )


def _not_opened(parent: Directory, name: str, shown: str, error: OSError) -> Failure:
    found = parent.peek(name)
    if found is not None and error.errno in (
        errno.ELOOP,
        errno.ENXIO,
        errno.ENODEV,
        errno.EISDIR,
        errno.EACCES,
    ):
        try:
            check_regular(found, shown)
        except Failure as failure:
            return failure
    return read_failed(error, shown)
