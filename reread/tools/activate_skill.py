"""activate_skill: give the model the body of a skill that the catalog lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_runtime import Tool
from reread.session import Session
from reread.tools import schema, text


def tool(session: Session) -> Tool | None:
    """Make the tool for a run, unless the task asked for no skills or there are none to see."""
    if session.task.skills == () or not session.skills.visible:
        return None

    async def activate(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        body = session.skills.activate(arguments["name"])
        session.progress.activated[body.name] = body.sha256
        session.record.event("skill.activated", {"name": body.name, "sha256": body.sha256})
        return {
            "name": body.name,
            "sha256": body.sha256,
            "content": body.text,
            "files": list(body.files),
        }

    return Tool(
        "activate_skill",
        "Read the instructions of a skill from the catalog before doing what it is for.",
        schema(("name",), name=text("a name from the catalog", enum=list(session.skills.visible))),
        activate,
    )
