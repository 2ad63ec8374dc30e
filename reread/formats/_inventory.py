"""What an Office document consists of, counted, so that an edit can be held against its original.

Proves: what is counted here is still there. It does not prove that it is still the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from agent_runtime import Failure
from reread.formats import Source
from reread.formats._checks import failed, not_run, passed
from reread.formats._opc import Package, Part, local
from reread.values import Check, Code

PARTS: tuple[tuple[str, str], ...] = (
    ("vbaproject", "macros"),
    ("drawingml.chart+xml", "charts"),
    ("chartex+xml", "charts"),
    ("chartsheet+xml", "chart sheets"),
    ("threadedcomments+xml", "threaded comments"),
    ("comments+xml", "comments"),
    (".comment+xml", "comments"),
    ("spreadsheetml.table+xml", "tables"),
    ("pivottable+xml", "pivot tables"),
    ("slicer+xml", "slicers"),
    ("externallink+xml", "links to other workbooks"),
    ("notesslide+xml", "speaker notes"),
    ("footnotes+xml", "footnotes"),
    ("endnotes+xml", "endnotes"),
    ("header+xml", "headers"),
    ("footer+xml", "footers"),
    ("oleobject", "embedded objects"),
    ("diagramdata+xml", "diagrams"),
    ("slidelayout+xml", "slide layouts"),
    ("presentationml.slide+xml", "slides"),
    ("customxmlproperties+xml", "custom XML"),
    ("activex", "controls"),
)
FOLDERS = (("/media/", "images, sound and film"), ("/embeddings/", "embedded files"))
MAIN_MARKS = {
    "sheet": "sheet '",
    "definedName": "defined name '",
    "drawing": "drawings",
    "pict": "drawings",
    "tbl": "tables",
    "sdt": "content controls",
    "bookmarkStart": "bookmarks",
    "hyperlink": "hyperlinks",
    "sectPr": "sections",
    "ins": "tracked insertions",
    "del": "tracked deletions",
    "fldSimple": "fields",
    "instrText": "fields",
    "oMath": "formulas",
}
SHEET_MARKS = {
    "dataValidation": "data validations",
    "conditionalFormatting": "conditional formats",
    "mergeCell": "merged cells",
    "hyperlink": "hyperlinks",
    "autoFilter": "filters",
    "sparkline": "sparklines",
}
SLIDE_MARKS = {
    "pic": "pictures",
    "graphicFrame": "charts and tables on slides",
    "timing": "animations",
    "transition": "transitions",
}
ANCHORS = ("twoCellAnchor", "oneCellAnchor", "absoluteAnchor")
MARKS: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("worksheet+xml", SHEET_MARKS),
    ("presentationml.slide+xml", SLIDE_MARKS),
    ("officedocument.drawing+xml", dict.fromkeys(ANCHORS, "drawings")),
)


def lost(old: Source, new: Source, format: str) -> Iterator[Check]:
    """Yield one failure for each kind of thing of which the new document has less."""
    name = f"{format}.keeps"
    try:
        before = inventory(Package(old.data()))
    except Failure as failure:
        yield not_run(name, "integrity", f"the older document does not open: {failure.cause}")
        return
    after = inventory(Package(new.data()))
    gone = {what: (n, after[what]) for what, n in before.items() if after[what] < n}
    if not gone:
        yield passed(name, "integrity", f"{sum(before.values())} things are still there")
    for what, (had, has) in sorted(gone.items()):
        cause = f"It had {what}: {had}; now it has {has}."
        if had == 1 and has == 0 and "'" in what:
            cause = f"It had the {what}, which is gone."
        yield failed(name, "integrity", Code.artifact_content_lost, _reason(what), cause)


def _reason(what: str) -> str:
    return "lost_" + what.partition("'")[0].strip().replace(" ", "_").replace(",", "")


def inventory(package: Package) -> Counter[str]:
    """Count what a package holds, by what people call it; by name where things have one."""
    found: Counter[str] = Counter()
    for key in package.entries:
        kind = package.type_of(key).lower()
        found.update({word for ending, word in PARTS if ending in kind})
        found.update(word for folder, word in FOLDERS if folder in f"/{key}")
        if key == package.main.lower():
            found.update(_marks(package, key, MAIN_MARKS))
        for ending, marks in MARKS:
            if kind.endswith(ending):
                found.update(_marks(package, key, marks))
    return found


class _Marks(Part):
    """Counts elements by name, and takes the names of sheets and of defined names."""

    def __init__(self, marks: Mapping[str, str]) -> None:
        self.found: Counter[str] = Counter()
        self._marks = marks

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Count one element."""
        what = self._marks.get(local(name), "")
        if what.endswith("'"):
            self.found[f"{what}{attributes.get('name', '')}'"] += 1
        elif what:
            self.found[what] += 1


def _marks(package: Package, key: str, marks: Mapping[str, str]) -> Counter[str]:
    part = _Marks(marks)
    package.scan(key, part)
    return part.found
