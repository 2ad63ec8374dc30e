"""write_file: a text file in one of the folders that the model may write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_runtime import Failure, Tool
from reread.files import check_name
from reread.session import Session
from reread.tools import schema, text
from reread.values import Code
from reread.workspace import WRITABLE


def tool(session: Session) -> Tool:
    """Make the tool for a run."""

    async def write(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        path, work = arguments["path"], session.work
        parts = check_name(path)
        if len(parts) < 2 or parts[0] not in WRITABLE:
            raise Failure(
                Code.path_not_allowed,
                f"'{path}' is not in a folder that you may write.",
                f"Write below {', '.join(f'{name}/' for name in WRITABLE)}.",
            )
        written = work.folder.write(path, arguments["content"].encode("utf-8"))
        work.ledger.wrote(path, written.sha256)
        session.record.event(
            "file.written", {"path": path, "sha256": written.sha256, "bytes": written.size}
        )
        return {"path": path, "bytes": written.size, "sha256": written.sha256}

    return Tool(
        "write_file",
        "Write a UTF-8 text file below scripts/, drafts/ or outputs/. The answer says what is on "
        "disk afterwards. Deliverables are made by scripts; write the script here, then run it.",
        schema(
            ("path", "content"),
            path=text("relative path, such as scripts/make.py", minLength=1),
            content=text("the whole text of the file"),
        ),
        write,
        changes=True,
        subject=lambda arguments: str(arguments.get("path", "")),
    )
