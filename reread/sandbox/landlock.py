"""Landlock and seccomp, set in the child before exec: no mounts, no namespaces, no root needed.

Holds: reading and writing of files by path, devices, signals and abstract sockets (from version 6
on), every kind of socket where the network is off.
Does not hold: the existence, size and times of other files can be seen. Modes, owners and times of
files cannot be changed at all, and the calls that would do so answer as if they had. There is no
private /dev/shm, so POSIX semaphores (multiprocessing.Lock, Pool) are refused.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from agent_runtime import Failure
from reread.sandbox import _landlock, _seccomp, _system, bwrap
from reread.sandbox._fence import Fence, Launch
from reread.values import Code, Isolation

NAME = "landlock"
RANK = 1
MOUNTS = False
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
ABOUT_ITSELF = (
    *("/proc/self", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/uptime"),
    *("/proc/loadavg", "/proc/version", "/proc/filesystems", "/sys/devices/system/cpu"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime", "/etc/ld.so.cache"),
    "/etc/mime.types",  # it is seen to exist, and `mimetypes` opens what exists
)


def missing() -> str:
    """Say why it cannot work here, or ''."""
    if sys.platform != "linux":
        return "Landlock needs Linux"
    if not _landlock.abi():
        return "the kernel has no Landlock (5.13 or later, enabled at boot)"
    if not _seccomp.supported():
        return f"there is no system call filter for {platform.machine()}"
    return ""


def launch(fence: Fence, argv: Sequence[str]) -> Launch:
    """Say how to start `argv` inside `fence`.

    Raises:
        Failure: sandbox_failed, if something readable only lies inside a writable folder.
    """
    _refuse_overlap(fence)
    network = _system.NAME_SERVICE if fence.network else ()
    system = _system.existing((*_system.LIBRARIES, *_system.SETTINGS, *ABOUT_ITSELF, *network))
    read = [*system, *fence.readable, *(view.source for view in fence.views)]
    families = (_seccomp.AF_INET, _seccomp.AF_INET6) if fence.network else ()
    return Launch(
        argv,
        fence.env,
        landlock={
            "files": True,
            "tcp": not fence.network,
            "scope": True,
            "read": [str(path) for path in read],
            "write": [str(path) for path in fence.changeable],
            "devices": DEVICES,
        },
        seccomp=_seccomp.build(families, shared_world=True).hex(),
    )


def _refuse_overlap(fence: Fence) -> None:
    for path in (*fence.readable, *(view.source for view in fence.views)):
        for folder in fence.changeable:
            if path != folder and _inside(path, folder):
                raise Failure(
                    Code.sandbox_failed,
                    f"'{path}' is for reading only and lies in '{folder}', which is writable: "
                    "Landlock cannot take a right away again.",
                    "Install bubblewrap, or keep the two apart.",
                )


def _inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def isolation(fence: Fence) -> Isolation:
    """Say which layers hold, and which do not."""
    version = _landlock.abi()
    degraded = ["names, sizes and times of other files can be seen"]
    if version < 3:
        degraded.append(f"Landlock {version}: other files could be truncated")
    if version < 6:
        degraded.append(f"Landlock {version}: processes of the same user could be signalled")
    if fence.network:
        degraded.append("the network was allowed, and with it the services of this machine")
    return Isolation(
        NAME,
        "confined",
        "open" if fence.network else "blocked",
        layers=("landlock", "seccomp"),
        limits=bwrap.limits(),
        degraded=tuple(degraded),
    )
