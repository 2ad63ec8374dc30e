"""JUnit XML, as continuous integration reads it: one suite, one case for each thing judged."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_runtime import Failure
from reread.values import Code, Outcome, Problem


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that was judged.

    Attributes:
        group: what it belongs to; the class name of JUnit.
        problems: none where it holds.
        skipped: why it was not judged; '' where it was.
    """

    group: str
    name: str
    problems: tuple[Problem, ...] = ()
    seconds: float = 0.0
    skipped: str = ""
    output: str = ""


def render(suite: str, cases: Sequence[Case]) -> bytes:
    """Return the document; characters that XML cannot hold are shown as escapes."""
    failures = sum(1 for case in cases if case.problems)
    root = ET.Element("testsuites")
    element = ET.SubElement(
        root,
        "testsuite",
        name=suite,
        tests=str(len(cases)),
        failures=str(failures),
        errors="0",
        skipped=str(sum(1 for case in cases if case.skipped)),
        time=f"{sum(case.seconds for case in cases):.3f}",
    )
    for case in cases:
        _add(element, case)
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def write(path: Path, suite: str, cases: Sequence[Case]) -> None:
    """Write the document, its folder made where it is missing.

    Raises:
        Failure: write_failed.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(render(suite, cases))
    except OSError as error:
        raise Failure(
            Code.write_failed,
            f"The report '{path}' cannot be written: {error.strerror}.",
            "Name a file in a folder that you can write to.",
        ) from error


def of_outcome(outcome: Outcome, name: str) -> list[Case]:
    """Return the cases of a run: one for each artifact, and one for the run itself."""
    cases = [Case(name, evidence.path, evidence.problems) for evidence in outcome.artifacts]
    problems: tuple[Problem, ...] = ()
    if not outcome.ok:
        code = Code(outcome.reason) if outcome.reason in Code.__members__ else Code.internal_error
        problems = (Problem(code, name, outcome.cause, outcome.remedy),)
    return [*cases, Case(name, f"run ends {outcome.status}", problems, outcome.seconds)]


def _add(suite: ET.Element, case: Case) -> None:
    element = ET.SubElement(
        suite,
        "testcase",
        classname=_clean(case.group),
        name=_clean(case.name),
        time=f"{case.seconds:.3f}",
    )
    for problem in case.problems:
        message = _clean(f"{problem.code}: {problem.cause}")
        failure = ET.SubElement(element, "failure", type=str(problem.code), message=message)
        failure.text = _clean(f"{problem.where}\n{problem.cause}\n{problem.remedy}")
    if case.skipped:
        ET.SubElement(element, "skipped", message=_clean(case.skipped))
    if case.output:
        ET.SubElement(element, "system-out").text = _clean(case.output)


def _clean(text: str) -> str:
    return "".join(c if c in "\t\n" or _allowed(ord(c)) else f"\\x{ord(c):02x}" for c in text)


def _allowed(code: int) -> bool:
    """Say whether XML 1.0 can hold a character."""
    return 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF
