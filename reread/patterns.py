"""Regular expressions that are compiled when they are first used.

Most runs look for few of the words that the program knows, and compiling all of them would cost
more than the rest of the import. A process that forks compiles them before, once for its children.
"""

from __future__ import annotations

import re
from typing import Any, cast

_waiting: list[_Later] = []


class _Later:
    """Stands for a pattern; takes over its methods as they are used."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags

    def __getattr__(self, name: str) -> Any:
        made = self.__dict__.get("_made")
        if made is None:
            made = self.__dict__["_made"] = re.compile(*self._given)
        value = self.__dict__[name] = getattr(made, name)
        return value


def compiled_later(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return what acts as `re.compile(pattern, flags)`; a wrong pattern raises at its first use."""
    made = _Later(pattern, flags)
    _waiting.append(made)
    return cast(re.Pattern[str], made)


def compile_all() -> None:
    """Compile each that was made until now."""
    while _waiting:
        _ = _waiting.pop().pattern  # any attribute will do
