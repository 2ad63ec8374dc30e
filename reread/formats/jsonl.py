"""JSON Lines: one JSON value a line, judged line by line, with no row kept that is not needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats import Format, Source
from reread.formats._bytes import kind, nothing, posing
from reread.formats._checks import Fact, Item, hollow, invalid, passed, unsafe, warned
from reread.formats._placeholder import fenced
from reread.formats.json import NotJson, fills, loads, scalars

FORMAT = Format("jsonl", (".jsonl", ".ndjson", ".jsonlines"), "JSON Lines", "application/jsonl")
GROWTH = 2

LINE_LIMIT = 16 << 20
ROW_WORDS = frozenset(
    ("required_keys", "schema", "measure", "contains", "matches", "forbids", "topic", "table")
)
BOM = b"\xef\xbb\xbf"


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a JSON Lines file."""
    rows: list[Any] = []
    keep = not ROW_WORDS.isdisjoint(contract)
    count = values = fillers = number = 0
    if not source.size:
        yield from nothing(source, b"", "jsonl")
        return
    doubles: list[str] = []
    for number, line in enumerate(_lines(source), 1):
        if number == 1:
            found = [*nothing(source, line, "jsonl")] if source.size <= len(line) + 1 else []
            yield from found
            if found:
                return
            line = line.removeprefix(BOM)
        if len(line) > LINE_LIMIT:
            cause = f"Line {number} is longer than {LINE_LIMIT} bytes."
            yield unsafe("jsonl.bounded", "too_large", cause)
            return
        if not line.strip():
            continue
        try:
            row = loads(line.decode("utf-8"), doubles)
        except NotJson as error:
            yield invalid("jsonl.parses", "json_nonfinite", f"Line {number} holds {error}.")
            return
        except ValueError as error:
            yield from _wrong(line, number, error, count)
            return
        count += 1
        said = [item for item in scalars(row) if item is not None and item != ""]
        values += bool(said)
        fillers += bool(said) and all(isinstance(item, str) and fills(item) for item in said)
        if keep:
            rows.append(row)
    yield passed("jsonl.parses", "identity", f"{count} rows")
    if doubles:
        cause = f"The key '{doubles[0]}' is there twice in one object."
        yield warned("jsonl.keys_once", "integrity", "duplicate_keys", cause)
    yield Fact("rows", count)
    if keep:
        yield Fact("_records", rows)
        yield Fact("_text", "\n".join(str(item) for row in rows for item in scalars(row)))
    yield from _substance(count, values, fillers, contract)


def _lines(source: Source) -> Iterator[bytes]:
    """Yield lines without their ends; one that is too long is cut and ends them."""
    rest = b""
    for piece in source.chunks():
        lines = (rest + piece).split(b"\n")
        rest = lines.pop()
        yield from lines
        if len(rest) > LINE_LIMIT:
            break
    if rest:
        yield rest


def _wrong(line: bytes, number: int, error: ValueError, rows: int) -> Iterator[Item]:
    if number == 1:
        found = [*fenced(line.decode("utf-8", "replace"), "jsonl"), *_posing(line)]
        yield from found
        if found:
            return
    reason = "truncated" if line.lstrip()[:1] in (b"{", b"[") and rows else "json_syntax"
    yield invalid("jsonl.parses", reason, f"Line {number} is not JSON: {error}", depth="identity")


def _posing(line: bytes) -> Iterator[Item]:
    """Yield the failure of other bytes; a line that starts as JSON does is only broken."""
    return iter(()) if kind(line) == "JSON text" else posing(line, "jsonl")


def _substance(
    count: int, values: int, fillers: int, contract: Mapping[str, Any]
) -> Iterator[Item]:
    name = "jsonl.has_content"
    if values and fillers == values:
        yield hollow(name, "filler_values", f"All {values} rows hold stand-ins only.")
    elif values:
        yield passed(name, "substance", f"{values} rows with values")
    elif contract.get("allow_empty"):
        yield passed(name, "substance", "empty, which the contract allows")
    else:
        yield hollow(name, "no_rows" if not count else "no_content", "It holds no value.")
