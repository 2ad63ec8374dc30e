"""XML read with nothing followed: no entity is expanded, no DTD loaded, no network used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from reread.formats import Source
from reread.formats._bytes import kind, nothing, posing
from reread.formats._checks import Item, invalid, unsafe
from reread.formats._placeholder import leaks
from reread.formats._text import encoding_of

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
    plain = _eight_bit(data)
    if b"<!ENTITY" not in plain:
        return
    for match in ENTITY.finditer(plain):
        value = match.group(2)
        if value.upper() in (b"SYSTEM", b"PUBLIC"):
            cause = "An entity of it refers to another file."
            yield unsafe(f"{format}.entities", "external_entity", cause)
            return
        if b"&" in value.replace(b"&#", b"") or match.group(1):
            yield unsafe(f"{format}.entities", "entity_expansion", "Its entities expand others.")
            return


def _eight_bit(data: bytes) -> bytes:
    """Return the text with one byte for each letter of the markup, whatever its encoding."""
    encoding = encoding_of(data)
    if not encoding and data[:4].count(0):
        encoding = "utf-16-be" if data[0] == 0 else "utf-16-le"
    return data.decode(encoding, "replace").encode("utf-8") if encoding else data


def _declared(root: Any, format: str) -> Iterator[Item]:
    """Yield failures of entities that the parser saw, in an encoding that the scan did not."""
    table = root.getroottree().docinfo.internalDTD
    for entity in table.entities() if table is not None else ():
        if entity.system_url is not None or entity.orig is None:
            cause = f"Its entity '{entity.name}' refers to another file."
            yield unsafe(f"{format}.entities", "external_entity", cause)
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
        yield from _declared(root, format)
    except etree.XMLSyntaxError as error:
        text = data.decode("utf-8", "replace")
        yield from leaks(text, format)
        reason = "truncated" if "premature end" in str(error).lower() else "xml_not_well_formed"
        if "entity" in str(error).lower() and re.search("amplif|loop", str(error)):
            yield unsafe(f"{format}.entities", "entity_expansion", "Its entities expand too far.")
        elif kind(data) == "an HTML page":
            yield invalid(f"{format}.identity", "is_html", "It is an HTML page.", depth="identity")
        elif "depth" in str(error).lower():
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
