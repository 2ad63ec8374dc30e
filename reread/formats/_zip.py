"""Zip containers read with a running bound: what the headers declare is not believed.

Proves: the directory is whole, entries do not overlap, and each entry inflates to bytes with the
checksum that was written down. Nothing is written to disk and no name is followed.
"""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator

from agent_runtime import Failure
from reread.formats._bytes import kind, posing
from reread.formats._checks import REMEDY, Item, failed, invalid
from reread.values import Code, Depth

PIECE = 1 << 16
MAX_TOTAL = 512 << 20
"""Bytes that all entries together may inflate to."""
MAX_RATIO = 200
FREE = 24 << 20
"""Bytes that may be inflated before the ratio counts: small repetitive files compress well."""
MAX_ENTRIES = 50_000
LOCAL = b"PK\x03\x04"
ENCRYPTED = 0x1


def broken(reason: str, cause: str, code: Code = Code.artifact_format_invalid) -> Failure:
    """Return the failure of a container, to be raised and turned into a check by its format."""
    return Failure(code, cause, REMEDY[code], {"reason": reason})


def as_check(failure: Failure, name: str) -> Item:
    """Return a failure as the failed check that it means."""
    reason = str(failure.details.get("reason", ""))
    depth: Depth = "identity" if reason == "not_a_zip" else "integrity"
    return failed(name, depth, Code(failure.code), reason, failure.cause, failure.remedy)


class Budget:
    """What inflating a file may come to, counted over all of its entries and nested files."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.used = 0

    def spend(self, count: int) -> None:
        """Count inflated bytes.

        Raises:
            Failure: artifact_unsafe, once they are too many.
        """
        self.used += count
        if self.used > MAX_TOTAL or (self.used > FREE and self.used > MAX_RATIO * self.size):
            raise broken(
                "decompression_bomb",
                f"Its {self.size} bytes inflate to more than {self.used >> 20} MiB.",
                Code.artifact_unsafe,
            )


def posing_as_zip(data: bytes, name: str, format: str, failure: Failure) -> Iterator[Item]:
    """Yield what bytes are that do not open as a zip: the better word where there is one."""
    posed = [] if data.startswith(b"PK") else list(posing(data, format))
    if posed and kind(data) in ("JSON text", "XML text"):
        posed = [invalid(name, "not_a_zip", f"It is {kind(data)} and no zip.", depth="identity")]
    yield from posed or [as_check(failure, name)]


def is_zip(data: bytes) -> bool:
    """Say whether bytes are a zip by their directory, which may follow other bytes."""
    return zipfile.is_zipfile(io.BytesIO(data))


def open_zip(data: bytes) -> zipfile.ZipFile:
    """Open a zip from memory.

    Raises:
        Failure: artifact_format_invalid (not_a_zip, truncated, damaged),
            artifact_unsafe (too_many_entries, overlap, decompression_bomb).
    """
    if not is_zip(data):
        if data.startswith(LOCAL):
            cause = "It starts as a zip and has no directory at its end: it was cut off."
            raise broken("truncated", cause)
        raise broken("not_a_zip", "It is no zip package.")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, EOFError) as error:
        raise broken("damaged", f"Its directory does not open: {error}.") from error
    entries = archive.infolist()
    declared = Budget(len(data))
    declared.spend(sum(entry.file_size for entry in entries))
    if len(entries) > MAX_ENTRIES:
        cause = f"It has {len(entries)} entries."
        raise broken("too_many_entries", cause, Code.artifact_unsafe)
    _apart(entries)
    return archive


def _apart(entries: list[zipfile.ZipInfo]) -> None:
    """Refuse entries that share bytes: the cheapest of all bombs."""
    end = -1
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.header_offset < end:
            cause = f"The entry '{entry.filename[:80]}' lies over another one."
            raise broken("overlap", cause, Code.artifact_unsafe)
        end = entry.header_offset + 30 + entry.compress_size


def pieces(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, budget: Budget) -> Iterator[bytes]:
    """Yield an entry's bytes in pieces; the checksum is compared after the last.

    Raises:
        Failure: artifact_format_invalid (crc_mismatch, damaged), artifact_unsafe
            (decompression_bomb, size_lies), artifact_unreadable (encrypted, method).
    """
    name = entry.filename[:120]
    if entry.flag_bits & ENCRYPTED:
        cause = f"The entry '{name}' is encrypted."
        raise broken("encrypted", cause, Code.artifact_unreadable)
    total = 0
    try:
        with archive.open(entry) as stream:
            while piece := stream.read(PIECE):
                total += len(piece)
                budget.spend(len(piece))
                yield piece
    except NotImplementedError as error:
        cause = f"The entry '{name}' is packed with a method that nothing here reads."
        raise broken("method", cause, Code.artifact_unreadable) from error
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError) as error:
        _measure(archive, entry, budget)
        reason = "crc_mismatch" if "CRC" in str(error) else "damaged"
        raise broken(reason, f"The entry '{name}' does not inflate: {error}.") from error
    if total != entry.file_size:
        cause = f"The entry '{name}' has {total} bytes, and {entry.file_size} are declared."
        raise broken("damaged", cause)


def _measure(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, budget: Budget) -> None:
    """Inflate an entry that broke, past its declared size: a size that lies hides a bomb.

    Raises:
        Failure: artifact_unsafe (decompression_bomb, size_lies).
    """
    stream = archive.fp
    if entry.compress_type != zipfile.ZIP_DEFLATED or stream is None:
        return
    stream.seek(entry.header_offset + 26)
    stream.seek(sum(struct.unpack("<HH", stream.read(4))), io.SEEK_CUR)
    packed, inflate, total = stream.read(entry.compress_size), zlib.decompressobj(-15), 0
    while packed and not inflate.eof:
        try:
            piece = inflate.decompress(packed, PIECE)
        except zlib.error:
            return
        packed = inflate.unconsumed_tail
        total += len(piece)
        budget.spend(len(piece))
    if total > entry.file_size:
        cause = f"The entry '{entry.filename[:120]}' declares {entry.file_size} bytes, has {total}."
        raise broken("size_lies", cause, Code.artifact_unsafe)


def read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, budget: Budget, limit: int) -> bytes:
    """Return an entry's bytes.

    Raises:
        Failure: as `pieces`, and artifact_unsafe (too_large) beyond the limit.
    """
    collected = bytearray()
    for piece in pieces(archive, entry, budget):
        collected += piece
        if len(collected) > limit:
            cause = f"The entry '{entry.filename[:120]}' has more than {limit} bytes."
            raise broken("too_large", cause, Code.artifact_unsafe)
    return bytes(collected)
