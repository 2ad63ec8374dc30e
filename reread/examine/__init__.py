"""Judges one file from its bytes, in a child process with limits.

Proves: the file is of its format as far as the named checks go, holds content, and has what the
contract asks; the digest is of exactly the bytes that the checks saw.
Does not prove: who made the file (that is the gate's), or that its content is right.

Nothing that is in a file can raise here, end this process, or change another file's verdict.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from functools import cache
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from agent_runtime import Failure
from reread import formats, plugins
from reread.examine._client import ask
from reread.formats import Format
from reread.values import Check, Code, Evidence, Problem

__all__ = ["all_formats", "examine", "format_named", "format_of"]

FATAL = {-9: "killed", -14: "time", -24: "time", -6: "abort", -11: "crash", -7: "crash"}


@cache
def all_formats() -> Mapping[str, Format]:
    """Return every format by its name."""
    loaded = (plugins.load(formats, name) for name in plugins.names(formats))
    return {module.FORMAT.name: module.FORMAT for module in loaded}


def format_of(path: str) -> str:
    """Return the format that the suffix of a path names.

    Raises:
        Failure: usage_invalid, listing the suffixes that are known.
    """
    name = PurePosixPath(path).name.lower()
    for format in all_formats().values():
        if name.endswith(format.suffixes):
            return format.name
    known = " ".join(sorted(s for f in all_formats().values() for s in f.suffixes))
    raise Failure(
        Code.usage_invalid,
        f"'{path}' has no suffix of a known format.",
        f"Name the format, or use one of: {known}",
    )


def format_named(name: str) -> str:
    """Return the format of that name, which may be written as one of its suffixes.

    Raises:
        Failure: usage_invalid, listing the formats that are known.
    """
    wanted = name.lower()
    for format in all_formats().values():
        if wanted in (format.name, *format.aliases) or f".{wanted}" in format.suffixes:
            return format.name
    raise Failure(
        Code.usage_invalid,
        f"There is no format '{name}'.",
        f"Use one of: {' '.join(sorted(all_formats()))}",
    )


def examine(
    stream: BinaryIO,
    *,
    name: str,
    format: str,
    contract: Mapping[str, Any],
    baseline: BinaryIO | None = None,
) -> Evidence:
    """Judge the bytes of an open file; never raises for what is in it.

    Args:
        stream: at its start; a file of the system, or any readable bytes.
        name: file name for messages; nothing is opened by it.
        baseline: the older document that this one is an edit of.
    """
    with _as_file(stream) as file:
        report, status = ask(
            {"name": name, "format": format, "contract": dict(contract)},
            file.fileno(),
            baseline.fileno() if baseline else None,
        )
        if report is not None:
            return report
        return _broke(file, name, format, status)


def _as_file(stream: BinaryIO) -> BinaryIO:
    """Return the stream as a file that another process can read from its start."""
    try:
        descriptor = os.dup(stream.fileno())
    except (OSError, io.UnsupportedOperation):
        descriptor = os.memfd_create("artifact") if hasattr(os, "memfd_create") else _temporary()
        with os.fdopen(os.dup(descriptor), "wb") as copy:
            copy.write(stream.read())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.fdopen(descriptor, "rb", buffering=0)


def _temporary() -> int:
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _broke(file: BinaryIO, name: str, format: str, status: int | None) -> Evidence:
    """Say that the child ended without a report: the bytes broke their reader."""
    reason = FATAL.get(status or 0, "crash")
    what = {"time": "took longer than is allowed", "killed": "needed more than is allowed"}
    problem = Problem(
        Code.artifact_unsafe,
        name,
        f"Its reader {what.get(reason, f'was ended by the bytes (status {status})')}.",
        "Write the file anew with a library made for the format.",
        reason,
    )
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    digest = hashlib.sha256()
    while piece := file.read(1 << 20):
        digest.update(piece)
    check = Check(f"{format}.bounded", "integrity", "failed", problem=problem)
    return Evidence(name, format, digest.hexdigest(), os.fstat(file.fileno()).st_size, (check,))
