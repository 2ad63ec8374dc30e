"""Moves proven files into their places: all of them or none, also through a crash.

A journal in the run's folder says what is about to happen before the first file moves. Whoever
opens the workspace next finds it and goes on: files that are still as they were proven are moved
on, and where that is impossible what was replaced is put back.

Proves: a published file has the digest that the gate read, and the old file is kept in
`replaced/`. Does not prove: that a power cut keeps what the disk itself had not written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agent_runtime import Failure
from reread.files import ConfinedFolder, check_name
from reread.values import Code
from reread.workspace import Work, Workspace

JOURNAL = "publish.json"
JOURNAL_LIMIT = 16 << 20


@dataclass(frozen=True, slots=True)
class Proven:
    """A file that may be published.

    Attributes:
        path: in the work folder and in the workspace alike.
        sha256: what the gate read.
        replaces: digest of the user's file that a human gave up for it; None where there is none.
    """

    path: str
    sha256: str
    replaces: str | None


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was done about a publishing that a crash left open.

    Attributes:
        finished: every file is in its place now; else every place is as it was before the run.
        record: the record that the run was about to write.
    """

    run_id: str
    finished: bool
    record: Mapping[str, Any]


def publish(work: Work, files: Sequence[Proven], record: Mapping[str, Any]) -> dict[str, str]:
    """Move every file into its place and return path → digest as read there.

    Args:
        record: what the run will write last; kept in the journal, so that the next start can.

    Raises:
        Failure: publish_failed, with the workspace as it was before.
    """
    journal = {"files": [asdict(file) for file in files], "record": record}
    text = json.dumps(journal, ensure_ascii=False, sort_keys=True, default=str)
    work.run.write(JOURNAL, text.encode("utf-8", "backslashreplace"))
    try:
        for file in files:
            _move(work, file)
        return {file.path: file.sha256 for file in files}
    except Failure as failure:
        _undo(work, files)
        work.run.remove(JOURNAL)
        raise Failure(
            Code.publish_failed,
            f"A proven file could not be put in its place ({failure.code}): {failure.cause}",
            f"{failure.remedy} The proven files are in '{work.folder.root}'.",
        ) from failure


def close(work: Work) -> None:
    """Drop the journal, once the record is written."""
    work.run.remove(JOURNAL)


def recover(workspace: Workspace) -> tuple[Recovered, ...]:
    """Finish or undo what a crash left open. Call it with the workspace held."""
    found = []
    for entry in sorted((workspace.root / "runs").iterdir()):
        if not entry.is_symlink() and entry.is_dir() and (entry / JOURNAL).is_file():
            found.append(_recover(Work(workspace, entry.name)))
    return tuple(found)


def _recover(work: Work) -> Recovered:
    files, record = _journal(work)
    try:
        for file in files:
            _move(work, file)
    except Failure:
        _undo(work, files)
        return Recovered(work.run_id, False, record)
    return Recovered(work.run_id, True, record)


def _journal(work: Work) -> tuple[list[Proven], Mapping[str, Any]]:
    """Read what was about to happen.

    Raises:
        Failure: record_invalid, since going on with a guess could lose a file.
    """
    try:
        journal = json.loads(work.run.read(JOURNAL, limit=JOURNAL_LIMIT))
        files = [Proven(**file) for file in journal["files"]]
        for file in files:
            check_name(file.path)
        record = dict(journal["record"])
        dict(record["outcome"])
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise Failure(
            Code.record_invalid,
            f"'{work.run.root / JOURNAL}' is no journal of a publishing: {str(error)[:200]}.",
            "Compare outputs/ with the run's replaced/ folder, then remove that file.",
        ) from error
    return files, record


def _move(work: Work, file: Proven) -> None:
    """Put one file in its place; done already is done."""
    users = work.workspace.folder
    if _moved(work, file):
        return
    if work.folder.sha256(file.path) != file.sha256:
        raise _changed(file.path, "the proven file is not what the gate read")
    if file.replaces is not None:
        _keep_old(work, file)
    work.folder.move(file.path, users, file.path, expect=file.replaces)
    if users.sha256(file.path) != file.sha256:
        raise _changed(file.path, "the file in its place is not what the gate read")


def _moved(work: Work, file: Proven) -> bool:
    """Say whether a file is in its place already, and drop what the exchange left behind.

    A move exchanges the new file with the old one and then removes that; a crash in between leaves
    the old one, or a copy of the new one, under the name in the work folder.
    """
    left = work.folder.sha256(file.path)
    if work.workspace.folder.sha256(file.path) != file.sha256:
        return False
    if left is None:
        return True
    if left == file.replaces and left != file.sha256:
        work.folder.remove(file.path)
        return True
    return False


def _keep_old(work: Work, file: Proven) -> None:
    old = work.workspace.folder.read(file.path)
    kept = work.run.write(f"replaced/{file.path}", old)
    if kept.sha256 != file.replaces:
        work.run.remove(f"replaced/{file.path}")
        raise _changed(file.path, "it is not the file whose replacement was approved")


def _undo(work: Work, files: Sequence[Proven]) -> None:
    """Put back what was there, and the proven files back into the work folder."""
    users = work.workspace.folder
    for file in files:
        if _moved(work, file):  # else it had not moved, or somebody has changed it since
            users.move(file.path, work.folder, file.path)
        if file.replaces is not None and users.sha256(file.path) is None:
            _restore(work.run, users, file)


def _restore(run: ConfinedFolder, users: ConfinedFolder, file: Proven) -> None:
    """Put the user's file back from where it was kept; also after an undoing that was cut off."""
    if run.sha256(f"replaced/{file.path}") == file.replaces:
        users.write(file.path, run.read(f"replaced/{file.path}"), expect=None)


def _changed(path: str, what: str) -> Failure:
    return Failure(
        Code.changed_meanwhile,
        f"'{path}': {what}.",
        "See what else writes there, then run the task again.",
    )
