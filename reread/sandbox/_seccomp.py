"""The system call filter, as classic BPF for x86-64 and aarch64.

Holds: new namespaces and mounts, ptrace and its kin, keyrings, bpf, io_uring, userfaultfd, kernel
modules, clocks, device nodes, FIFOs, symbolic links, set-id bits, sockets of families that a script
has no use for, and every call newer than the list (answered as if the kernel did not have it).
Does not hold: anything about paths, since a filter sees numbers and not what they point to.
"""

from __future__ import annotations

import functools
import platform
import struct
import sys
from collections.abc import Iterable, Sequence

ALLOW = 0x7FFF0000
ERRNO = 0x00050000
KILL = 0x80000000
EPERM, ENOSYS, EAFNOSUPPORT, PRETEND = ERRNO | 1, ERRNO | 38, ERRNO | 97, ERRNO | 0

NEWEST_KNOWN = 462
"""Calls above this number are answered with ENOSYS: nobody has judged them for this list."""

AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
NAMESPACE_FLAGS = 0x7E020000
SET_ID_BITS = 0o6000
O_CREAT_OR_TMPFILE = 0o100 | 0o20000000
TIOCSTI, TIOCLINUX = 0x5412, 0x541C

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# name: (x86-64, aarch64); None where that architecture does not have it
CALLS: dict[str, tuple[int | None, int | None]] = {
    "open": (2, None),
    "ioctl": (16, 29),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "socket": (41, 198),
    "clone": (56, 220),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "creat": (85, None),
    "symlink": (88, None),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "ptrace": (101, 117),
    "syslog": (103, 116),
    "setpgid": (109, 154),
    "setsid": (112, 157),
    "utime": (132, None),
    "mknod": (133, None),
    "uselib": (134, None),
    "personality": (135, 92),
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "modify_ldt": (154, None),
    "pivot_root": (155, 41),
    "adjtimex": (159, 171),
    "chroot": (161, 51),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "mount": (165, 40),
    "umount2": (166, 39),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "init_module": (175, 105),
    "delete_module": (176, 106),
    "quotactl": (179, 60),
    "nfsservctl": (180, 42),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "sched_setaffinity": (203, 122),
    "lookup_dcookie": (212, 18),
    "semtimedop": (220, 192),
    "clock_settime": (227, 112),
    "utimes": (235, None),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "kexec_load": (246, 104),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "ioprio_set": (251, 30),
    "migrate_pages": (256, 238),
    "openat": (257, 56),
    "mknodat": (259, 33),
    "fchownat": (260, 54),
    "futimesat": (261, None),
    "symlinkat": (266, 36),
    "fchmodat": (268, 53),
    "unshare": (272, 97),
    "vmsplice": (278, 75),
    "move_pages": (279, 239),
    "utimensat": (280, 88),
    "perf_event_open": (298, 241),
    "fanotify_init": (300, 262),
    "prlimit64": (302, 261),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "clock_adjtime": (305, 266),
    "setns": (308, 268),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "finit_module": (313, 273),
    "sched_setattr": (314, 274),
    "kexec_file_load": (320, 294),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "clone3": (435, 435),
    "openat2": (437, 437),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "mount_setattr": (442, 442),
    "quotactl_fd": (443, 443),
    "memfd_secret": (447, 447),
    "process_mrelease": (448, 448),
    "fchmodat2": (452, 452),
}

# clone3 and openat2 take a struct, which a filter cannot look into; libraries fall back.
ABSENT = ("clone3", "openat2", "io_uring_setup", "io_uring_enter", "io_uring_register")

FORBIDDEN = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd"),
    *("process_madvise", "process_mrelease", "perf_event_open", "userfaultfd", "bpf"),
    *("mount", "umount2", "pivot_root", "chroot", "unshare", "setns", "open_tree", "move_mount"),
    *("fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "name_to_handle_at"),
    *("open_by_handle_at", "fanotify_init", "quotactl", "quotactl_fd", "swapon", "swapoff"),
    *("add_key", "request_key", "keyctl", "init_module", "finit_module", "delete_module"),
    *("kexec_load", "kexec_file_load", "reboot", "acct", "syslog", "lookup_dcookie"),
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname"),
    *("setdomainname", "iopl", "ioperm", "modify_ldt", "uselib", "personality", "nfsservctl"),
    *("mknod", "mknodat", "symlink", "symlinkat", "vmsplice", "memfd_secret"),
    *("migrate_pages", "move_pages"),
)

# Without a PID and IPC namespace of its own, a script could reach the user's other processes.
SHARED_WORLD = (
    *("setsid", "setpgid", "ioprio_set", "shmget", "shmat", "shmctl", "semget", "semop"),
    *("semctl", "semtimedop", "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink"),
)
ON_ITSELF_ONLY = {
    "prlimit64": 0,
    "sched_setaffinity": 0,
    "sched_setscheduler": 0,
    "sched_setparam": 0,
    "sched_setattr": 0,
    "setpriority": 1,
}
"""Calls that take a process id in this argument, and for which only 0 is let through."""

# Landlock does not look at these, so without mounts they would reach every file of the user.
# They answer "done" and do nothing: an error would break shutil.copy for no gain.
METADATA = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr"),
    *("removexattr", "lremovexattr", "fremovexattr"),
)
MODE_ARGUMENT = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1}

Instruction = tuple[int, int, int, int]


def supported() -> bool:
    """Say whether there is a table for this machine."""
    return sys.platform == "linux" and platform.machine() in ARCHITECTURES


@functools.cache
def build(families: tuple[int, ...], *, shared_world: bool, machine: str = "") -> bytes:
    """Return the filter as an array of struct sock_filter.

    families: address families that socket() may open; socketpair() is always free.
    shared_world: there are no namespaces, so calls that reach other processes are refused and
        changes of metadata are pretended.
    """
    machine = machine or platform.machine()
    column = 0 if machine == "x86_64" else 1
    program: list[Instruction] = [
        _load(4),
        _jump_equal(ARCHITECTURES[machine], 1, 0),
        _answer(KILL),
        _load(0),
        (0x25, 0, 1, NEWEST_KNOWN),
        _answer(ENOSYS),
    ]
    for name, body in _rules(families, shared_world):
        number = CALLS[name][column]
        if number is not None:
            program += [_jump_equal(number, 0, len(body)), *body]
    program.append(_answer(ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _rules(
    families: Iterable[int], shared_world: bool
) -> Iterable[tuple[str, Sequence[Instruction]]]:
    """Yield (call, what follows once the number matched); each body ends in an answer."""
    yield "socket", _one_of(0, tuple(families), EAFNOSUPPORT)
    yield "clone", [_argument(0), (0x45, 0, 1, NAMESPACE_FLAGS), _answer(EPERM), _answer(ALLOW)]
    yield "ioctl", _none_of(1, (TIOCSTI, TIOCLINUX), EPERM)
    for name in ABSENT:
        yield name, [_answer(ENOSYS)]
    for name in FORBIDDEN:
        yield name, [_answer(EPERM)]
    yield "open", _no_set_id(1, 2)
    yield "openat", _no_set_id(2, 3)
    if shared_world:
        for name in SHARED_WORLD:
            yield name, [_answer(EPERM)]
        for name, index in ON_ITSELF_ONLY.items():
            yield name, _one_of(index, (0,), EPERM)
        for name in METADATA:
            yield name, [_answer(PRETEND)]
        yield "creat", _without_bits(1, SET_ID_BITS)
        return
    for name, index in MODE_ARGUMENT.items():
        yield name, _without_bits(index, SET_ID_BITS)


def _load(offset: int) -> Instruction:
    return (0x20, 0, 0, offset)


def _argument(index: int) -> Instruction:
    return _load(16 + 8 * index)  # the low half: both machines are little-endian


def _jump_equal(value: int, if_true: int, if_false: int) -> Instruction:
    return (0x15, if_true, if_false, value)


def _answer(action: int) -> Instruction:
    return (0x06, 0, 0, action)


def _one_of(index: int, values: Sequence[int], otherwise: int) -> list[Instruction]:
    tests = [_jump_equal(v, len(values) - i, 0) for i, v in enumerate(values)]
    return [_argument(index), *tests, _answer(otherwise), _answer(ALLOW)]


def _none_of(index: int, values: Sequence[int], otherwise: int) -> list[Instruction]:
    tests = [_jump_equal(v, len(values) - i, 0) for i, v in enumerate(values)]
    return [_argument(index), *tests, _answer(ALLOW), _answer(otherwise)]


def _without_bits(index: int, bits: int) -> list[Instruction]:
    return [_argument(index), (0x45, 0, 1, bits), _answer(EPERM), _answer(ALLOW)]


def _no_set_id(flags: int, mode: int) -> list[Instruction]:
    """Refuse set-id bits where the call can make a file; elsewhere the mode is not an argument."""
    return [
        _argument(flags),
        (0x45, 1, 0, O_CREAT_OR_TMPFILE),
        _answer(ALLOW),
        *_without_bits(mode, SET_ID_BITS),
    ]
