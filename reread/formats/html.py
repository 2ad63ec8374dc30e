"""HTML: a page that is whole and shows something.

"Valid HTML" is no useful question, since every text is some page to a browser. What is asked: tags
are there, the file does not end inside a tag, a script or a style, and something is visible.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats import Format, Source
from reread.formats._bytes import posing
from reread.formats._checks import Fact, Item, hollow, invalid, passed, unsafe
from reread.formats._placeholder import fenced, judge, leaks, word_count, words
from reread.formats._text import Text, read_text

FORMAT = Format("html", (".html", ".htm", ".xhtml"), "HTML page", "text/html")
PRELOAD = ("lxml.html",)
GROWTH = 30

MAX_CHARACTERS = 64 << 20
RAW = re.compile(
    r"<(script|style|textarea|title|template)\b[^>]*>|</(script|style|textarea|title|template)\s*>",
    re.IGNORECASE,
)
TAG = re.compile(r"<[a-zA-Z!/][^<>]*>")
SHOWN = ("img", "svg", "canvas", "video", "audio", "iframe", "table", "input", "object", "embed")
UNSEEN = ("script", "style", "template", "noscript", "head")


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a page."""
    text = None
    for item in read_text(source, "html", other=True):
        if isinstance(item, Text):
            text = item.text
        else:
            yield item
    if text is None:
        return
    if len(text) > MAX_CHARACTERS:
        yield unsafe("html.bounded", "too_large", f"It has {len(text)} characters.")
        return
    if not TAG.search(text):
        yield from posing(source.data(), "html")
        yield invalid("html.identity", "no_tags", "There is no tag in it.", depth="identity")
        return
    wrapped = list(fenced(text, "html"))
    yield from wrapped or [passed("html.identity", "identity")]
    yield from leaks(text, "html")
    yield from _whole(text)
    yield from _seen(text, contract)


def _whole(text: str) -> Iterator[Item]:
    """Yield whether the file ends in the middle of something."""
    last_open, last_close = text.rfind("<"), text.rfind(">")
    opened = ""
    for match in RAW.finditer(text):
        start, end = match.group(1), match.group(2)
        if not opened and start:
            opened = start.lower()
        elif opened and end and end.lower() == opened:
            opened = ""
    if opened:
        yield invalid("html.whole", "truncated", f"It ends inside of <{opened}>.")
    elif last_open > last_close and re.match(r"<[a-zA-Z/!]", text[last_open:]):
        yield invalid(
            "html.whole", "truncated", f"It ends inside of a tag: {text[last_open:][:40]}"
        )
    elif text.count("<!--") > text.count("-->"):
        yield invalid("html.whole", "truncated", "It ends inside of a comment.")
    elif re.search(r"<html\b", text, re.I) and re.search(r"<body\b", text, re.I) and _cut(text):
        yield invalid("html.whole", "truncated", "It ends inside of an element that has to close.")
    else:
        yield passed("html.whole", "integrity")


def _cut(text: str) -> bool:
    """Say whether an element that needs its end is open at the end of the file."""
    tail = text.rstrip()[-200:].lower()
    if tail.endswith(("</html>", "</body>")):
        return False
    counts = {name: _balance(text, name) for name in ("table", "div", "section", "main", "svg")}
    return any(count > 0 for count in counts.values())


def _balance(text: str, name: str) -> int:
    opened = len(re.findall(rf"<{name}[\s>]", text, re.IGNORECASE))
    return opened - len(re.findall(rf"</{name}\s*>", text, re.IGNORECASE))


def _seen(text: str, contract: Mapping[str, Any]) -> Iterator[Item]:
    import lxml.html
    from lxml import etree

    try:
        root = lxml.html.document_fromstring(
            text.encode("utf-8"), parser=lxml.html.HTMLParser(encoding="utf-8")
        )
    except (etree.ParserError, ValueError) as error:
        yield invalid("html.parses", "damaged", f"It cannot be read as a page: {error}"[:200])
        return
    media = sum(1 for name in SHOWN for _ in root.iter(name))
    links = [str(a.get("href", "")) for a in root.iter("a")]
    for name in UNSEEN:
        for element in list(root.iter(name)):
            element.drop_tree()  # type: ignore[attr-defined]
    shown = "\n".join(str(piece).strip() for piece in root.itertext() if piece.strip())
    yield Fact("words", word_count(shown))
    yield Fact("images", sum(1 for _ in root.iter("img")))
    yield Fact("tables", sum(1 for _ in root.iter("table")))
    yield Fact(
        "local_links",
        sorted({link for link in links if link and ":" not in link and link[0] not in "#/?"}),
    )
    yield Fact("_text", shown)
    if not words(shown) and not media and not any(c.isdigit() for c in shown):
        if contract.get("allow_empty"):
            yield passed("html.has_content", "substance", "empty, which the contract allows")
        else:
            yield hollow("html.has_content", "no_content", "Nothing in it is visible.")
        return
    yield passed("html.has_content", "substance", f"{words(shown)} words, {media} media")
    yield from judge(shown, "html", allow_empty=bool(contract.get("allow_empty")) or media > 2)
