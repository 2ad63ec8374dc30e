"""XML: well-formed, nothing followed, and with content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats import Format, Source
from reread.formats._checks import Fact, Item, hollow, invalid, passed
from reread.formats._placeholder import judge, word_count
from reread.formats._xml import local, read
from reread.values import Check

FORMAT = Format("xml", (".xml", ".rss", ".atom", ".xsd", ".gpx", ".kml"), "XML", "application/xml")
PRELOAD = ("lxml.etree",)
GROWTH = 30


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of an XML file."""
    for item in read(source, "xml"):
        if isinstance(item, Check | Fact):
            yield item
            continue
        yield passed("xml.parses", "identity", local(item))
        if item.tag.lower() == "html":  # in XHTML the name stands in a namespace
            yield invalid("xml.identity", "is_html", "It is an HTML page.", depth="identity")
            continue
        text = "\n".join(piece.strip() for piece in item.itertext() if piece.strip())
        elements = sum(1 for _ in item.iter())
        attributes = sum(len(element.attrib) for element in item.iter("*"))
        yield Fact("items", elements)
        yield Fact("words", word_count(text))
        yield Fact("_text", text)
        if not text and not attributes and not contract.get("allow_empty"):
            yield hollow("xml.has_content", "no_content", "It has no text and no attribute.")
            continue
        yield passed("xml.has_content", "substance", f"{elements} elements")
        yield from judge(
            text, "xml", allow_empty=bool(contract.get("allow_empty")) or attributes > 5
        )
