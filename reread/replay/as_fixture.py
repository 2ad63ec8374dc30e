"""A recorded run as a fixture: the turns of its model, its task, and the files that it was given.

Proves: nothing by itself; replayed with `--fixture`, the same turns meet the same inputs, and the
gate judges anew. What a service said stays fixed; a script whose output depends on the time or on
chance may still leave other bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from agent_runtime import Failure
from reread import records
from reread.files import ConfinedFolder
from reread.replay.playback import Event
from reread.skills import read_proposal
from reread.values import Code
from reread.workspace import Workspace

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
INVALID = {"$invalid": "the arguments of this call could not be decoded"}
"""No schema takes it, so that the call fails as it did."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A fixture that was written.

    Attributes:
        path: what `--fixture` takes.
        files: how many files are in it.
    """

    path: Path
    files: int


def save(workspace: Workspace, run: ConfinedFolder, name: str, folder: Path) -> Saved:
    """Write fixtures/NAME.json, tasks/NAME.yaml and files/NAME/… into a folder.

    Raises:
        Failure: record_invalid; usage_invalid, for a name that cannot be one, or that is taken;
            evidence_changed, when a file that the run was given is not what it was; write_failed.
    """
    record, events = records.read_record(run), records.read_events(run)
    target = _target(folder, name)
    saver = _Saver(workspace, run, name, ConfinedFolder(_made(folder)))
    before = [*saver.given(record), *saver.approved(record)]
    fixture = {
        "about": f"recorded run {record['run_id']}",
        "task": f"tasks/{name}.yaml",
        "expect": _expected(record["outcome"]),
        "options": list(saver.options(record)),
        "before": before,
        "rounds": saver.rounds(events),
    }
    saver.write(f"tasks/{name}.yaml", _yaml(_task(record["task"])))
    saver.write(f"fixtures/{name}.json", json.dumps(fixture, ensure_ascii=False, indent=2) + "\n")
    return Saved(target, saver.written)


def _target(folder: Path, name: str) -> Path:
    if not NAME.fullmatch(name):
        raise Failure(
            Code.usage_invalid,
            f"'{name}' cannot be the name of a fixture.",
            "Use small letters, digits and hyphens: --as-fixture monthly-summary",
        )
    target = folder / "fixtures" / f"{name}.json"
    if target.exists():
        raise Failure(
            Code.usage_invalid,
            f"There is a fixture '{target}' already.",
            "Name another one, or remove it first.",
        )
    return target


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(
            Code.write_failed,
            f"'{folder}' cannot be made: {error.strerror}.",
            "Name a folder that you can write to with --to DIR.",
        ) from error
    return folder


class _Saver:
    """Writes the files of one fixture and counts them."""

    def __init__(
        self, workspace: Workspace, run: ConfinedFolder, name: str, target: ConfinedFolder
    ) -> None:
        self._workspace = workspace.folder
        self._run = run
        self._name = name
        self._target = target
        self.written = 0

    def write(self, path: str, data: str | bytes) -> str:
        """Write one file and return its path."""
        raw = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
        self._target.write(path, raw)
        self.written += 1
        return path

    def given(self, record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield the steps that bring what the run found: inputs, skills, files it replaced."""
        for path, sha256 in record["inputs"].items():
            if path not in record["replaces"]:
                yield self._copy(self._workspace, path, path, sha256)
        for path, sha256 in record["replaces"].items():
            replaced = f"replaced/{path}"
            kept = self._run.sha256(replaced) is not None
            folder, source = (self._run, replaced) if kept else (self._workspace, path)
            yield self._copy(folder, source, path, sha256)
        for name in record["skills"]["selected"]:
            if self._workspace.sha256(f"skills/{name}/SKILL.md") is not None:
                for path, sha256 in self._workspace.digests(f"skills/{name}").items():
                    yield self._copy(self._workspace, path, path, sha256)

    def _copy(
        self, folder: ConfinedFolder, source: str, path: str, sha256: str
    ) -> Mapping[str, Any]:
        if folder.sha256(source) != sha256:
            raise Failure(
                Code.evidence_changed,
                f"'{path}' is not what the run was given any more.",
                "Put it back as it was, or record another run.",
            )
        kept = self.write(f"files/{self._name}/{path}", folder.read(source))
        return {"host": "copy", "path": path, "from": kept}

    def approved(self, record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield the steps that give a person's word again, for the bytes that are copied in."""
        for path in record["replaces"]:
            yield {"host": "approve_overwrite", "path": path}

    def options(self, record: Mapping[str, Any]) -> Iterator[str]:
        """Yield the flags that approve the proposals which the run had leave for."""
        words = (*record["approvals"]["given"], *record["approvals"]["spent"])
        wanted = {w["sha256"] for w in words if w["subject"].startswith("skill-proposal:")}
        for path in record["inputs"] if wanted else ():
            try:
                found = read_proposal(self._workspace, path).sha256
            except Failure:
                continue  # another kind of file
            if found in wanted:
                yield from ("--approve-skill-proposal", path)

    def rounds(self, events: Sequence[Event]) -> list[list[Mapping[str, Any]]]:
        """Return the turns of each round as a fixture holds them."""
        rounds: list[list[Mapping[str, Any]]] = [[]]
        for event in events:
            data = event["data"]
            if event["kind"] == "host.step":
                rounds[-1].append(dict(data))
            elif event["kind"] == "round.ended":
                rounds.append([])
            elif event["kind"] == "model.replied" and (data["calls"] or not data.get("nudge")):
                rounds[-1].append(self._turn(data))
        return [turns for turns in rounds if turns]

    def _turn(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        calls = [
            {"tool": call["name"], "arguments": self._arguments(call)} for call in data["calls"]
        ]
        return {"say": data["text"], **({"calls": calls} if calls else {})}

    def _arguments(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments; a text of several lines becomes a file that people can read."""
        if call.get("fault") or call.get("repaired"):
            return INVALID
        return {key: self._value(call, key, value) for key, value in call["arguments"].items()}

    def _value(self, call: Mapping[str, Any], key: str, value: Any) -> Any:
        if not isinstance(value, str) or "\n" not in value or not _encodes(value):
            return value
        suffix = PurePosixPath(str(call["arguments"].get("path", ""))).suffix
        if not re.fullmatch(r"\.[a-z0-9]{1,8}", suffix):
            suffix = ".py" if key == "code" else ".txt"
        place = f"files/{self._name}/turns/{self.written + 1:03}{suffix}"
        return {"$file": self.write(place, value)}


def _encodes(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def _expected(outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    reason = str(outcome["reason"])
    complete = outcome["status"] == "complete"
    return {
        "status": outcome["status"],
        "exit_code": 0 if complete else 1,
        "codes": [] if complete else [reason],
    }


def _task(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recorded task as a task file says it."""
    permissions = value["permissions"]
    made = {
        **{key: value[key] for key in ("name", "text", "topic", "script", "inputs", "repairs")},
        "artifacts": [{k: v for k, v in item.items() if v} for item in value["artifacts"]],
        "skills": value["skills"],
        "limits": value["limits"],
        "script_limits": value["script_limits"],
        "network": permissions["network"],
        "allow_version_specifiers": permissions["version_specifiers"],
        "allow_builds": permissions["builds"],
    }
    return {key: item for key, item in made.items() if item is not None and item != ""}


def _yaml(value: Mapping[str, Any]) -> str:
    import yaml  # needed only here, and 20 ms

    return str(yaml.safe_dump(json.loads(json.dumps(value)), allow_unicode=True, sort_keys=False))
