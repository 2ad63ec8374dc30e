"""What a run is composed of: workspace, approvals, skills, extensions, model, session.

The command line, batches, the MCP server and the Python API all start runs here, so that there is
one place that says what a human allowed and what a model gets.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent_runtime import Failure, Model, ScriptedModel, Tool
from reread import extras, fixtures, records
from reread.approvals import Approvals
from reread.models import open_model, shorten
from reread.records import Listener
from reread.replay.resume import QuietRecorder, answering, answers_of, open_resumed, played
from reread.run import execute
from reread.session import Session, open_session
from reread.skills import Skills, read_proposal
from reread.values import Code, Outcome, Permissions, Task
from reread.workspace import Workspace, publish

if TYPE_CHECKING:
    from reread.models._settings import Settings


@dataclass(frozen=True, slots=True)
class Job:
    """One run as a person or a program asks for it.

    Attributes:
        samples: folder whose skills and inputs are copied into the workspace where missing.
        fixture: the fixed conversation; None asks a model service.
        overwrites: `PATH` or `PATH@SHA256` of files that may be replaced, once.
        proposals: skill proposals that may be created exactly as they stand.
        skill_roots: further folders to read skills from.
        mcp: configuration of MCP servers whose tools the model gets.
    """

    task: Task
    workspace: Path
    samples: Path | None = None
    fixture: fixtures.Fixture | None = None
    overwrites: tuple[str, ...] = ()
    proposals: tuple[str, ...] = ()
    skill_roots: tuple[Path, ...] = ()
    trust_skills: bool = False
    extensions: tuple[Path, ...] = ()
    trusted_extensions: tuple[Path, ...] = ()
    settings: Settings | None = None
    api: str = "chat"
    mcp: Path | None = None
    tidy: bool = False
    run_id: str = ""


async def perform(job: Job, *, listeners: tuple[Listener, ...] = ()) -> Outcome:
    """Do a job and return how it ended.

    Raises:
        Failure: everything that keeps a run from starting: workspace_invalid, workspace_locked,
            approval_required, skill_unknown, model_not_configured, …
    """
    workspace = Workspace(job.workspace)
    with workspace.held():
        recover(workspace)
        if job.samples:
            workspace.add_samples(job.samples)
        approvals = _approvals(job, workspace)
        session = open_session(
            job.task,
            workspace,
            Skills(workspace.root / "skills", roots=job.skill_roots, trusted=job.trust_skills),
            approvals,
            listeners=listeners,
            shipped=job.fixture is not None,
            run_id=job.run_id,
        )
        model = _model(job, session)
        rails = (model,) if isinstance(model, ScriptedModel) else ()
        async with _more_tools(job, session) as tools:
            return await execute(model, session, tools=tools, rails=rails, shorten=shorten)


@asynccontextmanager
async def _more_tools(job: Job, session: Session) -> AsyncIterator[tuple[Tool, ...]]:
    """Yield the tools that a human added to the built-in ones, and say so in the record."""
    if job.mcp is None:
        yield ()
        return
    extras.need("mcp")
    from reread.mcp_tools import read_config, tools_of

    async with tools_of(read_config(job.mcp)) as tools:
        session.record.event(
            "tools.added", {"from": str(job.mcp), "names": [t.name for t in tools]}
        )
        yield tools


async def resume(
    workspace: Workspace,
    run_id: str,
    settings: Callable[[], Settings],
    *,
    listeners: tuple[Listener, ...] = (),
    allowed: Permissions | None = None,
) -> Outcome:
    """Go on with a run that was cut off.

    Raises:
        Failure: usage_invalid, when it has ended; record_invalid; model_not_configured.
    """
    with workspace.held():
        recover(workspace)
        session, events = open_resumed(workspace, run_id, listeners=listeners, allowed=allowed)
        then = open_model(settings(), limits=session.task.limits)
        playback = played(session, events, then)
        answers = answers_of(events)
        return await execute(
            playback,
            session,
            rails=(playback,),
            wrap=answering(playback, answers),
            shorten=shorten,
            recorder=QuietRecorder(session.record, playback, answers),
        )


def recover(workspace: Workspace) -> tuple[publish.Recovered, ...]:
    """Finish or undo what a crash left open, and write the record that was due."""
    found = publish.recover(workspace)
    for recovered in found:
        folder = workspace.folder.subfolder(f"runs/{recovered.run_id}")
        record = dict(recovered.record)
        if not recovered.finished:
            record["outcome"] = {
                **record["outcome"],
                "status": "error",
                "reason": Code.publish_failed,
                "published": {},
            }
        records.write_record(folder, {**record, "recovered": True})
        folder.remove(publish.JOURNAL)
    return found


def _approvals(job: Job, workspace: Workspace) -> Approvals:
    """Bind each word of the human to the bytes that are there now."""
    approvals = Approvals()
    if job.fixture:
        fixtures.prepare(job.fixture, workspace, approvals)
    for word in job.overwrites:
        path, sha256 = _overwrite(workspace, word)
        approvals.grant(f"overwrite:{path}", sha256)
    for path in job.proposals:
        proposal = read_proposal(workspace.folder, path)
        approvals.grant(f"skill-proposal:{proposal.name}", proposal.sha256)
    return approvals


def _overwrite(workspace: Workspace, word: str) -> tuple[str, str]:
    path, at, seen = word.rpartition("@")
    if not at or not set(seen) <= set("0123456789abcdef") or not 8 <= len(seen) <= 64:
        path, seen = word, ""
    now = workspace.folder.sha256(path)
    if now is None:
        raise Failure(
            Code.path_not_found,
            f"--approve-overwrite names '{path}', which is not in '{workspace.root}'.",
            "Leave the flag out; a file that does not exist needs no approval.",
        )
    if not now.startswith(seen):
        raise Failure(
            Code.approval_stale,
            f"'{path}' was approved with sha256 {seen[:12]}… and is {now[:12]}… now.",
            f"Look at it again, then add --approve-overwrite {path}@{now[:12]}.",
        )
    return path, now


def _model(job: Job, session: Session) -> Model:
    if job.fixture:
        return fixtures.model(job.fixture, session)
    if job.settings is None:
        raise _no_model()
    return open_model(
        job.settings, api=job.api, limits=session.task.limits, tell=session.record.tell
    )


def _no_model() -> Failure:
    return Failure(
        Code.model_not_configured,
        "The job has neither a fixture nor the settings of a model service.",
        "Set OPENAI_API_KEY and OPENAI_MODEL.",
    )
