"""A skill's own tests: prompts that must select it or not, and fixed runs that the gate judges.

`tests.yaml` in the skill's folder:

    selected: [prompts that select it]
    not_selected: [prompts that do not]
    runs: [names of fixtures in tests/fixtures/, whose tasks are in tests/tasks/]

The prompts are put to all the skills of the folder around it, because they compete. A run gets a
workspace of its own with the skill and `tests/inputs/` in it, and no model service.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reread import documents, fixtures, job, junit, tasks
from reread.files import ConfinedFolder
from reread.skills import Skills
from reread.values import Code, Outcome, Problem

FILE = "tests.yaml"
MAX_FILE = 256 << 10
_TEXTS: Mapping[str, Any] = {"type": "array", "items": {"type": "string", "minLength": 1}}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"selected": _TEXTS, "not_selected": _TEXTS, "runs": _TEXTS},
    "additionalProperties": False,
    "minProperties": 1,
}


def run(path: Path) -> list[junit.Case]:
    """Run the tests of a skill and return a case for each.

    Raises:
        Failure: path_not_found, skill_invalid (the tests cannot be read), skill_unknown,
            fixture_unknown, task_invalid.
    """
    path = path.resolve()
    text = ConfinedFolder(path).read_text(FILE, limit=MAX_FILE)
    document = documents.read(text, f"{path.name}/{FILE}", code=Code.skill_invalid)
    documents.check(document, SCHEMA, code=Code.skill_invalid)
    around = Skills(path.parent)
    around.scan()
    name = around.activate(path.name).name
    value = document.value
    cases = [_prompt(around, name, text, wanted=True) for text in value.get("selected", ())]
    cases += [_prompt(around, name, text, wanted=False) for text in value.get("not_selected", ())]
    return [*cases, *_runs(path, value.get("runs", ()))]


def _prompt(around: Skills, name: str, text: str, *, wanted: bool) -> junit.Case:
    selection = around.select(text)
    group = "selected" if wanted else "not selected"
    if (name in selection.chosen) == wanted:
        return junit.Case(group, text)
    choice = next(one for one in selection.choices if one.skill == name)
    problem = Problem(
        Code.skill_invalid,
        name,
        f"'{name}' is {choice.outcome}: {choice.rule}; selected are "
        f"{', '.join(selection.chosen) or 'none'}.",
        "Change the triggers, or the prompt if it is wrong.",
        "selection",
    )
    return junit.Case(group, text, (problem,))


def _runs(path: Path, names: list[str]) -> Iterator[junit.Case]:
    for name in names:
        fixture = fixtures.load(name, path / "tests")
        outcome = _perform(path, fixture)
        yield junit.Case("run", name, tuple(_unmet(fixture, outcome)), outcome.seconds)


def _perform(path: Path, fixture: fixtures.Fixture) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="reread-skill-") as folder:
        workspace = Path(folder)
        shutil.copytree(path, workspace / "skills" / path.name, symlinks=True)
        inputs = path / "tests" / "inputs"
        if inputs.is_dir():
            shutil.copytree(inputs, workspace / "inputs", symlinks=True)
        task = tasks.checked(tasks.read_task(fixture.task))
        return asyncio.run(job.perform(job.Job(task, workspace, fixture=fixture)))


def _unmet(fixture: fixtures.Fixture, outcome: Outcome) -> Iterator[Problem]:
    wanted = fixture.expect.get("status", "complete")
    if outcome.status != wanted:
        yield Problem(
            Code.skill_invalid,
            fixture.name,
            f"The run ends {outcome.status}, not {wanted}: {outcome.reason} {outcome.cause}",
            outcome.remedy or "Mend the skill or its fixture.",
            "run",
        )
