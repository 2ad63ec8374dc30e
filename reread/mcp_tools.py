"""Tools of other MCP servers for our own model: off unless a human names a configuration.

Each tool is prefixed by its server, its arguments are held against the schema that the server
gave, and what it answers is text for the model and no evidence of anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from agent_runtime import Failure, Tool
from reread import documents
from reread.values import Code

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["mcpServers"],
    "properties": {
        "mcpServers": {
            "type": "object",
            "propertyNames": {"pattern": "^[A-Za-z][A-Za-z0-9_-]{0,31}$"},
            "additionalProperties": {
                "type": "object",
                "properties": {
                    "command": {"type": "string"},
                    "args": {"type": "array", "items": {"type": "string"}},
                    "env": {"type": "object", "additionalProperties": {"type": "string"}},
                    "cwd": {"type": "string"},
                    "url": {"type": "string", "pattern": "^https?://"},
                },
                "anyOf": [{"required": ["command"]}, {"required": ["url"]}],
            },
        }
    },
}
ANSWER_LIMIT = 64 << 10
SECONDS = 120.0


def read_config(path: Path) -> dict[str, Mapping[str, Any]]:
    """Read a configuration in the usual `mcpServers` form.

    Raises:
        Failure: usage_invalid, with file, line and key.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(
            Code.usage_invalid, f"'{path}' cannot be read: {error}.", "Name a JSON file."
        ) from error
    document = documents.read(text, str(path), code=Code.usage_invalid)
    documents.check(document, SCHEMA, code=Code.usage_invalid)
    return dict(document.value["mcpServers"])


@asynccontextmanager
async def tools_of(config: Mapping[str, Mapping[str, Any]]) -> AsyncIterator[tuple[Tool, ...]]:
    """Connect to the servers and yield their tools; disconnect at the end.

    Raises:
        Failure: tool_failed, for a server that cannot be reached.
    """
    async with AsyncExitStack() as stack:
        found: list[Tool] = []
        for name, entry in config.items():
            client = await _connected(stack, name, entry)
            listed = await client.list_tools()
            found += [_tool(client, name, item) for item in listed.tools]
        yield tuple(found)


async def _connected(stack: AsyncExitStack, name: str, entry: Mapping[str, Any]) -> Client:
    target: StdioServerParameters | str = str(entry.get("url", ""))
    if "command" in entry:
        target = StdioServerParameters(
            command=entry["command"],
            args=list(entry.get("args", ())),
            env=dict(entry["env"]) if "env" in entry else None,
            cwd=entry.get("cwd"),
        )
    try:
        return await stack.enter_async_context(Client(target, read_timeout_seconds=SECONDS))
    except Exception as error:  # another program's server: whatever it does is its failure
        raise Failure(
            Code.tool_failed,
            f"The MCP server '{name}' cannot be reached: {type(error).__name__}: {error}"[:400],
            "Start its command by hand and look at what it says.",
        ) from error


def _tool(client: Client, server: str, item: Any) -> Tool:
    async def call(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            result = await client.call_tool(item.name, dict(arguments))
        except Exception as error:  # another program's server: whatever it does is its failure
            raise _failed(server, item.name, f"{type(error).__name__}: {error}") from error
        text = _text(result)
        if getattr(result, "is_error", False):
            raise _failed(server, item.name, text)
        return {"content": text}

    # The schema is the server's own; ours only adds that it must be an object.
    schema = {"type": "object", **dict(item.input_schema or {})}
    name = re.sub(r"[^A-Za-z0-9_-]", "_", f"{server}__{item.name}")[:64]
    return Tool(name, (item.description or "")[:1024], schema, call, changes=True)


def _text(result: Any) -> str:
    parts = [getattr(part, "text", "") or f"[{part.type}]" for part in result.content]
    text = "\n".join(parts)
    if not text and getattr(result, "structured_content", None):
        text = json.dumps(result.structured_content, ensure_ascii=False)
    return text[:ANSWER_LIMIT]


def _failed(server: str, tool: str, why: str) -> Failure:
    return Failure(
        Code.tool_failed,
        f"The tool '{tool}' of the MCP server '{server}' failed: {why}"[:600],
        "Call it with other arguments, or do without it.",
    )
