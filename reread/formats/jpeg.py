"""JPEG, CMYK included: decoded to its last row, and that row was in the file.

A decoder fills what is missing with grey and says nothing once an end marker was put behind a cut.
So the picture is decoded again with bytes before its end marker: they mean nothing after a whole
picture, and are drawn where one was cut.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats import Format, Source
from reread.formats._checks import Item, holds, invalid
from reread.formats._raster import MAX_DECODED, decode, identified, is_padded
from reread.values import Check

FORMAT = Format("jpeg", (".jpg", ".jpeg", ".jpe", ".jfif"), "JPEG picture", "image/jpeg", ("jpg",))
PRELOAD = ("PIL.Image", "PIL.JpegImagePlugin", "PIL.ImageChops")
GROWTH = 16

MARKER = re.compile(rb"\xff+([^\x00\xff\xd0-\xd7])")
START_OF_SCAN, END_OF_IMAGE = 0xDA, 0xD9
NO_LENGTH = frozenset({0x01, 0xD8})
MORE = bytes((value * 73 + 41) % 251 for value in range(4096))
"""Bytes that decode as some picture and hold no marker."""


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a picture."""
    data = source.data()
    for item in identified(source, "jpeg", data.startswith(b"\xff\xd8\xff")):
        yield item
        if not (isinstance(item, Check) and item.state == "passed"):
            return
    for item in decode(source, "jpeg", ("JPEG", "MPO"), contract):
        decodes = isinstance(item, Check) and item.name == "jpeg.decodes" and holds([item])
        if decodes and _goes_on(data):
            cause = "Its last rows are not in the file: bytes before its end would be drawn."
            yield invalid("jpeg.rows", "truncated", cause)
            return
        yield item


def _goes_on(data: bytes) -> bool:
    """Say whether the picture was not complete when its end marker came."""
    from PIL import Image, ImageChops

    end = _end(data)
    if end is None:
        return False
    if is_padded(data[:end]):
        return True
    with Image.open(io.BytesIO(data), formats=("JPEG", "MPO")) as picture:
        if picture.width * picture.height * 4 > MAX_DECODED // 2:
            return False  # two of them would not fit
        picture.load()
        longer = data[:end] + MORE + data[end:]
        with Image.open(io.BytesIO(longer), formats=("JPEG", "MPO")) as other:
            other.load()
            return ImageChops.difference(picture, other).getbbox() is not None


def _end(data: bytes) -> int | None:
    """Return where the end marker of the first picture stands, behind all of its scans."""
    at = 2
    while match := MARKER.search(data, at):
        kind = match.group(1)[0]
        if kind == END_OF_IMAGE:
            return match.start()
        at = match.end()
        if kind not in NO_LENGTH:
            at += int.from_bytes(data[at : at + 2], "big")
    return None
