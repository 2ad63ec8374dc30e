"""Goes on with a run that was cut off, without paying for a recorded turn or acting twice.

The recorded turns are played to the loop again and the recorded answers given for their calls, so
that the history and the budget are what they were; then the model is asked. What is on disk is read
again at the end, as always: no "done" of the record is trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent_runtime import (
    Failure,
    Message,
    Metered,
    Model,
    Rail,
    Reply,
    Round,
    ScriptedModel,
    Tool,
    ToolCall,
    Usage,
)
from reread import records, tasks
from reread.approvals import Approvals
from reread.rails.recorder import Recorder
from reread.records import Listener, Record
from reread.replay.again import again, approvals_of
from reread.replay.effects import Answers, Key, found_done
from reread.replay.playback import Event, failure_of, of_kind, rounds_of
from reread.session import Progress, Session
from reread.skills import Skills
from reread.summary import script_run_from
from reread.values import Code, Made, Permissions
from reread.workspace import Work, Workspace


class Playback(Rail):
    """A model that says what was recorded, then asks the real one; and the rail that knows when.

    Attributes:
        live: the record is played out; what happens from here on is new.
    """

    def __init__(self, recorded: ScriptedModel, turns: int, then: Model) -> None:
        self._recorded = recorded
        self._left = turns
        self._then = then
        self._current = ""
        self._turn = 0

    @property
    def live(self) -> bool:
        """The record is played out."""
        return self._left == 0

    @property
    def turn(self) -> int:
        """How many turns the loop has had, recorded ones included."""
        return self._turn

    @property
    def current(self) -> tuple[int, str]:
        """The turn and the id of the call that runs now."""
        return self._turn, self._current

    async def reply(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
        """Return the next recorded turn, or ask."""
        self._turn += 1
        if self.live:
            return await self._then.reply(messages, tools)
        self._left -= 1
        return await self._recorded.reply(messages, tools)

    def expect(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Usage:
        """Foresee what the next request costs; a recorded turn is paid for already."""
        if self.live and isinstance(self._then, Metered):
            return self._then.expect(messages, tools)
        return Usage()

    async def before_tool_call(self, call: ToolCall) -> ToolCall:
        """Note which call runs."""
        self._current = call.id
        return call

    async def after_run(self, round: Round) -> None:
        """Let a model that goes by rounds know that one has ended, once it is its turn."""
        if self.live and isinstance(self._then, Rail):
            await self._then.after_run(round)

    async def aclose(self) -> None:
        """Close the real model."""
        await self._then.aclose()


def open_resumed(
    workspace: Workspace,
    run_id: str,
    *,
    listeners: tuple[Listener, ...] = (),
    allowed: Permissions | None = None,
) -> tuple[Session, tuple[Event, ...]]:
    """Open the session of a run that was cut off, as far as its record tells.

    Args:
        allowed: what a human allows now; what the record says was allowed needs it again.

    Raises:
        Failure: usage_invalid, when the run has ended; record_invalid.
    """
    work = Work(workspace, run_id)
    if work.run.sha256(records.RECORD) is not None:
        raise Failure(
            Code.usage_invalid,
            f"The run '{run_id}' has ended, so there is nothing to go on with.",
            f"python app.py audit {run_id}",
        )
    events = records.read_events(work.run)
    with records.sound(work.run):
        session = _session(work, events, listeners, allowed or Permissions())
    return session, events


def _session(
    work: Work, events: Sequence[Event], listeners: tuple[Listener, ...], allowed: Permissions
) -> Session:
    started = next(iter(of_kind(events, "run.started")), None)
    if started is None:
        raise Failure(
            Code.record_invalid,
            f"The run '{work.run_id}' was cut off before it started.",
            "Start the task again.",
        )
    facts = started["data"]
    task = tasks.from_record(facts["task"])
    skills = _skills(work.workspace, facts.get("origin") or {}, events)
    progress = Progress()
    rebuild(work, progress, events)
    return Session(
        task=replace(task, permissions=again(task.permissions, allowed)),
        work=work,
        approvals=_approvals(facts["approvals"], events),
        skills=skills,
        selection=skills.select(task.text, task.skills),
        record=Record(work.run, listeners, after=len(events)),
        replaces=facts["replaces"],
        inputs=facts["inputs"],
        shipped=allowed.unsandboxed and facts["shipped_script"] is True,
        progress=progress,
        opening=tuple(facts["messages"]),
        origin=facts.get("origin") or {},
    )


def _skills(workspace: Workspace, origin: Mapping[str, Any], events: Sequence[Event]) -> Skills:
    """Read the folders that the run read, as often as it did."""
    roots = tuple(Path(root) for root in origin.get("skill_roots", ()))
    trusted = bool(origin.get("trust_skills"))
    skills = Skills(workspace.root / "skills", roots=roots, trusted=trusted)
    for _ in range(1 + len(of_kind(events, "skill.created"))):
        skills.scan()
    return skills


def _approvals(recorded: Mapping[str, Any], events: Sequence[Event]) -> Approvals:
    """Return the human's words, those spent already that the record says were."""
    approvals = approvals_of(recorded)
    for event in of_kind(events, "skill.created"):
        data = event["data"]
        approvals.spend(f"skill-proposal:{data['name']}", data["sha256"], cause="", remedy="")
    return approvals


def rebuild(work: Work, progress: Progress, events: Sequence[Event]) -> None:
    """Enter again what the record says was written and run."""
    for event in events:
        data = event["data"]
        if event["kind"] == "file.written":
            work.ledger.wrote(data["path"], data["sha256"])
        elif event["kind"] == "skill.activated":
            progress.activated[data["name"]] = data["sha256"]
        elif event["kind"] == "script.ran":
            run = script_run_from(data)
            progress.runs.append(run)
            for path, sha256 in data["left"].items():
                made = Made(sha256, "script", run.sha256, run.failure is None)
                work.ledger.enter(path, made)


def played(session: Session, events: Sequence[Event], then: Model) -> Playback:
    """Return the model of a resumed run."""
    rounds = rounds_of(of_kind(events, "model.replied", "round.ended"), session)
    turns = sum(len(turns) for turns in rounds)
    return Playback(ScriptedModel([[t for turns in rounds for t in turns]]), turns, then)


def answering(
    playback: Playback, session: Session, answers: Answers, begun: frozenset[Key]
) -> Callable[[Tool], Tool]:
    """Return a wrapper of tools that gives recorded answers instead of acting again.

    Args:
        begun: calls that were about to run when the run died, with nothing recorded of them.
    """

    def wrap(tool: Tool) -> Tool:
        async def handle(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
            result = answers.get(playback.current)
            if result is None:
                return await act(arguments)
            if not result.get("ok"):
                raise failure_of(result)
            return {key: value for key, value in result.items() if key != "ok"}

        async def act(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
            try:
                return await tool.handler(arguments)
            except Failure as failure:
                if playback.current not in begun:
                    raise
                return found_done(tool, session, arguments, failure)

        return replace(tool, handler=handle)

    return wrap


class QuietRecorder(Recorder):
    """A recorder that stays silent while what it would write is in the record already."""

    def __init__(
        self,
        record: Record,
        playback: Playback,
        *,
        begun: Set[Key],
        answered: Set[Key],
        rounds: int,
    ) -> None:
        super().__init__(record)
        self._rounds = rounds
        self._playback = playback
        self._begun = begun
        self._answered = answered
        self._new = False

    async def before_model_call(self, messages: Sequence[Message]) -> Sequence[str]:
        """Record a request that is really made."""
        self._new = self._playback.live
        return await super().before_model_call(messages) if self._new else ()

    async def after_model_call(self, reply: Reply) -> None:
        """Record a new turn."""
        if self._new:
            await super().after_model_call(reply)

    async def before_tool_call(self, call: ToolCall) -> ToolCall:
        """Record a call that was not about to run yet."""
        if (self._playback.turn, call.id) in self._begun:
            return call
        return await super().before_tool_call(call)

    async def after_tool_call(self, call: ToolCall, result: Mapping[str, Any]) -> None:
        """Record an answer that is not in the record yet."""
        if (self._playback.turn, call.id) not in self._answered:
            await super().after_tool_call(call, result)

    async def after_run(self, round: Round) -> None:
        """Record the end of a round that the record does not hold yet."""
        if self._rounds:
            self._rounds -= 1
        else:
            await super().after_run(round)
