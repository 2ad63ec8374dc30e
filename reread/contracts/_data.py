"""Words about data: `required_keys`, `schema`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from reread.formats._checks import Item, not_run, passed, unmet

SHOWN = 5
MAX_ERRORS = 50


def checks(contract: Mapping[str, Any], facts: Mapping[str, Any], format: str) -> Iterator[Item]:
    """Yield a check for each word about the value that was read."""
    for word, check in (("required_keys", _keys), ("schema", _schema)):
        if word not in contract:
            continue
        if "_data" in facts:
            yield check(contract[word], [facts["_data"]])
        elif "_records" in facts:
            yield check(contract[word], facts["_records"])
        else:
            yield not_run(f"contract.{word}", "contract", f"{format} files hold no keys")


def find(value: Any, path: str) -> tuple[bool, Any]:
    """Return whether a dotted path leads to something, and what; numbers index lists."""
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return False, None
    return True, value


def _keys(wanted: Sequence[str], values: Sequence[Any]) -> Item:
    for number, value in enumerate(values, 1):
        missing = [path for path in wanted if not find(value, path)[0]]
        if missing:
            where = f"Row {number} lacks" if len(values) > 1 else "It lacks"
            return unmet("contract.required_keys", "missing_keys", f"{where} {missing}.")
    return passed("contract.required_keys", "contract", ", ".join(wanted))


def _schema(schema: Mapping[str, Any], values: Sequence[Any]) -> Item:
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(schema)
    for number, value in enumerate(values, 1):
        found = islice(validator.iter_errors(value), MAX_ERRORS)
        errors = sorted(found, key=lambda error: error.json_path)
        if errors:
            where = f"Row {number}: " if len(values) > 1 else ""
            told = "; ".join(f"{e.json_path}: {e.message[:160]}" for e in errors[:SHOWN])
            return unmet("contract.schema", "schema", f"{where}{told}")
    return passed("contract.schema", "contract")
