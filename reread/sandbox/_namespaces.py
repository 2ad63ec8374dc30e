"""A root, process ids and a network of one's own, made before anybody asks for them.

Runs in the waiting child. What every script needs (the system's libraries, /proc, a few devices)
is mounted while it waits; what a request names is mounted when it comes, and then the old root is
let go. Loaded by the keeper.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
from collections.abc import Iterable
from typing import Any

from reread.sandbox import _landlock, _system

NEW_USER, NEW_NET = 0x10000000, 0x40000000
NEW_OTHERS = 0x00020000 | 0x20000000 | 0x08000000 | 0x04000000 | 0x02000000
NOSUID, NODEV, NOEXEC, BIND, REC, SILENT = 2, 4, 8, 4096, 16384, 32768
PRIVATE = 1 << 18
DETACH = 2
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
MOUNT_SETATTR = 442  # the same on every architecture
RECURSIVE = 0x8000
ATTRIBUTES = {"ro": 1 | 2 | 4, "rw": 2 | 4, "device": 2}
SIOCSIFFLAGS, UP_AND_RUNNING = 0x8914, 0x41
DEVICES = ("null", "zero", "urandom")
LINKS = {
    "/dev/random": "urandom",
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
    "/dev/shm": "/tmp",
    "/var/tmp": "/tmp",
}
COPIES = ("/etc/localtime", "/etc/ld.so.cache")


def enter(network: bool) -> None:
    """Go on as process 2 of a new world; the caller's process stays outside and ends with it.

    Raises OSError where the system does not allow it.
    """
    uid, gid = os.getuid(), os.getgid()
    _call("unshare", NEW_USER | NEW_OTHERS | (0 if network else NEW_NET))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
            file.write(text)
    _stay_outside(os.fork())
    if not network:
        _raise_loopback()
    _prepare_root(uid, gid, network)
    _stay_outside(os.fork())


def _stay_outside(inner: int) -> None:
    """Return in the inner process; in the outer one collect what ends and end as the inner did."""
    # new credentials have undone what was asked for before
    _landlock.die_with_parent(signal.SIGKILL)
    if inner == 0:
        return
    os.closerange(3, 256)
    while True:
        pid, status = os.wait()
        if pid == inner:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh22x", b"lo", UP_AND_RUNNING)
        fcntl.ioctl(control, SIOCSIFFLAGS, request)


def _prepare_root(uid: int, gid: int, network: bool) -> None:
    """Make /newroot, with the old one at /oldroot, and mount what everybody needs."""
    _mount("none", "/", "", REC | PRIVATE)
    _mount("tmpfs", "/tmp", "tmpfs", NOSUID | NODEV)
    os.chdir("/tmp")
    for name in ("newroot", "oldroot"):
        os.mkdir(name)  # noqa: PTH102
    _mount("newroot", "newroot", "", BIND | REC)
    _pivot("/tmp", "oldroot")
    os.chdir("/")
    for name in ("etc", "dev", "proc", "tmp", "var", "run"):
        os.mkdir(f"/newroot/{name}")  # noqa: PTH102
    _mount("proc", "/newroot/proc", "proc", NOSUID | NODEV | NOEXEC)
    _protect("/newroot/proc", "ro")
    _show_system(network)
    for name in DEVICES:
        show(f"/dev/{name}", f"/dev/{name}", "device")
    for name, target in LINKS.items():
        os.symlink(target, f"/newroot{name}")  # noqa: PTH211
    for name in COPIES:
        _copy(name)
    _write("/etc/passwd", f"script:x:{uid}:{gid}::/tmp:/bin/sh\n".encode())
    _write("/etc/group", f"script:x:{gid}:\n".encode())


def _show_system(network: bool) -> None:
    for path in _system.LIBRARIES:
        if os.path.islink(f"/oldroot{path}"):  # noqa: PTH114
            os.symlink(os.readlink(f"/oldroot{path}"), f"/newroot{path}")  # noqa: PTH115, PTH211
        elif os.path.exists(f"/oldroot{path}"):  # noqa: PTH110
            show(path, path, "ro")
    for path in (*_system.SETTINGS, *(_system.NAME_SERVICE if network else ())):
        real = _real(path)
        if real:
            show(real, path, "ro")


def _real(path: str) -> str:
    """Return where a setting really lies, '' if nowhere; its links are those of the old root."""
    for _ in range(8):
        if not os.path.islink(f"/oldroot{path}"):  # noqa: PTH114
            return path if os.path.exists(f"/oldroot{path}") else ""  # noqa: PTH110
        target = os.readlink(f"/oldroot{path}")  # noqa: PTH115
        path = os.path.normpath(os.path.join(os.path.dirname(path), target))  # noqa: PTH118, PTH120
    return ""


def _copy(path: str) -> None:
    real = _real(path)
    if real:
        with open(f"/oldroot{real}", "rb") as file:  # noqa: PTH123
            _write(path, file.read())


def _write(path: str, data: bytes) -> None:
    with open(f"/newroot{path}", "wb") as file:  # noqa: PTH123
        file.write(data)


def show(source: str, target: str, how: str) -> None:
    """Mount a folder or a file of the old root in the new one, with all that is mounted below."""
    there, here = f"/oldroot{source}", f"/newroot{target}"
    if os.path.isdir(there):  # noqa: PTH112
        os.makedirs(here, exist_ok=True)  # noqa: PTH103
    elif not os.path.lexists(here):
        os.makedirs(os.path.dirname(here), exist_ok=True)  # noqa: PTH103, PTH120
        os.close(os.open(here, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    _mount(there, here, "", BIND | REC)
    _protect(here, how)


def finish(mounts: Iterable[tuple[str, str, str]]) -> None:
    """Mount what was asked for, let go of the old root, and give up every power."""
    for how, source, target in mounts:
        show(source, target, how)
    _mount("none", "/oldroot", "", REC | PRIVATE)
    _call("umount2", b"/oldroot", DETACH)
    os.chdir("/newroot")
    _pivot(".", ".")
    _call("umount2", b".", DETACH)
    os.chdir("/")
    _protect("/", "ro", recursive=False)  # what is left of it is memory that no limit would count
    _landlock.drop_capabilities()


def _mount(source: str, target: str, kind: str, flags: int) -> None:
    _call("mount", source.encode(), target.encode(), kind.encode() or None, flags | SILENT, None)


def _protect(path: str, how: str, *, recursive: bool = True) -> None:
    """Take rights away from a mount and all below it; nothing here ever gives one back."""
    attributes = struct.pack("=QQQQ", ATTRIBUTES[how], 0, 0, 0)
    flags = RECURSIVE if recursive else 0
    _call("syscall", MOUNT_SETATTR, -100, path.encode(), flags, attributes, len(attributes))


def _pivot(new: str, old: str) -> None:
    _call("syscall", PIVOT_ROOT[os.uname().machine], new.encode(), old.encode())


def _call(name: str, *arguments: Any) -> None:
    if getattr(_landlock.libc(), name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
