"""ZIP: each entry inflates to what was packed, none would land outside, something is in it.

Zips inside are opened too, under the same bound, since a reader that unpacks all would do so.
"""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from agent_runtime import Failure
from reread.formats import Format, Source
from reread.formats._bytes import nothing
from reread.formats._checks import Fact, Item, hollow, passed, unsafe, warned
from reread.formats._zip import Budget, as_check, broken, open_zip, pieces, posing_as_zip
from reread.values import Code

FORMAT = Format("zip", (".zip",), "ZIP archive", "application/zip")
PRELOAD = ("zipfile",)

MAX_NESTED = 5
MAX_INNER = 64 << 20
"""Bytes of a zip inside of a zip that is opened in turn; a larger one is only inflated."""


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of an archive."""
    data = source.data()
    found = list(nothing(source, data, "zip"))
    yield from found
    if found:
        return
    try:
        archive = open_zip(data)
    except Failure as failure:
        yield from posing_as_zip(data, "zip.identity", "zip", failure)
        return
    yield passed("zip.identity", "identity")
    yield from _names(archive.namelist(), [e for e in archive.infolist() if _is_link(e)])
    try:
        total = _walk(archive, Budget(len(data)), 0)
    except Failure as failure:
        yield as_check(failure, "zip.entries_inflate")
        return
    yield passed("zip.entries_inflate", "integrity", f"{total} bytes")
    yield from _substance(archive, total, contract)


def escapes(name: str) -> bool:
    """Say whether a name leads out of the folder in which an archive is unpacked."""
    plain = name.replace("\\", "/")
    return plain.startswith("/") or plain[1:2] == ":" or ".." in PurePosixPath(plain).parts


def _names(names: list[str], links: list[zipfile.ZipInfo]) -> Iterator[Item]:
    out = next((name for name in names if escapes(name)), None)
    if out is not None:
        cause = f"The entry '{out[:120]}' would be unpacked outside of its folder."
        yield unsafe("zip.names", "path_escape", cause)
    elif links:
        cause = f"The entry '{links[0].filename[:120]}' is a link."
        yield unsafe("zip.names", "link", cause)
    else:
        yield passed("zip.names", "integrity", f"{len(names)} entries")
    if len({name.casefold() for name in names}) < len(names):
        yield warned("zip.names_differ", "integrity", "duplicate_names", "A name is there twice.")


def _is_link(entry: zipfile.ZipInfo) -> bool:
    return entry.create_system == 3 and stat.S_ISLNK(entry.external_attr >> 16)


def _walk(archive: zipfile.ZipFile, budget: Budget, depth: int) -> int:
    """Inflate every entry, and those of zips inside; returns the bytes of this archive's own."""
    if depth > MAX_NESTED:
        cause = f"It holds zips inside of zips, more than {MAX_NESTED} deep."
        raise broken("nested", cause, Code.artifact_unsafe)
    total = 0
    for entry in archive.infolist():
        inner = io.BytesIO()
        is_inner = False
        for number, piece in enumerate(pieces(archive, entry, budget)):
            total += len(piece)
            is_inner = piece.startswith(b"PK\x03\x04") if number == 0 else is_inner
            if is_inner and inner.tell() <= MAX_INNER:
                inner.write(piece)
        if is_inner and inner.tell() <= MAX_INNER:
            _inside(inner, budget, depth)
    return total


def _inside(inner: io.BytesIO, budget: Budget, depth: int) -> None:
    """Walk a zip inside. One that does not open is its own matter; one that explodes is ours."""
    try:
        _walk(open_zip(inner.getvalue()), budget, depth + 1)
    except Failure as failure:
        if failure.code == Code.artifact_unsafe:
            raise


def _substance(archive: zipfile.ZipFile, total: int, contract: Mapping[str, Any]) -> Iterator[Item]:
    files = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
    yield Fact("entries", len(files))
    yield Fact("unpacked_bytes", total)
    yield Fact("_text", "\n".join(files))
    if contract.get("allow_empty"):
        yield passed("zip.has_content", "substance", "the contract allows none")
    elif not files:
        yield hollow("zip.has_content", "no_content", "There is no file in it.")
    elif total == 0:
        yield hollow("zip.has_content", "no_content", f"Its {len(files)} files have no bytes.")
    else:
        yield passed("zip.has_content", "substance", f"{len(files)} files")
