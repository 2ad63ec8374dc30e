"""The operating system's fence around code that a model wrote: one file per mechanism.

A child in a fence sees what `Fence` lists and nothing else, under limits, and its whole tree is
dead when its end is told. `choose` picks the best mechanism that was seen to hold on this machine
and refuses to go on without one; `Isolation` names the layers that were really active.

Proves: nothing about what the code did inside of its writable folders.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from agent_runtime import Failure
from reread.sandbox import _probe, bwrap, landlock, namespaces, none, seatbelt
from reread.sandbox._client import Child, Ended, spawn
from reread.sandbox._fence import Fence, Launch, Mechanism, View
from reread.sandbox._system import interpreter
from reread.values import Code, Permissions

__all__ = [
    "MECHANISMS",
    "Child",
    "Ended",
    "Fence",
    "Launch",
    "Mechanism",
    "View",
    "available",
    "choose",
    "fault",
    "interpreter",
    "spawn",
]

MECHANISMS: tuple[Mechanism, ...] = (namespaces, bwrap, landlock, seatbelt, none)
"""In the order in which they are tried."""

fault = _probe.fault


def available(mechanisms: Sequence[Mechanism] = MECHANISMS) -> Mechanism:
    """Return the best mechanism that holds on this machine; `none` where none does."""
    return next((mechanism for mechanism in mechanisms if not fault(mechanism)), none)


def choose(
    permissions: Permissions, shipped: bool = False, mechanisms: Sequence[Mechanism] = MECHANISMS
) -> Mechanism:
    """Return the mechanism to use.

    shipped: the code is the program's own, so it runs with what fence there is.

    Raises:
        Failure: sandbox_unavailable, if the required level cannot be had, or nothing holds here
            and the human did not allow that; usage_invalid for an unknown level.
    """
    needed = _needed(permissions)
    found = none if permissions.unsandboxed else available(mechanisms)
    if needed is not None and found.RANK < needed.RANK:
        raise _unavailable(f"The sandbox '{needed.NAME}' is required", mechanisms)
    if found.RANK == 0 and needed is None and not (permissions.unsandboxed or shipped):
        raise _unavailable("No sandbox works on this machine", mechanisms)
    return found


def _needed(permissions: Permissions) -> Mechanism | None:
    name = permissions.require_sandbox
    if not name:
        return None
    for mechanism in MECHANISMS:
        if name == mechanism.NAME:
            return mechanism
    known = ", ".join(mechanism.NAME for mechanism in MECHANISMS)
    raise Failure(
        Code.usage_invalid, f"'{name}' is not a level of the sandbox.", f"Use one of: {known}."
    )


def _unavailable(what: str, mechanisms: Sequence[Mechanism]) -> Failure:
    faults = {mechanism.NAME: fault(mechanism) for mechanism in mechanisms}
    reasons = "; ".join(reason for reason in faults.values() if reason)
    return Failure(
        Code.sandbox_unavailable,
        f"{what}: {reasons or 'the human switched it off'}.",
        _remedy(),
        {"sandbox": faults},
    )


def _remedy() -> str:
    if sys.platform == "linux":
        return (
            "Install bubblewrap (apt install bubblewrap, dnf install bubblewrap), or allow scripts "
            "to run with no fence: --unsandboxed."
        )
    return "Run it on Linux or in a Linux container, or run with no fence: --unsandboxed."
