"""The program's side of the keeper: ask for a child in a fence, wait for it, end it."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from agent_runtime import Failure
from reread.sandbox._fence import Fence, Launch
from reread.sandbox._kinds import CLOSED, OPEN
from reread.values import Code

# The keeper needs four small modules of ours and not the package's facade.
BOOT = """
import sys, types
for name in ("reread", "reread.sandbox"):
    module = types.ModuleType(name)
    module.__path__ = [sys.argv[1] + "/" + name.replace(".", "/")]
    sys.modules[name] = module
from reread.sandbox import _keeper
_keeper.main(int(sys.argv[2]), sys.argv[3])
"""
ROOT = Path(__file__).resolve().parent.parent.parent
GRACE_SECONDS = 10.0

Stream = int | BinaryIO | None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended, its whole tree included.

    Attributes:
        exit_code: 128 + n for signal n; `None` where it was killed by its supervisor.
        verdict: '' or the limit that it passed: timeout, memory, cpu, processes, written, output;
            `killed` and `cancelled` are the program's own doing.
        started: the command itself began to run inside the fence.
        problem: why it did not start, in the system's words.
        seconds: wall time; cpu: of the tree; peak_memory, wrote, largest_file: bytes.
        survivors: processes that could not be killed; anything but 0 is a broken fence.
    """

    exit_code: int | None
    verdict: str = ""
    started: bool = True
    problem: str = ""
    seconds: float = 0.0
    cpu: float = 0.0
    peak_memory: int = 0
    wrote: int = 0
    largest_file: int = 0
    output_bytes: tuple[int, int] = (0, 0)
    survivors: int = 0


class _Keeper:
    """One keeper process of this program for each kind of child, started when first needed."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._owner = 0

    def hand_over(self, descriptors: list[int]) -> None:
        with self._lock:
            if self._socket is None or self._owner != os.getpid() or self._ended():
                self._socket = self._start()
            socket.send_fds(self._socket, [b"r"], descriptors)

    def _ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def _start(self) -> socket.socket:
        if self._socket is not None:
            self._socket.close()
        ours, theirs = socket.socketpair()
        number = theirs.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", BOOT, str(ROOT), str(number), self._kind],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[number],
            start_new_session=True,  # Ctrl-C is for the program, which then ends its children
            env={"PATH": "/usr/bin:/bin"},
            cwd="/",
        )
        theirs.close()
        if self._owner == 0:
            atexit.register(self.close)
        self._owner = os.getpid()
        return ours

    def close(self) -> None:
        if self._socket is not None and self._owner == os.getpid():
            self._socket.close()
            self._socket = None
            if self._process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(GRACE_SECONDS)


_keepers = {kind: _Keeper(kind) for kind in ("", CLOSED, OPEN)}


class Child:
    """A child in a fence. Leaving it unwatched is safe: closing it kills its tree."""

    def __init__(self, channel: socket.socket, launch: Launch) -> None:
        self._channel = channel
        self._launch = launch
        self._received = b""
        self._ended: Ended | None = None
        self.on_output: Callable[[str], None] = lambda text: None
        channel.setblocking(False)

    def kill(self) -> None:
        """Ask for the death of the whole tree; wait for `Ended` to know that it is dead."""
        with contextlib.suppress(OSError):
            self._channel.send(b"k")

    async def ended(self) -> Ended:
        """Wait for the end of the tree. Cancelling this kills the tree and waits for its end."""
        try:
            return await self._listen()
        except asyncio.CancelledError:
            self.kill()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._listen(), GRACE_SECONDS)
            raise
        finally:
            self.close()

    async def _listen(self) -> Ended:
        loop = asyncio.get_running_loop()
        while self._ended is None:
            self._take(await loop.sock_recv(self._channel, 65536))
        return self._ended

    def wait(self, timeout: float | None = None) -> Ended:
        """Do the same without an event loop; after `timeout` seconds the tree is killed."""
        until = None if timeout is None else time.monotonic() + timeout
        try:
            while self._ended is None:
                left = None if until is None else max(0.0, until - time.monotonic())
                if not select.select([self._channel], [], [], left)[0]:
                    self.kill()
                    until = time.monotonic() + GRACE_SECONDS
                    continue
                self._take(self._channel.recv(65536))
            return self._ended
        finally:
            self.close()

    def close(self) -> None:
        """Let go of it; if it still lives, its supervisor kills it."""
        self._channel.close()

    def _take(self, data: bytes) -> None:
        if not data:
            self._ended = Ended(None, started=False, problem="its supervisor is gone", survivors=1)
            return
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            for event, value in json.loads(line).items():
                if event == "output":
                    self.on_output(value)
                elif event == "ended":
                    self._ended = _ended(value, self._launch)


def _ended(told: Mapping[str, Any], launch: Launch) -> Ended:
    if "start_problem" in told:
        return Ended(None, started=False, problem=told["start_problem"])
    code = told["exit"]
    code = 128 - code if code is not None and code < 0 else code
    started = not launch.status_fd or told["inner"] is not None or bool(told["verdict"])
    return Ended(
        told["inner"] if launch.status_fd and code is not None else code,
        verdict=told["verdict"],
        started=started,
        problem="" if started else f"it ended with {code} before the command began",
        seconds=told["seconds"],
        cpu=told["cpu"],
        peak_memory=told["peak"],
        wrote=told["wrote"],
        largest_file=told["largest"],
        output_bytes=(told["sizes"][0], told["sizes"][1]),
        survivors=told["survivors"],
    )


def spawn(
    launch: Launch,
    fence: Fence,
    *,
    stdin: Stream = None,
    stdout: Stream = None,
    stderr: Stream = None,
    capture: bool = False,
) -> Child:
    """Start a launch; `None` as a stream is /dev/null.

    capture: stdout and stderr are log files, written through pipes that the supervisor pumps, so
        that they cannot be truncated by the child and stop at `limits.output` together.

    Raises:
        Failure: sandbox_failed, if the keeper cannot be reached.
    """
    if not hasattr(socket, "send_fds"):
        raise Failure(
            Code.sandbox_failed,
            f"Scripts cannot be started on {sys.platform}: it has neither fork nor unix sockets.",
            "Run it on Linux, on macOS, or in a Linux container (WSL will do).",
        )
    ours, theirs = socket.socketpair()
    null = os.open(os.devnull, os.O_RDWR)
    try:
        streams = [null if s is None else s if isinstance(s, int) else s.fileno()
                   for s in (stdin, stdout, stderr)]  # fmt: skip
        _keepers[launch.kind].hand_over([theirs.fileno(), *streams])
        request = json.dumps(_request(launch, fence, capture)).encode()
        ours.sendall(struct.pack("=I", len(request)) + request)
    except OSError as error:
        ours.close()
        raise Failure(
            Code.sandbox_failed,
            f"The process that starts scripts does not answer: {error}.",
            "Run the program again.",
        ) from error
    finally:
        theirs.close()
        os.close(null)
    return Child(ours, launch)


def _request(launch: Launch, fence: Fence, capture: bool) -> dict[str, Any]:
    limits = fence.limits
    return {
        "argv": list(launch.argv),
        "env": dict(launch.env),
        "cwd": str(fence.cwd) if not launch.status_fd else "/",
        "mounts": launch.mounts,
        "landlock": launch.landlock,
        "seccomp": launch.seccomp,
        "files": {str(number): content for number, content in launch.files.items()},
        "opened": {str(number): path for number, path in launch.opened.items()},
        "status_fd": launch.status_fd,
        "capture": capture,
        "limits": {
            "timeout": limits.timeout,
            "cpu": limits.cpu,
            "memory": limits.memory,
            "processes": limits.processes,
            "open_files": limits.open_files,
            "file_size": limits.file_size,
            "written": limits.written,
            "output": limits.output,
            "folders": [str(folder) for folder in fence.changeable],
        },
    }
