"""TAR, plain or compressed: every member is there to its last byte, none would land outside."""

from __future__ import annotations

import io
import lzma
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from agent_runtime import Failure
from reread.formats import Format, Source
from reread.formats._bytes import nothing, posing
from reread.formats._checks import Fact, Item, hollow, invalid, passed, unsafe
from reread.formats._zip import PIECE, Budget, as_check
from reread.formats.zip import escapes

FORMAT = Format(
    "tar",
    (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tbz", ".tar.xz", ".txz"),
    "TAR archive",
    "application/x-tar",
)
PRELOAD = ("tarfile", "gzip", "bz2", "lzma")

PACKED = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz"}
BLOCK = 512
MAX_MEMBERS = 200_000


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of an archive."""
    data = source.data()
    found = list(nothing(source, data, "tar"))
    yield from found
    if found:
        return
    packing = next((name for magic, name in PACKED.items() if data.startswith(magic)), "")
    reader = _Reader(data, packing)
    try:
        yield from reader.read()
    except Failure as failure:
        yield as_check(failure, "tar.members")
        return
    except (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, ValueError) as error:
        yield from _told(error, data, packing, reader.count)
        return
    yield from reader.substance(contract)


def _told(error: Exception, data: bytes, packing: str, count: int) -> Iterator[Item]:
    if count == 0 and not packing:
        yield from list(posing(data, "tar")) or [
            invalid("tar.identity", "not_a_tar", f"It is no archive: {error}.", depth="identity")
        ]
        return
    text = str(error).lower()
    cut = isinstance(error, EOFError) or "unexpected end" in text or "end-of-stream" in text
    reason = "truncated" if cut else "crc_mismatch" if "crc" in text else "damaged"
    yield invalid("tar.members", reason, f"After {count} members: {error}.")


class _Budgeted(io.RawIOBase):
    """Counts what comes out of a decompressor, whatever it is of."""

    def __init__(self, stream: Any, budget: Budget) -> None:
        self._stream, self._budget = stream, budget
        self.tail = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Return at most a piece."""
        data: bytes = self._stream.read(PIECE if size < 0 else min(size, PIECE))
        self._budget.spend(len(data))
        self.tail = (self.tail + data)[-2 * BLOCK :]
        return data


class _Reader:
    """Goes through the members once."""

    def __init__(self, data: bytes, packing: str) -> None:
        self.names: list[str] = []
        self.count = self.bytes = 0
        self._stream = _Budgeted(_unpacked(data, packing), Budget(len(data)))

    def read(self) -> Iterator[Item]:
        """Yield identity, the names, and whether all members are whole."""
        with tarfile.open(fileobj=self._stream, mode="r|", bufsize=PIECE) as archive:
            for member in archive:
                if self.count == 0:
                    yield passed("tar.identity", "identity")
                self.count += 1
                wrong = _wrong(member)
                if wrong or self.count > MAX_MEMBERS:
                    reason = "path_escape" if wrong else "too_many_entries"
                    yield unsafe("tar.names", reason, wrong or f"More than {MAX_MEMBERS} members.")
                    return
                if member.isfile():
                    self.names.append(member.name)
                    self._whole(archive, member)
        while self._stream.read(PIECE):
            pass  # to the end of the packing, whose checksum stands there
        if self.count == 0:
            yield passed("tar.identity", "identity", "an archive of nothing")
        if self._stream.tail.strip(b"\x00") or len(self._stream.tail) < 2 * BLOCK:
            yield invalid("tar.members", "truncated", "Its end mark is not there: it was cut off.")
        else:
            yield passed("tar.members", "integrity", f"{self.count} members")

    def _whole(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        stream = archive.extractfile(member)
        while stream is not None and (piece := stream.read(PIECE)):
            self.bytes += len(piece)

    def substance(self, contract: Mapping[str, Any]) -> Iterator[Item]:
        """Yield the facts, and whether there is something in it."""
        yield Fact("entries", len(self.names))
        yield Fact("unpacked_bytes", self.bytes)
        yield Fact("_text", "\n".join(self.names))
        if self.bytes or contract.get("allow_empty"):
            yield passed("tar.has_content", "substance", f"{len(self.names)} files")
        else:
            yield hollow("tar.has_content", "no_content", "There is no byte of a file in it.")


def _unpacked(data: bytes, packing: str) -> Any:
    import bz2
    import gzip

    openers: dict[str, Any] = {"gz": gzip.open, "bz2": bz2.open, "xz": lzma.open}
    stream = io.BytesIO(data)
    return openers[packing](stream) if packing else stream


def _wrong(member: tarfile.TarInfo) -> str:
    """Say what is wrong with where a member would land, '' for nothing."""
    if escapes(member.name):
        return f"The member '{member.name[:120]}' would be unpacked outside of its folder."
    if member.ischr() or member.isblk() or member.isfifo():
        return f"The member '{member.name[:120]}' is a device."
    if member.issym() or member.islnk():
        folder = "" if member.islnk() else member.name.rpartition("/")[0]
        target = f"{folder}/{member.linkname}" if folder else member.linkname
        if member.linkname.startswith("/") or _climbs(target):
            return f"The member '{member.name[:120]}' links to '{member.linkname[:120]}'."
    return ""


def _climbs(path: str) -> bool:
    depth = 0
    for part in path.split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            return True
    return False
