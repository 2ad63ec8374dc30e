"""Holds a record against the disk again, offline and without a model.

Proves: every file of the run's folder is byte for byte what the record says, the published files
and the inputs too, and the gate, asked again, finds the same about each artifact.
Does not prove: who wrote the record. Its digest finds damage; it is no signature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from agent_runtime import Failure
from reread import examine, records
from reread.files import ConfinedFolder
from reread.values import Check, Code, Evidence, Problem
from reread.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found.

    Attributes:
        status: what the run said of itself.
        files: how many files were compared.
        problems: none where everything still holds.
    """

    run_id: str
    status: str
    files: int
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Everything still holds."""
        return not self.problems


def find_run(workspace: Workspace, run_id: str) -> ConfinedFolder:
    """Return the folder of a run; a unique beginning of its name is enough, '' is the last one.

    Raises:
        Failure: run_unknown.
    """
    runs = sorted(p.name for p in (workspace.root / "runs").iterdir() if p.is_dir())
    found = [name for name in runs if name.startswith(run_id)]
    if not run_id and runs:
        found = [runs[-1]]
    if len(found) != 1:
        known = ", ".join(runs[-5:]) or "none"
        raise Failure(
            Code.run_unknown,
            f"'{run_id}' names {len(found)} runs in '{workspace.root}'.",
            f"Use one of: {known}.",
        )
    return workspace.folder.subfolder(f"runs/{found[0]}")


def audit(workspace: ConfinedFolder, run: ConfinedFolder) -> Audit:
    """Compare a run with the disk.

    Raises:
        Failure: record_invalid, where there is nothing to compare with.
    """
    record = records.read_record(run)
    with records.sound(run):
        problems = [
            *_files(run, record),
            *_users(workspace, record),
            *_judged(workspace, run, record),
        ]
        outcome = record["outcome"]
        count = len(record["files"]) + len(record["inputs"]) + len(outcome["published"])
        return Audit(record["run_id"], outcome["status"], count, tuple(problems))


def _files(run: ConfinedFolder, record: Mapping[str, Any]) -> Iterator[Problem]:
    """Compare the run's own folder, in both directions."""
    wanted: Mapping[str, str] = record["files"]
    there, _ = records.digests(run)
    for path in sorted(there.keys() - wanted.keys()):
        yield _problem(path, "the record does not know it")
    for path, sha256 in wanted.items():
        yield from _compared(path, there.get(path), sha256)


def _users(workspace: ConfinedFolder, record: Mapping[str, Any]) -> Iterator[Problem]:
    """Compare what was published and what was read."""
    for path, sha256 in {**record["inputs"], **record["outcome"]["published"]}.items():
        yield from _same(workspace, path, sha256)


def _judged(
    workspace: ConfinedFolder, run: ConfinedFolder, record: Mapping[str, Any]
) -> Iterator[Problem]:
    """Ask the gate again about each published artifact."""
    published = record["outcome"]["published"]
    declared = {item["path"]: item for item in record["task"]["artifacts"]}
    for artifact in record["outcome"]["artifacts"]:
        path = artifact["path"]
        if path not in published or any(_same(workspace, path, published[path])):
            continue  # told already; what other bytes would pass says nothing about the run
        again = _examined(workspace, run, path, declared[path])
        then = {c["name"]: c["state"] for c in artifact["checks"] if c["depth"] != "provenance"}
        for check in again.checks:
            if then.get(check.name, check.state) != check.state:
                yield _otherwise(path, check, then[check.name])


def _examined(
    workspace: ConfinedFolder, run: ConfinedFolder, path: str, declared: Mapping[str, Any]
) -> Evidence:
    judge = partial(
        examine.examine,
        name=path.rpartition("/")[2],
        format=declared["format"],
        contract=declared["contract"],
    )
    older = declared.get("baseline") or ""
    replaced = f"replaced/{older}"
    with workspace.open(path) as stream:
        if not older:
            return judge(stream)
        kept = run.sha256(replaced) is not None  # the edit has taken the place of the older one
        with run.open(replaced) if kept else workspace.open(older) as baseline:
            return judge(stream, baseline=baseline)


def _same(folder: ConfinedFolder, path: str, sha256: str) -> Iterator[Problem]:
    try:
        now = folder.sha256(path)
    except Failure as failure:
        yield _problem(path, failure.cause)
        return
    yield from _compared(path, now, sha256)


def _compared(path: str, now: str | None, sha256: str) -> Iterator[Problem]:
    if now is None:
        yield _problem(path, "it is gone")
    elif now != sha256:
        yield _problem(path, f"its sha256 is {now[:12]}… and was {sha256[:12]}…")


def _otherwise(path: str, check: Check, then: str) -> Problem:
    return _problem(path, f"the check '{check.name}' was {then} and is {check.state} now")


def _problem(path: str, what: str) -> Problem:
    return Problem(
        Code.evidence_changed,
        path,
        f"'{path}': {what}.",
        "Find out who changed it; run the task again to have proof anew.",
    )
