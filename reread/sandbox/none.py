"""No fence: a clean environment, the limits, and the death of the whole tree.

Does not hold: anything about files, the network or other processes of the same user.
"""

from __future__ import annotations

from collections.abc import Sequence

from reread.sandbox import bwrap
from reread.sandbox._fence import Fence, Launch
from reread.values import Isolation

NAME = "none"
RANK = 0
MOUNTS = False


def missing() -> str:
    """Say why it cannot work here, or ''."""
    return ""


def launch(fence: Fence, argv: Sequence[str]) -> Launch:
    """Say how to start `argv`; of the fence only the environment and the limits are kept."""
    return Launch(argv, fence.env)


def isolation(fence: Fence) -> Isolation:
    """Say that nothing holds but the limits."""
    return Isolation(
        NAME,
        "unconfined",
        "open" if fence.network else "not enforced",
        limits=bwrap.limits(),
        degraded=("files, network and other processes of this user are in reach",),
    )
