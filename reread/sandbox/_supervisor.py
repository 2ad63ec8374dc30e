"""The supervisor of one child: starts it in its fence, watches its tree, ends it, tells the end.

One process for each child, forked from the keeper. It reads the request from its channel, and
kills the tree when the channel closes, when a limit is passed, or when the first process ended;
`ended` is told only when nobody of the tree is left alive.

The limits that the kernel counts for a whole tree only with a control group (memory, CPU time,
processes, bytes written) are watched here, every `TICK` seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from typing import Any

from reread.sandbox import _landlock, _tree

TICK = 0.05
DISK_TICK = 0.25
CHUNK = 1 << 18
KILL_SECONDS = 5.0
DRAIN_SECONDS = 1.0
NEWS_SECONDS = 0.1
NEWS_BYTES = 2048


def main(descriptors: list[int]) -> None:
    """Serve one request: [channel, stdin, stdout, stderr]."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)  # what comes through a socket would reach the child
    channel = socket.socket(fileno=descriptors[0])
    size = struct.unpack("=I", _exactly(channel, 4))[0]
    request = json.loads(_exactly(channel, size))
    told: dict[str, Any]
    try:
        told = Supervisor(channel, request, descriptors[1:]).run()
    except OSError as error:
        told = {"start_error": error.errno, "start_problem": str(error), "survivors": 0}
    with contextlib.suppress(OSError):  # nobody listens any more
        _tell(channel, "ended", told)


def _exactly(channel: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = channel.recv(size - len(data))
        if not part:
            os._exit(0)
        data += part
    return data


def _tell(channel: socket.socket, event: str, value: Any) -> None:
    channel.sendall(json.dumps({event: value}).encode() + b"\n")


class Supervisor:
    """What is known of the one child while it lives."""

    def __init__(
        self, channel: socket.socket, request: dict[str, Any], descriptors: list[int]
    ) -> None:
        self.channel = channel
        self.request = request
        self.limits: dict[str, Any] = request["limits"]
        self.stdin, self.stdout, self.stderr = descriptors
        self.logs: dict[int, int] = {}
        self.sizes = {1: 0, 2: 0}
        self.numbers: dict[int, int] = {}
        self.verdict = ""
        self.peak = 0
        self.cpu = 0.0
        self.wrote = 0
        self.largest = 0
        self.news = b""
        self.news_at = 0.0
        self.disk_at = 0.0

    def run(self) -> dict[str, Any]:
        """Start the child, stay until its whole tree is gone, and return what happened."""
        _landlock.become_subreaper()
        status_reader, status_writer = os.pipe() if self.request["status_fd"] else (-1, -1)
        error_reader, error_writer = os.pipe()
        outputs = self._outputs()
        self.started = time.monotonic()
        self.child = os.fork()
        if self.child == 0:
            _become_child(self.request, self.stdin, outputs, status_writer, error_writer)
        for descriptor in {error_writer, status_writer, self.stdin, *outputs} - {-1}:
            os.close(descriptor)
        problem = os.read(error_reader, 4096).decode()
        if problem:
            _tree.end(self.child, KILL_SECONDS)
            return {"start_error": 1, "start_problem": problem, "survivors": 0}
        _tell(self.channel, "started", self.child)
        status = self._watch()
        seconds = time.monotonic() - self.started
        survivors = _tree.end(self.child, KILL_SECONDS)
        self._drain()
        return self._account(status, seconds, survivors, status_reader)

    def _outputs(self) -> tuple[int, int]:
        """Return what the child gets as 1 and 2; with capture, pipes that are pumped to logs."""
        if not self.request["capture"]:
            return self.stdout, self.stderr
        writers = []
        for number, log in ((1, self.stdout), (2, self.stderr)):
            reader, writer = os.pipe()
            os.set_blocking(reader, False)
            with contextlib.suppress(OSError, AttributeError):
                import fcntl

                fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 1 << 20)
            self.logs[reader] = log
            self.numbers[reader] = number
            writers.append(writer)
        return writers[0], writers[1]

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
        """Move what is there from a pipe to its log; False at its end."""
        try:
            data = os.read(reader, CHUNK)
        except BlockingIOError:
            return True
        if not data:
            return False
        room = self.limits["output"] - sum(self.sizes.values())
        kept = data[: max(0, room)]
        self.sizes[self.numbers[reader]] += len(kept)
        while kept:
            kept = kept[os.write(self.logs[reader], kept) :]
        if len(data) > room:
            self.verdict = self.verdict or "output"
        self._report(data)
        return True

    def _report(self, data: bytes) -> None:
        """Tell the newest output, at most every NEWS_SECONDS."""
        self.news = (self.news + data)[-NEWS_BYTES:]
        now = time.monotonic()
        if now - self.news_at >= NEWS_SECONDS and select.select([], [self.channel], [], 0)[1]:
            self.news_at = now  # a program that does not listen must not stop its supervisor
            _tell(self.channel, "output", self.news.decode("utf-8", "replace"))
            self.news = b""

    def _tick(self) -> None:
        """Look at what the tree uses and name the first limit that it passed."""
        now = time.monotonic()
        if now - self.started > self.limits["timeout"]:
            self.verdict = "timeout"
            return
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
            self._weigh(pids, used.wrote)

    def _too_much_memory(self, pids: list[int], memory: int) -> bool:
        if memory > self.limits["memory"]:  # forked children share pages: look again, closely
            exact = _tree.proportional_memory(pids)
            memory = memory if exact is None else exact
        self.peak = max(self.peak, memory)
        return bool(memory > self.limits["memory"])

    def _weigh(self, pids: list[int], wrote: int) -> None:
        self.wrote, self.largest = _tree.folder_bytes(self.limits["folders"], DISK_TICK)
        if wrote > self.limits["written"]:
            self.wrote += _tree.unlinked_bytes(pids)
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
        self, status: int | None, seconds: float, survivors: int, status_reader: int
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
            "inner": _inner_exit(status_reader),
        }


def _inner_exit(reader: int) -> int | None:
    """Return the exit code in bubblewrap's reports, None if the command never ran."""
    if reader < 0:
        return None
    text = b""
    while part := os.read(reader, 65536):
        text += part
    for line in text.splitlines():
        report = json.loads(line)
        if "exit-code" in report:
            return int(report["exit-code"])
    return None


def _become_child(
    request: dict[str, Any], stdin: int, outputs: tuple[int, int], status: int, errors: int
) -> None:
    """Put on the fence and exec; tell on `errors` why not."""
    try:
        os.setsid()
        _landlock.die_with_parent(signal.SIGKILL)
        for number, descriptor in enumerate((stdin, *outputs)):
            os.dup2(descriptor, number)
        _hand_over(request, status)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(request["cwd"])
        _set_limits(request["limits"])
        if request["landlock"]:
            _landlock.restrict(request["landlock"])
        if request["seccomp"]:
            _landlock.filter_calls(bytes.fromhex(request["seccomp"]))
        os.execve(request["argv"][0], request["argv"], request["env"])
    except (OSError, ValueError) as error:
        os.write(errors, f"{request['argv'][0]}: {error}".encode())
    os._exit(127)


def _hand_over(request: dict[str, Any], status: int) -> None:
    """Put the descriptors that the command line names where it names them."""
    for number, content in request["files"].items():
        reader, writer = os.pipe()
        os.write(writer, bytes.fromhex(content))
        os.close(writer)
        os.dup2(reader, int(number))
    if status >= 0:
        os.dup2(status, request["status_fd"])


def _set_limits(limits: dict[str, Any]) -> None:
    """Set what the kernel holds for each process by itself."""
    cpu = max(1, int(limits["cpu"]))
    wanted = [
        ("RLIMIT_CORE", 0, 0),
        ("RLIMIT_NOFILE", limits["open_files"], limits["open_files"]),
        ("RLIMIT_FSIZE", limits["file_size"], limits["file_size"]),
        ("RLIMIT_CPU", cpu + 1, cpu + 6),
        ("RLIMIT_DATA", 2 * limits["memory"], 2 * limits["memory"]),
    ]
    for name, soft, hard in wanted:
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        most = resource.getrlimit(kind)[1]
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.setrlimit(kind, (soft, hard))
