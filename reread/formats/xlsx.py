"""Excel workbooks: sheets that a reader reaches, and values in their cells.

Cells are read as their consumers do (calamine): a formula whose value was never computed reads as
empty, and is said. Chart sheets count as content. Macro-enabled files, templates and Strict
workbooks are the same format.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reread.formats import Format, Source
from reread.formats._checks import Fact, Item, holds, hollow, invalid, passed, unsafe, warned
from reread.formats._inventory import lost
from reread.formats._opc import Package, Part, identify, local, walk
from reread.formats._placeholder import FILLER, word_count
from reread.values import Check

FORMAT = Format(
    "xlsx",
    (".xlsx", ".xlsm", ".xltx", ".xltm"),
    "Excel workbook",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ("excel",),
)
PRELOAD = ("zipfile", "lxml.etree", "xml.parsers.expat", "python_calamine")
GROWTH = 40

REFERENCE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")
MAX_DENSE = 6_000_000
"""Cells of the rectangle around all cells, which readers hold in memory."""
MAX_TEXT = 2_000_000
"""Characters of the text that is kept for a contract."""


class Cells(Part):
    """Counts the cells of one sheet while it is parsed, and measures the rectangle around them."""

    def __init__(self) -> None:
        self.filled = self.formulas = self.uncached = self.errors = self.drawings = 0
        self.strings = 0
        self.rows: set[int] = set()
        self.first = self.last = (0, 0)
        self._kind = ""
        self._formula = self._value = self._collect = False
        self._row = self._column = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Open a cell, or note what it has."""
        tag = local(name)
        if tag == "c":
            self._kind = attributes.get("t", "n")
            self._formula = self._value = False
            self._at(attributes.get("r", ""))
        elif tag == "row":
            self._row = _number(attributes.get("r", ""), self._row + 1)
            self._column = 0
        elif tag == "f":
            self._formula = True
        elif tag in ("v", "is"):
            # An empty <v/> of a formula that yields text is a value: the empty text.
            self._value = self._kind == "str"
            self._collect = True
        elif tag in ("drawing", "legacyDrawing", "picture"):
            self.drawings += 1

    def text(self, data: str) -> None:
        """Note that a value is not empty."""
        if self._collect and data.strip():
            self._value = True

    def end(self, name: str) -> None:
        """Count a cell."""
        tag = local(name)
        if tag in ("v", "is"):
            self._collect = False
        elif tag == "c":
            self.formulas += self._formula
            self.uncached += self._formula and not self._value
            if self._value or self._formula:
                self._count()

    def _count(self) -> None:
        self.filled += self._value
        self.errors += self._kind == "e"
        self.strings += self._kind in ("s", "str", "inlineStr")
        self.rows.add(self._row)
        here = (self._row, self._column)
        low, high = (self.first, self.last) if self.last != (0, 0) else (here, here)
        self.first = (min(low[0], here[0]), min(low[1], here[1]))
        self.last = (max(high[0], here[0]), max(high[1], here[1]))

    def _at(self, reference: str) -> None:
        match = REFERENCE.fullmatch(reference.upper())
        self._column += 1
        if match:
            self._column = column_number(match.group(1))
            self._row = int(match.group(2))

    @property
    def dense(self) -> int:
        """How many cells the rectangle around all cells has."""
        height = self.last[0] - self.first[0] + 1
        return height * (self.last[1] - self.first[1] + 1)


def _number(text: str, default: int) -> int:
    return int(text) if text.isdigit() and len(text) < 9 else default


def column_number(letters: str) -> int:
    """Return the number of a column, 1 for A."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number


@dataclass(frozen=True, slots=True)
class Sheet:
    """One sheet as readers see it.

    Attributes:
        header: the first row that has anything in it.
        rows: those below that have anything in them.
    """

    name: str
    header: list[Any]
    rows: list[list[Any]]


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a workbook."""
    for item in identify(source, "xlsx"):
        if isinstance(item, Package):
            yield from _workbook(source, item, contract)
        else:
            yield item


def compare(old: Source, new: Source) -> Iterator[Check]:
    """Yield what an edit of a workbook has lost."""
    yield from lost(old, new, "xlsx")


def _workbook(source: Source, package: Package, contract: Mapping[str, Any]) -> Iterator[Item]:
    parts: dict[str, Cells] = {}

    def reader(key: str) -> Part | None:
        if package.type_of(key).endswith("worksheet+xml"):
            return parts.setdefault(key, Cells())
        return None

    found = [*walk(package, "xlsx", reader)]
    found += [*_sheets(package)] if holds(found) else []
    yield from found
    if not holds(found):
        return
    wide = next((cells for cells in parts.values() if cells.dense > MAX_DENSE), None)
    if wide is not None:
        cause = f"Its {wide.filled} cells span {wide.dense} cells of a sheet."
        yield unsafe("xlsx.bounded", "sparse_sheet", cause)
        return
    sheets = yield from _read(source)
    if sheets is None:
        return
    yield from _facts(package, sheets, contract)
    yield from _substance(package, list(parts.values()), sheets, contract)


def _sheets(package: Package) -> Iterator[Item]:
    """Yield whether each sheet that the workbook lists can be reached."""
    by_id = {relation.id: relation for relation in package.relations(package.main)}
    listed = list(package.tree(package.main).iter("{*}sheet"))
    if not listed:
        yield invalid("xlsx.sheets", "no_sheets", "It lists no sheets.")
        return
    names = []
    for element in listed:
        ids = (v for k, v in element.attrib.items() if k.endswith("}id"))
        if by_id.get(next(ids, "")) is None:
            cause = f"Nothing leads to its sheet '{element.get('name', '')}'."
            yield invalid("xlsx.sheets", "dangling_relationship", cause)
            return
        names.append(element.get("name", ""))
    yield passed("xlsx.sheets", "integrity", f"{len(names)} sheets")
    yield Fact("sheets", len(names))
    yield Fact("sheet_names", names)


def _read(source: Source) -> Any:
    """Read the cells; a generator that returns the sheets, or None after a failed check."""
    from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum

    sheets = []
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(source.data()))
        for meta in book.sheets_metadata:
            if meta.typ == SheetTypeEnum.WorkSheet:
                rows = book.get_sheet_by_name(meta.name).to_python(skip_empty_area=True)
                kept = [row for row in rows if any(cell not in ("", None) for cell in row)]
                sheets.append(Sheet(meta.name, kept[0] if kept else [], kept[1:]))
    except (CalamineError, ValueError, OSError) as error:
        yield invalid("xlsx.cells_read", "damaged", f"Its cells cannot be read: {error}")
        return None
    yield passed("xlsx.cells_read", "integrity", f"{sum(len(s.rows) for s in sheets)} rows")
    return sheets


def _facts(package: Package, sheets: list[Sheet], contract: Mapping[str, Any]) -> Iterator[Item]:
    wanted = contract.get("table", {}).get("sheet", "")
    named = [sheet for sheet in sheets if sheet.name == wanted] if wanted else sheets
    table = max(named, key=lambda sheet: len(sheet.rows), default=Sheet("", [], []))
    yield Fact("rows", len(table.rows))
    yield Fact("columns", len(table.header))
    yield Fact("_header", [str(cell).strip() for cell in table.header])
    yield Fact("_rows", table.rows)
    yield Fact("charts", sum(1 for k in package.entries if "/charts/chart" in k))
    yield Fact("images", sum(1 for k in package.entries if "/media/" in k))
    text = _text(sheets)
    yield Fact("words", word_count(text))
    yield Fact("_text", text)


def _text(sheets: list[Sheet]) -> str:
    lines: list[str] = []
    size = 0
    for sheet in sheets:
        for row in [[sheet.name], sheet.header, *sheet.rows]:
            lines.append(" ".join(shown(cell) for cell in row if cell not in ("", None)))
            size += len(lines[-1])
            if size > MAX_TEXT:
                return "\n".join(lines)
    return "\n".join(lines)


def shown(cell: Any) -> str:
    """Return a value as a person reads it: 5 and not 5.0."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _substance(
    package: Package, parts: list[Cells], sheets: list[Sheet], contract: Mapping[str, Any]
) -> Iterator[Item]:
    name = "xlsx.has_content"
    filled = sum(part.filled for part in parts)
    formulas = sum(part.formulas for part in parts)
    rows = sum(len(part.rows) for part in parts)
    drawn = any(part.drawings for part in parts) or any(
        package.type_of(key).endswith("chartsheet+xml") for key in package.entries
    )
    strings = sum(part.strings for part in parts)
    if contract.get("allow_empty"):
        yield passed(name, "substance", "the contract allows none")
    elif not filled and not formulas and not drawn:
        yield hollow(name, "no_content", f"No cell of its {len(parts)} sheets holds anything.")
    elif rows == 1 and 1 < filled == strings and not drawn and not formulas:
        yield hollow(name, "no_rows", "It has a header and no row below it.")
    elif filled == 1 and not drawn:
        yield warned(name, "substance", "few_cells", "One cell is all that is filled.")
    else:
        yield passed(name, "substance", f"{filled} cells")
    if filled or formulas:
        yield from _values(parts, filled, formulas)
        yield from _stand_ins(sheets, filled, contract)


def _values(parts: list[Cells], filled: int, formulas: int) -> Iterator[Item]:
    uncached = sum(part.uncached for part in parts)
    errors = sum(part.errors for part in parts)
    if uncached:
        cause = f"{uncached} of its {formulas} formulas have no computed value and read as empty."
        remedy = "Compute the values in the script, or open and save it in a spreadsheet."
        yield warned("xlsx.computed", "substance", "formulas_without_values", cause, remedy)
    if errors and errors * 2 >= filled:
        cause = f"{errors} of its {filled} values are errors such as #REF!."
        yield hollow("xlsx.no_errors", "error_values", cause)
    elif errors:
        cause = f"{errors} of its {filled} values are errors such as #REF!."
        yield warned("xlsx.no_errors", "substance", "error_values", cause, "Mend the formulas.")


def _stand_ins(sheets: list[Sheet], filled: int, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield whether texts in cells promise values instead of holding them."""
    hits = [
        cell
        for sheet in sheets
        for row in [sheet.header, *sheet.rows]
        for cell in row
        if isinstance(cell, str) and len(cell) < 200 and FILLER.search(cell)
    ]
    if not hits:
        yield passed("xlsx.no_filler", "substance")
        return
    below = sum(1 for s in sheets for row in s.rows for cell in row if cell not in ("", None))
    if not contract.get("allow_empty") and len(hits) * 3 >= min(filled, max(below, 1)):
        cause = f"{len(hits)} of its {filled} cells are stand-ins such as '{hits[0][:60]}'."
        yield hollow("xlsx.no_filler", "filler_text", cause)
    else:
        cause = f"{len(hits)} of its {filled} cells still promise: '{hits[0][:60]}'."
        yield warned("xlsx.no_filler", "substance", "filler_text", cause)
