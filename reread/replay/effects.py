"""What a record says was done by calls whose answer it does not hold.

A run can die between an effect and the answer that tells of it. The effect is recorded first, so
that a resumed run gives the answer of what was done and does it no second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agent_runtime import Failure, Tool
from reread.replay.playback import Event
from reread.session import Session
from reread.skills import proposal_from
from reread.summary import script_run_from
from reread.tools.run_python import answer
from reread.values import Code

Key = tuple[int, str]
"""The turn and the id of a call; some services give an id twice."""

Answers = dict[Key, Mapping[str, Any]]

RESULT_OF_SKILL = ("name", "path", "sha256", "scans")


def answers_of(events: Iterable[Event]) -> Answers:
    """Return the recorded answers by turn and call."""
    turn, found = 0, Answers()
    for event in events:
        turn += event["kind"] == "model.replied"
        if event["kind"] == "tool.answered":
            found[turn, event["data"]["id"]] = event["data"]["result"]
    return found


def done_of(events: Iterable[Event]) -> Answers:
    """Return the answers of calls whose effect is recorded and whose answer is not."""
    turn, pending, found = 0, None, Answers()
    for event in events:
        turn += event["kind"] == "model.replied"
        if event["kind"] == "tool.called":
            pending = (turn, event["data"]["id"])
        elif event["kind"] == "tool.answered" and pending is not None:
            found.pop(pending, None)
            pending = None
        elif pending is not None and (result := _result(event)) is not None:
            found[pending] = result
    return found


def _result(event: Event) -> Mapping[str, Any] | None:
    """Return the answer that an effect would have had."""
    data = event["data"]
    if event["kind"] == "file.written":
        return {"ok": True, **data}
    if event["kind"] == "skill.created":
        return {"ok": True, **{key: data[key] for key in RESULT_OF_SKILL}}
    if event["kind"] != "script.ran":
        return None
    try:
        return {"ok": True, **answer(script_run_from(data), tuple(data["left"]))}
    except Failure as failure:
        return failure.as_json()


def found_done(
    tool: Tool, session: Session, arguments: Mapping[str, Any], failure: Failure
) -> Mapping[str, Any]:
    """Return the answer of a skill that was created when the run died, or raise the failure."""
    if tool.name != "create_skill" or failure.code != Code.skill_exists:
        raise failure
    proposal = proposal_from(arguments)
    now = session.work.workspace.folder.sha256(proposal.target)
    word = session.approvals.find(f"skill-proposal:{proposal.name}")
    if now != proposal.sha256 or word is None or word.sha256 != now:
        raise failure
    session.approvals.spent_on(word)
    session.skills.scan()  # as creating it would have done
    done = {
        "name": proposal.name,
        "path": proposal.target,
        "sha256": now,
        "scans": session.skills.scans,
    }
    session.record.event("skill.created", {**done, "approved_at": word.granted_at})
    return done


def begun_of(events: Iterable[Event]) -> frozenset[Key]:
    """Return the calls that were about to run."""
    turn, found = 0, set()
    for event in events:
        turn += event["kind"] == "model.replied"
        if event["kind"] == "tool.called":
            found.add((turn, str(event["data"]["id"])))
    return frozenset(found)
