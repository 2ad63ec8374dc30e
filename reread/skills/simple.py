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
    values, lines, typed = front.values, front.lines, front.typed
    key, block = "", ""
    number = first_line - 1
    for line in text.split("\n"):
        number += 1
        found = _LINE.fullmatch(line)
        if not found:
            return None
        indent, name, written = found.groups()
        value = _simple(written) if written else ""
        if value is None:
            return None
        if name and not indent:
            if name in values:
                return None
            key, block = name, "" if written else "open"
            values[name] = value
            lines[name] = number
            if not written or (isinstance(value, str) and value in _TYPED):
                typed.add((name,))
        elif not value or not isinstance(value, str):
            return None
        else:
            # Items may stand at the margin; all of a block stand under each other.
            style = "indented" if indent else "at the margin"
            if block == "open":
                typed.discard((key,))
                values[key] = {} if name else []
            elif block != style:
                return None
            block = style
            place = _add(values[key], name, value)
            if place is None:
                return None
            if value in _TYPED:
                typed.add((key, place))
    return front


def _add(outer: Value, name: str | None, value: str) -> str | int | None:
    """Put a value into a list or a map and return its place; None where it does not fit."""
    if isinstance(outer, dict) and name and name not in outer:
        outer[name] = value
        return name
    if isinstance(outer, list) and not name:
        outer.append(value)
        return len(outer) - 1
    return None


def _simple(text: str) -> str | list[Value] | None:
    """Return a scalar, or a list in brackets; None where YAML has to decide what it is."""
    text = text.rstrip(" ")
    if text[:1].isalpha():
        plain = ": " not in text and " #" not in text and text[-1] != ":"
        return text if plain else None
    if text[:1] == '"':
        inside = text[1:-1]
        usual = len(text) > 2 and text[-1] == '"' and '"' not in inside
        return inside if usual and inside not in _TYPED else None
    if text[:1] != "[" or text[-1] != "]":
        return None
    items = [item.strip(" ") for item in text[1:-1].split(",")] if text != "[]" else []
    usual = all(item[:1].isalpha() and not _FLOW_SIGN.search(item) for item in items)
    return list(items) if usual and not _TYPED.intersection(items) else None
