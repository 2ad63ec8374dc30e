"""macOS: sandbox-exec with a generated profile. Untested: its text is checked, it never ran here.

Holds, by the system's documentation: reading and writing of files by path, network, signals to
others. Does not hold: the limits of a whole tree, which are watched through /proc on Linux only; a
daemon that left its session is not found again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from reread.sandbox._fence import Fence, Launch
from reread.values import Isolation

NAME = "seatbelt"
RANK = 1
MOUNTS = False
PROGRAM = "/usr/bin/sandbox-exec"
SYSTEM = (
    *("/usr/lib", "/usr/bin", "/usr/share", "/bin", "/System", "/Library/Frameworks"),
    *("/Library/Fonts", "/opt/homebrew", "/usr/local", "/private/etc/ssl"),
    *("/private/etc/localtime", "/private/var/db/timezone", "/private/var/db/dyld"),
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
BASE = (
    "(version 1)",
    "(deny default)",
    "(allow process-exec)",
    "(allow process-fork)",
    "(allow signal (target same-sandbox))",
    "(allow process-info* (target same-sandbox))",
    "(allow sysctl-read)",
    "(allow file-read-metadata)",
    "(allow ipc-posix-sem)",
    "(allow ipc-posix-shm)",
    '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))',
)


def missing() -> str:
    """Say why it cannot work here, or ''."""
    if sys.platform != "darwin":
        return "sandbox-exec needs macOS"
    return "" if Path(PROGRAM).exists() else f"{PROGRAM} is not there"


def profile(fence: Fence) -> str:
    """Return the profile in the system's own language; later rules win."""
    sources = (view.source for view in fence.views)
    read = (*map(Path, SYSTEM), *fence.readable, *sources, *fence.changeable)
    lines = [*BASE]
    lines += [f"(allow file-read* (subpath {_quoted(path)}))" for path in read]
    lines += [f"(allow file-write* (subpath {_quoted(path)}))" for path in fence.changeable]
    lines += [f"(deny file-write* (subpath {_quoted(path)}))" for path in fence.readable]
    lines += [f"(allow file-read* file-write-data (literal {_quoted(Path(d))}))" for d in DEVICES]
    # Links in the writable folders would be followed by whoever reads them afterwards.
    lines.append("(deny file-link file-mknod)")
    if fence.network:
        lines += ["(allow network-outbound)", "(allow network-bind)", "(allow system-socket)"]
    return "\n".join(lines) + "\n"


def _quoted(path: Path) -> str:
    text = str(path.resolve() if path.exists() else path)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def launch(fence: Fence, argv: Sequence[str]) -> Launch:
    """Say how to start `argv` inside `fence`."""
    return Launch([PROGRAM, "-p", profile(fence), *argv], fence.env)


def isolation(fence: Fence) -> Isolation:
    """Say which layers hold, and that nobody has tested them."""
    return Isolation(
        NAME,
        "confined",
        "open" if fence.network else "blocked",
        layers=("seatbelt",),
        limits={
            "timeout": "watched",
            "cpu": "rlimit",
            "memory": "none",
            "processes": "none",
            "open_files": "rlimit",
            "file_size": "rlimit",
            "written": "watched",
            "output": "watched",
        },
        degraded=(
            "the profile is untested",
            "memory and processes of the tree are not limited",
            "a daemon that left its session is not ended",
        ),
    )
