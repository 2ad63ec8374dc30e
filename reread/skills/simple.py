"""Front matter of the usual kind, read without a YAML parser.

Parsing YAML is most of the time that a scan takes; this is ten times faster.

Proves: what is returned is what YAML says, read as text; a test holds the two together. Everything
that could be something else is left to YAML.
"""

from __future__ import annotations

import re

from reread.skills.values import Front, Value

_UNUSUAL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\\]")
_FLOW_SIGN = re.compile(r"[\[\]{}:#\"'?]")
_LINE = re.compile(r"(  )?(?:([A-Za-z][A-Za-z0-9_-]{0,80}):|-)(?: +(.+))?")
_TYPED = frozenset(
    form
    for word in ("yes", "no", "true", "false", "on", "off", "null")
    for form in (word, word.title(), word.upper())
)


def read(text: str, first_line: int) -> Front | None:
    """Read front matter of the usual kind, None where it is more.

    That is `key: value` lines, lists and one level of map, on values that need no escapes.
    """
    if not text or _UNUSUAL.search(text):
        return None
    front = Front()
    key, block = "", ""
    for number, line in enumerate(text.split("\n"), first_line):
        found = _LINE.fullmatch(line)
        if not found:
            return None
        indent, name, written = found.groups()
        value = _simple(written) if written else ""
        if value is None:
            return None
        if name and not indent:
            if name in front.values:
                return None
            key, block = name, "" if written else "open"
            front.lines[name] = number
            _keep(front.values, name, value, front, written, (name,))
        else:
            # Items may stand at the margin; all of a block stand under each other.
            style = "indented" if indent else "at the margin"
            if block not in ("open", style) or not value or not isinstance(value, str):
                return None
            if block == "open":
                front.typed.discard((key,))
                front.values[key] = {} if name else []
            block = style
            outer = front.values[key]
            if name and isinstance(outer, dict) and name not in outer:
                _keep(outer, name, value, front, written, (key, name))
            elif not name and isinstance(outer, list):
                _keep(outer, len(outer), value, front, written, (key, len(outer)))
            else:
                return None
    return front


def _keep(
    into: dict[str, Value] | list[Value],
    place: str | int,
    value: str | list[Value],
    front: Front,
    written: str | None,
    path: tuple[str | int, ...],
) -> None:
    if isinstance(into, list):
        into.append(value)
    else:
        into[str(place)] = value
    plain = not written or written[0] != '"'
    if plain and isinstance(value, str) and (not value or value in _TYPED):
        front.typed.add(path)


def _simple(text: str) -> str | list[Value] | None:
    """Return a scalar, or a list in brackets; None where YAML has to decide what it is."""
    text = text.rstrip(" ")
    if text[:1].isalpha():
        plain = ": " not in text and " #" not in text and text[-1] != ":"
        return text if plain else None
    if text[:1] == '"':
        inside = text[1:-1]
        return inside if len(text) > 2 and text[-1] == '"' and '"' not in inside else None
    if text[:1] != "[" or text[-1] != "]":
        return None
    items = [item.strip(" ") for item in text[1:-1].split(",")] if text != "[]" else []
    usual = all(item[:1].isalpha() and not _FLOW_SIGN.search(item) for item in items)
    return list(items) if usual and not _TYPED.intersection(items) else None
