"""Fixed conversations: what a model would have said, and the host's own steps in between.

A fixture is one JSON file. It names its task, states the status and exit code that are right, and
holds the turns of each round. A step with `host` is not the model's: it is what somebody else does
meanwhile (a file changed, an approval given), and is named as such.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_runtime import Failure, Reply, ScriptedModel, ScriptStep, scripted
from reread.approvals import Approvals
from reread.files import ConfinedFolder
from reread.session import Session
from reread.values import Code
from reread.workspace import Workspace

Step = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fixture:
    """A fixed conversation.

    Attributes:
        samples: the folder that holds `fixtures/`, `tasks/` and `scripts/`.
        before: host steps on the user's folder before the run starts.
        rounds: the turns of each round, host steps among them.
        options: flags that belong to it.
        expect: `status`, `exit_code` and `codes` that are right.
        shipped: it came with the program, and so did its scripts; others need a fence.
    """

    name: str
    about: str
    samples: Path
    task: Path
    before: tuple[Step, ...]
    rounds: tuple[tuple[Step, ...], ...]
    options: tuple[str, ...]
    expect: Mapping[str, Any]
    shipped: bool


def names(samples: Path) -> tuple[str, ...]:
    """Return the names of the fixtures, sorted."""
    return tuple(sorted(path.stem for path in (samples / "fixtures").glob("*.json")))


def load(name: str, samples: Path) -> Fixture:
    """Read a fixture by its name, or by the path of its file, which ends in .json.

    A file elsewhere lies in a folder `fixtures/`, beside the `tasks/` and `scripts/` that it names.

    Raises:
        Failure: fixture_unknown, fixture_invalid.
    """
    shipped = not name.endswith(".json")
    if not shipped:
        file = Path(name).resolve()
        name, samples = str(file), file.parent.parent
    else:
        file = samples / "fixtures" / f"{name}.json"
    if not file.is_file():
        raise Failure(
            Code.fixture_unknown,
            f"There is no fixture '{name}'.",
            f"Use one of: {', '.join(names(samples))}; or the path of a .json file.",
        )
    value = _value(file)
    return Fixture(
        name=name,
        about=value.get("about", ""),
        samples=samples,
        task=samples / value["task"],
        before=tuple(value.get("before", ())),
        rounds=tuple(tuple(turns) for turns in value["rounds"]),
        options=tuple(value.get("options", ())),
        expect=value.get("expect", {}),
        shipped=shipped,
    )


def _value(file: Path) -> dict[str, Any]:
    """Read the file of a fixture and hold its outline against what a fixture is."""
    try:
        value = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise _invalid(file, f"it cannot be read: {str(error)[:200]}") from error
    if not isinstance(value, dict) or not isinstance(value.get("task"), str):
        raise _invalid(file, "it names no task")
    rounds = value.get("rounds")
    if not isinstance(rounds, list) or not all(isinstance(turns, list) for turns in rounds):
        raise _invalid(file, "its rounds are no lists of turns")
    return value


def _invalid(file: Path, why: str) -> Failure:
    return Failure(
        Code.fixture_invalid,
        f"'{file}' is no fixture: {why}.",
        "See sample-data/fixtures/success.json for what one looks like.",
    )


def prepare(fixture: Fixture, workspace: Workspace, approvals: Approvals) -> None:
    """Take the host's steps that come before the run."""
    for step in fixture.before:
        if step["host"] == "approve_overwrite":
            data = workspace.folder.read(step["path"])
            approvals.grant(f"overwrite:{step['path']}", hashlib.sha256(data).hexdigest())
        elif step["host"] == "copy":
            _bring(workspace.folder, step["path"], (fixture.samples / step["from"]).read_bytes())
        else:
            change(workspace.root, _filled(step, fixture.samples))


def _bring(folder: ConfinedFolder, path: str, data: bytes) -> None:
    """Put a file where there is none; what is the user's stays."""
    if folder.sha256(path) is None:
        folder.write(path, data, expect=None)


def model(
    fixture: Fixture, session: Session, *, after: Sequence[Mapping[str, Any]] = ()
) -> ScriptedModel:
    """Return the model that says what the fixture holds.

    Args:
        after: events of a run that was cut off; what they hold is not said or done again.
    """
    rounds = _built(fixture, session)
    ended, replies, steps = _heard(after)
    rest = rounds[ended:] or [[]]
    if replies or steps:
        rest[0] = _without(rest[0], replies, steps)
    elif ended:
        rest.insert(0, [])  # the end of the round before it is still to come for this model
    return ScriptedModel(rest)


def _heard(events: Sequence[Mapping[str, Any]]) -> tuple[int, int, int]:
    """Count the rounds that have ended, and the replies and host steps of the one that has not."""
    ended = replies = steps = 0
    for event in events:
        if event["kind"] == "round.ended":
            ended, replies, steps = ended + 1, 0, 0
        replies += event["kind"] == "model.replied"
        steps += event["kind"] == "host.step"
    return ended, replies, steps


def _without(turns: Sequence[ScriptStep], replies: int, steps: int) -> list[ScriptStep]:
    """Leave out what was heard: the first replies, and the first host steps."""
    left: list[ScriptStep] = []
    for turn in turns:
        if isinstance(turn, Reply) and replies:
            replies -= 1
        elif not isinstance(turn, Reply) and steps:
            steps -= 1
        else:
            left.append(turn)
    return left


def _built(fixture: Fixture, session: Session) -> list[list[ScriptStep]]:
    turns = 0
    rounds: list[list[ScriptStep]] = []
    for steps in fixture.rounds:
        built: list[ScriptStep] = []
        for step in steps:
            if "host" in step:
                built.append(_host(fixture, session, step))
            else:
                turns += 1
                built.append(_reply(fixture, step, turns))
        rounds.append(built)
    return rounds


def _reply(fixture: Fixture, step: Step, turn: int) -> Reply:
    calls = [
        (call["tool"], _filled(call.get("arguments", {}), fixture.samples))
        for call in step.get("calls", ())
    ]
    return scripted(step.get("say", ""), *calls, turn=turn)


def _filled(value: Any, samples: Path) -> Any:
    """Replace {"$file": …} by that file's text and {"$json": …} by the value as JSON text."""
    if isinstance(value, Mapping):
        if set(value) == {"$file"}:
            return (samples / value["$file"]).read_text("utf-8")
        if set(value) == {"$json"}:
            return json.dumps(value["$json"], ensure_ascii=False, indent=2)
        return {key: _filled(item, samples) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_filled(item, samples) for item in value]
    return value


def _host(fixture: Fixture, session: Session, step: Step) -> Callable[[], Awaitable[None]]:
    async def act() -> None:
        filled = _filled(step, fixture.samples)
        session.record.event("host.step", filled)
        change(session.work.folder.root, filled)

    return act


def change(root: Path, step: Step) -> None:
    """Change a file as somebody outside the program would, past every guard of it."""
    path = root / step["path"]
    kind = step["host"]
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "write":
        path.write_text(str(step["text"]), encoding="utf-8")
    elif kind == "append":
        with path.open("a", encoding="utf-8") as stream:
            stream.write(str(step["text"]))
    elif kind == "delete":
        path.unlink()
    elif kind == "symlink":
        path.unlink(missing_ok=True)
        path.symlink_to(step["target"])
    else:
        raise ValueError(f"a fixture knows no host step '{kind}'")
