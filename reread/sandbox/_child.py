"""The child of a supervisor: waits for a request, puts on its fence, and becomes the command.

It takes the request itself and passes it up to its supervisor on the way, so that nobody else has
to wake up before the command starts. Whatever keeps it from starting is told to the supervisor, and
nothing of ours is inherited but the three streams.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import struct
from typing import Any

from reread.sandbox import _landlock
from reread.sandbox._kinds import OPEN

SIZE = struct.Struct("=I")
REHEARSAL: dict[str, Any] = {"argv": [], "env": {}, "limits": {"cpu": 1.0}, "files": {"1": ""}}


def wait_and_become(
    requests: socket.socket, up: socket.socket, writers: tuple[int, int], kind: str
) -> None:
    """Take one request and exec; return where there will be none, or it could not be started.

    A request comes as [channel, stdin, stdout, stderr]; its words come over the channel.
    up: gets [channel, stdout, stderr, reader of the status] and the words, then what went wrong.
    writers: pipes that stand for stdout and stderr where the supervisor keeps what is printed.
    """
    os.setsid()
    _landlock.die_with_parent(signal.SIGKILL)
    problem = _prepare(kind)
    _rehearse()
    taken, descriptors, _, _ = socket.recv_fds(requests, 1, 4)
    if not taken:
        return
    channel, streams = socket.socket(fileno=descriptors[0]), descriptors[1:]
    words = receive(channel)
    request = json.loads(words)
    status, status_writer = os.pipe() if request["status_fd"] else (-1, -1)
    passed = [descriptors[0], *streams[1:], *([status] if status >= 0 else [])]
    socket.send_fds(up, [SIZE.pack(len(words))], passed)
    up.sendall(words)
    try:
        if problem:
            raise OSError(problem)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)  # what comes through a socket is inherited
        if request["capture"]:
            streams[1:] = writers
        _become(request, streams, status_writer)
    except (OSError, ValueError) as error:
        up.sendall(f"{request['argv'][0]}: {error}".encode())


def _prepare(kind: str) -> str:
    """Make what takes time before anybody waits for it; return why it could not be made."""
    if not kind:
        return ""
    from reread.sandbox import _namespaces  # most keepers have no use for it

    try:
        _namespaces.enter(network=kind == OPEN)
    except OSError as error:
        return str(error)
    return ""


def receive(channel: socket.socket) -> bytes:
    """Return one message that has its size before it. Raises OSError where it is cut off."""
    size = SIZE.unpack(exactly(channel, SIZE.size))[0]
    return exactly(channel, size)


def exactly(channel: socket.socket, size: int) -> bytes:
    """Return `size` bytes. Raises OSError where there are fewer."""
    data = b""
    while len(data) < size:
        part = channel.recv(min(size - len(data), 1 << 16))
        if not part:
            raise ConnectionResetError("the program went away")
        data += part
    return data


def _rehearse() -> None:
    """Touch what will be needed, so that its pages are our own when it has to go fast."""
    json.loads(json.dumps(REHEARSAL))
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.getrlimit(resource.RLIMIT_NOFILE)
    _landlock.no_new_privileges()
    _landlock.abi()
    _hand_over(writer_of_nothing := os.dup(2), bytes.fromhex("00"))
    os.close(writer_of_nothing)
    reader, writer = socket.socketpair()
    with reader, writer:
        socket.send_fds(writer, [b"r"], [writer.fileno()])
        for descriptor in socket.recv_fds(reader, 1, 1)[1]:
            os.set_inheritable(descriptor, False)
            os.close(descriptor)


def _become(request: dict[str, Any], streams: list[int], status: int) -> None:
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    if status >= 0:
        os.dup2(status, request["status_fd"])
    for number, content in request["files"].items():
        _hand_over(int(number), bytes.fromhex(content))
    for number, path in request["opened"].items():
        os.dup2(os.open(path, os.O_RDONLY | os.O_CLOEXEC), int(number))
    if request["mounts"] is not None:
        from reread.sandbox import _namespaces

        _namespaces.finish(request["mounts"])
    os.chdir(request["cwd"])
    _set_limits(request["limits"])
    if request["landlock"]:
        if request["landlock"]["files"]:
            _landlock.drop_capabilities()
        _landlock.restrict(request["landlock"])
    if request["seccomp"]:
        _landlock.filter_calls(bytes.fromhex(request["seccomp"]))
    os.execve(request["argv"][0], request["argv"], request["env"])


def _hand_over(number: int, content: bytes) -> None:
    """Let `number` be a pipe that holds `content`, which is small enough for one."""
    reader, writer = os.pipe()
    os.write(writer, content)
    os.close(writer)
    os.dup2(reader, number)
    os.close(reader)


def _set_limits(limits: dict[str, Any]) -> None:
    """Set what the kernel holds for each process by itself."""
    cpu = max(1, int(limits["cpu"]))
    wanted = {
        "RLIMIT_NOFILE": (limits["open_files"], limits["open_files"]),
        "RLIMIT_FSIZE": (limits["file_size"], limits["file_size"]),
        "RLIMIT_CPU": (cpu + 1, cpu + 6),
        # far above the limit, so that it is the watcher that names the cause
        "RLIMIT_DATA": (4 * limits["memory"], 4 * limits["memory"]),
    }
    for name, (soft, hard) in wanted.items():
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        most = resource.getrlimit(kind)[1]
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.setrlimit(kind, (soft, hard))


def fork(requests: socket.socket, writers: tuple[int, int], kind: str) -> tuple[int, socket.socket]:
    """Fork a waiting child; return its process id and the socket that it talks up to."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        with contextlib.suppress(BaseException):  # nothing of a supervisor may run in here
            wait_and_become(requests, theirs, writers, kind)
        os._exit(127)
    theirs.close()
    return pid, ours
