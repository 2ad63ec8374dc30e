"""What a task asks of an artifact, as data: validated, merged, and held against what was read.

The words and what they mean are in `contract.schema.json`, which also ships for editors. A contract
comes from a task file or from a skill's gate.yaml; a skill's can only ask for more. Nothing that a
model says can change one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from agent_runtime import Failure
from reread import documents
from reread.contracts import _counts, _data, _measures, _prose, _table
from reread.formats._checks import Item
from reread.values import Code

__all__ = ["applies", "bind", "checks", "merge", "read", "schema", "validate"]

LISTS = (
    "required_keys",
    "front_matter_keys",
    "sections",
    "contains",
    "matches",
    "forbids",
    "equal",
)
SCOPE = ("formats", "paths")
STRICTER_WHEN_FALSE = ("allow_empty",)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a contract."""
    text = Path(__file__).with_name("contract.schema.json").read_text("utf-8")
    return dict(json.loads(text))


def read(text: str, name: str) -> dict[str, Any]:
    """Read a contract file (YAML).

    Raises:
        Failure: contract_invalid, with file, line and the nearest known word.
    """
    document = documents.read(text, name, code=Code.contract_invalid)
    if document.value is None:
        return {}
    documents.check(document, schema(), code=Code.contract_invalid)
    _patterns(document.value, name)
    return dict(document.value)


def validate(contract: Mapping[str, Any], where: str) -> None:
    """Hold a contract against its schema.

    Raises:
        Failure: contract_invalid, with the place and the nearest known word.
    """
    document = documents.Document(where, dict(contract), {})
    documents.check(document, schema(), code=Code.contract_invalid)
    _patterns(contract, where)


def applies(contract: Mapping[str, Any], path: str, format: str) -> bool:
    """Say whether a contract speaks of an artifact; one that names nothing speaks of all."""
    named = any(fnmatchcase(path, pattern) for pattern in contract.get("paths", ("*",)))
    return named and format in contract.get("formats", (format,))


def merge(asked: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return a contract that asks for all that both ask for; never for less than the first.

    Raises:
        Failure: contract_invalid, where the two cannot both hold.
    """
    merged = dict(asked)
    for word, value in more.items():
        if word in SCOPE:
            continue
        merged[word] = _both(word, merged[word], value) if word in merged else value
    for word in STRICTER_WHEN_FALSE:
        if word in merged and not (asked.get(word, False)):
            del merged[word]  # only the task itself may let an artifact be empty
    return merged


def bind(contract: Mapping[str, Any], *, topic: str = "") -> dict[str, Any]:
    """Put the topic of the task into a contract that asks for it."""
    bound = dict(contract)
    if bound.get("topic_in_prose") and topic:
        bound["topic"] = topic
    return bound


def checks(contract: Mapping[str, Any], facts: Mapping[str, Any], format: str) -> Iterator[Item]:
    """Yield a check for each word, from the facts that the format's own checks gathered."""
    for part in (_counts, _data, _table, _prose, _measures):
        yield from part.checks(contract, facts, format)


def _both(word: str, first: Any, second: Any) -> Any:
    """Return the stricter of two values of one word."""
    if first == second:
        return first
    if word.startswith("min_"):
        return max(first, second)
    if word.startswith("max_"):
        return min(first, second)
    if word in LISTS or word == "sheets":
        return [*first, *(item for item in second if item not in first)]
    if word == "schema":
        return {"allOf": [first, second]}
    if word in STRICTER_WHEN_FALSE:
        return first and second
    if isinstance(first, bool) and isinstance(second, bool):
        return first or second
    if word in ("code_blocks", "links", "front_matter", "table"):
        return {**second, **first}
    raise Failure(
        Code.contract_invalid,
        f"The task asks for {word} {first!r}, and the skill's contract for {second!r}.",
        "Take the word out of one of them.",
    )


def _patterns(contract: Mapping[str, Any], where: str) -> None:
    import re

    for pattern in contract.get("matches", ()):
        try:
            re.compile(pattern)
        except re.error as error:
            raise Failure(
                Code.contract_invalid,
                f"{where}: '{pattern}' is no regular expression: {error}.",
                "Mend the pattern.",
            ) from error
