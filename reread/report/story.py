"""The events of a run as a story: rounds, turns, calls with their answers, and where time went."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Event = Mapping[str, Any]


@dataclass(slots=True)
class Call:
    """One call and its answer.

    Attributes:
        about: the argument that says most: a path, a name.
        ok: `None` where the record has no answer.
        seconds: from the call to the answer.
        text: a long text argument, such as a script; shown as it is.
        arguments: the others, as JSON.
    """

    id: str
    name: str
    about: str
    arguments: str
    text: str
    started: float
    seconds: float = 0.0
    ok: bool | None = None
    code: str = ""
    cause: str = ""
    answer: str = ""
    stdout: str = ""
    stderr: str = ""


@dataclass(slots=True)
class Turn:
    """One turn of the model, or a step of the host, which is named as such."""

    number: int
    text: str
    seconds: float = 0.0
    tokens: int = 0
    usd: float = 0.0
    calls: list[Call] = field(default_factory=list)
    host: str = ""


@dataclass(slots=True)
class Round:
    """One pass of the loop, and what the gate read after it."""

    number: int
    turns: list[Turn] = field(default_factory=list)
    status: str = ""
    failure: Mapping[str, Any] | None = None
    gate: Mapping[str, Any] | None = None
    findings: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time: what went on from `start` to `end`, seconds from the start of the run."""

    lane: str
    start: float
    end: float
    label: str


@dataclass(slots=True)
class Story:
    """What a page tells of a run.

    Attributes:
        seconds: from the first event to the last, the pause before a resumption left out.
        resumed: how often the run was gone on with.
    """

    rounds: list[Round] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    scripts: list[Mapping[str, Any]] = field(default_factory=list)
    files_read: list[str] = field(default_factory=list)
    seconds: float = 0.0
    resumed: int = 0
    first: Mapping[str, Any] = field(default_factory=dict)


def tell(events: Iterable[Event]) -> Story:
    """Return the story of a run's events, as far as they go."""
    teller = _Teller()
    for event in events:
        teller.hear(event)
    return teller.story


class _Teller:
    def __init__(self) -> None:
        self.story = Story()
        self._base = 0.0
        self._now = 0.0
        self._asked = self._ended = self._preparing = -1.0
        self._turn = 0

    def hear(self, event: Event) -> None:
        kind, data = str(event.get("kind", "")), event.get("data") or {}
        self._tick(kind, float(event.get("seconds", 0.0)))
        act = getattr(self, "_" + kind.replace(".", "_"), None)
        if act is not None:
            act(data)

    def _tick(self, kind: str, seconds: float) -> None:
        """Keep one clock over resumptions, each of which starts counting anew."""
        if kind == "run.resumed":
            self._base = self._now - seconds
            self.story.resumed += 1
        self._now = self._base + seconds
        self.story.seconds = max(self.story.seconds, self._now)

    @property
    def _round(self) -> Round:
        rounds = self.story.rounds
        if not rounds or rounds[-1].status:
            rounds.append(Round(len(rounds) + 1))
        return rounds[-1]

    def _run_started(self, data: Event) -> None:
        self.story.first = data

    def _model_asked(self, data: Event) -> None:
        self._asked = self._now

    def _model_replied(self, data: Event) -> None:
        self._turn += 1
        usage = data.get("usage") or {}
        tokens = int(usage.get("input_tokens", 0)) + int(usage.get("output_tokens", 0))
        started = self._asked if self._asked >= 0 else self._now
        turn = Turn(self._turn, str(data.get("text") or ""), self._now - started, tokens)
        turn.usd = float(usage.get("usd", 0.0))
        turn.calls = [self._call(call) for call in data.get("calls") or ()]
        self._round.turns.append(turn)
        self._span("model", started, f"turn {self._turn}")

    def _call(self, call: Event) -> Call:
        given = call.get("arguments") or {}
        long = next((k for k in ("content", "code") if isinstance(given.get(k), str)), "")
        about = next((str(given[k]) for k in ("path", "name", "query") if k in given), "")
        rest = {key: value for key, value in given.items() if key != long}
        shown = as_text(rest) if rest and rest != {"path": about} else ""
        text = str(given[long]) if long else ""
        return Call(str(call.get("id")), str(call.get("name")), about, shown, text, self._now)

    def _tool_called(self, data: Event) -> None:
        call = self._find(data)
        if call:
            call.started = self._now

    def _tool_answered(self, data: Event) -> None:
        call = self._find(data)
        if call is None:
            return
        result = data.get("result") or {}
        call.seconds = self._now - call.started
        call.ok = bool(result.get("ok"))
        call.code, call.cause = str(result.get("code", "")), str(result.get("cause", ""))
        call.stdout, call.stderr = str(result.get("stdout", "")), str(result.get("stderr", ""))
        apart = ("stdout", "stderr", "ok", "code", "cause")
        call.answer = as_text({k: v for k, v in result.items() if k not in apart})
        self._span("tools", call.started, f"{call.name} {call.about}")

    def _find(self, data: Event) -> Call | None:
        """Return the latest unanswered call with an id; some services give an id twice."""
        for round in reversed(self.story.rounds):
            for turn in reversed(round.turns):
                for call in turn.calls:
                    if call.id == data.get("id") and call.ok is None:
                        return call
        return None

    def _dependencies(self, data: Event) -> None:
        self._preparing = self._now

    def _environment(self, data: Event) -> None:
        if self._preparing >= 0:
            self._span("environment", self._preparing, "uv environment")

    def _script_ran(self, data: Event) -> None:
        self.story.scripts.append(data)
        seconds = float(data.get("seconds", 0.0))
        self._span("script", self._now - seconds, str(data.get("path", "")))

    def _file_read(self, data: Event) -> None:
        self.story.files_read.append(str(data.get("path", "")))

    def _host_step(self, data: Event) -> None:
        what = f"{data.get('host')} {data.get('path')}"
        self._round.turns.append(Turn(self._turn, "", host=what))

    def _round_ended(self, data: Event) -> None:
        self._ended = self._now
        round = self._round
        round.status, round.failure = str(data.get("status") or "ended"), data.get("failure")

    def _gate_read(self, data: Event) -> None:
        if not self.story.rounds or not self.story.rounds[-1].status:
            return  # a resumed run reads once more what an earlier round had left
        round = self.story.rounds[-1]
        round.gate = data
        read = (*(data.get("artifacts") or ()), *(data.get("scripts") or ()))
        round.findings = tuple(
            check["problem"] | {"check": check.get("name", ""), "path": evidence.get("path", "")}
            for evidence in read
            for check in evidence.get("checks") or ()
            if check.get("state") == "failed" and check.get("problem")
        )
        self._span("gate", max(self._ended, 0.0), f"gate after round {round.number}")

    def _span(self, lane: str, start: float, label: str) -> None:
        self.story.spans.append(Span(lane, max(start, 0.0), self._now, label))


def as_text(value: Any) -> str:
    """Return a value as JSON that people read."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str) if value else ""


def totals(spans: Sequence[Span], lanes: Sequence[str]) -> dict[str, float]:
    """Return the seconds of each lane; a script is a part of the tool that ran it."""
    return {lane: sum(s.end - s.start for s in spans if s.lane == lane) for lane in lanes}
