"""One number of one file, for facts that must agree across artifacts and inputs.

The child that reads a file answers the measures asked of it; `reread.reconcile` compares them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reread.contracts._data import find
from reread.formats._checks import Fact, Item

GROUPS = ",\u00a0\u202f\u2019' "
"""What stands between thousands: comma, no-break blanks, apostrophes, a blank."""
_SIGN = r"[-+\u2212]?"
NUMBER = re.compile(rf"{_SIGN}\d{{1,3}}(?:[{GROUPS}]\d{{3}})+(?:\.\d+)?|{_SIGN}\d+(?:\.\d+)?")


def checks(contract: Mapping[str, Any], facts: Mapping[str, Any], format: str) -> Iterator[Item]:
    """Yield the answers to all measures as one fact."""
    measures = contract.get("measure", ())
    if measures:
        yield Fact("measured", {key_of(measure): measured(measure, facts) for measure in measures})


def key_of(measure: Mapping[str, Any]) -> str:
    """Return the name under which an answer is found again."""
    return json.dumps({k: v for k, v in measure.items() if k != "file"}, sort_keys=True)


def measured(measure: Mapping[str, Any], facts: Mapping[str, Any]) -> float | None:
    """Return the number that a measure names, None where the file has none."""
    if "fact" in measure:
        return as_number(facts.get(measure["fact"]))
    if "key" in measure:
        return as_number(find(facts.get("_data"), measure["key"])[1])
    if "column" in measure:
        return _column(measure, facts)
    if "after" in measure:
        text = str(facts.get("_text", ""))
        _, found, rest = text.partition(measure["after"])
        number = NUMBER.search(rest) if found else None
        return as_number(number.group()) if number else None
    return as_number(facts.get("rows"))


def as_number(value: Any) -> float | None:
    """Return a number, also from text with grouped thousands; None where it is none."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    text = str(value).strip().replace("\u2212", "-").rstrip("%").strip("$€£¥ ")
    if not NUMBER.fullmatch(text):
        return None
    return float(re.sub(f"[{GROUPS}]", "", text))


def _column(measure: Mapping[str, Any], facts: Mapping[str, Any]) -> float | None:
    values = _values(measure["column"], facts)
    if values is None:
        return None
    of = measure.get("of", "sum")
    if of == "count":
        return float(len(values))
    if of == "distinct":
        return float(len(set(map(str, values))))
    numbers = [number for value in values if (number := as_number(value)) is not None]
    if len(numbers) != len(values):
        return None
    if of == "sum":
        return sum(numbers)
    return (min if of == "min" else max)(numbers) if numbers else None


def _values(column: str, facts: Mapping[str, Any]) -> Sequence[Any] | None:
    """Return the values of a column that are not missing."""
    header: Sequence[str] = facts.get("_header", ())
    if column in header and "_rows" in facts:
        at = list(header).index(column)
        found = [row[at] for row in facts["_rows"] if at < len(row)]
    elif "_records" in facts:
        found = [row.get(column) for row in facts["_records"] if isinstance(row, Mapping)]
    else:
        return None
    return [value for value in found if value not in (None, "")]
