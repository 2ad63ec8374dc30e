"""Text that cannot change how other text is read: what hides or reorders is shown as an escape."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup


def visible(value: Any) -> Any:
    """Return what a template prints: text with the characters shown that would change others."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "\n".join(line if line.isprintable() else _shown(line) for line in value.split("\n"))


def _shown(line: str) -> str:
    return "".join(
        char if char.isprintable() or char == "\t" else char.encode("unicode_escape").decode()
        for char in line
    )
