"""match_skills: which skills a text would select, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_runtime import Tool
from reread.session import Session
from reread.tools import schema, text


def tool(session: Session) -> Tool:
    """Make the tool for a run."""

    async def match(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"skills": session.skills.match(arguments["query"]), "scans": session.skills.scans}

    return Tool(
        "match_skills",
        "List the skills whose triggers occur in a text, with the trigger and where it matched.",
        schema(("query",), query=text("the text to match", minLength=1, maxLength=4000)),
        match,
    )
