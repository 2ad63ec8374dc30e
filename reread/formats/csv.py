"""CSV and TSV: RFC 4180 as spreadsheets write it, in one pass, with no row kept that is not needed.

The delimiter is the one of four under which the first rows are most alike. UTF-8, UTF-16 with its
mark, and the old encodings of spreadsheets are taken. Rows that differ in length are a failure: a
table has columns.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reread.formats import Format, Source
from reread.formats._bytes import kind, nothing, posing
from reread.formats._checks import Fact, Item, hollow, invalid, passed, warned
from reread.formats._placeholder import FILLER, fenced
from reread.formats._text import encoding_of, legacy_of

FORMAT = Format("csv", (".csv", ".tsv", ".tab"), "Table as text", "text/csv", ("tsv",))
GROWTH = 2

DELIMITERS = ",;\t|"
SAMPLE_BYTES = 64 << 10
SAMPLE_ROWS = 2_000
"""Rows in which stand-ins are looked for."""
FIELD_LIMIT = 8 << 20
ABSENT = frozenset(("n/a", "na", "nan", "null", "none", "nil", "-", "--", "#n/a"))
"""Cells that say that there is no value."""
JSON_START = re.compile(rb"\s*(?:\{\s*\"|\[\s*[\[{\"\d])")
HEADING = re.compile(r"#{1,6} \S")
RULE = re.compile(r"\s*:?-+:?\s*")
"""A cell of the line below the header of a Markdown table."""
ROW_WORDS = frozenset(("table", "measure", "contains", "matches", "forbids", "topic"))
"""Words of a contract for which the rows are kept."""


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a table."""
    pieces = source.chunks()
    head = next(pieces, b"")
    found = [*nothing(source, head, "csv")] if source.size <= len(head) else []
    found += _identity(head)
    yield from found
    if any(item for item in found if not isinstance(item, Fact)):
        return
    encoding = encoding_of(head) or _guess(head)
    table = None
    try:
        table = _Table(_Text(head, pieces, encoding), contract)
        yield from table.read()
    except UnicodeError as error:
        cause = f"It is not {encoding} text: {str(error)[:160]}"
        yield invalid("csv.is_text", "not_text", cause, depth="identity")
    except csv.Error as error:
        reason = "unclosed_quote" if "end of data" in str(error) else "csv_syntax"
        yield invalid("csv.parses", reason, f"Line {table.line if table else 1}: {error}.")


def _identity(head: bytes) -> Iterator[Item]:
    if b"\x00" in head and not encoding_of(head):
        yield from posing(head, "csv")
        yield invalid("csv.is_text", "not_text", "It holds NUL bytes.", depth="identity")
    elif kind(head) in ("an HTML page", "a PDF", "an RTF document") or head.startswith(
        (b"version https://git-lfs", b"data:")
    ):
        yield from posing(head, "csv")
    elif JSON_START.match(head):
        yield invalid("csv.identity", "format_mismatch", "It is JSON text.", depth="identity")
    elif head.startswith(b"```"):
        yield from fenced(head.decode("utf-8", "replace"), "csv")


class _Text:
    """The file as lines of text, decoded while it is read."""

    def __init__(self, head: bytes, pieces: Iterator[bytes], encoding: str) -> None:
        self.encoding = encoding
        self._decoder = codecs.getincrementaldecoder(self.encoding)()
        self.sample = codecs.getincrementaldecoder(self.encoding)().decode(head[:SAMPLE_BYTES])
        self._head, self._pieces = head, pieces
        self.newline_at_end = True

    def lines(self) -> Iterator[str]:
        """Yield the lines with their ends, as csv wants them."""
        rest = ""
        for piece in self._all():
            buffer = io.StringIO(rest + piece, newline="")
            rest = ""
            for line in buffer:
                if rest:
                    yield rest  # the line before, which ended with a carriage return alone
                    rest = ""
                if line.endswith("\n"):
                    yield line
                else:
                    rest = line
            if len(rest) > FIELD_LIMIT:
                raise csv.Error(f"a line is longer than {FIELD_LIMIT} characters")
        if rest:
            yield rest

    def _all(self) -> Iterator[str]:
        yield self._decoder.decode(self._head)
        for piece in self._pieces:
            yield self._decoder.decode(piece)
        yield self._decoder.decode(b"", final=True)


def _guess(head: bytes) -> str:
    """Return utf-8 where the head can be that, else the encoding of old spreadsheets."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return legacy_of(head) or "utf-8"
    return "utf-8"


class _Table:
    """Counts and judges the rows as they pass."""

    def __init__(self, text: _Text, contract: Mapping[str, Any]) -> None:
        self._text = text
        self._contract = contract
        self._keep = not ROW_WORDS.isdisjoint(contract)
        self.delimiter = delimiter_of(text.sample)
        self.line = 0
        self.header: list[str] = []
        self.rows: list[list[str]] = []
        self.count = 0
        self.widths: Counter[int] = Counter()
        self.first_of_width: dict[int, int] = {}
        self.filled = self.absent = self.sampled = self.fillers = 0
        self.markdown = False

    def read(self) -> Iterator[Item]:
        """Yield the checks, after the last row was seen."""
        csv.field_size_limit(FIELD_LIMIT)
        reader = csv.reader(self._text.lines(), delimiter=self.delimiter, strict=True)
        for row in reader:
            self.line = reader.line_num
            if row:
                self._take(row)
        if self.markdown:
            yield invalid("csv.identity", "is_markdown", "It is Markdown.", depth="identity")
            return
        yield passed("csv.is_text", "identity", self._text.encoding)
        name = {"\t": "tab"}.get(self.delimiter, self.delimiter)
        yield passed("csv.parses", "integrity", f"{self.count} rows, delimiter {name}")
        yield from self._shape()
        yield from self._facts()
        yield from self._substance()

    def _take(self, row: list[str]) -> None:
        if not self.header:
            self.header = row
            self.markdown = len(row) == 1 and bool(HEADING.match(row[0]))
        else:
            self.count += 1
            if self.count == 1 and self.delimiter == "|":
                self.markdown = all(map(RULE.fullmatch, row[1:-1])) and len(row) > 2
            if self._keep:
                self.rows.append(row)
            values = [cell.strip().casefold() for cell in row]
            self.filled += sum(map(bool, values))
            self.absent += sum(value in ABSENT for value in values)
            if self.count <= SAMPLE_ROWS:
                self.sampled = self.filled
                self.fillers += sum(len(c) < 80 and bool(FILLER.search(c)) for c in row)
        width = len(row)
        self.widths[width] += 1
        self.first_of_width.setdefault(width, self.line)

    def _shape(self) -> Iterator[Item]:
        usual = self.widths.most_common(1)[0][0] if self.widths else 0
        odd = {width for width in self.widths if width != usual}
        if odd:
            width = min(odd, key=lambda w: self.first_of_width[w])
            cause = f"Line {self.first_of_width[width]} has {width} fields, most have {usual}."
            yield invalid("csv.same_width", "ragged_rows", cause)
        else:
            yield passed("csv.same_width", "integrity", f"{usual} columns")
        doubles = [name for name, n in Counter(self.header).items() if n > 1 and name.strip()]
        if doubles:
            cause = f"The column '{doubles[0]}' is there twice."
            yield warned("csv.header", "integrity", "duplicate_columns", cause)

    def _facts(self) -> Iterator[Item]:
        yield Fact("rows", self.count)
        yield Fact("columns", len(self.header))
        yield Fact("_header", [name.lstrip("\ufeff").strip() for name in self.header])
        if self._keep:
            yield Fact("_rows", self.rows)
            text = "\n".join(" ".join(row) for row in [self.header, *self.rows])
            yield Fact("_text", text)

    def _substance(self) -> Iterator[Item]:
        name = "csv.has_content"
        if self.count == 0:
            if self._contract.get("allow_empty"):
                yield passed(name, "substance", "no rows, which the contract allows")
            else:
                yield hollow(name, "no_rows", "It has a header and no row below it.")
        elif self.filled == 0:
            yield hollow(name, "no_content", f"All {self.count} rows are empty.")
        elif self.absent == self.filled:
            yield hollow(name, "no_content", f"All {self.count} rows say that there is no value.")
        elif self.fillers and self.fillers * 2 >= self.sampled:
            yield hollow(name, "filler_values", "Most of its values are stand-ins.")
        else:
            yield passed(name, "substance", f"{self.filled} values")


def delimiter_of(sample: str) -> str:
    """Return the delimiter under which the first rows have the same number of fields, over one."""

    def alike(delimiter: str) -> tuple[float, int]:
        widths = Counter(map(len, _rows(sample, delimiter)))
        if not widths:
            return (0.0, 0)
        width, rows = widths.most_common(1)[0]
        return (rows / widths.total() if width > 1 else 0.0, width)

    return max(DELIMITERS, key=alike)


def _rows(sample: str, delimiter: str) -> Iterable[list[str]]:
    lines = sample.splitlines(keepends=True)
    whole = lines[:-1] if len(lines) > 1 and len(sample) >= SAMPLE_BYTES // 2 else lines
    found: list[list[str]] = []
    try:
        found.extend(row for row in csv.reader(whole[:50], delimiter=delimiter) if row)
    except csv.Error:
        return found
    return found
