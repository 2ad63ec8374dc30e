"""One writer at a time in each folder: a lock for the threads of this process, and one on the
folder itself for other processes.

A folder, and not each name in it, since two names can be twins. It is held for the moment of
replacement only, never while bytes are written or while anything but the disk is waited for, so
tasks of one event loop cannot block each other for good.

Proves: of two that write one path through `reread.files`, each reads back what it wrote.
Does not prove: anything about programs that take no lock. The exchange in `reread.files.replace`
finds out about those.
"""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from agent_runtime import Failure
from reread.files.directory import Directory
from reread.files.names import printable
from reread.values import Code

try:
    import fcntl
except ImportError:  # Windows has none, and no descriptors of folders either
    fcntl = None  # type: ignore[assignment]

PATIENCE = 10.0
"""Seconds to wait for another process. Nobody holds a folder so long, unless to keep us out."""

_PAUSE = 0.002
_Key = tuple[int, int]
_guard = threading.Lock()
_locks: dict[_Key, tuple[threading.Lock, int]] = {}


@contextmanager
def held(*folders: Directory) -> Iterator[None]:
    """Hold open folders, taken in one order so that two callers cannot deadlock.

    Raises:
        Failure: write_failed, when another process kept a folder locked for too long.
    """
    keyed = {folder.identity: folder for folder in folders}
    with ExitStack() as stack:
        for key in sorted(keyed):
            stack.enter_context(_thread_lock(key))
            stack.enter_context(_process_lock(keyed[key]))
        yield


def try_lock(fd: int) -> bool:
    """Lock an open file for other processes, without waiting, until it is closed.

    A file system that knows no locks counts as locked: that is no reason to write nothing.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EINTR)
    return True


@contextmanager
def _process_lock(folder: Directory) -> Iterator[None]:
    fd = folder.fd
    if fd is None or fcntl is None:
        yield
        return
    until = time.monotonic() + PATIENCE
    while not try_lock(fd):
        if time.monotonic() > until:
            raise _kept_out(folder)
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)


def _kept_out(folder: Directory) -> Failure:
    return Failure(
        Code.write_failed,
        f"Another program has kept '{printable(folder.path)}' locked for {PATIENCE:.0f} seconds.",
        f"Find it and end it: fuser -v '{printable(folder.path)}'",
    )


@contextmanager
def _thread_lock(key: _Key) -> Iterator[None]:
    with _guard:
        lock, users = _locks.get(key, (threading.Lock(), 0))
        _locks[key] = (lock, users + 1)
    try:
        with lock:
            yield
    finally:
        _release(key)


def _release(key: _Key) -> None:
    with _guard:
        lock, users = _locks[key]
        if users == 1:
            del _locks[key]
        else:
            _locks[key] = (lock, users - 1)
