"""execute(): the story of one run, from an empty work folder to a published, proven file.

Proves: `complete` means that the gate read every declared artifact and found it proven, that no
tool error stayed open, and that what was published has the digest that was read.
Does not prove: that the content is right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from agent_runtime import (
    Budget,
    Conversation,
    Failure,
    Model,
    Rail,
    Round,
    Shorten,
    Tool,
    run_agent,
)
from reread import brief, gate, records, summary
from reread.rails.recorder import Recorder
from reread.session import Session
from reread.tools import all_tools
from reread.values import Code, Finding, Outcome, Problem, Status
from reread.workspace import publish

HOPELESS = frozenset({Code.uv_missing, Code.sandbox_unavailable, Code.sandbox_failed})
"""What keeps scripts from running here; no repair by a model can help."""


async def execute(
    model: Model,
    session: Session,
    *,
    tools: Sequence[Tool] = (),
    rails: Sequence[Rail] = (),
    shorten: Shorten | None = None,
    wrap: Callable[[Tool], Tool] = lambda tool: tool,
    recorder: Rail | None = None,
) -> Outcome:
    """Do the task of a session and return how it ended; the record is on disk then.

    Args:
        tools: more powers than the built-in ones, such as those of extensions.
        rails: hooks beside the recorder.
        wrap: put around each tool; how a resumed run gives recorded answers.
        recorder: writes turns and answers; by default each of them.

    Raises whatever is a bug, and a cancellation, after the record says `interrupted`.
    """
    opening = session.opening or brief.opening(session)
    conversation = Conversation(opening, Budget(session.task.limits))
    verdict, ended, rounds = None, Round("complete", ""), 0
    powers = tuple(wrap(tool) for tool in (*all_tools(session), *tools))
    hooks = (recorder or Recorder(session.record), *rails)
    kind = "run.resumed" if session.opening else "run.started"
    session.record.event(kind, brief.started(session, conversation.messages))
    try:
        while True:
            rounds += 1
            ended = await run_agent(model, conversation, powers, rails=hooks, shorten=shorten)
            verdict = await asyncio.to_thread(gate.inspect, session)
            session.record.event("gate.read", _read(verdict))
            failed = tuple(_failed(verdict, conversation))
            if not failed or rounds > session.task.repairs or not _repairable(ended):
                break
            conversation.messages.append(brief.repair(failed, rounds, session.task.repairs))
        outcome = _settle(session, conversation, ended, verdict, rounds)
        if outcome.ok:
            outcome = _publish(session, verdict, outcome)
    except BaseException as error:
        outcome = _settle(session, conversation, ended, verdict, rounds)
        _finish(session, _stopped(outcome, error))
        raise
    else:
        return _finish(session, outcome)
    finally:
        await model.aclose()
        session.record.close()


def _repairable(ended: Round) -> bool:
    """Say whether another round could help."""
    if ended.status in ("limit-reached", "model-failed"):
        return False
    return ended.failure is None or ended.failure.code not in HOPELESS


def _failed(verdict: gate.Verdict, conversation: Conversation) -> Iterator[Finding]:
    """Yield what is wrong after a round: what the gate found, and tool errors left open."""
    yield from gate.findings(verdict)
    for error in conversation.unresolved:
        yield Finding(
            layer="tool",
            problem=Problem(_code(error.code), error.tool, error.cause, error.remedy),
            query=f"call {error.tool} {error.subject}".strip(),
            expected="the call succeeds",
            actual=error.cause,
        )


def _code(code: str) -> Code:
    return Code(code) if code in Code.__members__ else Code.tool_failed


def _settle(
    session: Session,
    conversation: Conversation,
    ended: Round,
    verdict: gate.Verdict | None,
    rounds: int,
) -> Outcome:
    """Decide what the run may say of itself: the files first, then the loop."""
    status, why = _status(conversation, ended, verdict)
    budget = conversation.budget
    return Outcome(
        status=status,
        run_id=session.work.run_id,
        reason=why.code if why else "",
        cause=why.cause if why else "",
        remedy=why.remedy if why else "",
        runtime_status=ended.status,
        rounds=rounds,
        available_skills=tuple(session.skills.names),
        selected_skills=tuple(session.selection.chosen),
        scans=session.skills.scans,
        tool_errors=tuple(conversation.errors),
        scripts=verdict.scripts if verdict else (),
        artifacts=verdict.artifacts if verdict else (),
        runs=tuple(session.progress.runs),
        turns=budget.turns,
        tool_calls=budget.tool_calls,
        usage=budget.usage,
        seconds=session.record.seconds,
    )


def _status(
    conversation: Conversation, ended: Round, verdict: gate.Verdict | None
) -> tuple[Status, Failure | None]:
    if ended.failure is not None and not _repairable(ended):
        hopeless = ended.failure.code in HOPELESS or ended.status == "model-failed"
        return ("error" if hopeless else "incomplete"), ended.failure
    if verdict is None:
        return "incomplete", ended.failure
    if not verdict.ok:
        return "validation-failed", _first_problem(verdict)
    if conversation.unresolved:
        error = conversation.unresolved[-1]
        return "incomplete", Failure(error.code, error.cause, error.remedy)
    if ended.failure is not None:
        return "incomplete", ended.failure
    return "complete", None


def _first_problem(verdict: gate.Verdict) -> Failure:
    first = next(gate.findings(verdict)).problem
    return Failure(first.code, f"{first.where}: {first.cause}", first.remedy)


def _publish(session: Session, verdict: gate.Verdict, outcome: Outcome) -> Outcome:
    """Hand the proven files over, if they are still what the gate read."""
    files = [
        publish.Proven(found.path, found.sha256, session.replaces.get(found.path))
        for found in verdict.artifacts
        if found.sha256 is not None
    ]
    published = replace(outcome, published={file.path: file.sha256 for file in files})
    try:
        for path, sha256 in session.replaces.items():
            session.approvals.spend(f"overwrite:{path}", sha256, cause="", remedy="")
        publish.publish(session.work, files, _record(session, published))
    except Failure as failure:
        return replace(
            outcome,
            status="validation-failed",
            reason=failure.code,
            cause=failure.cause,
            remedy=failure.remedy,
        )
    return published


def _stopped(outcome: Outcome, error: BaseException) -> Outcome:
    """Say that the run was cut off, by a person or by a bug of ours."""
    ours = not isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
    return replace(
        outcome,
        status="error" if ours else "incomplete",
        reason=Code.internal_error if ours else Code.interrupted,
        cause=f"{type(error).__name__}: {error}"[:500] if ours else "The run was interrupted.",
        remedy="Report it with the record of the run." if ours else "Start it again.",
        published={},
    )


def _finish(session: Session, outcome: Outcome) -> Outcome:
    session.record.event("run.ended", {"status": outcome.status, "reason": outcome.reason})
    session.record.finish(_record(session, outcome))
    if outcome.published:
        publish.close(session.work)
    return outcome


def _record(session: Session, outcome: Outcome) -> dict[str, Any]:
    return {
        "schema": records.RECORD_SCHEMA,
        **brief.facts(session),
        "outcome": summary.outcome(outcome),
        "scripts": [summary.evidence(found) for found in outcome.scripts],
    }


def _read(verdict: gate.Verdict) -> dict[str, Any]:
    return {
        "ok": verdict.ok,
        "scripts": [summary.evidence(found) for found in verdict.scripts],
        "artifacts": [summary.evidence(found) for found in verdict.artifacts],
    }
