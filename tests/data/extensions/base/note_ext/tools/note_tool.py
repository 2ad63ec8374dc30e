import json
import os
from pathlib import Path

from reread.extensions.api import Tool, ToolCard
from reread.extensions.api import ToolOutput

EXT_ROOT = Path(__file__).resolve().parent.parent


class NoteTool(Tool):
    def __init__(self) -> None:
        super().__init__(
            ToolCard(
                id="note_write",
                name="note_write",
                description="Write a JSON note to output_path.",
                input_params={
                    "type": "object",
                    "properties": {
                        "title": {"type": "string", "description": "note title"},
                        "output_path": {"type": "string", "description": "file to write"},
                    },
                    "required": ["title", "output_path"],
                },
            )
        )

    async def invoke(self, inputs, **kwargs):
        session = kwargs.get("session")
        sid = session.get_session_id() if session is not None else None
        state = {}
        if sid:
            p = EXT_ROOT / ".state" / f"{sid}.json"
            if p.is_file():
                state = json.loads(p.read_text(encoding="utf-8"))
        out = Path(inputs["output_path"])
        out.write_text(
            json.dumps({"title": inputs["title"], "session": sid, "rail_state": state}), encoding="utf-8"
        )
        data = {
            "content": f"wrote {out}",
            "source": "note_ext",
            "path": str(out),
            "exists": out.is_file(),
            "format": "json",
            "size_bytes": os.path.getsize(out),
            "rail_count": state.get("count"),
        }
        return ToolOutput(success=True, data=data)

    async def stream(self, inputs, **kwargs):
        yield await self.invoke(inputs, **kwargs)
