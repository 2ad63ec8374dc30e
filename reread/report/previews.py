"""The program's side of a preview: starts the limited child, and believes only a shape.

A picture is taken when it is base64 of a PNG or JPEG that the child has written anew; text is text.
Slides and documents become pages where LibreOffice is there, which reads them in the sandbox.
"""

from __future__ import annotations

import base64
import binascii
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from reread.report import _office

CHILD = Path(__file__).with_name("_child.py")
SECONDS = 30.0
LIMIT = 24 << 20
MAGIC = {"png": b"\x89PNG\r\n\x1a\n", "jpeg": b"\xff\xd8\xff"}


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that is safe to show: pixels that the child wrote anew."""

    uri: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Table:
    """The first rows of a table; the first of them is taken for its head."""

    name: str
    rows: tuple[tuple[str, ...], ...]
    cut: bool


@dataclass(frozen=True, slots=True)
class Preview:
    """What can be shown of a file.

    Attributes:
        note: what is not shown, or why nothing is.
    """

    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    text: str = ""
    note: str = ""


def preview(stream: BinaryIO, format: str) -> Preview:
    """Return what can be shown of an open file."""
    if format in _office.FORMATS:
        with tempfile.TemporaryDirectory(prefix="reread-preview-") as folder:
            pdf = _office.as_pdf(stream, format, Path(folder))
            if pdf is not None:
                with pdf.open("rb") as made:
                    return _checked(_ask(made, "pdf"))
        stream.seek(0)
    return _checked(_ask(stream, format))


def _ask(stream: BinaryIO, format: str) -> Mapping[str, Any]:
    command = [sys.executable, "-I", "-B", "-X", "utf8", str(CHILD), format]
    try:
        ran = subprocess.run(
            command, stdin=stream, capture_output=True, timeout=SECONDS, env={}, check=False
        )
        value = json.loads(ran.stdout) if ran.returncode == 0 and len(ran.stdout) < LIMIT else None
    except subprocess.TimeoutExpired:
        return {"why": f"it took longer than {SECONDS:g} s to read"}
    except (OSError, ValueError):
        value = None
    return value if isinstance(value, dict) else {"why": "its reader was ended by its limits"}


def _checked(value: Mapping[str, Any]) -> Preview:
    """Take what has the right shape; the child has read hostile bytes and may say anything."""
    pictures = tuple(p for raw in _list(value.get("pictures")) if (p := _picture(raw)))
    tables = tuple(_table(raw) for raw in _list(value.get("sheets")) if isinstance(raw, dict))
    text = str(value.get("text", ""))
    return Preview(pictures, tables, text, _note(value, bool(pictures or tables or text)))


def _note(value: Mapping[str, Any], shown: bool) -> str:
    if not shown:
        return str(value.get("why", "")) or "It is empty."
    more = value.get("more")
    if isinstance(more, int) and more > 0:
        return f"{more} more not shown."
    return "The rest is not shown." if value.get("cut") else ""


def _picture(raw: object) -> Picture | None:
    if not isinstance(raw, dict) or raw.get("type") not in MAGIC:
        return None
    try:
        data = base64.b64decode(str(raw.get("data")), validate=True)
        width, height = int(raw["width"]), int(raw["height"])
    except (binascii.Error, ValueError, KeyError, TypeError):
        return None
    if not data.startswith(MAGIC[raw["type"]]):
        return None
    uri = f"data:image/{raw['type']};base64,{base64.b64encode(data).decode()}"
    return Picture(uri, width, height)


def _table(raw: Mapping[str, Any]) -> Table:
    rows = tuple(tuple(str(cell) for cell in _list(row)) for row in _list(raw.get("rows")))
    return Table(str(raw.get("name", "")), rows, bool(raw.get("cut")))


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
