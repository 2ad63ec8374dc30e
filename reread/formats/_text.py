"""Bytes as text, for the formats that are text."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass

from reread.formats import Source
from reread.formats._bytes import LFS, nothing
from reread.formats._checks import Item, hollow, invalid, passed

BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


LEGACY = ("cp1252", "cp932", "gb18030", "euc_kr")
"""What spreadsheets write where they do not write Unicode, the one with the most gaps first."""


@dataclass(frozen=True, slots=True)
class Text:
    """Decoded text, and how it was decoded."""

    text: str
    encoding: str


def encoding_of(head: bytes) -> str:
    """Return the encoding that a byte order mark names, '' for none."""
    return next((name for mark, name in BOMS if head.startswith(mark)), "")


def decode(data: bytes, *, other: bool = False) -> Text | None:
    """Decode UTF-8, or what a byte order mark names; None where that fails.

    Args:
        other: also take the old encodings of spreadsheets; there must be no controls then.
    """
    encoding = encoding_of(data) or "utf-8"
    try:
        return Text(data.decode(encoding), encoding)
    except UnicodeDecodeError:
        pass
    if other and not any(byte < 9 or 13 < byte < 32 for byte in data[: 1 << 20]):
        legacy = legacy_of(data, final=True)
        return Text(data.decode(legacy), legacy) if legacy else None
    return None


def legacy_of(data: bytes, *, final: bool = False) -> str:
    """Return the first of the old encodings in which the bytes are text, '' for none.

    Args:
        final: the bytes are all; a start may end inside of a character.
    """
    for name in LEGACY:
        try:
            codecs.getincrementaldecoder(name)().decode(data, final)
        except UnicodeDecodeError:
            continue
        return name
    return ""


def read_text(source: Source, format: str, *, other: bool = False) -> Iterator[Item | Text]:
    """Yield the checks that the bytes are text, and the Text itself last where they are."""
    data = source.data()
    found = list(nothing(source, data, format))
    yield from found
    if found:
        return
    if data.startswith(LFS):
        yield hollow(
            f"{format}.identity", "lfs_pointer", "It is a Git LFS pointer and not the file itself."
        )
        return
    decoded = decode(data, other=other)
    if decoded is None or "\x00" in decoded.text:
        yield invalid(f"{format}.is_text", "not_text", _why(data, decoded), depth="identity")
        return
    yield passed(f"{format}.is_text", "identity", decoded.encoding)
    yield decoded


def _why(data: bytes, decoded: Text | None) -> str:
    if decoded is not None:
        return f"It holds a NUL at character {decoded.text.index(chr(0))}."
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"It is not UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}."
    return "It is not text in the encoding that its first bytes name."
