"""PowerPoint decks: slides that a reader reaches, with something on them.

Text that a layout only prompts for ("Click to add title") is not on the slide. Macro-enabled
decks, shows, templates and Strict ones are the same format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats import Format, Source
from reread.formats._checks import Fact, Item, holds, hollow, invalid, passed, warned
from reread.formats._inventory import lost
from reread.formats._opc import Package, Part, Relation, identify, local, walk
from reread.formats._placeholder import judge, word_count
from reread.values import Check

FORMAT = Format(
    "pptx",
    (".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm"),
    "PowerPoint deck",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ("powerpoint",),
)
PRELOAD = ("zipfile", "lxml.etree", "xml.parsers.expat")
GROWTH = 8

TITLES = frozenset({"title", "ctrTitle"})
FURNITURE = frozenset({"dt", "ftr", "sldNum", "hdr"})
SHAPES = frozenset({"sp", "pic", "graphicFrame", "cxnSp", "contentPart"})
DRAWN = frozenset({"pic", "graphicFrame", "contentPart"})


class Slide(Part):
    """What is on one slide: text by the kind of its shape, and what is drawn."""

    def __init__(self) -> None:
        self.title = ""
        self.lines: list[str] = []
        self.drawn = 0
        self.shapes = 0
        self.tables = 0
        self._shape = ""
        self._holds = ""
        self._paragraph: list[str] = []
        self._in_text = False
        self._filled = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Follow shapes and the text in them."""
        tag = local(name)
        if tag in SHAPES and "presentationml" in name:
            self._shape, self._holds, self._filled = tag, "", False
        elif tag == "ph":
            self._holds = attributes.get("type", "body")
        elif tag == "t":
            self._in_text = True
        elif tag == "p" and "drawingml" in name:
            self._paragraph = []
        elif tag == "br":
            self._paragraph.append(" ")
        elif tag == "tbl":
            self.tables += 1
        elif tag == "blip":
            self._filled = True

    def end(self, name: str) -> None:
        """Take what a shape held."""
        tag = local(name)
        if tag == "t":
            self._in_text = False
        elif tag == "p" and "drawingml" in name:
            self._take("".join(self._paragraph).strip())
        elif tag in SHAPES and "presentationml" in name:
            if tag in DRAWN or self._filled:
                self.drawn += 1
            elif not self._holds:
                self.shapes += 1

    def text(self, data: str) -> None:
        """Take text of a run."""
        if self._in_text:
            self._paragraph.append(data)

    def _take(self, line: str) -> None:
        if not line or self._holds in FURNITURE:
            return
        if self._holds in TITLES:
            self.title = f"{self.title} {line}".strip()
        else:
            self.lines.append(line)

    @property
    def empty(self) -> bool:
        """Nothing of the author's is on it."""
        return not (self.title or self.lines or self.drawn or self.shapes)

    @property
    def titled_only(self) -> bool:
        """A title, and nothing below it."""
        return not (self.lines or self.drawn or self.shapes)


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a deck."""
    for item in identify(source, "pptx"):
        if isinstance(item, Package):
            yield from _deck(item, contract)
        else:
            yield item


def compare(old: Source, new: Source) -> Iterator[Check]:
    """Yield what an edit of a deck has lost."""
    yield from lost(old, new, "pptx")


def _deck(package: Package, contract: Mapping[str, Any]) -> Iterator[Item]:
    slides: dict[str, Slide] = {}

    def reader(key: str) -> Part | None:
        if package.type_of(key).endswith("presentationml.slide+xml"):
            return slides.setdefault(key, Slide())
        return None

    found = list(walk(package, "pptx", reader))
    yield from found
    if not holds(found):
        return
    listed = _listed(package)
    missing = next((id for id, relation in listed if relation is None), None)
    if missing is not None:
        cause = f"The deck lists the slide '{missing}', to which nothing leads."
        yield invalid("pptx.slides", "dangling_relationship", cause)
        return
    shown = [
        slides[relation.target.lower()]
        for _, relation in listed
        if relation is not None and relation.target.lower() in slides
    ]
    yield from _facts(package, shown)
    if not shown:
        is_template = package.type_of(package.main).endswith("template.main+xml")
        if is_template or contract.get("allow_empty"):
            yield passed("pptx.slides", "integrity", "no slides, as templates may")
        else:
            yield invalid("pptx.slides", "zero_slides", "It has no slides.")
        return
    yield passed("pptx.slides", "integrity", f"{len(shown)} slides")
    yield from _substance(shown, contract)


def _listed(package: Package) -> list[tuple[str, Relation | None]]:
    """Return the slides in their order, with the relationship that leads to each."""
    by_id = {relation.id: relation for relation in package.relations(package.main)}
    found = []
    for element in package.tree(package.main).iter("{*}sldId"):
        id = next(
            (v for k, v in element.attrib.items() if k.startswith("{") and k.endswith("}id")), ""
        )
        found.append((id, by_id.get(id)))
    return found


def _facts(package: Package, slides: list[Slide]) -> Iterator[Item]:
    text = "\n".join("\n".join([slide.title, *slide.lines]) for slide in slides)
    yield Fact("slides", len(slides))
    yield Fact("words", word_count(text))
    yield Fact("tables", sum(slide.tables for slide in slides))
    yield Fact("images", sum(1 for key in package.entries if key.startswith("ppt/media/")))
    charts = [k for k in package.entries if package.type_of(k).endswith("drawingml.chart+xml")]
    yield Fact("charts", len(charts))
    yield Fact("_text", text)
    sections = [
        {"title": slide.title, "content": "\n".join(slide.lines) or ("drawn" * slide.drawn)}
        for slide in slides
    ]
    yield Fact("_sections", sections)


def _substance(slides: list[Slide], contract: Mapping[str, Any]) -> Iterator[Item]:
    name = "pptx.has_content"
    empty = sum(1 for slide in slides if slide.empty)
    if contract.get("allow_empty"):
        yield passed(name, "substance", "the contract allows none")
        return
    if empty == len(slides):
        cause = f"Nothing is on its {len(slides)} slides but what the layout prompts for."
        yield hollow(name, "no_content", cause)
        return
    if all(slide.titled_only for slide in slides):
        shown = next(slide.title for slide in slides if slide.title)
        yield hollow(name, "title_only", f"There are only titles in it, such as '{shown[:60]}'.")
        return
    if empty:
        cause = f"{empty} of its {len(slides)} slides are empty."
        yield warned(name, "substance", "empty_slides", cause)
    else:
        yield passed(name, "substance", f"{len(slides)} slides with content")
    yield from judge("\n".join("\n".join([s.title, *s.lines]) for s in slides), "pptx")
