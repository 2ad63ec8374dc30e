"""The few Landlock and prctl calls that are needed, over ctypes.

Loaded by the keeper, so it imports nothing heavy. Landlock holds what it handles in this kernel:
files from the first version on, truncation from 3, TCP from 4, devices' ioctl from 5, abstract
sockets and signals from 6. It never holds stat, chmod, utime, UDP or named unix sockets.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys
from collections.abc import Iterable, Mapping
from typing import Any

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same on every architecture
VERSION_FLAG = 1
PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE, MAKE_DIR, MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
TCP = 0b11
SCOPE = 0b11

READ = EXECUTE | READ_FILE | READ_DIR
# No links, FIFOs, sockets or device nodes: the host reads these folders afterwards.
WRITE = (
    *(WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE),
    *(MAKE_DIR, MAKE_REG, REFER, TRUNCATE),
)
ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
DEVICE = WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 22, 36, 38
PR_CAPBSET_DROP = 24
SECCOMP_MODE_FILTER = 2
CAPABILITY_VERSION_3 = 0x20080522


@functools.cache
def libc() -> ctypes.CDLL:
    """Return the C library."""
    return ctypes.CDLL(None, use_errno=True)


@functools.cache
def abi() -> int:
    """Return the version that this kernel speaks, 0 for none."""
    if sys.platform != "linux":
        return 0
    found = libc().syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION_FLAG)
    return max(0, int(found))


def handled_files(version: int) -> int:
    """Return the file rights that a ruleset of this version can take away."""
    known = {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)
    return (1 << known) - 1


def restrict(rules: Mapping[str, Any]) -> None:
    """Put this process and its future children under `rules`. Raises OSError.

    rules: `read`, `write`, `devices`: paths; `files`: handle files at all; `tcp`: handle TCP and
    grant none; `scope`: keep signals and abstract sockets inside.
    """
    version = abi()
    files = handled_files(version) if rules["files"] else 0
    tcp = TCP if rules["tcp"] and version >= 4 else 0
    scope = SCOPE if rules["scope"] and version >= 6 else 0
    attributes = struct.pack("=QQQ", files, tcp, scope)[: _attribute_size(version)]
    c = libc()
    ruleset = _check(c.syscall(CREATE_RULESET, attributes, len(attributes), 0))
    write = sum(WRITE)
    for paths, rights in (
        (rules["read"], READ),
        (rules["write"], write),
        (rules["devices"], DEVICE),
    ):
        _grant(c, ruleset, paths, rights & files)
    no_new_privileges()
    _check(c.syscall(RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _attribute_size(version: int) -> int:
    return 8 if version < 4 else 16 if version < 6 else 24


def _grant(c: ctypes.CDLL, ruleset: int, paths: Iterable[str], rights: int) -> None:
    for path in paths:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        allowed = rights if os.path.isdir(path) else rights & ON_FILES  # noqa: PTH112
        if allowed:
            rule = struct.pack("=Qi", allowed, descriptor)
            _check(c.syscall(ADD_RULE, ruleset, PATH_BENEATH, rule, 0))
        os.close(descriptor)


def no_new_privileges() -> None:
    """Give up gaining privileges by exec, for good."""
    _check(libc().prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def filter_calls(program: bytes) -> None:
    """Install a seccomp filter on this thread and its future children. Raises OSError."""

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    no_new_privileges()
    described = Program(len(program) // 8, program)
    _check(libc().prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(described), 0, 0))


def drop_capabilities() -> None:
    """Give up what a root process may do beyond its user id; nothing gives it back by exec."""
    c = libc()
    for number in range(64):
        c.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)  # refused where there is nothing to drop
    no_new_privileges()
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    _check(c.capset(header, bytes(24)))


def become_subreaper() -> None:
    """Become the parent of every orphan among the descendants."""
    if sys.platform == "linux":
        _check(libc().prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def die_with_parent(signal_number: int) -> None:
    """Get this signal when the parent ends."""
    if sys.platform == "linux":
        _check(libc().prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
