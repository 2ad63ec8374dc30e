"""Word documents: text, tables and pictures in a package that holds together.

Macro-enabled files, templates and Strict ones are the same format. A document of headings alone is
a promise; one word in a plain paragraph is little, and said so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats import Format, Source
from reread.formats._checks import Fact, Item, holds, hollow, passed, warned
from reread.formats._inventory import lost
from reread.formats._opc import Package, Part, identify, local, walk
from reread.formats._placeholder import judge, word_count, words
from reread.values import Check

FORMAT = Format(
    "docx",
    (".docx", ".docm", ".dotx", ".dotm"),
    "Word document",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ("word",),
)
PRELOAD = ("zipfile", "lxml.etree", "xml.parsers.expat")
GROWTH = 8

SEEN = frozenset({"drawing", "pict", "object", "chart", "blip", "oMath", "altChunk"})
TITLES = ("title", "heading", "subtitle", "toc", "标题")
FEW_WORDS = 3


class Body(Part):
    """The main part: paragraphs with their style, and what else is to be seen."""

    def __init__(self) -> None:
        self.paragraphs: list[tuple[str, str]] = []
        self.seen: dict[str, int] = {}
        self.tables = 0
        self._open: list[tuple[str, list[str]]] = []
        self._in_text = False
        self._style = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Open a paragraph, or count what is no text."""
        tag = local(name)
        if tag == "p" and "wordprocessingml" in name:
            self._open.append(("", []))
        elif tag == "pStyle" and self._open:
            self._open[-1] = (_value(attributes, "val"), self._open[-1][1])
        elif tag == "t":
            self._in_text = True
        elif tag in ("tab", "br", "cr") and self._open:
            self._open[-1][1].append(" ")
        elif tag == "tbl":
            self.tables += 1
        elif tag in SEEN:
            self.seen[tag] = self.seen.get(tag, 0) + 1

    def end(self, name: str) -> None:
        """Close a paragraph."""
        tag = local(name)
        if tag == "t":
            self._in_text = False
        elif tag == "p" and self._open and "wordprocessingml" in name:
            style, pieces = self._open.pop()
            text = "".join(pieces).strip()
            if text:
                self.paragraphs.append((style, text))

    def text(self, data: str) -> None:
        """Take text of a run."""
        if self._in_text and self._open:
            self._open[-1][1].append(data)


class Styles(Part):
    """Which styles are titles: by their name, since their id may be of any language."""

    def __init__(self) -> None:
        self.titles: set[str] = set()
        self._id = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Take a style's id and its name."""
        tag = local(name)
        if tag == "style":
            self._id = _value(attributes, "styleId")
        elif tag == "name" and _value(attributes, "val").lower().startswith(TITLES):
            self.titles.add(self._id)


def _value(attributes: Mapping[str, str], name: str) -> str:
    return next((value for key, value in attributes.items() if local(key) == name), "")


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a document."""
    for item in identify(source, "docx"):
        if isinstance(item, Package):
            yield from _document(item, contract)
        else:
            yield item


def compare(old: Source, new: Source) -> Iterator[Check]:
    """Yield what an edit of a document has lost."""
    yield from lost(old, new, "docx")


def _document(package: Package, contract: Mapping[str, Any]) -> Iterator[Item]:
    body, styles = Body(), Styles()
    main = package.main.lower()
    by_type = {"styles+xml": styles}

    def reader(key: str) -> Part | None:
        if key == main:
            return body
        kind = package.type_of(key)
        return next((part for end, part in by_type.items() if kind.endswith(f".{end}")), None)

    found = list(walk(package, "docx", reader))
    yield from found
    if not holds(found):
        return
    text = "\n".join(line for _, line in body.paragraphs)
    yield Fact("words", word_count(text))
    yield Fact("paragraphs", len(body.paragraphs))
    yield Fact("tables", body.tables)
    yield Fact("images", sum(1 for key in package.entries if "/media/" in key))
    yield Fact("charts", sum(1 for key in package.entries if _is_chart(package, key)))
    yield Fact("_text", text)
    yield Fact("_sections", _sections(body, styles))
    yield from _substance(body, styles, text, contract)


def _is_chart(package: Package, key: str) -> bool:
    return package.type_of(key).endswith(("drawingml.chart+xml", "chartex+xml"))


def _is_title(style: str, styles: Styles) -> bool:
    return style in styles.titles or style.lower().startswith(TITLES)


def _sections(body: Body, styles: Styles) -> list[dict[str, str]]:
    sections: list[dict[str, str]] = []
    for style, line in body.paragraphs:
        if _is_title(style, styles):
            sections.append({"title": line, "content": ""})
        elif sections:
            sections[-1]["content"] += line + "\n"
    return sections


def _substance(
    body: Body, styles: Styles, text: str, contract: Mapping[str, Any]
) -> Iterator[Item]:
    name = "docx.has_content"
    if contract.get("allow_empty"):
        yield passed(name, "substance", "the contract allows none")
        return
    if not body.paragraphs and not body.seen:
        yield hollow(name, "no_content", "There is no word, picture or object in it.")
        return
    plain = [line for style, line in body.paragraphs if not _is_title(style, styles)]
    if not plain and not body.seen:
        shown = body.paragraphs[0][1][:60]
        yield hollow(name, "title_only", f"There are only headings in it, such as '{shown}'.")
        return
    if words(text) < FEW_WORDS and not body.seen:
        yield warned(name, "substance", "few_words", f"All it says is '{text[:60]}'.")
    else:
        yield passed(name, "substance", f"{words(text)} words")
    yield from judge(text, "docx")
