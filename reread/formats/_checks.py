"""What every format module says things with: checks, and facts that were counted on the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from reread.values import Check, Code, Depth, Problem

REMEDY = {
    Code.artifact_format_invalid: "Write the file anew with a library made for the format.",
    Code.artifact_placeholder_output: "Write the real content and run the script again.",
    Code.artifact_contract_unmet: "Make the file hold what the task asks of it.",
    Code.artifact_unsafe: "Make the file without content that would exhaust or escape a reader.",
    Code.artifact_unreadable: "Write a file that can be opened without a password.",
    Code.artifact_content_lost: "Edit with a library that keeps what it does not know.",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that was counted or read, for contracts and for people.

    Attributes:
        name: `rows`, `pages`, `words` …; one that starts with an underscore (`_text`, `_data`) is
            for contracts only and never leaves the child.
    """

    name: str
    value: Any


Item = Check | Fact


def holds(items: Iterable[Any]) -> bool:
    """Say that none of the checks among some items failed."""
    return not any(isinstance(item, Check) and item.state == "failed" for item in items)


def passed(name: str, depth: Depth, detail: str = "") -> Check:
    """Say that a question was answered well."""
    return Check(name, depth, "passed", detail)


def failed(name: str, depth: Depth, code: Code, reason: str, cause: str, remedy: str = "") -> Check:
    """Say that one was not; `reason` is a short stable word."""
    return Check(
        name, depth, "failed", problem=Problem(code, "", cause, remedy or REMEDY[code], reason)
    )


def invalid(name: str, reason: str, cause: str, *, depth: Depth = "integrity") -> Check:
    """Say that the bytes are not of the format, or that its structure does not open."""
    return failed(name, depth, Code.artifact_format_invalid, reason, cause)


def hollow(name: str, reason: str, cause: str) -> Check:
    """Say that there is no real content."""
    return failed(name, "substance", Code.artifact_placeholder_output, reason, cause)


def unsafe(name: str, reason: str, cause: str) -> Check:
    """Say that the file would exhaust a reader or reaches outside itself."""
    return failed(name, "integrity", Code.artifact_unsafe, reason, cause)


def unmet(name: str, reason: str, cause: str) -> Check:
    """Say that the file lacks what the task asks."""
    return failed(name, "contract", Code.artifact_contract_unmet, reason, cause)


def warned(name: str, depth: Depth, reason: str, cause: str, remedy: str = "") -> Check:
    """Say something that passes and shall be seen."""
    code = (
        Code.artifact_placeholder_output if depth == "substance" else Code.artifact_format_invalid
    )
    return Check(
        name, depth, "warned", problem=Problem(code, "", cause, remedy or "Look at it.", reason)
    )


def not_run(name: str, depth: Depth, why: str) -> Check:
    """Say that a question could not be put, and what to install."""
    return Check(name, depth, "not_run", why)
