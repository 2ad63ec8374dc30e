"""JSON: RFC 8259, strictly, so that every reader gets the same value.

A byte order mark is taken (Windows tools write one). NaN, Infinity and numbers that overflow are
refused: Python writes and reads them, nothing else does. Duplicate keys are a warning.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats import Format, Source
from reread.formats._bytes import kind
from reread.formats._checks import Fact, Item, hollow, invalid, passed, warned
from reread.formats._placeholder import FILLER, fenced, leaks
from reread.formats._text import Text, read_text

FORMAT = Format("json", (".json", ".geojson", ".webmanifest"), "JSON", "application/json")

GROWTH = 12
MEMORY = 128 << 20
TEXT_WORDS = frozenset(("contains", "matches", "forbids", "topic", "measure"))
"""Words of a contract that need the whole text once more."""
EXAMPLE = re.compile(r"(?:[\w.+-]+@|https?://(?:www\.)?)example\.(?:com|org|net)/?")
TYPE_WORDS = frozenset(
    [
        "string",
        "str",
        "number",
        "int",
        "integer",
        "float",
        "boolean",
        "bool",
        "null",
        "object",
        "array",
        "list",
        "dict",
        "any",
        "date",
        "datetime",
        "text",
        "value",
        "name",
    ]
)


class NotJson(ValueError):
    """What Python would take and JSON does not allow; never leaves this module."""


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a JSON file."""
    text = None
    for item in read_text(source, "json"):
        if isinstance(item, Text):
            text = item.text
        else:
            yield item
    if text is None:
        return
    wrapped = list(fenced(text, "json"))
    yield from wrapped
    if wrapped:
        return
    doubles: list[str] = []
    try:
        value = loads(text, doubles)
    except NotJson as error:
        yield invalid("json.parses", "json_nonfinite", f"It holds {error}, which is not JSON.")
        return
    except ValueError as error:
        yield from leaks(text, "json")
        reason = "is_html" if kind(source.data()) == "an HTML page" else why_not(text, error)
        yield invalid("json.parses", reason, f"It is not JSON: {error}", depth="identity")
        return
    yield passed("json.parses", "identity")
    if doubles:
        cause = f"The key '{doubles[0]}' is there twice in one object."
        yield warned("json.keys_once", "integrity", "duplicate_keys", cause)
    yield from facts_of(value, contract)
    yield from substance(value, "json", contract)


def loads(text: str, doubles: list[str]) -> Any:
    """Parse JSON strictly, gathering keys that are there twice.

    Raises:
        NotJson, for a number that is not finite; ValueError, for everything else that is wrong.
    """

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(items)
        if len(made) != len(items):
            seen: set[str] = set()
            doubles.extend(key for key, _ in items if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        return made

    def real(digits: str) -> float:
        number = float(digits)
        if not math.isfinite(number):
            raise NotJson(digits[:40])
        return number

    def constant(name: str) -> float:
        raise NotJson(name)

    return json.loads(text, object_pairs_hook=pairs, parse_float=real, parse_constant=constant)


def facts_of(value: Any, contract: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield what contracts ask about a value of any data format."""
    yield Fact("_data", value)
    if isinstance(value, list | dict):
        yield Fact("items", len(value))
    if isinstance(value, list):
        yield Fact("rows", len(value))
        if value and all(isinstance(row, dict) for row in value):
            yield Fact("_records", value)
    if not TEXT_WORDS.isdisjoint(contract):
        yield Fact("_text", "\n".join(map(str, leaves(value))))


def leaves(value: Any) -> Iterator[Any]:
    """Yield every key and scalar, without recursion."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            for key, inner in reversed(item.items()):
                waiting.append(inner)
                yield key
        elif isinstance(item, list):
            waiting.extend(reversed(item))
        else:
            yield item


def scalars(value: Any) -> Iterator[Any]:
    """Yield every scalar, without the keys."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        else:
            yield item


def substance(value: Any, format: str, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield whether a value holds data: not empty, not a list of types or of promises."""
    name = f"{format}.has_content"
    values = [item for item in scalars(value) if item is not None and item != ""]
    if not values:
        if contract.get("allow_empty"):
            yield passed(name, "substance", "empty, which the contract allows")
        else:
            yield hollow(name, "no_content", "It holds no value.")
        return
    fillers = [item for item in values if isinstance(item, str) and fills(item)]
    if fillers and len(fillers) == len(values):
        yield hollow(
            name, "filler_values", f"It holds only stand-ins, such as '{fillers[0][:40]}'."
        )
    elif fillers and any(FILLER.search(text) for text in fillers):
        shown = next(text for text in fillers if FILLER.search(text))
        yield warned(
            name, "substance", "filler_values", f"One value is a stand-in: '{shown[:40]}'."
        )
    else:
        yield passed(name, "substance", f"{len(values)} values")


def fills(text: str) -> bool:
    """Say whether a text names a type or promises a value instead of being one."""
    bare = text.strip().strip("<>[]{}").strip().lower()
    if bare in TYPE_WORDS or bare in ("...", "…", "n/a"):
        return True
    return bool(EXAMPLE.fullmatch(bare) or (len(text) < 200 and FILLER.search(text)))


def why_not(text: str, error: ValueError) -> str:
    """Return the better word for what is wrong: the end is missing, or it never was JSON."""
    if not isinstance(error, json.JSONDecodeError) or text.strip()[:1] not in ("{", "["):
        return "json_syntax"
    ended = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
    return "truncated" if ended else "json_syntax"
