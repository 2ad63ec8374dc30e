"""Facts that lie outside of one file: links to files beside it, and numbers that must agree.

Each file is read on its own, in its own child; here only the answers are put side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from agent_runtime import Failure
from reread import examine
from reread.contracts._measures import key_of
from reread.files import ConfinedFolder
from reread.formats._checks import not_run, passed, unmet
from reread.values import Check, Evidence, Expected

TERMS = ("this", "that", "plus", "minus")
DEFAULT_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Side:
    """What the artifacts are held against.

    Attributes:
        open: opens a file beside the artifacts, by the path that a document in their place would
            use; local links are looked for with it.
        users: the user's folder, for `inputs/…`.
    """

    open: Callable[[str], BinaryIO]
    users: ConfinedFolder


def asked_of(path: str, artifacts: Sequence[Expected]) -> list[Mapping[str, Any]]:
    """Return the measures that the contracts of all artifacts ask of one of them."""
    found: list[Mapping[str, Any]] = []
    for expected in artifacts:
        for equation in expected.contract.get("equal", ()):
            terms = (equation[term] for term in TERMS if term in equation)
            found += [m for m in terms if m.get("file", expected.path) == path and m not in found]
    return found


def with_measures(
    contract: Mapping[str, Any], measures: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the contract as the child gets it, with what others want to know."""
    return {**contract, "measure": list(measures)} if measures else dict(contract)


def checks(
    expected: Expected, evidence: Evidence, all_evidence: Mapping[str, Evidence], side: Side
) -> Iterator[Check]:
    """Yield the checks of one artifact that need more than its own bytes."""
    if not evidence.read:
        return
    for check in _checks(expected, evidence, all_evidence, side):
        found = check.problem
        yield (
            check if found is None else replace(check, problem=replace(found, where=expected.path))
        )


def _checks(
    expected: Expected, evidence: Evidence, all_evidence: Mapping[str, Evidence], side: Side
) -> Iterator[Check]:
    if expected.contract.get("local_links_exist"):
        yield local_links(evidence, expected.path, side.open)
    for number, equation in enumerate(expected.contract.get("equal", ()), 1):
        yield _equal(number, equation, expected.path, all_evidence, side)


def local_links(evidence: Evidence, path: str, open: Callable[[str], BinaryIO]) -> Check:
    """Look for each file that a document links to: regular, inside the folder, through no link."""
    targets = evidence.facts.get("local_links")
    if targets is None:
        return not_run("contract.local_links", "contract", "this format has no links that are read")
    base = path.rpartition("/")[0]
    missing = [target for target in targets if not _reaches(open, base, target)]
    if missing:
        cause = f"These links reach no file: {missing[:5]}."
        return unmet("contract.local_links", "missing_reference", cause)
    return passed("contract.local_links", "contract", f"{len(targets)} local links")


def _reaches(open: Callable[[str], BinaryIO], base: str, target: str) -> bool:
    parts = [part for part in base.split("/") if part]
    for part in target.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    try:
        with open("/".join(parts)):
            return True
    except Failure:
        return False


def _equal(
    number: int,
    equation: Mapping[str, Any],
    path: str,
    evidence: Mapping[str, Evidence],
    side: Side,
) -> Check:
    name = f"contract.equal.{number}"
    values: dict[str, float] = {}
    for term in TERMS:
        if term not in equation:
            continue
        value = _value(equation[term], path, evidence, side)
        if value is None:
            shown = {k: v for k, v in equation[term].items()}
            return unmet(name, "fact_missing", f"There is no number at {shown} to compare with.")
        values[term] = value
    right = values["that"] + values.get("plus", 0.0) - values.get("minus", 0.0)
    difference = abs(values["this"] - right)
    if difference <= equation.get("tolerance", DEFAULT_TOLERANCE):
        return passed(name, "contract", f"{values['this']:g}")
    cause = f"{values['this']:g} stands where {right:g} should, by {_shown(equation, path)}."
    return unmet(name, "facts_differ", cause)


def _value(
    measure: Mapping[str, Any], path: str, evidence: Mapping[str, Evidence], side: Side
) -> float | None:
    file = measure.get("file", path)
    if file in evidence:
        return _told(evidence[file], measure)
    try:
        with side.users.open(file) as stream:
            found = examine.examine(
                stream,
                name=file.rpartition("/")[2],
                format=examine.format_of(file),
                contract={"measure": [dict(measure)], "allow_empty": True},
            )
    except Failure:
        return None
    return _told(found, measure)


def _told(evidence: Evidence, measure: Mapping[str, Any]) -> float | None:
    value = evidence.facts.get("measured", {}).get(key_of(measure))
    return None if value is None else float(value)


def _shown(equation: Mapping[str, Any], path: str) -> str:
    signs = {"this": "", "that": " = ", "plus": " + ", "minus": " - "}
    return "".join(
        f"{signs[term]}{equation[term].get('file', path)}"
        f"[{', '.join(f'{k} {v}' for k, v in equation[term].items() if k != 'file')}]"
        for term in TERMS
        if term in equation
    )
