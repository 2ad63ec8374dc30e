"""Task files and flags become a Task.

The contract that a task names by skill, and those of the skills that were selected, are attached
here, before the first request: the model can change none of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent_runtime import Failure, Limits
from reread import contracts, documents
from reread.examine import format_named, format_of
from reread.files import check_name
from reread.values import Code, Expected, Permissions, ScriptLimits, Task
from reread.workspace import PUBLISHED

TASK_FILE_LIMIT = 1 << 20

ContractOf = Callable[[str], Mapping[str, Any] | None]
"""Skill name → its gate.yaml as a mapping, None where it ships none."""


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a task file, which also ships for editors."""
    text = Path(__file__).with_name("task.schema.json").read_text("utf-8")
    return dict(json.loads(text))


def read_task(path: Path) -> Task:
    """Read a task file.

    Raises:
        Failure: task_invalid, naming file, line and key; contract_invalid; path_not_allowed.
    """
    try:
        data = path.read_bytes()[: TASK_FILE_LIMIT + 1]
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(
            Code.task_invalid,
            f"The task file '{path}' cannot be read: {error}.",
            "Name a UTF-8 YAML file, such as sample-data/tasks/monthly-summary.yaml.",
        ) from error
    return task_from(documents.read(text, str(path)))


def task_from(document: documents.Document) -> Task:
    """Build the Task of a document.

    Raises:
        Failure: task_invalid, contract_invalid, path_not_allowed.
    """
    documents.check(document, schema())
    value = document.value
    task = Task(
        text=value["text"],
        artifacts=tuple(
            _expected(document, index, item) for index, item in enumerate(value["artifacts"])
        ),
        name=value.get("name", ""),
        topic=value.get("topic", ""),
        script=value.get("script", "required"),
        skills=tuple(value["skills"]) if "skills" in value else None,
        inputs=tuple(value.get("inputs", ())),
        limits=Limits(**value.get("limits", {})),
        script_limits=ScriptLimits(**value.get("script_limits", {})),
        permissions=Permissions(
            network=value.get("network", False),
            version_specifiers=value.get("allow_version_specifiers", False),
            builds=value.get("allow_builds", False),
        ),
        repairs=value.get("repairs", 3),
    )
    return checked(task)


def renamed(declared: Sequence[Expected], paths: Sequence[str]) -> tuple[Expected, ...]:
    """Return artifacts at these paths, each with the contract of a declared one of its format."""
    left = list(declared)
    made = []
    for path in paths:
        format = format_of(path)
        same = next((expected for expected in left if expected.format == format), None)
        if same is not None:
            left.remove(same)
        made.append(replace(same, path=path) if same else Expected(path, format))
    return tuple(made)


def checked(task: Task) -> Task:
    """Return the task, with every declared path held against the rules.

    Raises:
        Failure: no_artifact_declared, path_not_allowed, task_invalid, for two of one path.
    """
    if not task.artifacts:
        raise Failure(
            Code.no_artifact_declared,
            "The task declares no artifact, so nothing could be proven.",
            "Name what must come out of it with --output outputs/NAME.SUFFIX.",
        )
    seen: set[str] = set()
    for expected in task.artifacts:
        _check_place(expected.path)
        folded = expected.path.casefold()
        if folded in seen:
            raise Failure(
                Code.task_invalid,
                f"Two artifacts have the path '{expected.path}'.",
                "Give each artifact a path of its own.",
            )
        seen.add(folded)
    for path in task.inputs:
        if check_name(path)[0] != "inputs":
            raise Failure(
                Code.path_not_allowed,
                f"The input '{path}' is not below inputs/.",
                "Put it into the workspace's inputs/ folder.",
            )
    return task


def with_contracts(task: Task, selected: Sequence[str], contract_of: ContractOf) -> Task:
    """Return the task with the contracts of skills attached; they can only ask for more.

    Raises:
        Failure: contract_invalid, when a skill that is named has no gate.yaml.
    """
    attached = []
    for expected in task.artifacts:
        contract = dict(expected.contract)
        named = str(contract.pop("from_skill", ""))
        for name in dict.fromkeys([*([named] if named else []), *selected]):
            ours = contract_of(name)
            if ours is None and name == named:
                raise _no_contract(name)
            if ours is not None and (
                name == named or contracts.applies(ours, expected.path, expected.format)
            ):
                contract = dict(contracts.merge(contract, ours))
        if contract.get("topic_in_prose") and not task.topic.strip():
            raise _no_topic(expected.path)
        attached.append(replace(expected, contract=contracts.bind(contract, topic=task.topic)))
    return replace(task, artifacts=tuple(attached))


def from_record(value: Mapping[str, Any]) -> Task:
    """Make the task of a record again; it was checked when it was recorded."""
    return Task(
        **{
            **value,
            "artifacts": tuple(Expected(**item) for item in value["artifacts"]),
            "skills": None if value["skills"] is None else tuple(value["skills"]),
            "inputs": tuple(value["inputs"]),
            "limits": Limits(**value["limits"]),
            "script_limits": ScriptLimits(**value["script_limits"]),
            "permissions": Permissions(**value["permissions"]),
        }
    )


def _expected(document: documents.Document, index: int, item: Mapping[str, Any]) -> Expected:
    contract = item.get("contract", {})
    where = f"{document.name}, line {document.line(['artifacts', index, 'contract'])}"
    if isinstance(contract, str):
        contract = {"from_skill": contract.removeprefix("skill:")}
    else:
        contracts.validate(contract, where)
    return Expected(
        path=item["path"],
        format=_format(document, index, item),
        contract=contract,
        baseline=item.get("baseline", ""),
    )


def _format(document: documents.Document, index: int, item: Mapping[str, Any]) -> str:
    try:
        return format_named(item["format"]) if "format" in item else format_of(item["path"])
    except Failure as failure:
        line = document.line(["artifacts", index, "format"])
        raise Failure(
            Code.task_invalid, f"{document.name}, line {line}: {failure.cause}", failure.remedy
        ) from failure


def _check_place(path: str) -> None:
    parts = check_name(path)
    if len(parts) < 2 or parts[0] not in PUBLISHED:
        raise Failure(
            Code.path_not_allowed,
            f"The artifact '{path}' is not below outputs/ or drafts/.",
            f"Name it outputs/{parts[-1]}.",
        )


def _no_topic(path: str) -> Failure:
    return Failure(
        Code.task_invalid,
        f"The contract of '{path}' looks for the topic of the task, and the task names none.",
        "Name it with --topic TEXT, or as topic: in the task file.",
    )


def _no_contract(name: str) -> Failure:
    return Failure(
        Code.contract_invalid,
        f"The task asks for the contract of the skill '{name}', which ships no gate.yaml.",
        f"Add skills/{name}/gate.yaml, or state the contract in the task file.",
    )
