"""A small process that forks one limited child for each file.

It loads the readers once, so that a file costs a fork and not an interpreter start. It reads no
hostile byte itself: the child does, with limits on memory, CPU time, wall time and open files, and
writes its report into the socket that came with the request.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping
from typing import Any, NamedTuple

from reread import formats, patterns, plugins
from reread.examine import _judge

MEMORY = 320 << 20
"""Bytes of private memory of one child above what its parent has, and above `GROWTH` of its format
times the size of the file: an honest reader of a large file needs room in proportion to it."""
GROWTH = 4
CPU_SECONDS = 4
"""Of one child, and `PACE` of its format for each MiB of the file above that."""
PACE = 0.5
WALL_FACTOR = 4
"""Wall time for each second of CPU time: other programs run here too."""
OPEN_FILES = 64
BROKEN = 70
"""Exit status of a child whose report could not be made."""
SCHEMA_WORDS = {"schema", "front_matter"}
REQUEST_BYTES = 1 << 20


class Request(NamedTuple):
    """One file to be judged: its fields, and the open descriptors that came along."""

    fields: dict[str, Any]
    answer: int
    file: int
    baseline: int | None


def serve(control: socket.socket) -> None:
    """Take requests until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program decides what Ctrl-C means
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    children: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([control.fileno(), wake_read], [], [])
        if wake_read in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wake_read, 512)
            _reap(children)
        if control.fileno() in ready:
            request = _receive(control)
            if request is None:
                return
            children[_start(request, control)] = request.answer


def _receive(control: socket.socket) -> Request | None:
    data, fds, _, _ = socket.recv_fds(control, REQUEST_BYTES, 3)
    if not data:
        return None
    answer, file, *rest = fds
    return Request(json.loads(data), answer, file, rest[0] if rest else None)


def _start(request: Request, control: socket.socket) -> int:
    """Fork the child of a request; the parent keeps the answer socket to say how it ended."""
    _preload(request.fields["format"], request.fields["contract"])
    pid = os.fork()
    if pid == 0:
        status = BROKEN
        try:
            control.close()
            _limit(request)
            _answer(request)
            status = 0
        finally:
            os._exit(status)
    os.close(request.file)
    if request.baseline is not None:
        os.close(request.baseline)
    return pid


def _preload(format: str, contract: Mapping[str, Any]) -> None:
    """Load the readers of a format before the fork, so that each file does not pay for them."""
    module = plugins.load(formats, format)
    patterns.compile_all()
    schema = ("jsonschema",) if SCHEMA_WORDS & contract.keys() else ()
    for name in (*getattr(module, "PRELOAD", ()), *schema):
        with contextlib.suppress(ImportError):  # an extra that is not here; the check will say so
            __import__(name)


def _limit(request: Request) -> None:
    module = plugins.load(formats, request.fields["format"])
    size = os.fstat(request.file).st_size
    room = getattr(module, "MEMORY", MEMORY) + size * getattr(module, "GROWTH", GROWTH)
    seconds = CPU_SECONDS + int(getattr(module, "PACE", PACE) * size / (1 << 20))
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    signal.setitimer(signal.ITIMER_REAL, WALL_FACTOR * seconds)
    for kind, value in (
        (resource.RLIMIT_DATA, _used() + room),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 1 << 30),
    ):
        resource.setrlimit(kind, (value, value))
    # At the soft limit the signal says that it was time; at the hard one it could be anything.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


def _used() -> int:
    """Return the bytes of private data that this process has already."""
    try:
        with open("/proc/self/statm", "rb") as stream:  # noqa: PTH123 - one read, no Path needed
            return int(stream.read().split()[5]) * resource.getpagesize()
    except OSError:
        return 128 << 20


def _answer(request: Request) -> None:
    baseline = os.fdopen(request.baseline, "rb") if request.baseline is not None else None
    with os.fdopen(request.file, "rb", buffering=0) as stream:
        evidence = _judge.judge(stream, baseline=baseline, **request.fields)
    data = json.dumps(_judge.as_json(evidence), default=str).encode() + b"\n"
    with socket.socket(fileno=request.answer) as answer:
        answer.sendall(data)
        answer.detach()


def _reap(children: dict[int, int]) -> None:
    """Say how each ended child ended, and close its answer."""
    while children:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        answer = children.pop(pid, -1)
        if answer >= 0:
            with socket.socket(fileno=answer) as connection, contextlib.suppress(OSError):
                connection.sendall(str(os.waitstatus_to_exitcode(status)).encode() + b"\n")


def main() -> None:
    """Serve on the socket whose number is the last argument."""
    tempfile.tempdir = None
    with socket.socket(fileno=int(sys.argv[-1])) as control:
        serve(control)


if __name__ == "__main__":
    main()
