"""What bytes really are, to explain why they are not what the name says.

Never the verdict: a module's own checks decide. This only finds the better word for a failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from reread.formats import Source
from reread.formats._checks import Item, hollow, invalid

MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "a PDF"),
    (b"\x89PNG\r\n\x1a\n", "a PNG"),
    (b"\xff\xd8\xff", "a JPEG"),
    (b"GIF8", "a GIF"),
    (b"PK\x03\x04", "a zip package"),
    (b"PK\x05\x06", "an empty zip package"),
    (b"\xd0\xcf\x11\xe0", "an old Office file, or an encrypted one"),
    (b"\x1f\x8b", "gzip data"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"PAR1", "a Parquet file"),
    (b"RIFF", "a RIFF file"),
    (b"{\\rtf", "an RTF document"),
    (b"\x7fELF", "a program"),
)
LFS = b"version https://git-lfs.github.com/spec/v1"
_BASE64 = re.compile(rb"[A-Za-z0-9+/\-_]{4}[A-Za-z0-9+/\-_\r\n]*={0,2}\s*")


def kind(data: bytes) -> str:
    """Return a word for what the bytes start as, '' where nothing is recognised."""
    head = data[:1024]
    for magic, name in MAGIC:
        if head.startswith(magic):
            return name
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if text.startswith((b"<!doctype html", b"<html", b"<head", b"<body", b"<table")):
        return "an HTML page"
    if text.startswith((b"<?xml", b"<svg")):
        return "XML text"
    if text[:1] in (b"{", b"["):
        return "JSON text"
    return ""


def nothing(source: Source, data: bytes, format: str) -> Iterator[Item]:
    """Yield the failure of a file that holds nothing: no bytes, white space or NULs only."""
    if not data.strip(b"\x00 \t\r\n\xef\xbb\xbf"):
        what = "no bytes" if not data else f"{len(data)} bytes of nothing"
        yield invalid(f"{format}.has_bytes", "empty", f"It has {what}.", depth="identity")


def posing(data: bytes, format: str) -> Iterator[Item]:
    """Yield the failure of bytes that stand in for a binary file: pointer, page, base64, text."""
    name = f"{format}.identity"
    if data.startswith(LFS):
        yield hollow(name, "lfs_pointer", "It is a Git LFS pointer and not the file itself.")
        return
    found = kind(data)
    if found == "an HTML page":
        yield invalid(name, "is_html", "It is an HTML page.", depth="identity")
    elif data[:5] == b"data:" or _is_base64(data):
        yield invalid(name, "is_base64", "It is base64 text of a file.", depth="identity")
    elif found:
        yield invalid(name, "format_mismatch", f"It is {found}.", depth="identity")
    elif data[:4096].count(b"\xef\xbf\xbd") > 8:
        yield invalid(
            name, "utf8_replaced", "Its bytes were taken for text and replaced.", depth="identity"
        )


def _is_base64(data: bytes) -> bool:
    sample = data[:4096].strip()
    if len(data.strip()) < 32 or not _BASE64.fullmatch(data[: 1 << 20]):
        return False
    # Prose in one word is no base64: that has capitals, small letters and digits mixed.
    return all(
        any(low <= c <= high for c in sample) for low, high in ((48, 57), (65, 90), (97, 122))
    )
