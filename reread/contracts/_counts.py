"""Words about counts and sizes: `min_rows`, `max_pages`, `width`, `sheets` …"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats._checks import Item, not_run, passed, unmet

EXACT = ("width", "height")


def checks(contract: Mapping[str, Any], facts: Mapping[str, Any], format: str) -> Iterator[Item]:
    """Yield a check for each count that is asked for."""
    for word, wanted in contract.items():
        least, _, fact = word.partition("_")
        if word in EXACT:
            yield _compare(word, wanted, facts.get(word), facts.get(word) == wanted, format)
        elif least == "min" and fact:
            value = facts.get(fact)
            yield _compare(word, wanted, value, value is not None and value >= wanted, format)
        elif least == "max" and fact:
            value = facts.get(fact)
            yield _compare(word, wanted, value, value is not None and value <= wanted, format)
    yield from _sheets(contract, facts, format)


def _compare(word: str, wanted: Any, value: Any, holds: bool, format: str) -> Item:
    name = f"contract.{word}"
    if value is None:
        return not_run(name, "contract", f"'{word}' cannot be counted in {format} files")
    if holds:
        return passed(name, "contract", f"{value}")
    reason = "too_few" if word.startswith("min_") else "too_many"
    return unmet(name, reason, f"The task asks for {word} {wanted}, and it has {value}.")


def _sheets(contract: Mapping[str, Any], facts: Mapping[str, Any], format: str) -> Iterator[Item]:
    if "sheets" not in contract:
        return
    there = facts.get("sheet_names")
    if there is None:
        yield not_run("contract.sheets", "contract", f"{format} files have no sheets")
        return
    missing = [name for name in contract["sheets"] if name not in there]
    if missing:
        yield unmet("contract.sheets", "missing_sheets", f"It has no sheet {missing}; has {there}.")
    else:
        yield passed("contract.sheets", "contract")
