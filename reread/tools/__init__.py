"""One file per tool that the model may call: `tool(session) -> Tool`.

A file here is a power, so test_app.py pins the list of names.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from agent_runtime import Tool
from reread import plugins
from reread.session import Session

READ_LIMIT = 64 << 10


def all_tools(session: Session) -> tuple[Tool, ...]:
    """Return the tools of a run, sorted by name."""
    package = sys.modules[__name__]
    made = (plugins.load(package, name).tool(session) for name in plugins.names(package))
    return tuple(tool for tool in made if tool is not None)


def schema(required: tuple[str, ...] = (), **properties: Mapping[str, Any]) -> dict[str, Any]:
    """Build the JSON Schema of a tool's arguments; extra arguments are refused."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def text(description: str, **more: Any) -> dict[str, Any]:
    """Build the schema of one text argument."""
    return {"type": "string", "description": description, **more}
