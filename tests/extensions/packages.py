"""Packages that the tests lay out: the base one, one change at a time."""

from __future__ import annotations

import base64
import json
import re
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


ELSEWHERE = {
    "Tool": "openjiuwen.core.foundation.tool",
    "ToolCard": "openjiuwen.core.foundation.tool",
    "ToolOutput": "openjiuwen.harness.tools.base_tool",
    "Rail": "openjiuwen.harness.rails.base",
    "AbortError": "openjiuwen.core.runner.callback.errors",
}
"""Name of our API → the module of openjiuwen that has what it stands for."""


def ported(into: Path, case: Mapping[str, Any] | None = None) -> Path:
    """Lay out a package, broken as a case says, under the names of openjiuwen."""
    case = case or {"files": {}}
    test = {key: case[key] for key in ("tool_name", "arguments") if key in case}
    package = lay_out(into, case["files"], name=case.get("rename", "note_ext"), **test)
    for path in package.rglob("*"):
        if path.suffix in (".py", ".yaml"):
            text = re.sub(
                r"(?<!openjiuwen\.)\bextensions\.harness", _PREFIX, path.read_text("utf-8")
            )
            path.write_text(re.sub(_IMPORT, _imports, text, flags=re.MULTILINE), "utf-8")
    return package


_PREFIX = "openjiuwen.extensions.harness"
_IMPORT = r"^( *)from reread\.extensions\.api import (.+)$"


def _imports(found: re.Match[str]) -> str:
    lines = []
    for name in found[2].split(", "):
        theirs = "DeepAgentRail as Rail" if name == "Rail" else name
        lines.append(f"{found[1]}from {ELSEWHERE[name]} import {theirs}")
    return "\n".join(lines)
