"""One lock for each path, for the threads of this process.

A caller holds it from the first look at a path to its replacement and never waits for anything
but the disk meanwhile, so tasks of one event loop cannot block each other for good.

Does not prove: anything about other processes; the swap of `reread.files.replace` does that.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

Key = tuple[int, int, str]
"""Device and inode of the folder, and the folded name."""

_guard = threading.Lock()
_locks: dict[Key, tuple[threading.Lock, int]] = {}


@contextmanager
def held(*keys: Key) -> Iterator[None]:
    """Hold the locks of all keys, taken in one order so that two callers cannot deadlock."""
    with ExitStack() as stack:
        for key in sorted(set(keys)):
            stack.enter_context(_held(key))
        yield


@contextmanager
def _held(key: Key) -> Iterator[None]:
    with _guard:
        lock, users = _locks.get(key, (threading.Lock(), 0))
        _locks[key] = (lock, users + 1)
    try:
        with lock:
            yield
    finally:
        _release(key)


def _release(key: Key) -> None:
    with _guard:
        lock, users = _locks[key]
        if users == 1:
            del _locks[key]
        else:
            _locks[key] = (lock, users - 1)
