"""The items of a batch, fixed when it starts.

A batch is named by what it is made of: the tasks, the inputs and skills by their digests, and who
answers. The same command names the same batch again, which is how a second start finds what is done
already; a changed task or input makes another batch.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from agent_runtime import Failure
from reread import documents, fixtures, records, summary, tasks
from reread.batch.store import Store
from reread.files import ConfinedFolder
from reread.values import Code, Task

SCHEMA = "reread.batch/1"
PLAN = "plan.json"
PLACEHOLDER = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")


@dataclass(frozen=True, slots=True)
class Item:
    """One task of a batch.

    Attributes:
        number: its place, from 1.
        inputs: path in the workspace → digest; what the task names, else all of inputs/.
        fixture: name of the fixed conversation that answers; '' asks the model service.
    """

    number: int
    name: str
    task: Mapping[str, Any]
    inputs: Mapping[str, str]
    fixture: str = ""

    @property
    def folder(self) -> str:
        """Its folder below batches/<id>/."""
        return f"items/{self.number:05d}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole batch.

    Attributes:
        skills: path below skills/ → digest; every item gets them.
        options: what else decides how an item is done: `api`, `unsandboxed`, `require_sandbox`, and
            `fixtures` with the digests of the fixed conversations.
    """

    items: tuple[Item, ...]
    skills: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """sha256 of everything in it."""
        return records.digest(as_json(self))

    @property
    def id(self) -> str:
        """The name of the batch."""
        return f"b{self.digest[:12]}"


@dataclass(frozen=True, slots=True)
class Source:
    """One task as it was found, before its inputs are looked at."""

    name: str
    task: Task
    fixture: str = ""


def sources(what: str, *, fixture: str, samples: Path) -> tuple[Source, ...]:
    """Read the tasks that a list, a folder or a pattern names.

    Raises:
        Failure: usage_invalid, where there is none; task_invalid.
    """
    path = Path(what)
    if path.suffix == ".jsonl" and path.is_file():
        return tuple(_lines(path, fixture, samples))
    if path.is_dir():
        files = sorted([*path.glob("*.yaml"), *path.glob("*.yml")])
    else:
        base, pattern = (
            (Path(path.anchor), what[len(path.anchor) :]) if path.anchor else (Path(), what)
        )
        files = sorted(found for found in base.glob(pattern) if found.is_file())
    if not files:
        raise Failure(
            Code.usage_invalid,
            f"'{what}' names no task file.",
            "Name a .jsonl list, a folder with .yaml task files, or a quoted pattern.",
        )
    return tuple(Source(file.stem, tasks.read_task(file), fixture) for file in files)


def from_template(template: Path, table: Path, *, fixture: str) -> tuple[Source, ...]:
    """Fill a task file with each row of a table; {{column}} stands for a value.

    Raises:
        Failure: usage_invalid, for a table without rows; task_invalid, for an unknown column.
    """
    text = template.read_bytes().decode("utf-8-sig")
    document = documents.read(text, str(template))
    made = []
    for number, row in enumerate(_rows(table), 1):
        value = _filled(document.value, row, f"{table}, row {number}")
        made.append(
            Source(
                f"{template.stem}-{number:05d}",
                tasks.task_from(replace(document, value=value)),
                fixture,
            )
        )
    if not made:
        raise Failure(
            Code.usage_invalid,
            f"The table '{table}' has no rows.",
            "Give it one row for each task.",
        )
    return tuple(made)


def build(
    found: Sequence[Source],
    workspace: Path,
    store: Store,
    *,
    skills: Path,
    samples: Path,
    options: Mapping[str, Any],
) -> Plan:
    """Put the inputs and skills into the store and fix the plan.

    Raises:
        Failure: path_not_found, for an input that is missing.
    """
    folder = ConfinedFolder(workspace)
    kept: dict[str, str] = {}
    items = []
    for number, source in enumerate(found, 1):
        paths = _needed(source.task, folder)
        inputs = {path: _keep(folder, path, store, kept) for path in paths}
        items.append(Item(number, source.name, summary.task(source.task), inputs, source.fixture))
    place, known = ConfinedFolder(skills), dict[str, str]()
    given = {
        entry.path: _keep(place, entry.path, store, known)
        for entry in place.walk()
        if entry.kind == "file" and "__pycache__" not in entry.path
    }
    played = {item.fixture for item in items if item.fixture}
    answers = {
        name: hashlib.sha256((samples / "fixtures" / f"{name}.json").read_bytes()).hexdigest()
        for name in sorted(played)
    }
    return Plan(tuple(items), given, {**options, "fixtures": answers})


def save(plan: Plan, folder: Path) -> None:
    """Write the plan into the batch's folder, once."""
    folder.mkdir(parents=True, exist_ok=True)
    ConfinedFolder(folder).write(PLAN, records.as_line({**as_json(plan), "digest": plan.digest}))


def load(folder: Path) -> Plan:
    """Read the plan of a batch.

    Raises:
        Failure: batch_unknown, where there is none; record_invalid, where it was changed.
    """
    try:
        value = json.loads((folder / PLAN).read_bytes())
        plan = from_json(value)
    except FileNotFoundError:
        raise unknown(folder) from None
    except (ValueError, KeyError, TypeError) as error:
        raise _changed(folder, f"it is not a plan: {error}") from error
    if value.get("digest") != plan.digest:
        raise _changed(folder, "it does not have the digest that it was written with")
    return plan


def unknown(folder: Path) -> Failure:
    """Return the failure for a batch that is not there."""
    known = sorted(path.parent.name for path in folder.parent.glob(f"*/{PLAN}"))
    return Failure(
        Code.batch_unknown,
        f"There is no batch '{folder.name}' in '{folder.parent}'.",
        f"Use one of: {', '.join(known[-5:]) or 'none yet'}.",
    )


def as_json(plan: Plan) -> dict[str, Any]:
    """Return the plan as JSON values."""
    return {
        "schema": SCHEMA,
        "items": [item_json(item) for item in plan.items],
        "skills": dict(plan.skills),
        "options": dict(plan.options),
    }


def item_json(item: Item) -> dict[str, Any]:
    """Return one item as JSON values."""
    return json.loads(json.dumps(asdict(item)))  # type: ignore[no-any-return]


def from_json(value: Mapping[str, Any]) -> Plan:
    """Make a plan again."""
    items = tuple(Item(**item) for item in value["items"])
    return Plan(items, value["skills"], value["options"])


def _lines(path: Path, fixture: str, samples: Path) -> Iterator[Source]:
    """Read a list: each line names a task file, holds a task, or names a fixture."""
    for number, line in enumerate(path.read_text("utf-8-sig").splitlines(), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        value = _line(line, where)
        played = str(value.get("fixture", fixture))
        task = value.get("task")
        if isinstance(task, str):
            read = tasks.read_task(path.parent / task)
        elif isinstance(task, Mapping):
            read = tasks.task_from(documents.read(json.dumps(task), where))
        elif played:
            read = tasks.read_task(fixtures.load(played, samples).task)
        else:
            raise _no_task(where, line)
        yield Source(str(value.get("name", read.name or f"line-{number}")), read, played)


def _line(line: str, where: str) -> Mapping[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise Failure(
            Code.task_invalid, f"{where} is not JSON: {error}.", "Write one object on each line."
        ) from error
    if not isinstance(value, Mapping) or set(value) - {"task", "fixture", "name"}:
        raise _no_task(where, line)
    return value


def _no_task(where: str, line: str) -> Failure:
    return Failure(
        Code.task_invalid,
        f"{where} holds no task: {line[:120]}",
        'Write {"task": "FILE.yaml"} or {"task": {…}}; beside it only "name" and "fixture".',
    )


def _rows(table: Path) -> Iterator[Mapping[str, Any]]:
    text = table.read_text("utf-8-sig")
    if table.suffix == ".jsonl":
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                row = _parsed(line, f"{table}, line {number}")
                yield row
    else:
        yield from csv.DictReader(io.StringIO(text, newline=""))


def _parsed(line: str, where: str) -> Mapping[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise Failure(
            Code.task_invalid, f"{where} is not JSON: {error}.", "Write one object on each line."
        ) from error
    if not isinstance(value, Mapping):
        raise Failure(Code.task_invalid, f"{where} is no object.", "Write one object on each line.")
    return value


def _filled(value: Any, row: Mapping[str, Any], where: str) -> Any:
    """Put the values of a row into every text of a document, never into its structure."""
    if isinstance(value, str):
        whole = PLACEHOLDER.fullmatch(value)
        if whole and not isinstance(row.get(whole[1], ""), str):
            return row[whole[1]]
        return PLACEHOLDER.sub(lambda found: str(_value(row, found[1], where)), value)
    if isinstance(value, Mapping):
        return {key: _filled(item, row, where) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, row, where) for item in value]
    return value


def _value(row: Mapping[str, Any], name: str, where: str) -> Any:
    if row.get(name) is None:
        raise Failure(
            Code.task_invalid,
            f"{where} has no value for {{{{{name}}}}}.",
            f"Columns there: {', '.join(map(str, row))}.",
        )
    return row[name]


def _needed(task: Task, folder: ConfinedFolder) -> list[str]:
    """Return what goes along with a task."""
    named = [*task.inputs, *(a.baseline for a in task.artifacts if a.baseline)]
    if task.inputs:
        return sorted(set(named))
    try:
        everything = list(folder.digests("inputs"))
    except Failure:
        everything = []  # no inputs/ folder: nothing to take along
    return sorted({*named, *everything})


def _keep(folder: ConfinedFolder, path: str, store: Store, kept: dict[str, str]) -> str:
    """Put a file into the store and return its digest."""
    if path not in kept:
        sha256 = folder.sha256(path)
        if sha256 is None:
            raise Failure(
                Code.path_not_found,
                f"A task needs '{path}', and it is not in '{folder.root}'.",
                "Put the file there, or name its workspace with --workspace DIR.",
            )
        with folder.open(path) as stream:
            store.put_stream(stream, sha256)
        kept[path] = sha256
    return kept[path]


def _changed(folder: Path, why: str) -> Failure:
    return Failure(
        Code.record_invalid,
        f"'{folder / PLAN}' is not the plan of this batch: {why}.",
        "Put the file back as it was, or start the tasks as a new batch.",
    )
