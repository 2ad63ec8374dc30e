"""A workspace of a test, and whole runs in it with a scripted model."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_runtime import Reply, ScriptedModel, ScriptStep, scripted
from reread.approvals import Approvals
from reread.run import execute
from reread.session import Session, open_session
from reread.skills import Skills
from reread.tasks import checked
from reread.values import Expected, Outcome, Task
from reread.workspace import Workspace

HEADER = "# /// script\n# dependencies = []\n# ///\n"
OUTPUT = "outputs/summary.json"
SCRIPT = "scripts/make.py"
GOOD = HEADER + (
    "from pathlib import Path\n"
    'Path("outputs/summary.json").write_text(\'{"orders": 295, "total": 266451.25}\')\n'
)
FAILS_AFTERWARDS = GOOD + 'raise SystemExit("the totals do not agree")\n'
NOTHING = HEADER + 'print("saved")\n'


def write(path: str, content: str) -> Reply:
    return scripted("", ("write_file", {"path": path, "content": content}))


def call(tool: str, **arguments: Any) -> Reply:
    return scripted("", (tool, arguments))


RUN = call("run_python", path=SCRIPT)
SAY_SO = scripted("Everything is saved.")


class Workplace:
    """One workspace with one task."""

    def __init__(self, root: Path, **task: Any) -> None:
        self.workspace = Workspace(root)
        self.root = self.workspace.root
        artifacts = task.pop("artifacts", (Expected(OUTPUT, "json"),))
        self.task = checked(Task("Summarise the orders.", artifacts, repairs=0, **task))
        self.approvals = Approvals()
        self.session: Session | None = None

    def open(self) -> Session:
        """Open the session of a run."""
        self.session = open_session(
            self.task, self.workspace, Skills(self.root / "skills"), self.approvals, shipped=True
        )
        return self.session

    def run(self, *turns: ScriptStep, more: Sequence[Sequence[ScriptStep]] = ()) -> Outcome:
        """Do the task with these turns, and those of later rounds."""
        session = self.session or self.open()
        model = ScriptedModel([list(turns), *more])
        outcome = asyncio.run(execute(model, session, rails=(model,)))
        self.session = None
        return outcome

    @property
    def work(self) -> Path:
        """The work folder of the open session."""
        assert self.session is not None
        return self.session.work.folder.root

    def approve(self, path: str) -> None:
        """Say as a human that a file may be replaced as it is now."""
        data = (self.root / path).read_bytes()
        self.approvals.grant(f"overwrite:{path}", hashlib.sha256(data).hexdigest())


def host(act: Callable[[], Any]) -> Callable[[], Awaitable[None]]:
    """Make a step of somebody else between the model's turns."""

    async def step() -> None:
        act()

    return step


def codes(outcome: Outcome) -> set[str]:
    """Return every code that the gate found."""
    read = (*outcome.artifacts, *outcome.scripts)
    return {str(problem.code) for evidence in read for problem in evidence.problems}


def answers(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return what the tools answered."""
    return [event["data"]["result"] for event in events if event["kind"] == "tool.answered"]
