"""Office packages (OPC): what docx, pptx and xlsx have in common, walked part by part.

Proves: it is the package that the name says, every XML part is well-formed and free of document
types, every checksum holds, and every relationship that a reader follows leads to a part.
Transitional and Strict, macro-enabled files and templates are all the same kind. Nothing outside
of the package is followed.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import unquote
from xml.parsers import expat

from agent_runtime import Failure
from reread.formats import Source
from reread.formats._bytes import nothing
from reread.formats._checks import Item, failed, invalid, passed, warned
from reread.formats._zip import Budget, as_check, broken, open_zip, pieces, posing_as_zip, read
from reread.values import Code

KINDS = {
    "docx": ("wordprocessingml.", "ms-word.", "document", "a Word document"),
    "xlsx": ("spreadsheetml.", "ms-excel.", "workbook", "an Excel workbook"),
    "pptx": ("presentationml.", "ms-powerpoint.", "presentation", "a PowerPoint deck"),
}
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
MAX_SMALL = 8 << 20
"""Bytes of a part that is kept whole: relationships, content types, the main part of a deck."""
SEPARATOR = " "
PASSED_OVER = frozenset(
    {"hyperlink", "printerSettings", "thumbnail", "customXml", "attachedTemplate", "calcChain"}
    | {"externalLinkPath", "slicerCache", "core-properties", "extended-properties", "metadata"}
)
"""Relationships that readers do without; where they lead nowhere, that is only worth a warning."""


class Part:
    """Takes what stands in a part while it is parsed. A format's own reader derives what it needs.

    Names are 'namespace local'; `text` is called for each run of text.
    """

    root = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Take the start of an element."""

    def end(self, name: str) -> None:
        """Take its end."""

    def text(self, data: str) -> None:
        """Take text in it."""


@dataclass(frozen=True, slots=True)
class Relation:
    """One relationship of a part.

    Attributes:
        kind: the last word of its type (`slide`, `worksheet`).
        target: the name of a part, '' for what lies outside of the package.
    """

    id: str
    kind: str
    target: str
    external: str = ""


class Package:
    """A zip whose parts are found as the standard says: without regard to case."""

    def __init__(self, data: bytes) -> None:
        self.archive = open_zip(data)
        self.budget = Budget(len(data))
        self.entries: dict[str, zipfile.ZipInfo] = {}
        for entry in self.archive.infolist():
            name = _key(entry.filename)
            if entry.is_dir() or _is_stray(name):
                continue
            if name in self.entries:
                raise broken("duplicate_part", f"The part '{entry.filename}' is there twice.")
            self.entries[name] = entry
        self.roots: dict[str, str] = {}

    def has(self, name: str) -> bool:
        """Say whether there is such a part."""
        return _key(name) in self.entries

    def bytes(self, name: str, limit: int = MAX_SMALL) -> bytes:
        """Return a part, of which there is one."""
        return read(self.archive, self.entries[_key(name)], self.budget, limit)

    def tree(self, name: str) -> Any:
        """Return the root element of a small part."""
        from lxml import etree

        from reread.formats._xml import parse

        data = self.bytes(name)
        if b"<!DOCTYPE" in data:
            raise broken("doctype", f"The part '{name}' has a document type.", Code.artifact_unsafe)
        try:
            return parse(data)
        except etree.XMLSyntaxError as error:
            cause = f"The part '{name}' is not well-formed: {error}"
            raise broken("xml_not_well_formed", cause) from error

    @cached_property
    def types(self) -> tuple[dict[str, str], dict[str, str]]:
        """Content types by part, and by suffix."""
        if not self.has("[Content_Types].xml"):
            raise broken("no_main_part", "It is a zip without [Content_Types].xml.")
        parts, suffixes = {}, {}
        for element in self.tree("[Content_Types].xml"):
            kind = element.get("ContentType", "")
            if element.get("PartName"):
                parts[_key(element.get("PartName"))] = kind
            elif element.get("Extension"):
                suffixes[element.get("Extension").lower()] = kind
        return parts, suffixes

    def type_of(self, name: str) -> str:
        """Return the content type of a part, '' for none."""
        parts, suffixes = self.types
        key = _key(name)
        return parts.get(key) or suffixes.get(key.rpartition(".")[2], "")

    def relations(self, name: str) -> tuple[Relation, ...]:
        """Return the relationships of a part, those of the package for ''."""
        folder, _, file = name.rpartition("/")
        rels = posixpath.join(folder, "_rels", f"{file}.rels")
        if not self.has(rels):
            return ()
        found = []
        for element in self.tree(rels):
            target, kind = element.get("Target", ""), element.get("Type", "").rpartition("/")[2]
            id, mode = element.get("Id", ""), element.get("TargetMode", "Internal")
            if mode.lower() == "external":
                found.append(Relation(id, kind, "", target))
            elif target and not target.startswith("#") and target.upper() != "NULL":
                found.append(Relation(id, kind, _resolve(folder, target)))
        return tuple(found)

    @cached_property
    def main(self) -> str:
        """The name of the main part, '' where nothing leads to one."""
        found = (r.target for r in self.relations("") if r.kind == "officeDocument")
        return next(found, "")

    def scan(self, name: str, part: Part) -> None:
        """Parse a part once, in pieces, and give what stands in it to `part`.

        Raises:
            Failure: artifact_format_invalid (xml_not_well_formed, and as `pieces`),
                artifact_unsafe (doctype, too_deep, decompression_bomb).
        """
        entry = self.entries[_key(name)]
        parser = _parser(name, part)
        try:
            for piece in pieces(self.archive, entry, self.budget):
                parser.Parse(piece, False)
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            cause = f"The part '{name}' is not well-formed: {error}."
            raise broken("xml_not_well_formed", cause) from error
        self.roots[_key(name)] = part.root


def _parser(name: str, part: Part) -> Any:
    parser = expat.ParserCreate(namespace_separator=SEPARATOR)
    parser.buffer_text = True
    quiet = type(part) is Part

    def first(tag: str, attributes: dict[str, str]) -> None:
        part.root = tag
        parser.StartElementHandler = None if quiet else part.start
        if not quiet:
            parser.EndElementHandler, parser.CharacterDataHandler = part.end, part.text
            part.start(tag, attributes)

    def doctype(*ignored: object) -> None:
        raise broken("doctype", f"The part '{name}' has a document type.", Code.artifact_unsafe)

    parser.StartElementHandler = first
    parser.StartDoctypeDeclHandler = doctype
    return parser


def _is_stray(key: str) -> bool:
    """Say whether an entry is what a Mac puts beside each file that it packs, and nobody reads."""
    return key.startswith("__macosx/") or key.rpartition("/")[2].startswith("._")


def _key(name: str) -> str:
    return unquote(name.replace("\\", "/")).lstrip("/").lower()


def _resolve(folder: str, target: str) -> str:
    path = unquote(target.split("#")[0].replace("\\", "/"))
    joined = path if path.startswith("/") else posixpath.join("/", folder, path)
    return posixpath.normpath(joined).lstrip("/")


@lru_cache(maxsize=4096)
def local(name: str) -> str:
    """Return a name without its namespace."""
    return name.rpartition(SEPARATOR)[2]


def identify(source: Source, format: str) -> Iterator[Item | Package]:
    """Yield the identity checks, and the package last where it is of the format."""
    data = source.data()
    found = list(nothing(source, data, format))
    yield from found
    if found:
        return
    name = f"{format}.identity"
    if data.startswith(OLE):
        yield _old_office(data, name)
        return
    try:
        package = Package(data)
        what = _what(package, format)
    except Failure as failure:
        yield from posing_as_zip(data, name, format, failure)
        return
    if what:
        reason = "no_main_part" if what.startswith("It is a zip") else "format_mismatch"
        yield invalid(name, reason, what, depth="identity")
        return
    yield passed(name, "identity", package.type_of(package.main))
    yield package


def _old_office(data: bytes, name: str) -> Item:
    if "EncryptedPackage".encode("utf-16-le") in data:
        cause = "It is encrypted and opens with a password only."
        return failed(name, "identity", Code.artifact_unreadable, "encrypted", cause)
    return invalid(name, "format_mismatch", "It is an old Office file.", depth="identity")


def _what(package: Package, format: str) -> str:
    """Say what else a package is than the format, '' where it is that."""
    if package.has("mimetype") and not package.has("[Content_Types].xml"):
        return f"It is {package.bytes('mimetype', 1 << 10).decode('latin-1')[:60]}."
    main = package.main
    if not main or not package.has(main):
        return "It is a zip in which nothing leads to a main part."
    kind = package.type_of(main)
    for other, (words, older, _, title) in KINDS.items():
        if (words in kind or older in kind) and other != format:
            return f"It is {title}."
    if not any(word in kind for word in KINDS[format][:2]):
        return f"Its main part '{main}' is of type '{kind}'."
    return ""


def walk(
    package: Package, format: str, readers: Callable[[str], Part | None]
) -> Iterator[Item | Any]:
    """Yield the integrity checks: every part once, with the reader of the format where it has one.

    Args:
        readers: part name → what takes its content, None where only its form matters.
    """
    count = 0
    try:
        for key, entry in package.entries.items():
            reader = readers(key) or Part()
            if _is_xml(package, key):
                package.scan(key, reader)
            else:
                for _ in pieces(package.archive, entry, package.budget):
                    pass
            count += 1
        root = local(package.roots.get(_key(package.main), ""))
        if root != KINDS[format][2]:
            cause = f"The main part starts with '{root}'."
            yield invalid(f"{format}.main_part", "format_mismatch", cause)
            return
        yield passed(f"{format}.parts_open", "integrity", f"{count} parts")
        yield from _relations_hold(package, format)
    except Failure as failure:
        yield as_check(failure, f"{format}.parts_open")


def _is_xml(package: Package, key: str) -> bool:
    return key.endswith((".xml", ".rels")) or package.type_of(key).endswith("+xml")


def _relations_hold(package: Package, format: str) -> Iterator[Item]:
    name, dead = f"{format}.relationships", ""
    for part in ["", *package.entries]:
        if part.endswith(".rels"):
            continue
        for relation in package.relations(part):
            if not relation.target or package.has(relation.target):
                continue
            cause = f"'{part or 'the package'}' refers to '{relation.target}', which is not in it."
            if relation.kind not in PASSED_OVER:
                yield invalid(name, "dangling_relationship", cause)
                return
            dead = cause
    if dead:
        yield warned(name, "integrity", "dangling_relationship", dead)
    else:
        yield passed(name, "integrity")
