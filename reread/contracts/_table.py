"""The word `table`: fields, types and constraints, in the words of the Frictionless Table Schema.

Source: specs.frictionlessdata.io/table-schema. A type is asked of every value that is not missing;
`required` refuses missing ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from reread.contracts._measures import as_number
from reread.formats._checks import Item, not_run, passed, unmet

BOOLEANS = frozenset({"true", "false", "1", "0", "yes", "no"})


def checks(contract: Mapping[str, Any], facts: Mapping[str, Any], format: str) -> Iterator[Item]:
    """Yield one check for the header and one for each field."""
    if "table" not in contract:
        return
    asked = contract["table"]
    if "_header" not in facts or "_rows" not in facts:
        yield not_run("contract.table", "contract", f"{format} files hold no table")
        return
    header, rows = list(facts["_header"]), facts["_rows"]
    fields = asked.get("fields", [])
    missing = [field["name"] for field in fields if field["name"] not in header]
    if missing:
        yield unmet("contract.table", "missing_columns", f"No column {missing}; has {header}.")
        return
    yield passed("contract.table", "contract", f"{len(fields)} columns")
    empty = frozenset(asked.get("missingValues", [""])) | {""}
    for field in fields:
        values = [row[header.index(field["name"])] for row in rows]
        yield _field(field, values, empty)
    if "primaryKey" in asked:
        yield _key(asked["primaryKey"], header, rows)


def _field(field: Mapping[str, Any], values: Sequence[Any], empty: frozenset[str]) -> Item:
    name = f"contract.table.{field['name']}"
    limits = field.get("constraints", {})
    seen: set[str] = set()
    for number, value in enumerate(values, 1):
        if value is None or str(value).strip() in empty:
            if limits.get("required"):
                return unmet(name, "missing_value", f"Row {number} of '{field['name']}' is empty.")
            continue
        wrong = _wrong(value, field.get("type", "any"), limits)
        if not wrong and limits.get("unique") and str(value) in seen:
            wrong = "is there twice"
        if wrong:
            cause = f"Row {number} of '{field['name']}': {str(value)[:60]!r} {wrong}."
            return unmet(name, "wrong_value", cause)
        seen.add(str(value))
    return passed(name, "contract", f"{len(values)} values")


def _wrong(value: Any, kind: str, limits: Mapping[str, Any]) -> str:
    if not _is(value, kind):
        return f"is no {kind}"
    for word, beyond in (("minimum", -1), ("maximum", 1)):
        if word in limits and _order(value, limits[word]) == beyond:
            return f"is beyond the {word} {limits[word]}"
    if "pattern" in limits and not re.fullmatch(limits["pattern"], str(value)):
        return f"does not match {limits['pattern']}"
    if "enum" in limits and str(value) not in map(str, limits["enum"]):
        return f"is not one of {limits['enum']}"
    return ""


def _is(value: Any, kind: str) -> bool:
    text = str(value).strip()
    if kind in ("integer", "number"):
        number = as_number(value)
        return number is not None and (kind == "number" or number == int(number))
    if kind == "boolean":
        return text.lower() in BOOLEANS
    if kind in ("date", "datetime"):
        return isinstance(value, date) or _is_time(text, date if kind == "date" else datetime)
    return True


def _is_time(text: str, kind: type[date]) -> bool:
    try:
        kind.fromisoformat(text)
    except ValueError:
        return False
    return True


def _order(value: Any, limit: Any) -> int:
    one, other = as_number(value), as_number(limit)
    if one is None or other is None:
        return (str(value) > str(limit)) - (str(value) < str(limit))
    return (one > other) - (one < other)


def _key(columns: Sequence[str], header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Item:
    places = [list(header).index(name) for name in columns if name in header]
    seen: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(rows, 1):
        key = tuple(str(row[place]) for place in places)
        if key in seen:
            cause = f"Rows {seen[key]} and {number} have the same {list(columns)}: {list(key)}."
            return unmet("contract.table.primaryKey", "duplicate_key", cause)
        seen[key] = number
    return passed("contract.table.primaryKey", "contract")
