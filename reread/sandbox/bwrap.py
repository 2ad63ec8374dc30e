"""bubblewrap: a root of its own made of mounts, no network, own process ids; seccomp inside.

Holds: what is not mounted cannot be named, what is mounted read-only cannot be changed in any way
(modes and times included); no network at all; the tree dies with its first process.
Does not hold: links, FIFOs and set-id bits inside the writable folders, which whoever reads them
afterwards must refuse. Where the network was allowed, the services of this machine are in reach.
"""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from reread.sandbox import _landlock, _mounts, _seccomp, _system
from reread.sandbox._fence import Fence, Launch
from reread.values import Isolation

NAME = "bwrap"
RANK = 2
MOUNTS = True
SECCOMP_FD, STATUS_FD, PASSWD_FD, GROUP_FD = 100, 101, 102, 103
FIRST_COPY_FD = 104
COPIES = ("/etc/localtime", "/etc/ld.so.cache")
DEVICES = ("null", "zero", "urandom")
DEVICE_LINKS = {
    "random": "urandom",
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
NAMESPACES = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
    *("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)


@functools.cache
def program() -> str | None:
    """Return the path of bubblewrap; the system's own first, since profiles name that one."""
    return shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin") or shutil.which("bwrap")


@functools.cache
def _options(path: str) -> str:
    try:
        shown = subprocess.run(
            [path, "--help"], capture_output=True, text=True, timeout=10, env={}, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return shown.stdout + shown.stderr


def missing() -> str:
    """Say why it cannot work here, or ''."""
    if sys.platform != "linux":
        return "bubblewrap needs Linux"
    if not program():
        return "bubblewrap (bwrap) is not installed"
    if not _seccomp.supported():
        return f"there is no system call filter for {platform.machine()}"
    return ""


def launch(fence: Fence, argv: Sequence[str]) -> Launch:
    """Say how to start `argv` inside `fence`."""
    path = program() or "bwrap"
    command = [path, *NAMESPACES]
    if "--disable-userns" in _options(path):
        command.append("--disable-userns")
    if not fence.network:
        command.append("--unshare-net")
    command += _root(fence)
    # Process 1 has no filter, and its memory is a file: nobody in there may write to it.
    command += ["--remount-ro", "/proc"]
    command += ["--remount-ro", "/"]  # what is left of it is memory that no limit would count
    command += ["--clearenv", *_environment(fence), "--chdir", str(fence.cwd)]
    command += ["--seccomp", str(SECCOMP_FD), "--json-status-fd", str(STATUS_FD), "--", *argv]
    families = (_seccomp.AF_UNIX, _seccomp.AF_INET, _seccomp.AF_INET6)
    return Launch(
        command,
        {"PATH": "/usr/bin:/bin"},  # it is process 1 in there, and /proc shows this to the script
        landlock=scope(),
        files={
            SECCOMP_FD: _seccomp.build(families, shared_world=False).hex(),
            PASSWD_FD: _account(f"x:{os.getuid()}:{os.getgid()}::{_home(fence)}:/bin/sh"),
            GROUP_FD: _account(f"x:{os.getgid()}:"),
        },
        opened=_copies(),
        status_fd=STATUS_FD,
    )


def scope() -> dict[str, object] | None:
    """Return rules that keep signals and abstract sockets inside; files are the mounts' business.

    A ruleset that handles files would forbid bubblewrap its mounts.
    """
    if _landlock.abi() < 6:
        return None
    return {"files": False, "tcp": False, "scope": True, "read": [], "write": [], "devices": []}


def _account(fields: str) -> str:
    return f"script:{fields}\n".encode().hex()


@functools.cache
def _copies() -> dict[int, str]:
    """Return descriptor → small file of the system that is copied: cheaper than a mount."""
    there = (path for path in COPIES if Path(path).is_file())
    return dict(enumerate(there, FIRST_COPY_FD))


def _home(fence: Fence) -> Path:
    return fence.tmp or fence.cwd


def _environment(fence: Fence) -> Iterator[str]:
    for name, value in fence.env.items():
        yield from ("--setenv", name, value)


def _root(fence: Fence) -> list[str]:
    """Return the mounts: the system, then all that is named, outer folders before inner ones.

    Each mount costs about 0.1 ms, so small files are copied, and what can be a link is one.
    """
    return [*_system_mounts(fence.network), *_shared(fence), *_named(fence)]


@functools.cache
def _system_mounts(network: bool) -> tuple[str, ...]:
    words = ["--file", str(PASSWD_FD), "/etc/passwd", "--file", str(GROUP_FD), "/etc/group"]
    for number, path in _copies().items():
        words += ["--file", str(number), path]
    words += ["--proc", "/proc"]
    for library in map(Path, _system.LIBRARIES):
        if library.is_symlink():
            words += ["--symlink", str(library.readlink()), str(library)]
        elif library.exists():
            words += ["--ro-bind", str(library), str(library)]
    settings = _system.SETTINGS + (_system.NAME_SERVICE if network else ())
    for setting in _system.existing(settings):
        words += ["--ro-bind", str(setting), str(setting)]
    for name in DEVICES:
        words += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for name, target in DEVICE_LINKS.items():
        words += ["--symlink", target, f"/dev/{name}"]
    return tuple(words)


def _shared(fence: Fence) -> list[str]:
    """Return what stands for the folders that programs share: one folder, so one look weighs it."""
    if not fence.tmp:
        return []
    links = ("--symlink", "/tmp", "/var/tmp", "--symlink", "/tmp", "/dev/shm")
    return ["--bind", str(fence.tmp), "/tmp", *links]


def _named(fence: Fence) -> list[str]:
    kinds = {"ro": "--ro-bind", "rw": "--bind"}
    return [word for how, *paths in _mounts.named(fence) for word in (kinds[how], *paths)]


def isolation(fence: Fence) -> Isolation:
    """Say which layers hold, and which do not."""
    scoped = _landlock.abi() >= 6
    degraded = []
    if fence.network:
        degraded.append("the network was allowed, and with it the services of this machine")
        if not scoped:
            degraded.append("abstract unix sockets of this machine are in reach")
    return Isolation(
        NAME,
        "confined",
        "open" if fence.network else "blocked",
        layers=("namespaces", "seccomp", *(("landlock",) if scoped else ())),
        limits=limits(),
        degraded=tuple(degraded),
    )


def limits() -> dict[str, str]:
    """Say how each limit holds."""
    return {
        "timeout": "watched",
        "cpu": "watched and rlimit",
        "memory": "watched and rlimit",
        "processes": "watched",
        "open_files": "rlimit",
        "file_size": "rlimit",
        "written": "watched",
        "output": "watched",
    }
