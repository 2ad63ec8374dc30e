"""The supervisor of one child: starts it in its fence, watches its tree, ends it, tells the end.

One process for each child, forked from the keeper. It reads the request from its channel, and
kills the tree when the channel closes, when a limit is passed, or when the first process ended;
`ended` is told only when nobody of the tree is left alive.

The limits that the kernel counts for a whole tree only with a control group (memory, CPU time,
processes, bytes written) are watched here, every `TICK` seconds.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from typing import Any

from reread.sandbox import _child, _landlock, _tree

TICK = 0.05
DISK_TICK = 0.25
PIPE_BYTES = 1 << 20
CHUNK = 1 << 18
KILL_SECONDS = 5.0
DRAIN_SECONDS = 1.0
NEWS_SECONDS = 0.1
NEWS_BYTES = 2048


def main(requests: socket.socket, taken: int, kind: str) -> None:
    """Have a child wait for one request, say that it was taken, and watch what it becomes."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _landlock.become_subreaper()
    pipes = [os.pipe(), os.pipe()]
    child, below = _child.fork(requests, (pipes[0][1], pipes[1][1]), kind)
    requests.close()
    for _, writer in pipes:
        os.close(writer)
    data, descriptors, _, _ = socket.recv_fds(below, _child.SIZE.size, 4)
    if not data:
        return
    os.write(taken, b"t")
    os.close(taken)
    request = json.loads(_child.exactly(below, *_child.SIZE.unpack(data)))
    channel = socket.socket(fileno=descriptors[0])
    readers = [reader for reader, _ in pipes]
    supervisor = Supervisor(channel, request, child, readers, descriptors[1:3])
    told: dict[str, Any]
    try:
        told = supervisor.run(below, descriptors[3:])
    except OSError as error:
        _tree.end(child, KILL_SECONDS)
        told = {"start_problem": f"its supervisor failed: {error}"}
    with contextlib.suppress(OSError):  # nobody listens any more
        _tell(channel, "ended", told)


def _tell(channel: socket.socket, event: str, value: Any) -> None:
    channel.sendall(json.dumps({event: value}).encode() + b"\n")


class Supervisor:
    """What is known of the one child while it lives."""

    def __init__(
        self,
        channel: socket.socket,
        request: dict[str, Any],
        child: int,
        readers: list[int],
        logs: list[int],
    ) -> None:
        self.started = time.monotonic()
        self.channel = channel
        self.request = request
        self.child = child
        self.limits: dict[str, Any] = request["limits"]
        self.logs: dict[int, int] = {}
        self.sizes = {1: 0, 2: 0}
        self.numbers: dict[int, int] = {}
        self.buffer = bytearray(CHUNK)
        self.verdict = ""
        self.peak = 0
        self.cpu = 0.0
        self.wrote = 0
        self.largest = 0
        self.news_from = {1: 0, 2: 0}
        self.news_at = 0.0
        self.disk_at = 0.0
        for number, reader, log in zip((1, 2), readers, logs, strict=True):
            if request["capture"]:
                self.logs[reader], self.numbers[reader] = log, number
            else:
                os.close(reader)
                os.close(log)

    def run(self, below: socket.socket, status: list[int]) -> dict[str, Any]:
        """Stay until the whole tree is gone, and return what happened."""
        for reader in self.logs:
            os.set_blocking(reader, False)
            with contextlib.suppress(OSError, AttributeError):  # a user may have used up theirs
                fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        problem = b""
        while part := below.recv(4096):  # it ends when exec closes the other side
            problem += part
        if problem:
            _tree.end(self.child, KILL_SECONDS)
            return {"start_problem": problem.decode("utf-8", "replace")}
        exit_status = self._watch()
        seconds = time.monotonic() - self.started
        survivors = _tree.end(self.child, KILL_SECONDS)
        self._drain()
        return self._account(exit_status, seconds, survivors, status)

    def _watch(self) -> int | None:
        """Return the wait status of the first process, None if it had to be killed."""
        poll = select.poll()
        poll.register(self.channel, select.POLLIN)
        for reader in self.logs:
            poll.register(reader, select.POLLIN)
        ended = os.pidfd_open(self.child) if hasattr(os, "pidfd_open") else -1
        if ended >= 0:
            poll.register(ended, select.POLLIN)
        wait = TICK if ended >= 0 else 0.005
        next_tick = self.started + TICK
        while True:
            for descriptor, _ in poll.poll(
                max(0.0, min(wait, next_tick - time.monotonic())) * 1000
            ):
                if descriptor == self.channel.fileno():
                    if not self.channel.recv(64):
                        self.verdict = "cancelled"
                    else:
                        self.verdict = "killed"
                elif descriptor in self.logs and not self._pump(descriptor):
                    poll.unregister(descriptor)
            pid, status = os.waitpid(self.child, os.WNOHANG)
            if pid:
                return status
            if time.monotonic() >= next_tick:
                self._tick()
                next_tick = time.monotonic() + TICK
            if self.verdict:
                return None

    def _pump(self, reader: int) -> bool:
        """Move what is there from a pipe to its log; False at its end.

        One buffer for all of it: a flood costs no memory of ours. (splice was slower: it takes a
        new page of the cache for each page of the pipe.)
        """
        try:
            size = os.readv(reader, [self.buffer])
        except BlockingIOError:
            return True
        number = self.numbers[reader]
        room = self.limits["output"] - sum(self.sizes.values())
        left = memoryview(self.buffer)[: min(size, max(0, room))]
        self.sizes[number] += len(left)
        while left:
            left = left[os.write(self.logs[reader], left) :]
        if size > room:
            self.verdict = self.verdict or "output"
        return size > 0

    def _report(self, now: float) -> None:
        """Tell the newest output, at most every NEWS_SECONDS."""
        if now - self.news_at < NEWS_SECONDS:
            return
        self.news_at = now
        for reader, log in self.logs.items():
            number = self.numbers[reader]
            at = max(self.news_from[number], self.sizes[number] - NEWS_BYTES)
            # A program that does not listen must not stop its supervisor.
            if at < self.sizes[number] and select.select([], [self.channel], [], 0)[1]:
                news = os.pread(log, self.sizes[number] - at, at)
                self.news_from[number] = self.sizes[number]
                _tell(self.channel, "output", news.decode("utf-8", "replace"))

    def _tick(self) -> None:
        """Look at what the tree uses and name the first limit that it passed."""
        now = time.monotonic()
        if now - self.started > self.limits["timeout"]:
            self.verdict = "timeout"
            return
        self._report(now)
        pids = _tree.descendants(os.getpid())
        used = _tree.use(pids)
        gone = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.cpu = max(self.cpu, used.cpu + gone.ru_utime + gone.ru_stime)
        if used.processes > self.limits["processes"]:
            self.verdict = "processes"
        elif self._too_much_memory(pids, used.memory):
            self.verdict = "memory"
        elif self.cpu > self.limits["cpu"]:
            self.verdict = "cpu"
        elif self.limits["folders"] and now - self.disk_at > DISK_TICK:
            self.disk_at = now
            self._weigh(pids)

    def _too_much_memory(self, pids: list[int], memory: int) -> bool:
        if memory > self.limits["memory"]:  # forked children share pages: look again, closely
            exact = _tree.proportional_memory(pids)
            memory = memory if exact is None else exact
        self.peak = max(self.peak, memory)
        return bool(memory > self.limits["memory"])

    def _weigh(self, pids: list[int]) -> None:
        """Add up what lies in the folders, and what is open and has no name."""
        named, self.largest = _tree.folder_bytes(self.limits["folders"], DISK_TICK)
        self.wrote = named + _tree.unlinked_bytes(pids)
        if self.wrote > self.limits["written"]:
            self.verdict = "written"

    def _drain(self) -> None:
        """Take what is left in the pipes; all writers are dead, so they end at once."""
        until = time.monotonic() + DRAIN_SECONDS
        for reader in self.logs:
            while time.monotonic() < until and self._pump(reader):
                if not select.select([reader], [], [], 0)[0]:
                    break

    def _account(
        self, status: int | None, seconds: float, survivors: int, reports: list[int]
    ) -> dict[str, Any]:
        gone = resource.getrusage(resource.RUSAGE_CHILDREN)
        unit = 1 if sys.platform == "darwin" else 1024
        wrote, largest = _tree.folder_bytes(self.limits["folders"], 2.0)
        if wrote > self.limits["written"]:
            self.verdict = self.verdict or "written"
        return {
            "exit": os.waitstatus_to_exitcode(status) if status is not None else None,
            "verdict": self.verdict,
            "seconds": seconds,
            "cpu": max(self.cpu, gone.ru_utime + gone.ru_stime),
            "peak": max(self.peak, gone.ru_maxrss * unit),
            "wrote": wrote,
            "largest": max(largest, self.largest),
            "sizes": [self.sizes[1], self.sizes[2]],
            "survivors": survivors,
            "inner": _inner_exit(reports),
        }


def _inner_exit(reports: list[int]) -> int | None:
    """Return the exit code in bubblewrap's reports, None if the command never ran."""
    text = b""
    for reader in reports:
        while part := os.read(reader, 65536):
            text += part
    for line in text.splitlines():
        report = json.loads(line)
        if "exit-code" in report:
            return int(report["exit-code"])
    return None
