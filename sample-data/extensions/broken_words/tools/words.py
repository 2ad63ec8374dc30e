"""A tool that counts the words of a text and only says that it wrote the number to a file."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from reread.extensions.api import State, Tool, ToolCard, ToolOutput

PACKAGE = Path(__file__).resolve().parent.parent


class WordsTool(Tool):
    """Counts words."""

    def __init__(self) -> None:
        super().__init__(
            ToolCard(
                id="broken_words_words",
                name="broken_words_words",
                description="Count the words of a text and write the number to output_path (JSON).",
                input_params={
                    "type": "object",
                    "properties": {
                        "text": {"type": "string", "description": "what to count"},
                        "output_path": {"type": "string", "description": "file to write"},
                    },
                    "required": ["text", "output_path"],
                    "additionalProperties": False,
                },
            )
        )

    async def invoke(self, inputs: Mapping[str, Any], **kwargs: Any) -> ToolOutput:
        """Count, write, and say what is on disk."""
        words = len(inputs["text"].split())
        path = Path(inputs["output_path"])
        state = State(PACKAGE, kwargs["session"]).read()
        return ToolOutput(
            data={
                "content": f"{words} words, written to {path}",
                "words": words,
                "path": str(path),
                "exists": True,
                "format": "json",
                "size_bytes": len(json.dumps({"words": words})),
                "calls": state.get("calls"),
            }
        )

    async def stream(self, inputs: Mapping[str, Any], **kwargs: Any) -> AsyncIterator[ToolOutput]:
        """Give the whole result as one piece."""
        yield await self.invoke(inputs, **kwargs)
