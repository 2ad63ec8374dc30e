"""What one run works with. Tools, rails, the gate and `execute` all take it; nobody replaces it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_runtime import Failure, Message
from reread.approvals import Approvals
from reread.records import Listener, Record
from reread.skills import Selection, Skills
from reread.tasks import with_contracts
from reread.values import Code, ScriptRun, Task
from reread.workspace import Work, Workspace


@dataclass(slots=True)
class Progress:
    """What has happened so far in a run. It only grows.

    Attributes:
        runs: each script run, in order.
        activated: skill name → digest of the body that the model was given.
    """

    runs: list[ScriptRun] = field(default_factory=list)
    activated: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Session:
    """One run's collaborators.

    Attributes:
        selection: which skills were chosen, and why.
        replaces: declared path → digest of the user's file that a human gave up for it.
        inputs: path → digest at the start, of what is in inputs/ and of documents to be edited.
        shipped: the scripts come with the program (a fixture), so they run with what fence there
            is; scripts of a model need one.
        opening: the messages that a resumed run started with; empty for a new one.
        origin: who answers (mode, model or fixture, API) and what else a resumption must know; for
            the record.
    """

    task: Task
    work: Work
    approvals: Approvals
    skills: Skills
    selection: Selection
    record: Record
    replaces: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    shipped: bool = False
    progress: Progress = field(default_factory=Progress)
    opening: tuple[Message, ...] = ()
    origin: Mapping[str, Any] = field(default_factory=dict)


def open_session(
    task: Task,
    workspace: Workspace,
    skills: Skills,
    approvals: Approvals,
    *,
    listeners: tuple[Listener, ...] = (),
    shipped: bool = False,
    run_id: str = "",
    origin: Mapping[str, Any] | None = None,
) -> Session:
    """Settle everything that must hold before a token is spent, and open the work folder.

    Raises:
        Failure: path_not_found, for an input that is missing; skill_unknown, skill_invalid;
            contract_invalid; approval_required and its kin, for a declared path that exists.
    """
    inputs = _inputs(workspace, task)
    skills.scan()
    selection = skills.select(task.text, task.skills)
    task = with_contracts(task, selection.chosen, skills.contract)
    replaces = _replaces(workspace, task, approvals)
    work = workspace.begin(run_id)
    return Session(
        task=task,
        work=work,
        approvals=approvals,
        skills=skills,
        selection=selection,
        record=Record(work.run, listeners),
        replaces=replaces,
        inputs=inputs,
        shipped=shipped,
        origin=origin or {},
    )


def _inputs(workspace: Workspace, task: Task) -> dict[str, str]:
    """Digest inputs/ and what else the task names as given; that must be there."""
    digests = workspace.folder.digests("inputs")
    for path in (*task.inputs, *(a.baseline for a in task.artifacts if a.baseline)):
        now = digests.get(path) or workspace.folder.sha256(path)
        if now is not None:
            digests[path] = now
        else:
            raise Failure(
                Code.path_not_found,
                f"The task needs '{path}', and it is not in '{workspace.root}'.",
                f"Put the file there, or correct the path: cp FILE {workspace.root / path}",
            )
    return digests


def _replaces(workspace: Workspace, task: Task, approvals: Approvals) -> dict[str, str]:
    """Hold every declared path that exists against its approval, before anything runs."""
    replaces = {}
    for expected in task.artifacts:
        now = workspace.folder.sha256(expected.path)
        if now is None:
            continue
        approvals.check(
            f"overwrite:{expected.path}",
            now,
            cause=f"'{expected.path}' exists already (sha256 {now[:12]}…) and would be replaced.",
            remedy=f"Look at it, then add --approve-overwrite {expected.path}, or name another "
            "path.",
        )
        replaces[expected.path] = now
    return replaces
