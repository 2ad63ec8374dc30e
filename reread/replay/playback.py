"""Recorded turns as a model: what was answered is never asked again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent_runtime import Failure, Reply, ScriptStep, ToolCall, Usage
from reread.files import ConfinedFolder, check_name
from reread.session import Session

Event = Mapping[str, Any]


def reply_of(event: Event) -> Reply:
    """Rebuild a turn from its `model.replied` event."""
    data = event["data"]
    return Reply(
        text=data["text"],
        calls=tuple(_call(call) for call in data["calls"]),
        message=dict(data["message"]),
        usage=Usage(**data["usage"]),
        nudge=data.get("nudge", ""),
    )


def rounds_of(events: Iterable[Event], session: Session) -> list[list[ScriptStep]]:
    """Return the turns of each round, the host's own steps among them."""
    rounds: list[list[ScriptStep]] = [[]]
    for event in events:
        if event["kind"] == "model.replied":
            rounds[-1].append(reply_of(event))
        elif event["kind"] == "host.step":
            rounds[-1].append(_step(session, event["data"]))
        elif event["kind"] == "round.ended":
            rounds.append([])
    return rounds


def failure_of(result: Mapping[str, Any]) -> Failure:
    """Rebuild the failure that a recorded answer tells of."""
    details = {k: v for k, v in result.items() if k not in ("ok", "code", "cause", "remedy")}
    return Failure(
        str(result.get("code", "tool_failed")),
        str(result.get("cause", "")),
        str(result.get("remedy", "")),
        details,
    )


def of_kind(events: Sequence[Event], *kinds: str) -> list[Event]:
    """Return the events of some kinds, in order."""
    return [event for event in events if event["kind"] in kinds]


def _call(value: Mapping[str, Any]) -> ToolCall:
    fault = failure_of(value["fault"]) if value.get("fault") else None
    return ToolCall(
        value["id"], value["name"], dict(value["arguments"]), fault, bool(value.get("repaired"))
    )


def _step(session: Session, data: Mapping[str, Any]) -> Any:
    async def act() -> None:
        session.record.event("host.step", data)
        _change(session.work.folder, data)

    return act


def _change(folder: ConfinedFolder, step: Mapping[str, Any]) -> None:
    """Take a step of the host again, inside of the folder: a record can name any path."""
    path, kind = step["path"], step["host"]
    parent = "/".join(check_name(path)[:-1])
    if parent:
        folder.make_folder(parent)
    if kind == "delete":
        folder.remove(path)
    elif kind == "symlink":
        if any(entry.path == path for entry in folder.walk(parent)):
            folder.remove(path)
        (folder.root / path).symlink_to(step["target"])
    else:
        text = str(step["text"]).encode()
        folder.write(path, folder.read(path) + text if kind == "append" else text)
