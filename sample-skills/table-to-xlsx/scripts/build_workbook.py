# /// script
# requires-python = ">=3.11"
# dependencies = ["xlsxwriter", "openpyxl"]
# ///
"""Make the workbook that drafts/workbook.json describes; references/spec.md explains each key.

Formulas are written together with their values, so that programs which do not calculate see the
numbers too. At the end the file is opened with another library and held against the spec.
"""

from __future__ import annotations

import csv
import json
import math
import re
from datetime import date, datetime
from pathlib import Path
from typing import Any

import openpyxl
import xlsxwriter
from xlsxwriter.utility import xl_col_to_name, xl_rowcol_to_cell

SPEC = Path("drafts/workbook.json")
FORMATS = {
    "text": "@",
    "integer": "#,##0",
    "number": "#,##0.00",
    "money": "#,##0.00",
    "percent": "0.0%",
    "date": "yyyy-mm-dd",
    "datetime": "yyyy-mm-dd hh:mm",
}
NUMERIC = ("integer", "number", "money", "percent")
WIDEST, NARROWEST, MEASURED = 48, 9, 500
FORBIDDEN = re.compile(r"[\[\]:*?/\\]")


def check(spec: dict[str, Any]) -> None:
    """Refuse names that a spreadsheet program would refuse or change."""
    if not spec.get("path") or not spec.get("sheets"):
        raise ValueError(f"'path' or 'sheets' is missing or empty in {SPEC}")
    seen: set[str] = set()
    for sheet in spec["sheets"]:
        name = sheet["name"]
        if not name or len(name) > 31 or FORBIDDEN.search(name) or name.casefold() in seen:
            raise ValueError(
                f"{name!r} is no name of a sheet: 1 to 31 letters, none of []:*?/\\, no two alike"
            )
        seen.add(name.casefold())
        for column in sheet["columns"]:
            if column.get("type", "text") not in FORMATS:
                raise ValueError(f"{name}: a type is one of {', '.join(FORMATS)}")
        names = [column["name"].casefold() for column in sheet["columns"]]
        if len(set(names)) != len(names):
            raise ValueError(f"{name}: two columns have one name")


def rows_of(sheet: dict[str, Any]) -> list[list[Any]]:
    """Return the rows of a sheet, from the spec or from the CSV file that it names."""
    columns = [column["name"] for column in sheet["columns"]]
    if "csv" in sheet:
        with Path(sheet["csv"]).open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            lacking = set(columns) - set(reader.fieldnames or ())
            if lacking:
                raise ValueError(f"{sheet['csv']} has no column {sorted(lacking)}")
            rows = [[row[name] for name in columns] for row in reader]
    else:
        rows = [list(row) for row in sheet["rows"]]
    for number, row in enumerate(rows, 1):
        if len(row) != len(columns):
            raise ValueError(f"{sheet['name']}, row {number}: {len(row)} of {len(columns)} cells")
    kinds = [column.get("type", "text") for column in sheet["columns"]]
    made = []
    for number, row in enumerate(rows, 1):
        where = f"{sheet['name']}, row {number}"
        made.append([typed(value, kind, where) for value, kind in zip(row, kinds, strict=True)])
    return made


def typed(value: Any, kind: str, where: str) -> Any:
    """Return a value as what its column holds; '' and null are empty cells."""
    if value is None or value == "":
        return None
    if isinstance(value, dict):
        return value
    try:
        if kind in NUMERIC:
            number = float(value)
            if not math.isfinite(number):
                raise ValueError("it is not finite")
            return int(number) if kind == "integer" else number
        if kind == "date":
            return date.fromisoformat(value)
        if kind == "datetime":
            return datetime.fromisoformat(value)
    except ValueError as error:
        raise ValueError(f"{where}: {value!r} is no {kind}: {error}") from error
    return str(value)


class Book:
    """A workbook while it is made, with the few formats that it uses."""

    def __init__(self, path: Path) -> None:
        self.book = xlsxwriter.Workbook(
            path, {"strings_to_formulas": False, "strings_to_urls": False}
        )
        self.formats: dict[tuple[str, bool], Any] = {}
        self.title = self.book.add_format({"bold": True, "font_size": 14, "font_color": "#0B5FA5"})
        head = {"bold": True, "bg_color": "#0B5FA5", "font_color": "#FFFFFF", "valign": "vcenter"}
        self.head = self.book.add_format(head | {"align": "left", "indent": 1})
        self.head_number = self.book.add_format(head | {"align": "right"})
        self.note = self.book.add_format({"italic": True, "font_color": "#5C6B73"})

    def format(self, kind: str, *, total: bool = False) -> Any:
        """Return the format of a column's cells, or of its total."""
        if (kind, total) not in self.formats:
            properties: dict[str, Any] = {"num_format": FORMATS[kind]}
            if kind not in NUMERIC:  # a number ends and a text begins with a space between them
                properties |= {"align": "left", "indent": 1}
            if total:
                properties |= {"bold": True, "top": 1, "bg_color": "#F2F5F8"}
            self.formats[kind, total] = self.book.add_format(properties)
        return self.formats[kind, total]

    def header(self, kind: str) -> Any:
        """Return the format of a column's name, which stands where the values stand."""
        return self.head_number if kind in NUMERIC else self.head


def write(book: Book, sheet: dict[str, Any], rows: list[list[Any]], number: int) -> int:
    """Write one sheet and return the row of its header, from 0."""
    page = book.book.add_worksheet(sheet["name"])
    top = 0
    if sheet.get("title"):
        page.write_string(0, 0, sheet["title"], book.title)
        top = 2
    if sheet.get("note"):
        page.write_string(1 if top else 0, 0, sheet["note"], book.note)
        top = 3 if top else 2
    columns = sheet["columns"]
    last = top + max(len(rows), 1)
    page.add_table(
        *(top, 0, last, len(columns) - 1),
        {
            "name": f"Table{number}",
            "style": "Table Style Light 9",
            "columns": [
                {
                    "header": column["name"],
                    "header_format": book.header(column.get("type", "text")),
                    "format": book.format(column.get("type", "text")),
                }
                for column in columns
            ],
        },
    )
    for at, row in enumerate(rows, top + 1):
        for place, value in enumerate(row):
            cell(page, at, place, value, book.format(columns[place].get("type", "text")))
    total(book, page, columns, rows, top)
    for place, column in enumerate(columns):
        page.set_column(place, place, column.get("width") or width(column, rows, place))
    page.freeze_panes(top + 1, int(bool(sheet.get("freeze_first_column"))))
    page.set_landscape() if len(columns) > 8 else page.set_portrait()
    page.set_paper(9)
    page.fit_to_pages(1, 0)
    page.repeat_rows(top)
    page.set_footer("&L&A&R&P / &N")
    if sheet.get("bars"):
        place = [c["name"] for c in columns].index(sheet["bars"])
        page.conditional_format(
            *(top + 1, place, last, place),
            {"type": "data_bar", "bar_color": "#9CC3E6", "bar_solid": True},
        )
    return top


def cell(page: Any, row: int, place: int, value: Any, form: Any) -> None:
    """Write one value by its type."""
    if value is None:
        page.write_blank(row, place, None, form)
    elif isinstance(value, dict):
        page.write_formula(row, place, value["formula"], form, value["value"])
    elif isinstance(value, int | float):
        page.write_number(row, place, value, form)
    elif isinstance(value, date):
        page.write_datetime(row, place, value, form)
    else:
        page.write_string(row, place, value, form)


def plain(value: Any) -> Any:
    """Return what a cell shows: the value that a formula was given."""
    return value["value"] if isinstance(value, dict) else value


def total(book: Book, page: Any, columns: list[Any], rows: list[list[Any]], top: int) -> None:
    """Write sums below the table, a row apart so that sorting leaves them where they are."""
    summed = [i for i, c in enumerate(columns) if c.get("total") and c.get("type") in NUMERIC]
    if not summed or not rows:
        return
    at = top + len(rows) + 2
    for place, column in enumerate(columns):
        page.write_blank(at, place, None, book.format(column.get("type", "text"), total=True))
    if 0 not in summed:
        page.write_string(at, 0, "Total", book.format("text", total=True))
    for place in summed:
        letter = xl_col_to_name(place)
        page.write_formula(
            *(at, place, f"=SUM({letter}{top + 2}:{letter}{top + 1 + len(rows)})"),
            book.format(columns[place]["type"], total=True),
            math.fsum(plain(row[place]) for row in rows if row[place] is not None),
        )


def width(column: dict[str, Any], rows: list[list[Any]], place: int) -> float:
    """Return a width that shows the values; an ideograph is as wide as two letters."""
    shown = [column["name"] + "    ", *(text(row[place], column) for row in rows[:MEASURED])]
    if column.get("total"):
        numbers = [plain(row[place]) for row in rows if row[place] is not None]
        shown.append(text(math.fsum(numbers), column))
    letters = max(sum(2 if ord(c) > 0x2E7F else 1 for c in one) for one in shown)
    return min(max(letters + 3, NARROWEST), WIDEST)


def text(value: Any, column: dict[str, Any]) -> str:
    """Return a value about as the cell shows it."""
    value = plain(value)
    kind = column.get("type", "text")
    if value is None:
        return ""
    if kind in ("number", "money"):
        return f"{value:,.2f}"
    if kind == "integer":
        return f"{value:,.0f}"
    if kind == "percent":
        return f"{value:.1%}"
    return str(value)


def reread(path: Path, sheets: list[tuple[dict[str, Any], list[list[Any]], int]]) -> None:
    """Open the file as another program would and compare each cell of the tables."""
    book = openpyxl.load_workbook(path, data_only=True, read_only=True)
    for sheet, rows, top in sheets:
        page = book[sheet["name"]]
        found = (
            list(
                page.iter_rows(
                    min_row=top + 2, max_row=top + 1 + len(rows), max_col=len(sheet["columns"])
                )
            )
            if rows
            else []
        )
        for number, (there, row) in enumerate(zip(found, rows, strict=True), 1):
            for place, (one, value) in enumerate(zip(there, row, strict=True)):
                if not same(one.value, plain(value)):
                    name = xl_rowcol_to_cell(top + number, place)
                    raise ValueError(f"{sheet['name']}!{name} is {one.value!r}, not {value!r}")
    book.close()


def same(there: Any, value: Any) -> bool:
    """Say whether a cell holds a value; spreadsheets know no date without a time."""
    if isinstance(there, datetime) and not isinstance(value, datetime):
        there = there.date()
    if isinstance(there, int | float) and isinstance(value, int | float):
        return math.isclose(there, value, rel_tol=1e-12, abs_tol=1e-12)
    return bool(there == value)


def build(spec: dict[str, Any]) -> Path:
    """Make the workbook and return its path."""
    path = Path(spec["path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    book = Book(path)
    book.book.set_properties({"title": spec.get("title", ""), "author": spec.get("author", "")})
    made = []
    for number, sheet in enumerate(spec["sheets"], 1):
        rows = rows_of(sheet)
        made.append((sheet, rows, write(book, sheet, rows, number)))
    book.book.close()
    reread(path, made)
    for sheet, rows, _ in made:
        print(f"{path}: {sheet['name']}, {len(rows)} rows, {len(sheet['columns'])} columns")
    return path


spec = json.loads(SPEC.read_text(encoding="utf-8"))
check(spec)
build(spec)
