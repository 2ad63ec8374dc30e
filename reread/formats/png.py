"""PNG, still or animated: every chunk has its checksum, and every frame decodes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats import Format, Source
from reread.formats._checks import Item, holds, invalid, passed
from reread.formats._raster import decode, identified
from reread.values import Check

FORMAT = Format("png", (".png", ".apng"), "PNG picture", "image/png", ("apng",))
PRELOAD = ("PIL.Image", "PIL.PngImagePlugin")
GROWTH = 12

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
ADAM7 = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
PIECE = 1 << 18
MANGLED = (b"\x89PNG\n\x1a\n", b"\x89PNG\r\r\n\x1a\r\n", b"\xef\xbf\xbdPNG")


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a picture."""
    data = source.data()
    if data.startswith(MANGLED):
        cause = "It went through something that took it for text and changed its bytes."
        yield invalid("png.identity", "text_transport", cause, depth="identity")
        return
    found = [*identified(source, "png", data.startswith(SIGNATURE))]
    if holds(found):
        found.append(_chunks(data))
    yield from found
    if not holds(found):
        return
    for item in decode(source, "png", ("PNG",), contract):
        if isinstance(item, Check) and item.name == "png.decodes" and item.state == "passed":
            missing = _missing(data)
            if missing:
                cause = f"The last {missing} bytes of its pixels are not in the file."
                yield invalid("png.rows", "truncated", cause)
                return
        yield item


def _chunks(data: bytes) -> Item:
    """Walk the chunks to IEND, comparing each checksum."""
    name, at, kinds = "png.chunks", len(SIGNATURE), []
    view = memoryview(data)
    while at + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        end = at + 12 + length
        if end > len(data):
            break
        if zlib.crc32(view[at + 4 : end - 4]) != int.from_bytes(view[end - 4 : end], "big"):
            cause = f"The checksum of its chunk {kind!r} at byte {at} does not hold."
            return invalid(name, "crc_mismatch", cause)
        kinds.append(kind)
        if kind == b"IEND":
            return _order(name, kinds)
        at = end
    return invalid(name, "truncated", f"It ends after {len(data)} bytes, before its last chunk.")


def _order(name: str, kinds: list[bytes]) -> Item:
    if kinds[0] != b"IHDR" or b"IDAT" not in kinds:
        return invalid(name, "damaged", "It has no header or no pixels.")
    return passed(name, "integrity", f"{len(kinds)} chunks")


def _missing(data: bytes) -> int:
    """Return how many bytes of pixels the header promises and the picture does not have.

    Decoders leave such rows black and say nothing, where the stream was closed in good order.
    """
    width, height, depth, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, 16)
    bits = depth * CHANNELS.get(colour, 1)
    passes = ADAM7 if interlaced else ((0, 0, 1, 1),)
    wanted = 0
    for x, y, across, down in passes:
        columns, rows = -(-(width - x) // across), -(-(height - y) // down)
        wanted += rows * (1 + (columns * bits + 7) // 8) if columns > 0 and rows > 0 else 0
    inflate, have = zlib.decompressobj(), 0
    for chunk in _pixels(data):
        while chunk and have < wanted:
            have += len(inflate.decompress(chunk, PIECE))
            chunk = inflate.unconsumed_tail
    return max(0, wanted - have)


def _pixels(data: bytes) -> Iterator[bytes]:
    at = len(SIGNATURE)
    while at + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"IDAT":
            yield data[at + 8 : at + 8 + length]
        elif kind == b"IEND":
            return
        at += 12 + length
