"""What the model is told: the rules of the workspace, the skills, the task, and what failed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent_runtime import Failure, Message
from reread import summary
from reread.session import Session
from reread.values import Expected, Finding

CATALOG_BUDGET = 8_000
LISTED_INPUTS = 100

RULES = """\
You do the task by writing a Python script and running it. A program, not you, decides whether the
task is done: after you stop, it opens the script and every declared file again and checks them.
Saying that something was saved counts for nothing.

Workspace (all paths are relative to it):
- inputs/     what the user gave you; read only
- previous/   results of earlier runs (previous/outputs/…, previous/drafts/…); read only
- scripts/    your scripts: write them with write_file, run them with run_python
- outputs/ drafts/   where your scripts put the deliverables

A script opens with a PEP 723 block and needs nothing else to run:
# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
Dependencies are bare package names, without versions. A script gets no arguments, no stdin and no
network; it runs in the workspace as its working directory. Every declared file must be left by a
script that ends with exit code 0. Fail loudly: let exceptions end the script.
When everything is made, stop calling tools and say in one or two sentences what you did."""

OPTIONAL = """
For this task write_file may also make the declared files itself; a script is not needed."""


def opening(session: Session) -> list[Message]:
    """Return the messages that a run starts with."""
    system = [RULES + (OPTIONAL if session.task.script == "optional" else "")]
    context = session.skills.context(session.selection)
    if context:
        system.append(context)
    if session.task.skills is None and (catalog := session.skills.catalog(CATALOG_BUDGET)):
        system.append(catalog)
    return [
        {"role": "system", "content": "\n\n".join(system)},
        {"role": "user", "content": _task(session)},
    ]


def repair(failed: Sequence[Finding], round_number: int, repairs: int) -> Message:
    """Return the message that hands back what failed: code, query, expected, actual, log."""
    left = repairs - round_number
    findings = json.dumps(
        [summary.finding(found) for found in failed], ensure_ascii=False, indent=1
    )
    return {
        "role": "user",
        "content": (
            "The check of the files on disk did not pass, so the task is not done. "
            f"Mend the cause of each finding and run the script again. Rounds left after this: "
            f"{left}.\n{findings}"
        ),
    }


def started(session: Session, messages: Sequence[Message]) -> dict[str, Any]:
    """Return what the record says at the start, the opening messages included."""
    return {**facts(session), "messages": list(messages)}


def facts(session: Session) -> dict[str, Any]:
    """Return what is fixed before the first request: task, inputs, skills, approvals."""
    return {
        "run_id": session.work.run_id,
        "origin": dict(session.origin),
        "task": summary.task(session.task),
        "inputs": dict(session.inputs),
        "replaces": dict(session.replaces),
        "skills": {
            "selected": dict(session.skills.digests(session.selection)),
            "activated": dict(session.progress.activated),
            "why": session.selection.as_json(),
        },
        "approvals": {
            "given": [
                _approval(a.subject, a.sha256, a.granted_at) for a in session.approvals.granted
            ],
            "spent": [
                _approval(a.subject, a.sha256, a.granted_at) for a in session.approvals.spent
            ],
        },
        "shipped_script": session.shipped,
    }


def _task(session: Session) -> str:
    task = session.task
    lines = [task.text.strip(), ""]
    if task.topic:
        lines += [f"Topic: {task.topic}", ""]
    lines.append("Files that must come out of it:")
    lines += [f"- {_line(expected)}" for expected in task.artifacts]
    given = [path for path in session.inputs if path.startswith("inputs/")]
    if given:
        lines += ["", "Files in inputs/:", *(f"- {path}" for path in given[:LISTED_INPUTS])]
    return "\n".join(lines)


def _line(expected: Expected) -> str:
    asked = ""
    if expected.contract:
        asked = "; must hold: " + json.dumps(dict(expected.contract), ensure_ascii=False)
    edit = f"; an edit of previous/{expected.baseline}" if expected.baseline else ""
    return f"{expected.path} ({expected.format}){edit}{asked}"


def _approval(subject: str, sha256: str, granted_at: str) -> dict[str, str]:
    return {"subject": subject, "sha256": sha256, "granted_at": granted_at}


def failure(value: Failure) -> Mapping[str, Any]:
    """Return what a run that could not start ends with."""
    return {"status": "error", "reason": value.code, **value.as_json()}
