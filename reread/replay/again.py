"""Runs the tools and scripts of a record again, against its recorded model turns.

Proves: on this machine, now, the same turns lead to the same calls, exit codes and files; or where
they first do not. It works on a copy: nothing of the recorded workspace is touched.
"""

from __future__ import annotations

import difflib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from agent_runtime import ScriptedModel
from reread import records, tasks
from reread.approvals import Approvals
from reread.files import ConfinedFolder
from reread.replay.playback import Event, of_kind, rounds_of
from reread.run import execute
from reread.session import open_session
from reread.skills import Skills
from reread.values import Outcome, Permissions
from reread.workspace import Workspace

COPIED = ("inputs", "skills", "outputs", "drafts")
COMPARED = ("tool.called", "tool.answered", "script.ran", "gate.read", "round.ended")


@dataclass(frozen=True, slots=True)
class Replay:
    """How a replay went.

    Attributes:
        steps: how many steps were the same.
        divergence: unified diff of the first step that was not; '' where none diverged.
    """

    run_id: str
    outcome: Outcome
    steps: int
    divergence: str

    @property
    def ok(self) -> bool:
        """Nothing diverged."""
        return not self.divergence


async def replay(
    workspace: Workspace, run: ConfinedFolder, scratch: Path, *, allowed: Permissions | None = None
) -> Replay:
    """Run a record again in an empty folder.

    Args:
        allowed: what a human allows now. A record is no human: what it says was allowed then
            holds only where it is allowed again.

    Raises:
        Failure: record_invalid, and whatever keeps the run from starting here.
    """
    record = records.read_record(run)
    recorded = records.read_events(run)
    allowed = allowed or Permissions()
    seen: list[Event] = []
    with records.sound(run):
        task = tasks.from_record(record["task"])
        approvals = approvals_of(record["approvals"])
        copy = _copy(workspace, run, record, scratch)
    session = open_session(
        replace(task, permissions=again(task.permissions, allowed)),
        copy,
        Skills(copy.root / "skills"),
        approvals,
        listeners=(lambda kind, data: seen.append({"kind": kind, "data": data}),),
        shipped=allowed.unsandboxed and record["shipped_script"] is True,
    )
    with records.sound(run):
        model = ScriptedModel(rounds_of(recorded, session))
    outcome = await execute(model, session, rails=(model,))
    same, divergence = _compare(recorded, seen)
    return Replay(record["run_id"], outcome, same, divergence)


def again(recorded: Permissions, allowed: Permissions) -> Permissions:
    """Return the permissions of a record, without what opens the fence and is not allowed now."""
    return replace(
        recorded,
        network=recorded.network and allowed.network,
        builds=recorded.builds and allowed.builds,
        unsandboxed=recorded.unsandboxed and allowed.unsandboxed,
    )


def approvals_of(recorded: Mapping[str, Any]) -> Approvals:
    """Return the human's words of a record, unspent again; each still bound to its digest."""
    approvals = Approvals()
    for word in (*recorded["given"], *recorded["spent"]):
        approvals.grant(word["subject"], word["sha256"], at=word["granted_at"])
    return approvals


def _copy(
    workspace: Workspace, run: ConfinedFolder, record: Mapping[str, Any], scratch: Path
) -> Workspace:
    """Copy the user's folders as they were before the run published."""
    for name in COPIED:
        shutil.copytree(workspace.root / name, scratch / name, symlinks=True)
    folder = ConfinedFolder(scratch)  # a record can name any path; this one keeps it inside
    for path in record["outcome"]["published"]:
        if folder.sha256(path) is not None:
            folder.remove(path)
        if run.sha256(f"replaced/{path}") is not None:
            folder.write(path, run.read(f"replaced/{path}"))
    for word in record["approvals"]["spent"]:
        kind, _, name = word["subject"].partition(":")
        if kind == "skill-proposal" and name in folder_names(scratch / "skills"):
            folder.remove_tree(f"skills/{name}")
    return Workspace(scratch)


def folder_names(folder: Path) -> set[str]:
    """Return the names of the folders in a folder, links left out."""
    return {path.name for path in folder.iterdir() if path.is_dir() and not path.is_symlink()}


def _compare(recorded: Sequence[Event], seen: Sequence[Event]) -> tuple[int, str]:
    """Return how many steps are the same, and the diff of the first that is not."""
    then, now = (list(_facts(_once(of_kind(events, *COMPARED)))) for events in (recorded, seen))
    nothing: Mapping[str, Any] = {}
    for number, (old, new) in enumerate(zip_longest(then, now, fillvalue=nothing)):
        if old != new:
            return number, _diff(old, new, number + 1)
    return len(then), ""


def _once(events: Iterable[Event]) -> Iterator[Event]:
    """Leave out what a resumed run read a second time: a gate with no end of a round before it."""
    ended = False
    for event in events:
        if event["kind"] != "gate.read" or ended:
            yield event
        ended = event["kind"] == "round.ended" or (ended and event["kind"] != "gate.read")


def _facts(events: Iterable[Event]) -> Iterator[Mapping[str, Any]]:
    """Yield what must be the same; times, folders and printed text may differ."""
    for event in events:
        data = event["data"]
        if event["kind"] == "tool.called":
            yield {"call": data["name"], "arguments": data["arguments"]}
        elif event["kind"] == "tool.answered":
            result = data["result"]
            kept = {key: result[key] for key in ("ok", "code", "exit_code") if key in result}
            yield {"answer": data["name"], **kept}
        elif event["kind"] == "script.ran":
            kept = {key: data[key] for key in ("sha256", "exit_code", "failure", "left")}
            yield {"script": kept}
        elif event["kind"] == "gate.read":
            yield {"gate": {e["path"]: [e["ok"], e["sha256"]] for e in data["artifacts"]}}
        else:
            yield {"round": data["status"]}


def _diff(old: Mapping[str, Any], new: Mapping[str, Any], number: int) -> str:
    names = (f"recorded, step {number}", f"now, step {number}")
    return "\n".join(difflib.unified_diff(_lines(old), _lines(new), *names, lineterm=""))


def _lines(value: Mapping[str, Any]) -> list[str]:
    text = json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True, default=str)
    return text.splitlines()
