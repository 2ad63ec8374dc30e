"""One open folder, and the way down to it that follows no link.

Each component is opened relative to the descriptor of the one before it, so that no check can be
made on one folder and used on another.

Proves: what is opened lies below the root, and no component was a link at the moment it was used.
Does not prove: anything about the root itself and what is above it, which the caller trusts; nor,
on a system without directory descriptors, that nothing was swapped between check and use.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from agent_runtime import Failure
from reread.files.names import printable, twin
from reread.values import Code

HAS_DESCRIPTORS = (
    {os.open, os.stat, os.mkdir, os.unlink, os.rmdir, os.rename} <= os.supports_dir_fd
    and os.scandir in os.supports_fd
    and hasattr(os, "O_NOFOLLOW")
)
_SAFE = (
    getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a FIFO must not make us wait for its writer
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
_FOLDER = os.O_RDONLY | _SAFE | getattr(os, "O_DIRECTORY", 0)


class Directory:
    """An open folder. Every name given to it is a single component.

    Attributes:
        fd: its descriptor, or None where the system has none for folders.
        path: where it was found; used to reach it only where `fd` is None.
    """

    __slots__ = ("fd", "path")

    def __init__(self, fd: int | None, path: str) -> None:
        self.fd = fd
        self.path = path

    @classmethod
    def at(cls, path: str, *, descriptors: bool = HAS_DESCRIPTORS) -> Directory:
        """Open the folder at an absolute path that the caller trusts. Raises OSError."""
        if descriptors:
            return cls(os.open(path, _FOLDER), path)
        _check_plain_folder(path)
        return cls(None, path)

    def __enter__(self) -> Directory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the descriptor back."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
            self.path = ""

    def _at(self, name: str) -> str:
        return name if self.fd is not None else f"{self.path}/{name}"

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode: the same for two handles on one folder."""
        found = Path(self.path).stat() if self.fd is None else os.fstat(self.fd)
        return found.st_dev, found.st_ino

    def enter(self, name: str) -> Directory:
        """Open a folder inside this one; a link is no folder. Raises OSError."""
        path = f"{self.path}/{name}"
        if self.fd is not None:
            return Directory(os.open(name, _FOLDER, dir_fd=self.fd), path)
        _check_plain_folder(path)
        return Directory(None, path)

    def open(self, name: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
        """Open a file inside this one; the caller looks at what it is. Raises OSError."""
        fd = os.open(self._at(name), flags | _SAFE, mode, dir_fd=self.fd)
        if self.fd is None and not _is_what_the_name_says(fd, self._at(name)):
            os.close(fd)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        return fd

    def stat(self, name: str) -> os.stat_result | None:
        """Look at a name without following it; None where there is nothing."""
        try:
            return os.stat(self._at(name), dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def peek(self, name: str) -> os.stat_result | None:
        """Look at a name to explain a failure; None where there is nothing or we may not look."""
        try:
            return self.stat(name)
        except OSError:
            return None

    def names(self) -> list[str]:
        """List what is inside, unsorted."""
        return os.listdir(self.path if self.fd is None else self.fd)  # noqa: PTH208 by descriptor

    def entries(self) -> list[tuple[str, os.stat_result]]:
        """List what is inside, sorted, links not followed; what vanishes meanwhile is left out."""
        found = []
        with os.scandir(self.path if self.fd is None else self.fd) as entries:
            for entry in entries:
                try:
                    found.append((entry.name, entry.stat(follow_symlinks=False)))
                except FileNotFoundError:
                    continue
        return sorted(found)

    def make(self, name: str) -> None:
        """Make a folder inside this one."""
        os.mkdir(self._at(name), dir_fd=self.fd)

    def unlink(self, name: str) -> None:
        """Remove a name that is no folder."""
        os.unlink(self._at(name), dir_fd=self.fd)

    def rmdir(self, name: str) -> None:
        """Remove an empty folder."""
        os.rmdir(self._at(name), dir_fd=self.fd)

    def rename(self, name: str, target: Directory, new: str) -> None:
        """Move a name into another folder, over what is there."""
        os.replace(self._at(name), target._at(new), src_dir_fd=self.fd, dst_dir_fd=target.fd)

    def sync(self) -> None:
        """Make what was renamed here last through a loss of power, where the system can."""
        if self.fd is None:
            return
        try:
            os.fsync(self.fd)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # not for folders, there
                raise


def descend(
    root: Directory, parts: Sequence[str], *, make: bool = False, above: int = 0
) -> Directory:
    """Open the folder at `parts` below `root`, which is closed; make what is missing on request.

    Args:
        above: how many of the first parts belong to the caller's folder; messages leave them out.

    Raises:
        Failure: path_not_allowed for a link, path_not_found, write_failed, read_failed.
    """
    here = root
    for depth, part in enumerate(parts, start=1):
        with here:
            inner = _enter(here, part, parts[min(above, depth - 1) : depth], make=make)
        here = inner
    return here


def _enter(here: Directory, part: str, path: Sequence[str], *, make: bool) -> Directory:
    shown = "/".join(path)
    try:
        return here.enter(part)
    except FileNotFoundError as error:
        if not make:
            raise not_found(here, part, shown) from error
    except OSError as error:
        raise not_a_folder(here, part, shown, error) from error
    check_twin(here, part, shown)
    try:
        here.make(part)
        here.sync()
    except FileExistsError:
        pass  # made by someone else meanwhile; entering it says whether it is a folder
    except OSError as error:
        raise write_failed(error, shown) from error
    return _enter(here, part, path, make=False)


def check_twin(parent: Directory, name: str, shown: str) -> None:
    """Refuse to make `name` beside one that other systems take for the same."""
    names = parent.names()
    other = None if name in names else twin(name, names)
    if other is not None:
        raise Failure(
            Code.path_not_allowed,
            f"'{printable(shown)}' would lie beside '{printable(other)}', "
            "which differs only in case or composition.",
            f"Use the name that is there, '{printable(other)}', or a different one.",
        )


def not_found(parent: Directory, name: str, shown: str) -> Failure:
    """Say that a path is not there, and name its twin if it has one."""
    other = twin(name, parent.names())
    remedy = f"There is '{printable(other)}'." if other else "List the folder to see what is there."
    return Failure(Code.path_not_found, f"'{printable(shown)}' does not exist.", remedy)


def not_a_folder(parent: Directory, name: str, shown: str, error: OSError) -> Failure:
    """Say why a component could not be entered."""
    found = parent.peek(name)
    if found is not None and stat.S_ISLNK(found.st_mode):
        return link_refused(shown)
    if found is not None and not stat.S_ISDIR(found.st_mode):
        return Failure(
            Code.path_not_found,
            f"'{printable(shown)}' is not a folder.",
            "List the folder above it to see what is there.",
        )
    return read_failed(error, shown)


def link_refused(shown: str) -> Failure:
    """Say that a path is or was a link."""
    return Failure(
        Code.path_not_allowed,
        f"'{printable(shown)}' is a symbolic link, and links are never followed.",
        "Put the file or folder itself there.",
    )


def read_failed(error: OSError, shown: str) -> Failure:
    """Say what the system said about a read."""
    return Failure(
        Code.read_failed,
        f"'{printable(shown)}' could not be read: {error.strerror}.",
        "Look at its permissions and at the disk, then try again.",
    )


def write_failed(error: OSError, shown: str) -> Failure:
    """Say what the system said about a write. What was there before is still there."""
    return Failure(
        Code.write_failed,
        f"'{printable(shown)}' could not be written: {error.strerror}.",
        "Look at the free space and the permissions of the folder, then try again.",
    )


def _check_plain_folder(path: str) -> None:
    found = os.lstat(path)
    if _is_link(found) or not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)


def _is_link(found: os.stat_result) -> bool:
    junction = getattr(found, "st_file_attributes", 0) & 0x400  # FILE_ATTRIBUTE_REPARSE_POINT
    return stat.S_ISLNK(found.st_mode) or bool(junction)


def _is_what_the_name_says(fd: int, path: str) -> bool:
    named = os.lstat(path)
    return not _is_link(named) and os.path.samestat(named, os.fstat(fd))
