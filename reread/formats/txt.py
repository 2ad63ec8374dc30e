"""Plain text: characters, and something said with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats import Format, Source
from reread.formats._bytes import kind
from reread.formats._checks import Fact, Item, hollow, invalid, passed
from reread.formats._placeholder import judge, leaks, word_count, words
from reread.formats._text import Text, read_text

FORMAT = Format("txt", (".txt", ".text", ".log"), "Plain text", "text/plain", ("text",))


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a text file."""
    for item in read_text(source, "txt", other=True):
        if not isinstance(item, Text):
            yield item
            continue
        text = item.text
        if kind(source.data()) == "an HTML page":
            yield invalid("txt.identity", "is_html", "It is an HTML page.", depth="identity")
        yield from leaks(text, "txt")
        yield Fact("words", word_count(text))
        yield Fact("rows", len(text.splitlines()))
        yield Fact("_text", text)
        if not any(character.isalnum() for character in text):
            yield hollow("txt.has_content", "no_content", "It holds no letter and no digit.")
            continue
        yield passed("txt.has_content", "substance", f"{words(text)} words")
        yield from judge(text, "txt", allow_empty=bool(contract.get("allow_empty")))
