"""What the server can do, without the protocol: each power confined to one workspace.

A client is trusted as much as a model: it names paths inside of the workspace, and what a human
allows is fixed when the server starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent_runtime import Budget, Conversation, Failure, Limits, ScriptedModel, run_agent, scripted
from reread import contracts, documents, fixtures, summary, tasks
from reread.approvals import Approvals
from reread.examine import examine, format_named, format_of
from reread.job import Job, perform
from reread.models._settings import Settings
from reread.records import Listener
from reread.session import open_session
from reread.skills import Skills
from reread.tools import run_python
from reread.values import Code, Permissions, Task
from reread.verify import verify
from reread.workspace import Workspace

Tell = Callable[[str, Mapping[str, Any]], None]
SCRATCH = Task("Run one script for a client.", ())


@dataclass(frozen=True, slots=True)
class Service:
    """One workspace, offered to other agents.

    Attributes:
        settings: the model service for run_task; None offers fixtures only.
        permissions: what the human who started the server allowed.
        samples: folder with `sample-data/`, for fixtures.
    """

    root: Path
    samples: Path
    settings: Settings | None = None
    permissions: Permissions = field(default_factory=Permissions)

    def check_file(
        self, path: str, format: str = "", contract: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Judge a file of the workspace from its bytes."""
        asked = dict(contract or {})
        contracts.validate(asked, "contract")
        named = format_named(format) if format else format_of(path)
        with Workspace(self.root).folder.open(path) as stream:
            found = examine(stream, name=path.rpartition("/")[2], format=named, contract=asked)
        return summary.evidence(replace(found, path=path))

    async def run_python(self, code: str, tell: Tell) -> dict[str, Any]:
        """Run a script in the sandbox and return its output and the files that it left."""
        workspace = Workspace(self.root)
        with workspace.held():
            task = replace(SCRATCH, permissions=self.permissions, skills=())
            session = open_session(task, workspace, self._skills(), Approvals(), listeners=(tell,))
            try:
                tool = run_python.tool(session)
                model = ScriptedModel([[scripted("", ("run_python", {"code": code}))]])
                talk = Conversation([], Budget(Limits()))
                await run_agent(model, talk, (tool,), rails=(model,))
            finally:
                session.record.close()
        result = documents.read(str(talk.messages[-2]["content"]), "result").value
        return {**result, "work": f"runs/{session.work.run_id}/work"}

    async def run_task(self, task: str, fixture: str, tell: Tell) -> dict[str, Any]:
        """Do a task, given as the text of a task file, and return how it ended."""
        if not fixture and self.settings is None:
            raise Failure(
                Code.model_not_configured,
                "The server was started without --live, so it can only replay fixtures.",
                "Start it with --live, or name a fixture.",
            )
        asked = tasks.task_from(documents.read(task, "task"))
        listeners: tuple[Listener, ...] = (tell,)
        job = Job(
            task=replace(asked, permissions=self.permissions),
            workspace=self.root,
            samples=self.samples,
            fixture=fixtures.load(fixture, self.samples / "sample-data") if fixture else None,
            settings=self.settings,
        )
        return summary.outcome(await perform(job, listeners=listeners))

    async def verify_extension(self, path: str) -> dict[str, Any]:
        """Verify an extension package of the workspace; a pass here lets no run load it."""
        folder = Workspace(self.root).folder.subfolder(path)
        report = await verify(folder.root, permissions=self.permissions, record=False)
        return report.as_json()

    def list_skills(self) -> dict[str, Any]:
        """Return the skills of the workspace, and what is wrong with those that do not load."""
        skills = self._skills()
        skills.scan()
        return {
            "skills": [
                {"name": skill.name, "description": skill.description} for skill in skills.skills
            ],
            "diagnostics": [found.as_json() for found in skills.diagnostics],
        }

    def activate_skill(self, name: str) -> dict[str, Any]:
        """Return the instructions of a skill, with their digest."""
        skills = self._skills()
        skills.scan()
        body = skills.activate(name)
        return {"name": body.name, "sha256": body.sha256, "content": body.text}

    def _skills(self) -> Skills:
        return Skills(self.root / "skills")


async def answered(work: Any) -> dict[str, Any]:
    """Await a piece of work, or call it in a thread; a Failure becomes the answer."""
    try:
        value = await (work if asyncio.iscoroutine(work) else asyncio.to_thread(work))
    except Failure as failure:
        return failure.as_json()
    return {"ok": True, **value}
