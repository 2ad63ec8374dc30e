"""The artifact gate: opens the script and its outputs again and says whether the task is done.

What the model said is no evidence, and neither is what a tool returned. Only bytes read here,
after the loop has ended, are.

Proves: each declared artifact exists, was left by a script of this run that ended with exit code
0, has not changed since, and is what its format and its contract say; the script on disk is the
one that ran.
Does not prove: that the content is right. `Outcome.semantic_correctness` says so.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from agent_runtime import Failure
from reread import examine, reconcile
from reread.files import ConfinedFolder
from reread.session import Session
from reread.values import Check, Code, Evidence, Expected, Finding, Made, Problem, ScriptRun

SCRIPT_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate read.

    Attributes:
        scripts: one for each script that matters; none where the task needs none.
        artifacts: in the order of the task.
    """

    scripts: tuple[Evidence, ...]
    artifacts: tuple[Evidence, ...]

    @property
    def ok(self) -> bool:
        """Everything is proven, and there is something that was to be proven."""
        read = (*self.scripts, *self.artifacts)
        return bool(self.artifacts) and all(evidence.ok for evidence in read)


def inspect(session: Session) -> Verdict:
    """Read the scripts and the artifacts of a run again; never raises."""
    declared = session.task.artifacts
    read = {}
    for expected in declared:
        session.record.tell("gate.checking", {"path": expected.path})
        read[expected.path] = _artifact(session, expected)
    side = reconcile.Side(session.work.open, session.work.workspace.folder)
    artifacts = []
    for expected in declared:
        evidence = read[expected.path]
        more = reconcile.checks(expected, evidence, read, side)
        artifacts.append(replace(evidence, checks=(*evidence.checks, *more)))
        session.record.tell("gate.checked", _told(artifacts[-1]))
    return Verdict(_scripts(session), tuple(artifacts))


def _told(evidence: Evidence) -> dict[str, Any]:
    """Return what people see of one file while the gate goes on."""
    first = next(iter(evidence.problems), None)
    code, cause = (first.code, first.cause) if first else (Code.artifact_unchecked, "")
    told = {"path": evidence.path, "ok": evidence.ok, "checks": len(evidence.checks)}
    return told if evidence.ok else {**told, "code": str(code), "cause": cause}


def findings(verdict: Verdict) -> Iterator[Finding]:
    """Yield what failed, as it is handed back for repair."""
    for evidence in (*verdict.artifacts, *verdict.scripts):
        for check in evidence.checks:
            if check.problem is not None and check.state == "failed":
                yield _finding(evidence, check, check.problem)
            elif check.state == "not_run" and check.depth in MUST_RUN:
                yield _finding(evidence, check, _unchecked(evidence, check))


MUST_RUN = ("provenance", "identity", "integrity")


def _finding(evidence: Evidence, check: Check, problem: Problem) -> Finding:
    return Finding(
        layer="gate",
        problem=problem,
        query=f"check {evidence.path} as {evidence.format}: {check.name}",
        expected=f"{check.name} holds for {evidence.path}",
        actual=problem.cause,
        log=evidence.sha256 or "",
    )


def _unchecked(evidence: Evidence, check: Check) -> Problem:
    return Problem(
        Code.artifact_unchecked,
        evidence.path,
        f"The check '{check.name}' could not run: {check.detail}",
        "Make the file in a format that can be checked here, or install what the check needs.",
    )


def _artifact(session: Session, expected: Expected) -> Evidence:
    try:
        with session.work.folder.open(expected.path) as stream:
            evidence = _examined(session, expected, stream)
    except Failure as failure:
        return _absent(expected, failure)
    made = session.work.ledger.find(expected.path)
    provenance = tuple(_provenance(session, expected, made, evidence.sha256))
    return replace(evidence, path=expected.path, checks=(*provenance, *evidence.checks))


def _examined(session: Session, expected: Expected, stream: BinaryIO) -> Evidence:
    """Judge the bytes, beside the older document that they are an edit of where there is one."""
    name = expected.path.rpartition("/")[2]
    measures = reconcile.asked_of(expected.path, session.task.artifacts)
    contract = reconcile.with_measures(expected.contract, measures)
    judge = partial(examine.examine, name=name, format=expected.format, contract=contract)
    if not expected.baseline:
        return judge(stream)
    with session.work.workspace.folder.open(expected.baseline) as baseline:
        return judge(stream, baseline=baseline)


def _absent(expected: Expected, failure: Failure) -> Evidence:
    missing = failure.code == Code.path_not_found
    problem = Problem(
        Code.artifact_not_created if missing else Code.artifact_unreadable,
        expected.path,
        failure.cause,
        f"Let a script write '{expected.path}' as a regular file and run it with run_python.",
    )
    check = Check("artifact.exists", "provenance", "failed", problem=problem)
    return Evidence(expected.path, expected.format, None, 0, (check,))


def _provenance(
    session: Session, expected: Expected, made: Made | None, sha256: str | None
) -> Iterator[Check]:
    yield Check("artifact.exists", "provenance", "passed")
    yield _check("artifact.made_in_run", _not_ours(session, expected, made))
    if made is not None:
        yield _check("artifact.unchanged", _changed(expected, made, sha256))


def _check(name: str, problem: Problem | None) -> Check:
    return Check(name, "provenance", "failed" if problem else "passed", problem=problem)


def _not_ours(session: Session, expected: Expected, made: Made | None) -> Problem | None:
    """Say why the file is not the work of a script of this run, if it is not."""
    if made is not None and made.ok:
        if made.by == "script" or session.task.script == "optional":
            return None
        cause = "It was written by write_file, and the task asks for a script."
    elif made is not None:
        cause = "The script that left it did not end with exit code 0."
    else:
        cause = "Nothing that this run recorded has written it."
    return Problem(
        Code.artifact_not_from_script,
        expected.path,
        cause,
        f"Run a script with run_python that writes '{expected.path}' and ends with exit code 0.",
    )


def _changed(expected: Expected, made: Made, sha256: str | None) -> Problem | None:
    if made.sha256 == sha256:
        return None
    return Problem(
        Code.artifact_changed_since_run,
        expected.path,
        f"Its sha256 is {str(sha256)[:12]}…, and {made.sha256[:12]}… was left when it was written.",
        "Run the script again, and let nothing else write the file.",
    )


def _scripts(session: Session) -> tuple[Evidence, ...]:
    """Judge each script whose work is declared, or say that none has run."""
    ran = {run.sha256: run for run in session.progress.runs if run.failure is None}
    makers = [session.work.ledger.find(expected.path) for expected in session.task.artifacts]
    wanted = dict.fromkeys(made.by_sha256 for made in makers if made and made.by == "script")
    judged = tuple(_script(session, ran[sha256]) for sha256 in wanted if sha256 in ran)
    if judged or session.task.script == "optional":
        return judged
    problem = Problem(
        Code.script_not_run,
        "scripts/",
        "No script of this run that ended with exit code 0 has left a declared artifact.",
        "Write a script that makes the artifacts and run it with run_python.",
    )
    return (Evidence("scripts/", "py", None, 0, (_check("script.ran", problem),)),)


def _script(session: Session, run: ScriptRun) -> Evidence:
    """Judge the script that is on disk now against the one that ran."""
    try:
        data = _script_bytes(session, run)
    except Failure as failure:
        gone = Problem(
            Code.script_changed_since_run, run.path, failure.cause, "Write it and run it again."
        )
        return Evidence(run.path, "py", None, 0, (_check("script.exists", gone),))
    sha256 = hashlib.sha256(data).hexdigest()
    problem: Problem | None = None
    if sha256 != run.sha256:
        problem = Problem(
            Code.script_changed_since_run,
            run.path,
            f"Its sha256 is {sha256[:12]}…, and the one that ran had {run.sha256[:12]}….",
            "Run it again as it is now.",
        )
    checks = (
        Check("script.exists", "provenance", "passed"),
        Check("script.ran", "provenance", "passed", "exit code 0"),
        _check("script.unchanged", problem),
        *_form(run, data),
    )
    return Evidence(run.path, "py", sha256, len(data), checks)


def _form(run: ScriptRun, data: bytes) -> Sequence[Check]:
    """Judge the script as a Python file, with the header that PEP 723 asks for."""
    read = examine.examine(
        io.BytesIO(data), name=run.path.rpartition("/")[2], format="py", contract={}
    )
    return read.checks


def _script_bytes(session: Session, run: ScriptRun) -> bytes:
    file = Path(run.path)
    if file.is_absolute():
        return ConfinedFolder(file.parent).read(file.name, limit=SCRIPT_LIMIT)
    place = session.work.locate_script(run.path)
    return place.folder.read(place.relative, limit=SCRIPT_LIMIT)
