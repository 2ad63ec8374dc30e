"""One process at a time on a workspace, by a lock that dies with its process."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_runtime import Failure
from reread.values import Code

try:
    import fcntl
except ImportError:  # Windows has another call for the same thing
    fcntl = None  # type: ignore[assignment]

_held: dict[str, tuple[int, int]] = {}
_guard = threading.Lock()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; runs of the same process share it.

    The system drops it when the process ends, however it ends, so there is no stale lock.

    Raises:
        Failure: workspace_locked, naming the process that holds it.
    """
    key = str(folder)
    with _guard:
        descriptor, users = _held.get(key, (-1, 0))
        if not users:
            descriptor = _take(folder)
        _held[key] = (descriptor, users + 1)
    try:
        yield
    finally:
        with _guard:
            descriptor, users = _held[key]
            if users == 1:
                os.close(descriptor)
                del _held[key]
            else:
                _held[key] = (descriptor, users - 1)


def _take(folder: Path) -> int:
    path = folder / ".lock"
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        _lock(descriptor)
    except OSError as error:
        holder = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
        os.close(descriptor)
        raise Failure(
            Code.workspace_locked,
            f"Another process (pid {holder}) works in '{folder.parent}'.",
            "Wait until it has ended, or name another folder with --workspace DIR.",
        ) from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


def _lock(descriptor: int) -> None:
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    with contextlib.suppress(ImportError):  # neither call: no lock can be had
        import msvcrt

        # Far behind the pid, so that another process can still read that.
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        os.lseek(descriptor, 0, os.SEEK_SET)
