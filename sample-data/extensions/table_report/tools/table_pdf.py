"""A tool: renders a table to a PDF of A4 pages, with nothing but the standard library."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from reread.extensions.api import State, Tool, ToolCard, ToolOutput

from ..layout import paged
from ..pdf import document

PACKAGE = Path(__file__).resolve().parent.parent
CELL = {"type": ["string", "number"]}


class TablePdfTool(Tool):
    """Writes the PDF and says how many pages it has."""

    def __init__(self) -> None:
        super().__init__(
            ToolCard(
                id="table_pdf",
                name="table_pdf",
                description="Render a table to a PDF with a title and numbered pages. Latin text.",
                input_params={
                    "type": "object",
                    "properties": {
                        "title": {"type": "string", "minLength": 1, "maxLength": 80},
                        "columns": {
                            "type": "array",
                            "items": {"type": "string"},
                            "minItems": 1,
                            "maxItems": 8,
                        },
                        "rows": {"type": "array", "items": {"type": "array", "items": CELL}},
                        "repeat": {
                            "type": "integer",
                            "minimum": 1,
                            "description": "number of empty rows to append, for a form",
                        },
                        "output_path": {"type": "string", "description": "file to write, .pdf"},
                    },
                    "required": ["title", "columns", "rows", "output_path"],
                    "additionalProperties": False,
                },
                properties={"resilience": {"timeout_s": 20}},
            )
        )

    async def invoke(self, inputs: Mapping[str, Any], **kwargs: Any) -> ToolOutput:
        """Render, write, and say what is on disk."""
        columns, rows = inputs["columns"], inputs["rows"]
        for number, row in enumerate(rows, 1):
            if len(row) != len(columns):
                error = f"Row {number} has {len(row)} cells, and there are {len(columns)} columns."
                return ToolOutput(success=False, error=error)
        blank = [[""] * len(columns)] * inputs.get("repeat", 0)
        pages = paged(inputs["title"], columns, [*rows, *blank])
        path = Path(inputs["output_path"])
        path.write_bytes(document(inputs["title"], pages))
        state = State(PACKAGE, kwargs["session"]).read()
        return ToolOutput(
            data={
                "content": f"{len(rows)} rows on {len(pages)} pages, written to {path}",
                "rows": len(rows),
                "pages": len(pages),
                "path": str(path),
                "exists": path.is_file(),
                "format": "pdf",
                "size_bytes": path.stat().st_size,
                "calls": state.get("calls"),
            }
        )

    async def stream(self, inputs: Mapping[str, Any], **kwargs: Any) -> AsyncIterator[ToolOutput]:
        """Give the whole result as one piece."""
        yield await self.invoke(inputs, **kwargs)
