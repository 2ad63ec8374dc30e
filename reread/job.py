"""What a run is composed of: workspace, approvals, skills, extensions, model, session.

The command line, batches, the MCP server and the Python API all start runs here, so that there is
one place that says what a human allowed and what a model gets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_runtime import Failure, Model, ScriptedModel
from reread import fixtures, records
from reread.additions import added, approve_extension
from reread.approvals import Approvals
from reread.models import open_model, shorten
from reread.rails.otel import tracing
from reread.records import Listener
from reread.replay.effects import answers_of, begun_of, done_of
from reread.replay.playback import Event, of_kind
from reread.replay.resume import QuietRecorder, answering, open_resumed, played
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
        govern: put around a live model; how a batch holds one budget over all its runs.
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
    govern: Callable[[Model], Model] | None = None


async def perform(job: Job, *, listeners: tuple[Listener, ...] = ()) -> Outcome:
    """Do a job and return how it ended.

    Raises:
        Failure: everything that keeps a run from starting: workspace_invalid, workspace_locked,
            approval_required, skill_unknown, model_not_configured, …
    """
    workspace = Workspace(job.workspace)
    with workspace.held(), tracing() as traces:
        recover(workspace)
        if job.samples:
            workspace.add_samples(job.samples)
        approvals = _approvals(job, workspace)
        session = open_session(
            job.task,
            workspace,
            Skills(workspace.root / "skills", roots=job.skill_roots, trusted=job.trust_skills),
            approvals,
            listeners=(*listeners, *traces),
            shipped=job.fixture is not None and job.fixture.shipped,
            run_id=job.run_id,
            origin=_origin(job),
        )
        model = _model(job, session)
        rails = (model,) if isinstance(model, ScriptedModel) else ()
        packages = (*job.extensions, *job.trusted_extensions)
        async with added(session, mcp=job.mcp, extensions=packages) as more:
            return await execute(
                model, session, tools=more.tools, rails=(*rails, *more.rails), shorten=shorten
            )


async def resume(
    workspace: Workspace,
    run_id: str,
    settings: Callable[[], Settings],
    *,
    samples: Path | None = None,
    listeners: tuple[Listener, ...] = (),
    allowed: Permissions | None = None,
) -> Outcome:
    """Go on with a run that was cut off, with the same fixture or the same API.

    Args:
        settings: called where a model service is asked; a fixture needs none.
        samples: folder of the fixtures.
        allowed: what a human allows now; the record's word is not taken for it.

    Raises:
        Failure: usage_invalid, when it has ended; record_invalid; model_not_configured.
    """
    return await _go_on(
        workspace,
        run_id,
        lambda session, events: _next_model(session, events, settings, samples),
        listeners,
        allowed,
    )


async def go_on(job: Job, *, listeners: tuple[Listener, ...] = ()) -> Outcome:
    """Go on with the run of a job that was cut off; the job says who answers from here on.

    Raises:
        Failure: what `resume` raises.
    """
    return await _go_on(
        Workspace(job.workspace),
        job.run_id,
        lambda session, events: _model(job, session, after=events),
        listeners,
        job.task.permissions,
    )


async def _go_on(
    workspace: Workspace,
    run_id: str,
    next_model: Callable[[Session, Sequence[Event]], Model],
    listeners: tuple[Listener, ...],
    allowed: Permissions | None,
) -> Outcome:
    with workspace.held(), tracing() as traces:
        recover(workspace)
        session, events = open_resumed(
            workspace, run_id, listeners=(*listeners, *traces), allowed=allowed
        )
        playback = played(session, events, next_model(session, events))
        begun, answers = begun_of(events), answers_of(events)
        recorder = QuietRecorder(
            session.record,
            playback,
            begun=begun,
            answered=answers.keys(),
            rounds=len(of_kind(events, "round.ended")),
        )
        mcp = session.origin.get("mcp")
        packages = tuple(Path(path) for path in session.origin.get("extensions", ()))
        async with added(session, mcp=Path(mcp) if mcp else None, extensions=packages) as more:
            return await execute(
                playback,
                session,
                tools=more.tools,
                rails=(playback, *more.rails),
                wrap=answering(
                    playback, session, done_of(events) | answers, begun - answers.keys()
                ),
                shorten=shorten,
                recorder=recorder,
            )


def _next_model(
    session: Session,
    events: Sequence[Event],
    settings: Callable[[], Settings],
    samples: Path | None,
) -> Model:
    """Return who answers after the record: the rest of the fixture, or the service."""
    origin = session.origin
    if origin.get("mode") == "fixture":
        if samples is None:
            raise _no_model()
        fixture = fixtures.load(origin["fixture"], samples / "sample-data")
        return fixtures.model(fixture, session, after=events)
    return open_model(
        settings(),
        api=origin.get("api", "chat"),
        limits=session.task.limits,
        tell=session.record.tell,
    )


def _origin(job: Job) -> dict[str, Any]:
    """Return who answers, and what else a resumption must know of the job."""
    more = {
        "skill_roots": [str(root.resolve()) for root in job.skill_roots],
        "trust_skills": job.trust_skills,
        "mcp": str(job.mcp.resolve()) if job.mcp else "",
        "extensions": [str(path.resolve()) for path in (*job.extensions, *job.trusted_extensions)],
    }
    if job.fixture:
        return {"mode": "fixture", "fixture": job.fixture.name, **more}
    if job.settings is None:
        return more
    settings = job.settings
    return {
        "mode": "live",
        "model": settings.model,
        "service": settings.host,
        "api": job.api,
        **more,
    }


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
    for package in job.trusted_extensions:
        approve_extension(approvals, package)
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


def _model(job: Job, session: Session, *, after: Sequence[Event] = ()) -> Model:
    if job.fixture:
        return fixtures.model(job.fixture, session, after=after)
    if job.settings is None:
        raise _no_model()
    model = open_model(
        job.settings, api=job.api, limits=session.task.limits, tell=session.record.tell
    )
    return job.govern(model) if job.govern else model


def _no_model() -> Failure:
    return Failure(
        Code.model_not_configured,
        "The job has neither a fixture nor the settings of a model service.",
        "Set OPENAI_API_KEY and OPENAI_MODEL.",
    )
