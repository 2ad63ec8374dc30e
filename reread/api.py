"""The Python API: run a task, check a file, with typed results; sync and async.

    from reread import check_file, run_task

    evidence = check_file("report.docx")
    outcome = run_task("task.yaml", workspace="work")

Every function raises `Failure` for what keeps it from starting, and returns what was found for
everything else: a run that is not complete is an `Outcome`, a file that is not sound an `Evidence`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from agent_runtime import Failure
from reread import contracts, fixtures, models, reconcile, tasks
from reread.examine import examine, format_named, format_of
from reread.files import ConfinedFolder
from reread.job import Job, perform
from reread.records import Listener
from reread.values import Check, Code, Evidence, Outcome, Permissions, Problem, Task
from reread.verify import Report, verify

SAMPLES = Path(__file__).resolve().parent.parent


def run_task(task: Task | str | Path, *, workspace: str | Path, **options: Any) -> Outcome:
    """Do a task and return how it ended; see `run_task_async` for the options.

    Not for use inside of a running event loop.
    """
    return asyncio.run(run_task_async(task, workspace=workspace, **options))


async def run_task_async(
    task: Task | str | Path,
    *,
    workspace: str | Path,
    fixture: str = "",
    permissions: Permissions | None = None,
    approve_overwrite: tuple[str, ...] = (),
    approve_skill_proposal: tuple[str, ...] = (),
    samples: bool = False,
    listeners: tuple[Listener, ...] = (),
) -> Outcome:
    """Do a task with the model that the environment names, or with a fixture.

    Args:
        task: a Task, or the path of a task file.
        fixture: name of a fixed conversation to replay instead of asking a model.
        permissions: what a human allows; None allows what the task file says.
        approve_overwrite: `PATH` or `PATH@SHA256` of files that may be replaced, once.
        samples: copy the sample skills and inputs into the workspace, where missing.
        listeners: told of each event of the run, after it is on disk.

    Raises:
        Failure: task_invalid, workspace_invalid, approval_required, model_not_configured, …
    """
    asked = task if isinstance(task, Task) else tasks.read_task(Path(task))
    if permissions is not None:
        asked = replace(asked, permissions=permissions)
    job = Job(
        task=tasks.checked(asked),
        workspace=Path(workspace),
        samples=SAMPLES if samples else None,
        fixture=fixtures.load(fixture, SAMPLES / "sample-data") if fixture else None,
        settings=None if fixture else models.settings_from_environment(),
        overwrites=approve_overwrite,
        proposals=approve_skill_proposal,
    )
    return await perform(job, listeners=listeners)


def verify_extension(path: str | Path, **options: Any) -> Report:
    """Verify an extension package in three layers; see `verify_extension_async`."""
    return asyncio.run(verify_extension_async(path, **options))


async def verify_extension_async(
    path: str | Path, *, permissions: Permissions | None = None, record: bool = True
) -> Report:
    """Verify an extension package: structure, loading, acceptance.

    Args:
        record: a pass is remembered, so that a run loads the package.

    Raises:
        Failure: path_not_found, sandbox_unavailable, environment_unusable.
    """
    return await verify(Path(path), permissions=permissions or Permissions(), record=record)


def check_file(
    path: str | Path,
    *,
    format: str = "",
    contract: Mapping[str, Any] | None = None,
    baseline: str | Path | None = None,
) -> Evidence:
    """Judge one file from its bytes; the gate alone, without a model.

    Args:
        format: a name of `reread.formats`; by default the suffix says it.
        contract: what is asked of it, in the words of `contract.schema.json`.
        baseline: the older document that it is an edit of.

    Raises:
        Failure: usage_invalid, for a format that is not known; contract_invalid.
    """
    file = Path(path)
    asked = dict(contract or {})
    contracts.validate(asked, "contract")
    named = format_named(format) if format else format_of(file.name)
    try:
        folder = ConfinedFolder(file.parent)
        with folder.open(file.name) as stream:
            found = _judged(stream, file.name, named, asked, baseline)
    except (Failure, OSError) as error:
        return _unread(file, named, error)
    checks = found.checks
    if asked.get("local_links_exist") and found.read:
        checks = (*checks, reconcile.local_links(found, file.name, folder.open))
    return replace(found, path=str(path), checks=checks)


async def check_file_async(path: str | Path, **options: Any) -> Evidence:
    """Judge one file without holding up the event loop; the options are those of `check_file`."""
    return await asyncio.to_thread(check_file, path, **options)


def _judged(
    stream: BinaryIO,
    name: str,
    format: str,
    contract: Mapping[str, Any],
    baseline: str | Path | None,
) -> Evidence:
    if baseline is None:
        return examine(stream, name=name, format=format, contract=contract)
    older = Path(baseline)
    with ConfinedFolder(older.parent).open(older.name) as old:
        return examine(stream, name=name, format=format, contract=contract, baseline=old)


def _unread(path: Path, format: str, error: Exception) -> Evidence:
    """Say that a file could not be read; that is a finding about it."""
    missing = isinstance(error, Failure) and error.code == Code.path_not_found
    code = Code.artifact_not_created if missing else Code.artifact_unreadable
    cause = error.cause if isinstance(error, Failure) else str(error)
    problem = Problem(code, str(path), cause, "Name a regular file.", "missing" if missing else "")
    check = Check("artifact.exists", "provenance", "failed", problem=problem)
    return Evidence(str(path), format, None, 0, (check,))
