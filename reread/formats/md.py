"""Markdown: text whose code fences close, whose front matter parses, and which says something."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from reread.formats import Format, Source
from reread.formats._checks import Fact, Item, hollow, invalid, passed, unsafe
from reread.formats._markdown import Structure, front_matter, structure
from reread.formats._placeholder import fenced, judge, leaks, prose, word_count, words
from reread.formats._text import Text, read_text

FORMAT = Format("md", (".md", ".markdown", ".mdown"), "Markdown", "text/markdown", ("markdown",))
PRELOAD = ("markdown_it", "yaml")
PACE = 2.0
MAX_CHARACTERS = 8 << 20

UNCLOSED = re.compile(
    r"\ufeff?(?:---[ \t]*\r?\n[\w-]+:(?:[ \t\r\n])|\+\+\+[ \t]*\r?\n[\w-]+[ \t]*=)"
)
"""Starts as front matter does."""
FENCE = re.compile(r"^ {0,3}(?:>\s?)*(`{3,}|~{3,})(.*)$", re.MULTILINE)


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a Markdown file."""
    text = None
    for item in read_text(source, "md"):
        if isinstance(item, Text):
            text = item.text
        else:
            yield item
    if text is None:
        return
    if len(text) > MAX_CHARACTERS:
        yield unsafe("md.bounded", "too_large", f"It has {len(text)} characters.")
        return
    front = front_matter(text)
    if front.problem:
        yield invalid("md.front_matter", "front_matter", f"Its front matter: {front.problem}")
    elif not front.length and UNCLOSED.match(text):
        cause = "Its front matter never closes."
        yield invalid("md.front_matter", "front_matter", cause)
    yield from fenced(text, "md", languages="md|markdown")
    body = text[front.length :]
    yield from _fences(body)
    yield from leaks(body, "md")
    found = structure(body)
    yield from _facts(body, found)
    yield Fact("_front", front.values)
    yield Fact("_front_format", front.format)
    yield from _substance(body, found, bool(front.values), contract)


def _fences(body: str) -> Iterator[Item]:
    """Yield whether each code fence is closed, by CommonMark's rule."""
    opened = ""
    for match in FENCE.finditer(body):
        fence, info = match.group(1), match.group(2)
        if not opened:
            if fence[0] == "~" or "`" not in info:
                opened = fence
        elif fence[0] == opened[0] and len(fence) >= len(opened) and not info.strip():
            opened = ""
    if opened:
        yield invalid("md.fences_close", "unclosed_fence", f"A code fence '{opened}' never closes.")
    else:
        yield passed("md.fences_close", "integrity")


def _facts(body: str, found: Structure) -> Iterator[Item]:
    yield Fact("words", word_count(found.prose))
    yield Fact("sections", len(found.sections))
    yield Fact("images", found.images)
    yield Fact("tables", found.tables)
    yield Fact("local_links", sorted({t for link in found.links if (t := _local(link["target"]))}))
    yield Fact("_text", body)
    yield Fact("_prose", found.prose)
    yield Fact("_sections", found.sections)
    yield Fact("_code", found.code)
    yield Fact("_links", found.links)


def _local(target: str) -> str:
    """Return the path that a link without a scheme names, '' for others."""
    try:
        parts = urlsplit(target)
    except ValueError:
        return target
    if parts.scheme or parts.netloc or not parts.path:
        return ""
    return unquote(parts.path)


def _substance(
    body: str, found: Structure, has_front: bool, contract: Mapping[str, Any]
) -> Iterator[Item]:
    plain = prose(body)
    if words(found.prose) + len(found.code) + found.images + found.tables == 0:
        if has_front or contract.get("allow_empty"):
            yield passed("md.has_content", "substance", "front matter only")
        else:
            yield hollow("md.has_content", "no_content", "It holds no words.")
        return
    other = len(found.code) + found.images + found.tables
    if found.sections and words(found.prose) <= _titles(found) and not other:
        yield hollow("md.has_content", "headings_only", "Only headings are in it.")
        return
    yield passed("md.has_content", "substance", f"{words(found.prose)} words")
    yield from judge(plain, "md", allow_empty=bool(contract.get("allow_empty")))


def _titles(found: Structure) -> int:
    return sum(words(str(section["title"])) for section in found.sections)
