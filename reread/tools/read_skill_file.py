"""read_skill_file: a file that a skill brings along, confined to that skill's folder."""

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

    async def read(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        name, path = arguments["name"], arguments["path"]
        return {"name": name, "path": path, "content": session.skills.read_file(name, path)}

    return Tool(
        "read_skill_file",
        "Read a text file that a skill brings along, such as references/….md.",
        schema(
            ("name", "path"),
            name=text("a name from the catalog", enum=list(session.skills.visible)),
            path=text("relative to the skill's folder", minLength=1),
        ),
        read,
    )
