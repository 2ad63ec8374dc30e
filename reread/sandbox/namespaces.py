"""Namespaces made by ourselves: what bubblewrap makes, and made before a script asks for it.

Holds and does not hold what `bwrap` does; /proc is read-only as well. It needs no program to be
installed, and costs little when a script starts, because nearly all of it stands ready by then.
Where the system lets only known programs make namespaces, the probe finds out and `bwrap` is next.
"""

from __future__ import annotations

import dataclasses
import os
import platform
import sys
from collections.abc import Sequence

from reread.sandbox import _kinds, _mounts, _seccomp, bwrap
from reread.sandbox._fence import Fence, Launch
from reread.values import Isolation

NAME = "namespaces"
RANK = 2
MOUNTS = True


def missing() -> str:
    """Say why it cannot work here, or ''."""
    if sys.platform != "linux":
        return "namespaces need Linux"
    if not _seccomp.supported():
        return f"there is no system call filter for {platform.machine()}"
    return ""


def launch(fence: Fence, argv: Sequence[str]) -> Launch:
    """Say how to start `argv` inside `fence`."""
    wanted = [("rw", str(fence.tmp), "/tmp")] if fence.tmp else []
    wanted += _mounts.named(fence)
    # Links lead astray where the old root is no longer at /, so they are followed here.
    mounts = [(how, os.path.realpath(source), target) for how, source, target in wanted]
    families = (_seccomp.AF_UNIX, _seccomp.AF_INET, _seccomp.AF_INET6)
    return Launch(
        argv,
        fence.env,
        landlock=bwrap.scope(),
        seccomp=_seccomp.build(families, shared_world=False).hex(),
        mounts=mounts,
        kind=_kinds.OPEN if fence.network else _kinds.CLOSED,
    )


def isolation(fence: Fence) -> Isolation:
    """Say which layers hold, and which do not."""
    return dataclasses.replace(bwrap.isolation(fence), mechanism=NAME)
