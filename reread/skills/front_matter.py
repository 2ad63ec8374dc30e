"""Front matter of a SKILL.md: every scalar is text, and nothing is constructed.

YAML's types are not read (`name: no`, `3000`), keys are unique at every level, anchors, aliases and
tags are refused. Where the YAML is broken, plain values are quoted and it is tried again; where
that does not help, name and description are taken by their lines.

Proves: what is returned is what the file says, or a finding says what was guessed.
Does not prove: that another client reads it the same way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reread.skills import simple
from reread.skills.values import Front, Refused, Value

MAX_DEPTH = 8
MAX_NODES = 4000
MAX_CHARACTERS = 32 << 10

_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def read(text: str, first_line: int = 2) -> Front:
    """Read the text between the fences.

    Args:
        first_line: the line of the file at which the text begins.

    Raises:
        Refused: E-CONTROL, E-YAML, E-YAML-ALIAS, E-YAML-TAG, E-YAML-LIMIT, E-DUP-KEY,
            E-FM-NOT-MAPPING.
    """
    if len(text) > MAX_CHARACTERS:
        raise Refused("E-YAML-LIMIT", first_line, f"the front matter has {len(text)} characters")
    usual = simple.read(text, first_line)
    if usual is not None:
        return usual
    _check_characters(text, first_line)
    try:
        return _read_yaml(text, first_line)
    except _NotYaml as broken:
        return _mend(text, first_line) or _salvage(text, first_line, broken)


def read_yaml(text: str, first_line: int = 2) -> Front:
    """Read by the YAML parser alone, without the shortcut; for holding the two together."""
    _check_characters(text, first_line)
    return _read_yaml(text, first_line)


def _check_characters(text: str, first_line: int) -> None:
    if found := _HIDDEN.search(text):
        line = first_line + text.count("\n", 0, found.start())
        raise Refused("E-CONTROL", line, f"the character U+{ord(found[0]):04X} stands here")


class _NotYaml(Exception):
    """The text is not YAML; what to try next is decided by the caller."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


def _read_yaml(text: str, first_line: int) -> Front:
    import yaml  # 15 ms that the usual front matter does not need

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    front = Front()
    try:
        events = _Events(list(_bounded(yaml.parse(text, Loader=loader))), text, first_line)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = first_line + (mark.line if mark else 0)
        raise _NotYaml(line, error.problem or "not YAML") from error
    except (yaml.YAMLError, ValueError, UnicodeError, RecursionError) as error:
        raise _NotYaml(first_line, str(error)[:200]) from error
    if not events.has_value:
        return front
    value = events.build(front)
    if not isinstance(value, dict):
        raise Refused("E-FM-NOT-MAPPING", first_line, "the front matter is no list of keys")
    front.values = value
    return front


def _bounded(events: Iterator[Any]) -> Iterator[Any]:
    for count, event in enumerate(events):
        if count > 3 * MAX_NODES:
            raise Refused("E-YAML-LIMIT", 1, f"the front matter has over {MAX_NODES} nodes")
        yield event


class _Events:
    """A reader of parser events; a class because all of its steps share the position."""

    def __init__(self, events: list[Any], text: str, first_line: int) -> None:
        self._events = events
        self._lines = text.split("\n")
        self._first = first_line
        self._nodes = 0
        self._at = 2  # behind the start of the stream and of the document
        self.has_value = len(events) > 3

    def build(self, front: Front) -> Value:
        """Return the value of the one document."""
        value = self._value((), front)
        if type(self._events[self._at + 1]).__name__ != "StreamEndEvent":
            raise _NotYaml(self._line(self._events[self._at + 1]), "a second document begins here")
        return value

    def _value(self, path: tuple[str | int, ...], front: Front) -> Value:
        event = self._events[self._at]
        self._at += 1
        self._check(event, path)
        kind = type(event).__name__
        if kind == "ScalarEvent":
            return self._scalar(event, path, front)
        if kind == "SequenceStartEvent":
            made: list[Value] = []
            while type(self._events[self._at]).__name__ != "SequenceEndEvent":
                made.append(self._value((*path, len(made)), front))
            self._at += 1
            return made
        return self._mapping(path, front)

    def _mapping(self, path: tuple[str | int, ...], front: Front) -> dict[str, Value]:
        made: dict[str, Value] = {}
        while type(self._events[self._at]).__name__ != "MappingEndEvent":
            event = self._events[self._at]
            line = self._line(event)
            if type(event).__name__ != "ScalarEvent":
                self._check(event, path)
                raise _NotYaml(line, "a key is no text")
            self._check(event, path)
            self._at += 1
            key = event.value
            if key in made:
                raise Refused("E-DUP-KEY", line, f"the key '{key[:80]}' is there twice")
            if not path:
                front.lines[key] = line
            made[key] = self._value((*path, key), front)
        self._at += 1
        return made

    def _scalar(self, event: Any, path: tuple[str | int, ...], front: Front) -> str:
        text: str = event.value
        if event.style:
            return text
        if _is_typed(text):
            front.typed.add(path)
        rest = self._lines[event.end_mark.line][event.end_mark.column :]
        if len(path) == 1 and re.match(r"\s*#", rest):
            front.cut.add(str(path[0]))
        return "" if text == "~" else text

    def _check(self, event: Any, path: tuple[str | int, ...]) -> None:
        self._nodes += 1
        line = self._line(event)
        if getattr(event, "anchor", None) is not None:
            raise Refused("E-YAML-ALIAS", line, f"'{event.anchor}' is an anchor or alias")
        if getattr(event, "tag", None) is not None:
            raise Refused("E-YAML-TAG", line, f"the tag '{str(event.tag)[:80]}' stands here")
        if len(path) > MAX_DEPTH:
            raise Refused("E-YAML-LIMIT", line, f"it is nested more than {MAX_DEPTH} deep")
        if self._nodes > MAX_NODES:
            raise Refused("E-YAML-LIMIT", line, f"the front matter has over {MAX_NODES} nodes")

    def _line(self, event: Any) -> int:
        return self._first + int(event.start_mark.line)


def _is_typed(text: str) -> bool:
    import yaml

    resolvers = yaml.SafeLoader.yaml_implicit_resolvers
    candidates = resolvers.get(text[:1], []) + resolvers.get(None, [])
    return any(pattern.match(text) for _, pattern in candidates)


_ENTRY = re.compile(r"^([^\s:#'\"\[\]{}&*!|>%@`,-][^:\n]*?)[ \t]*:(?:[ \t]+(.*?))?[ \t]*$")


@dataclass(frozen=True, slots=True)
class _Entry:
    """One top-level key with the lines that belong to it."""

    key: str
    value: str
    rest: tuple[str, ...]
    text: str


def _mend(text: str, first_line: int) -> Front | None:
    """Quote the plain top-level values that are not YAML; None where that does not help."""
    made, mended = [], []
    for entry in _entries(text.split("\n")):
        if entry.key and not _is_yaml(entry.text):
            words = [entry.value, *(line.strip() for line in entry.rest)]
            if not entry.value or entry.value[0] in "|>" or not _continues(entry.rest):
                return None
            padding = "\n" * len(entry.rest)  # keeps the lines of what follows
            made.append(f"{entry.key}: {json.dumps(_joined(words), ensure_ascii=False)}{padding}")
            mended.append(entry.key)
        else:
            made.append(entry.text)
    try:
        front = _read_yaml("\n".join(made), first_line)
    except _NotYaml:
        return None
    front.mended = tuple(mended)
    return front


def _continues(lines: Sequence[str]) -> bool:
    return all(not line.strip() or line[0] in " \t" for line in lines)


def _joined(words: Sequence[str]) -> str:
    return " ".join(word for word in words if word)


def _is_yaml(text: str) -> bool:
    try:
        _read_yaml(text, 1)
    except _NotYaml:
        return False
    except Refused:
        return True  # refused for what it is, not for how it is written
    return True


def _entries(lines: Sequence[str]) -> Iterator[_Entry]:
    start: int | None = None
    for index, line in enumerate([*lines, "end: x"]):
        if index == len(lines) or _ENTRY.match(line):
            if start is not None or index:
                yield _entry(lines[start or 0 : index])
            start = index


def _entry(lines: Sequence[str]) -> _Entry:
    found = _ENTRY.match(lines[0]) if lines else None
    key, value = (found[1], found[2] or "") if found else ("", "")
    return _Entry(key, value, tuple(lines[1:]), "\n".join(lines))


_SALVAGED = ("name", "description")


def _salvage(text: str, first_line: int, broken: _NotYaml) -> Front:
    """Take name and description by their lines, up to the next line that looks like a key."""
    front = Front(salvaged=True)
    lines = text.split("\n")
    for number, line in enumerate(lines):
        found = re.match(r"^(\w+)[ \t]*:[ \t]*(.*)$", line)
        if not found or found[1] not in _SALVAGED:
            continue
        if found[1] in front.values:
            raise Refused("E-DUP-KEY", first_line + number, f"the key '{found[1]}' is there twice")
        words = [found[2].strip().lstrip("|>-+"), *_following(lines[number + 1 :])]
        front.values[found[1]] = _unquoted(_joined([word.strip() for word in words]))
        front.lines[found[1]] = first_line + number
    if not front.values.get("description"):
        raise Refused("E-YAML", broken.line, broken.message)
    return front


def _following(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if re.match(r"^[\w-]+[ \t]*:(\s|$)", line):
            return
        yield line.strip()


def _unquoted(text: str) -> str:
    pairs: Mapping[str, str] = {'"': '"', "'": "'"}
    closed = len(text) > 1 and pairs.get(text[0]) == text[-1]
    return text[1:-1] if closed else text
