"""A process tree seen from its root: who belongs to it, what it uses, and how it ends.

Loaded by the keeper, so it imports nothing heavy. The root is a subreaper, so that what a child
leaves behind becomes the root's own child: nobody gets out of the tree by forking twice.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
MOMENT = 0.005  # seconds
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Use(NamedTuple):
    """What a tree uses now. Bytes and seconds."""

    processes: int
    memory: int
    cpu: float


def descendants(root: int) -> list[int]:
    """Return the process ids below `root`, parents first; empty where /proc is not there."""
    found: list[int] = []
    waiting = [root]
    while waiting:
        children = [child for pid in (waiting.pop(),) for child in _children(pid)]
        found += children
        waiting += children
    return found


def _children(pid: int) -> list[int]:
    try:
        threads = [entry.path for entry in os.scandir(f"/proc/{pid}/task")]
        return [int(child) for thread in threads for child in _text(f"{thread}/children").split()]
    except OSError:
        return []


def _text(path: str) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 16).decode("ascii", "replace")
    finally:
        os.close(descriptor)


def use(pids: Sequence[int]) -> Use:
    """Add up what these processes use. Memory counts shared pages once for each process."""
    processes = memory = ticks = 0
    for pid in pids:
        try:
            fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        if fields[0] in "ZX":
            continue
        processes += 1
        ticks += sum(int(fields[i]) for i in (11, 12, 13, 14))
        memory += int(fields[21]) * PAGE
    return Use(processes, memory, ticks / TICKS)


def proportional_memory(pids: Sequence[int]) -> int | None:
    """Return resident bytes with shared pages split among their users; None if not to be had."""
    total = 0
    for pid in pids:
        try:
            lines = _text(f"/proc/{pid}/smaps_rollup").splitlines()
        except ProcessLookupError:
            continue
        except OSError:
            return None
        total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return total


def unlinked_bytes(pids: Sequence[int]) -> int:
    """Return the size of open files that no folder lists any more."""
    seen: dict[tuple[int, int], int] = {}
    for pid in pids:
        try:
            entries = list(os.scandir(f"/proc/{pid}/fd"))
        except OSError:
            continue
        for entry in entries:
            try:
                found = entry.stat()
            except OSError:
                continue
            if found.st_nlink == 0:
                seen[found.st_dev, found.st_ino] = found.st_size
    return sum(seen.values())


def folder_bytes(folders: Sequence[str], seconds: float) -> tuple[int, int]:
    """Return (bytes in all files below, bytes of the largest), giving up after `seconds`."""
    until = time.monotonic() + seconds
    seen: set[int] = set()
    total = largest = 0
    for entry in _files(folders):
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        if found.st_nlink > 1 and found.st_ino in seen:
            continue
        seen.add(found.st_ino)
        total += found.st_size
        largest = max(largest, found.st_size)
        if time.monotonic() > until:
            break
    return total, largest


def _files(folders: Sequence[str]) -> Iterator[os.DirEntry[str]]:
    waiting = list(folders)
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            else:
                yield entry


def end(group: int, seconds: float) -> int:
    """Kill everything below this process, reap it, and return how many are left.

    The group goes first, in one call that no fork can outrun; then whoever left the group, for as
    long as there is somebody.
    """
    until = time.monotonic() + seconds
    me = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        # the group may be gone, or hold nobody but zombies
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        left = descendants(me)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if reap() or time.monotonic() > until:
            return len(descendants(me))
        _await_an_end()


def _await_an_end() -> None:
    """Sleep until a child ended, or for a moment: not each one tells us."""
    if hasattr(signal, "sigtimedwait"):
        signal.sigtimedwait({signal.SIGCHLD}, MOMENT)
    else:
        time.sleep(MOMENT)


def reap() -> bool:
    """Collect ended children; say whether there are none left at all."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False
