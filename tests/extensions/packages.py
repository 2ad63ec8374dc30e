"""Packages that the tests lay out: the base one, one change at a time."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent.parent / "data" / "extensions"
CASES: list[dict[str, Any]] = json.loads((DATA / "breakages.json").read_text("utf-8"))["cases"]
TOOL = "tools/note_tool.py"
RAIL = "rails/note_rail.py"


def lay_out(
    into: Path, files: Mapping[str, Any] | None = None, *, name: str = "note_ext", **test: Any
) -> Path:
    """Copy the base package and its spec, lay files over it, and change the spec's tool test."""
    package = into / name
    shutil.copytree(DATA / "base" / "note_ext", package)
    for path, text in (files or {}).items():
        target = package / path
        if text is None:
            target.unlink()
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        encoded = isinstance(text, dict)
        target.write_bytes(base64.b64decode(text["base64"]) if encoded else text.encode())
    spec = json.loads((DATA / "base" / "acceptance.json").read_text("utf-8"))
    spec["tool_tests"][0].update(test)
    (into / "acceptance.json").write_text(json.dumps(spec), "utf-8")
    return package


def changed(path: str, old: str, new: str) -> dict[str, str]:
    """Return one file of the base package with a text replaced, which must be there."""
    text = (DATA / "base" / "note_ext" / path).read_text("utf-8")
    if old not in text:
        raise ValueError(f"'{old}' is not in {path}")
    return {path: text.replace(old, new)}
