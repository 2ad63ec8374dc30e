"""XML read with nothing followed: no entity is expanded, no DTD loaded, no network used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from reread.formats import Source
from reread.formats._bytes import nothing, posing
from reread.formats._checks import Item, invalid, unsafe
from reread.formats._placeholder import leaks

MAX_BYTES = 128 << 20
MAX_DEPTH = 250
ENTITY = re.compile(
    rb"<!ENTITY\s+(%\s*)?[^\s>]+\s+(SYSTEM|PUBLIC|\"[^\"]*\"|'[^']*')", re.IGNORECASE
)


def parse(data: bytes) -> Any:
    """Parse XML and return its root element.

    Raises:
        lxml.etree.XMLSyntaxError
    """
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=False
    )
    return etree.fromstring(data, parser)


def entities(data: bytes, format: str) -> Iterator[Item]:
    """Yield failures of a document type that refers outside or expands."""
    if b"<!DOCTYPE" not in data[: 1 << 20].upper() and b"<!ENTITY" not in data:
        return
    for match in ENTITY.finditer(data):
        value = match.group(2)
        if value.upper() in (b"SYSTEM", b"PUBLIC"):
            cause = "An entity of it refers to another file."
            yield unsafe(f"{format}.entities", "external_entity", cause)
            return
        if b"&" in value.replace(b"&#", b"") or match.group(1):
            yield unsafe(f"{format}.entities", "entity_expansion", "Its entities expand others.")
            return


def read(source: Source, format: str) -> Iterator[Item | Any]:
    """Yield checks, and the root element last where it parses."""
    from lxml import etree

    data = source.data()
    found = list(nothing(source, data, format))
    if not found and not data.lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n\x00").startswith(b"<"):
        found = list(posing(data, format)) or [
            invalid(
                f"{format}.identity", "not_xml", "It does not start with a tag.", depth="identity"
            )
        ]
    found += list(entities(data, format)) if not found else []
    if len(data) > MAX_BYTES:
        found.append(unsafe(f"{format}.bounded", "too_large", f"It has {len(data)} bytes."))
    yield from found
    if found:
        return
    try:
        root = parse(data)
    except etree.XMLSyntaxError as error:
        text = data.decode("utf-8", "replace")
        yield from leaks(text, format)
        reason = "truncated" if "premature end" in str(error).lower() else "xml_not_well_formed"
        if "depth" in str(error).lower():
            yield unsafe(f"{format}.bounded", "too_deep", f"It is nested too deeply: {error}"[:200])
        else:
            cause = f"It is not well-formed: {error}"[:240]
            yield invalid(f"{format}.parses", reason, cause, depth="identity")
        return
    yield root


def local(element: Any) -> str:
    """Return the name of an element without its namespace, '' for comments and the like."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""
