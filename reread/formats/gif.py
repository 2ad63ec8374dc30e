"""GIF: every frame decodes, and they are not all one colour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats import Format, Source
from reread.formats._checks import Item, invalid, passed, warned
from reread.formats._raster import decode, identified
from reread.values import Check

FORMAT = Format("gif", (".gif",), "GIF picture", "image/gif")
PRELOAD = ("PIL.Image", "PIL.GifImagePlugin")
GROWTH = 12

TRAILER, IMAGE, EXTENSION = 0x3B, 0x2C, 0x21


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a picture."""
    data = source.data()
    for item in identified(source, "gif", data.startswith((b"GIF87a", b"GIF89a"))):
        yield item
        if isinstance(item, Check) and item.state == "passed":
            ends = _ends(data)
            yield ends
            if ends.state != "failed":
                yield from decode(source, "gif", ("GIF",), contract)


def _ends(data: bytes) -> Check:
    """Walk the blocks to the trailer; a file without one that ends between blocks is whole."""
    at = 13 + _table(data[10]) if len(data) > 12 else len(data) + 1
    while at < len(data):
        if data[at] == TRAILER:
            return passed("gif.blocks", "integrity")
        at = _after(data, at)
    if data.endswith(b"\x3b"):
        return passed("gif.blocks", "integrity", "ends with its trailer")  # blocks overrun it
    if at == len(data):
        return warned("gif.blocks", "integrity", "no_trailer", "It has no trailer at its end.")
    return invalid("gif.blocks", "truncated", f"It ends after {len(data)} bytes, inside a block.")


def _table(flags: int) -> int:
    """Return the length of a colour table."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _after(data: bytes, at: int) -> int:
    """Return where the block that starts at `at` ends; beyond the data where it is cut."""
    if data[at] == IMAGE and at + 11 <= len(data):
        at += 11 + _table(data[at + 9])
    elif data[at] == EXTENSION:
        at += 2
    elif data[at] == 0:
        return at + 1  # padding between blocks, which decoders skip
    else:
        return len(data) + 1
    while at < len(data) and data[at]:
        at += 1 + data[at]
    return at + 1
