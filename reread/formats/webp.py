"""WebP, still or animated: the container has its declared length, and every frame decodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats import Format, Source
from reread.formats._checks import Item, invalid
from reread.formats._raster import decode, identified, is_padded
from reread.values import Check

FORMAT = Format("webp", (".webp",), "WebP picture", "image/webp")
PRELOAD = ("PIL.Image", "PIL.WebPImagePlugin")
GROWTH = 12


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a picture."""
    data = source.data()
    magic = data[:4] == b"RIFF" and data[8:12] == b"WEBP"
    for item in identified(source, "webp", magic):
        yield item
        if not (isinstance(item, Check) and item.state == "passed"):
            return
    declared = int.from_bytes(data[4:8], "little") + 8
    if declared > len(data):
        cause = f"It declares {declared} bytes and has {len(data)}."
        yield invalid("webp.ends", "truncated", cause)
        return
    if is_padded(data[:declared]):
        yield invalid("webp.ends", "truncated", "It ends in NUL bytes instead of picture.")
        return
    yield from decode(source, "webp", ("WEBP",), contract)
