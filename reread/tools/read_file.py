"""read_file: a UTF-8 text file of the workspace."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from agent_runtime import Tool
from reread.session import Session
from reread.tools import READ_LIMIT, schema, text


def tool(session: Session) -> Tool:
    """Make the tool for a run."""

    async def read(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        path = arguments["path"]
        place = session.work.locate(path)
        content = place.folder.read_text(place.relative, limit=READ_LIMIT)
        data = content.encode()
        digest = hashlib.sha256(data).hexdigest()
        session.record.event("file.read", {"path": path, "sha256": digest, "bytes": len(data)})
        return {"path": path, "bytes": len(data), "sha256": digest, "content": content}

    return Tool(
        "read_file",
        "Read a UTF-8 text file of at most 64 KiB: inputs/…, previous/…, outputs/…, drafts/…, "
        "scripts/…. Use a script for anything larger or binary.",
        schema(("path",), path=text("relative path", minLength=1)),
        read,
    )
