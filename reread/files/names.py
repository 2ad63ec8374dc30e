"""Which relative names are allowed, the same on every system.

A workspace goes from one system to another, and a name must mean one file there and show what it
is. So what is a device, a stream, a twin or a way out on one of them is refused on all.

Proves: a name that passes has no way up or out, names no device or stream, shows as it is.
Does not prove: that the path holds no link. Only opening it one component at a time does.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from agent_runtime import Failure
from reread.values import Code

NAME_BYTES = 255
PATH_BYTES = 1024
MAX_DEPTH = 64

TEMPORARY = re.compile(r"\.reread-[0-9a-f]{16}\.part", re.IGNORECASE)
"""Names of unfinished writes. No path may name one, and no listing shows one."""

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_JOINERS = frozenset("\u200c\u200d")  # Persian words and family emoji are written with them
_NUMBERS = "0123456789\u00b9\u00b2\u00b3"  # Windows takes COM with a superscript digit as well
_DEVICES = frozenset(
    {"CON", "PRN", "AUX", "NUL", "CLOCK$", "CONIN$", "CONOUT$"}
    | {port + number for port in ("COM", "LPT") for number in _NUMBERS}
)
_SEEN_APART = str.maketrans("", "", "".join(_JOINERS))


def check_name(relative: str) -> tuple[str, ...]:
    """Return the components of a relative path written with '/'.

    Raises:
        Failure: path_not_allowed, with the rule that the name breaks.
    """
    if not isinstance(relative, str):
        raise _refusal(repr(relative), "is not text")
    if rule := _broken_rule(relative):
        raise _refusal(relative, rule)
    return tuple(relative.split("/"))


def folded(name: str) -> str:
    """Return the form that is the same for two names which a system or a reader takes for one."""
    if name.isascii():
        return name.lower()
    decomposed = unicodedata.normalize("NFD", name.translate(_SEEN_APART)).casefold()
    return unicodedata.normalize("NFD", decomposed)


def twin(name: str, names: Iterable[str]) -> str | None:
    """Return the one of `names` that differs from `name` only in case or composition."""
    wanted = folded(name)
    return next((other for other in names if other != name and folded(other) == wanted), None)


def encodable(path: str) -> str:
    r"""Return `path` with each byte that is no UTF-8 as \udcxx, which no path can hold."""
    return path.encode("utf-8", "backslashreplace").decode()


def printable(path: str) -> str:
    r"""Return `path` so that it can be shown and encoded: what does not print becomes \x1b."""
    shown = "".join(c if c.isprintable() else _escaped(c) for c in path)
    return shown if len(shown) <= 300 else f"{shown[:200]}…{shown[-60:]}"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _refusal(relative: str, rule: str) -> Failure:
    return Failure(
        Code.path_not_allowed,
        f"'{printable(relative)}' {rule}.",
        "Use a plain relative path with '/' inside the folder, such as outputs/summary.json.",
    )


def _broken_rule(relative: str) -> str:
    if not relative:
        return "is empty"
    if len(relative) > PATH_BYTES:
        return f"is longer than {PATH_BYTES} bytes"
    if relative.startswith("/"):
        return "is absolute"
    if "\\" in relative:
        return "holds a backslash"
    parts = relative.split("/")
    if len(parts) > MAX_DEPTH:
        return f"is more than {MAX_DEPTH} folders deep"
    for part in parts:
        if rule := _broken_part_rule(part):
            return rule
    if len(relative.encode()) > PATH_BYTES:
        return f"is longer than {PATH_BYTES} bytes"
    return ""


def _broken_part_rule(part: str) -> str:
    if part in ("", ".", ".."):
        return "has an empty component, '.' or '..'"
    if rule := next(filter(None, map(_broken_character_rule, part)), ""):
        return rule
    if len(part.encode()) > NAME_BYTES:
        return f"has a component of more than {NAME_BYTES} bytes"
    if part[-1] == "." or part[-1].isspace():
        return "has a component that ends with a dot or a space"
    if part.split(".")[0].rstrip(" ").upper() in _DEVICES:
        return "names a device of Windows"
    if TEMPORARY.fullmatch(part):
        return "is a name that unfinished writes use"
    return ""


def _broken_character_rule(character: str) -> str:
    if character == ":":
        return "holds a colon, which names a drive or a stream on Windows"
    if character in _BIDI:
        return "holds a character that turns the direction of writing"
    category = unicodedata.category(character)
    if category == "Cs":
        return "is not valid Unicode"
    if category in ("Cc", "Zl", "Zp"):
        return "holds a control character"
    if category == "Cf" and character not in _JOINERS:
        return "holds an invisible character"
    return ""
