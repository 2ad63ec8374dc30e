"""TOML 1.0, as the standard library reads it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats import Format, Source
from reread.formats._checks import Item, invalid, passed, unsafe
from reread.formats._placeholder import fenced, leaks
from reread.formats._text import Text, read_text
from reread.formats.json import facts_of, substance

FORMAT = Format("toml", (".toml",), "TOML", "application/toml")
GROWTH = 40

PACE = 2.0
MAX_CHARACTERS = 4 << 20
MAX_DOTS = 64
"""Parts of one dotted key: the reader builds a table for each, again for each line."""


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a TOML file."""
    text = None
    for item in read_text(source, "toml"):
        if isinstance(item, Text):
            text = item.text.removeprefix("\ufeff")
        else:
            yield item
    if text is None:
        return
    wrapped = list(fenced(text, "toml"))
    yield from wrapped
    if wrapped:
        return
    long = next((line for line in text.splitlines() if _dots(line) > MAX_DOTS), None)
    if len(text) > MAX_CHARACTERS or long is not None:
        yield unsafe("toml.bounded", "too_deep", "It has a key of too many parts, or is too large.")
        return
    try:
        value = tomllib.loads(text)
    except ValueError as error:  # also of a number with too many digits
        yield from leaks(text, "toml")
        yield invalid("toml.parses", "toml_syntax", f"It is not TOML: {error}", depth="identity")
        return
    yield passed("toml.parses", "identity")
    yield from facts_of(value, contract)
    yield from substance(value, "toml", contract)


def _dots(line: str) -> int:
    """Count the dots of a key, outside of quotes."""
    key = line.partition("=")[0]
    return 0 if key.lstrip().startswith("#") else key.count(".")
