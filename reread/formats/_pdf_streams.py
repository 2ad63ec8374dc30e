"""The streams of a PDF, inflated with a running bound before a reader gets them."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator

from reread.formats._checks import Item, unsafe

STREAM = re.compile(rb"stream\r?\n")
FILTER = re.compile(rb"/(?:Filter|F)\s*(\[[^\]]*\]|/\w+)")
LENGTH = re.compile(rb"/Length\s+(\d+)(?!\s+\d+\s+R)")
SIDES = (re.compile(rb"/Width\s+(\d{1,9})"), re.compile(rb"/Height\s+(\d{1,9})"))
MAX_PIXELS = 128 << 20
PIXEL_RATIO = 10_000
MAX_HEAD = 2_048
MAX_STREAM = 256 << 20
MAX_TOTAL = 768 << 20
RATIO = 50
PIECE = 1 << 18
MAX_STAGES = 4


def bombs(data: bytes) -> Iterator[Item]:
    """Yield a failure for the first stream that inflates beyond the bound."""
    total = 0
    for match in STREAM.finditer(data):
        head = data[max(0, match.start() - MAX_HEAD) : match.start()]
        head = head[head.rfind(b"obj") :]
        if _is_huge(head, len(data)):
            cause = f"A picture in its {len(data)} bytes declares more pixels than they can hold."
            yield unsafe("pdf.bounded", "decompression_bomb", cause)
            return
        names = re.findall(rb"/(\w+)", b" ".join(FILTER.findall(head)[:1]))
        stages = sum(name in (b"FlateDecode", b"Fl") for name in names)
        if not stages:
            continue
        if stages > MAX_STAGES:
            yield unsafe("pdf.bounded", "decompression_bomb", f"A stream is packed {stages} times.")
            return
        total += _inflated(_body(data, head, match.end(), names), stages)
        if total > MAX_TOTAL or (total > MAX_STREAM and total > RATIO * len(data)):
            cause = f"Its {len(data)} bytes inflate to more than {total >> 20} MiB."
            yield unsafe("pdf.bounded", "decompression_bomb", cause)
            return


def _is_huge(head: bytes, size: int) -> bool:
    if b"/Image" not in head:
        return False
    sides = [int(match.group(1)) for word in SIDES if (match := word.search(head))]
    pixels = sides[0] * sides[1] if len(sides) == 2 else 0
    return pixels > MAX_PIXELS and pixels > PIXEL_RATIO * size


def _body(data: bytes, head: bytes, start: int, names: list[bytes]) -> bytes:
    length = LENGTH.search(head)
    end = start + int(length.group(1)) if length else data.find(b"endstream", start)
    body = data[start : end if end > start else len(data)]
    if names and names[0] in (b"ASCII85Decode", b"A85"):
        try:
            return base64.a85decode(body.strip().removesuffix(b"~>"))
        except ValueError:
            return b""
    return body


def _inflated(body: bytes, stages: int) -> int:
    """Return how many bytes come out of the last stage, at most a little beyond the bound."""
    chain = [zlib.decompressobj() for _ in range(stages)]
    try:
        return sum(len(piece) for piece in _bounded(_through(body, chain)))
    except zlib.error:
        return 0  # encrypted or damaged: whether it opens is the reader's to say


def _bounded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    total = 0
    for piece in pieces:
        yield piece
        total += len(piece)
        if total > MAX_STREAM:
            return


def _through(body: bytes, chain: list[zlib._Decompress]) -> Iterator[bytes]:
    if not chain:
        yield body
        return
    first, rest = chain[0], chain[1:]
    while body and not first.eof:
        piece = first.decompress(body, PIECE)
        body = first.unconsumed_tail
        yield from _through(piece, rest) if rest else (piece,)
        if not piece and not body:
            return
