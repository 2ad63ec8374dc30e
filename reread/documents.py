"""YAML and JSON files that people write: read strictly, with the line of each key.

Duplicate keys and aliases are refused; an error names the file, the line and the key, and the
nearest key that is known.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime import Failure
from reread.values import Code


@dataclass(frozen=True, slots=True)
class Document:
    """A file's value and where its keys stand.

    Attributes:
        lines: path of a key (`('artifacts', 0, 'path')`) → line, from 1.
    """

    name: str
    value: Any
    lines: Mapping[tuple[str | int, ...], int]

    def line(self, path: Sequence[str | int]) -> int:
        """Return the line of a key, or of the nearest thing around it."""
        at = tuple(path)
        while at and at not in self.lines:
            at = at[:-1]
        return self.lines.get(at, 1)


def read(text: str, name: str, *, code: Code = Code.task_invalid) -> Document:
    """Parse YAML (JSON is a part of it).

    Raises:
        Failure: `code`, naming the file and the line.
    """
    import yaml  # 15 ms that `--help` does not need

    try:
        node = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        lines: dict[tuple[str | int, ...], int] = {}
        value = _value(node, (), lines, yaml) if node is not None else None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _wrong(code, name, line, f"it is not YAML: {error.problem}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise _wrong(code, name, 1, f"it is not YAML: {str(error)[:200]}") from error
    except _Twice as twice:
        raise _wrong(code, name, twice.line, f"the key '{twice.key}' is there twice") from None
    return Document(name, value, lines)


def check(document: Document, schema: Mapping[str, Any], *, code: Code = Code.task_invalid) -> None:
    """Hold a document against a JSON Schema, draft 2020-12.

    Raises:
        Failure: `code`, for the first violation in the order of the file.
    """
    from jsonschema import Draft202012Validator

    errors = list(Draft202012Validator(schema).iter_errors(document.value))
    if not errors:
        return
    first = min(errors, key=lambda error: document.line(list(error.absolute_path)))
    path = list(first.absolute_path)
    if first.validator == "additionalProperties" and isinstance(first.instance, Mapping):
        known = list(first.schema.get("properties", ()))
        unknown = next(key for key in first.instance if key not in known)
        raise _unknown_key(document, [*path, unknown], known, code)
    raise _wrong(code, document.name, document.line(path), f"{_shown(path)}{first.message[:300]}")


def nearest(word: str, known: Sequence[str]) -> str:
    """Return a hint with the nearest known word, or the list of them."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"Did you mean '{close[0]}'?" if close else f"Known are: {', '.join(sorted(known))}."


class _Twice(Exception):
    """A key that is there twice; never leaves this module."""

    def __init__(self, key: str, line: int) -> None:
        self.key = key
        self.line = line


def _value(node: Any, path: tuple[str | int, ...], lines: dict[Any, int], yaml: Any) -> Any:
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        made: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if key in made:
                raise _Twice(key, key_node.start_mark.line + 1)
            lines[(*path, key)] = key_node.start_mark.line + 1
            made[key] = _value(value_node, (*path, key), lines, yaml)
        return made
    if isinstance(node, yaml.SequenceNode):
        return [_value(n, (*path, i), lines, yaml) for i, n in enumerate(node.value)]
    constructor = yaml.SafeLoader("")
    try:
        made_scalar = constructor.construct_object(node)
    finally:
        constructor.dispose()
    # Dates have no place in JSON; what was written is what is meant.
    return made_scalar if isinstance(made_scalar, str | int | float | bool | None) else node.value


def _unknown_key(
    document: Document, path: list[str | int], known: Sequence[str], code: Code
) -> Failure:
    line = document.line(path)
    return _wrong(
        code, document.name, line, f"unknown key '{_dotted(path)}'", nearest(str(path[-1]), known)
    )


def _shown(path: Sequence[str | int]) -> str:
    return f"'{_dotted(path)}': " if path else ""


def _dotted(path: Sequence[str | int]) -> str:
    return ".".join(str(part) for part in path)


def _wrong(code: Code, name: str, line: int, what: str, remedy: str = "") -> Failure:
    return Failure(
        code, f"{name}, line {line}: {what}.", remedy or "Mend that line and start again."
    )
