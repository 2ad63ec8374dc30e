"""Judges bytes as the gate's child does, in this process, and makes packages to break."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from reread.examine._judge import judge
from reread.values import Evidence

DATA = Path(__file__).resolve().parent.parent / "data" / "formats"


def examined(
    format: str, data: bytes, *, baseline: bytes | None = None, name: str = "", **contract: Any
) -> Evidence:
    """Judge bytes from a file, without the child: what a format says of them."""
    import tempfile

    with tempfile.TemporaryFile() as stream, tempfile.TemporaryFile() as old:
        stream.write(data)
        stream.seek(0)
        if baseline is not None:
            old.write(baseline)
            old.seek(0)
        return judge(
            stream,
            name=name or f"file.{format}",
            format=format,
            contract=contract,
            baseline=old if baseline is not None else None,
        )


def verdict(format: str, data: bytes, **contract: Any) -> str:
    """Return 'ok', or 'code/reason' of the first problem, or 'not_run'."""
    evidence = examined(format, data, **contract)
    if evidence.problems:
        return f"{evidence.problems[0].code}/{evidence.problems[0].reason}"
    return "ok" if evidence.ok else "not_run"


def warnings(format: str, data: bytes, **contract: Any) -> set[str]:
    """Return the reasons of what passes with a warning."""
    checks = examined(format, data, **contract).checks
    return {check.problem.reason for check in checks if check.state == "warned" and check.problem}


def repacked(
    data: bytes,
    changes: Mapping[str, bytes | None] | Callable[[str, bytes], bytes | None],
    more: Mapping[str, bytes] | None = None,
) -> bytes:
    """Return a zip with some entries changed, those that become None left out."""
    out = io.BytesIO()
    change = changes if callable(changes) else lambda name, old: changes.get(name, old)
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", 8) as new:
        for entry in old.infolist():
            content = change(entry.filename, old.read(entry))
            if content is not None:
                new.writestr(entry.filename, content)
        for name, content in (more or {}).items():
            new.writestr(name, content)
    return out.getvalue()
