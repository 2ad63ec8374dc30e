"""Pictures of pixels: each frame is decoded to its last row, and the pixels are looked at.

Proves: the decoder that made for the format takes every frame, and not all pixels are one colour.
Does not prove what is to be seen. JPEG, GIF and WebP carry no checksum: a flipped bit may pass.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats import Source
from reread.formats._bytes import nothing, posing
from reread.formats._checks import Fact, Item, hollow, invalid, passed, unsafe, warned

MAX_DECODED = 192 << 20
"""Bytes of one decoded frame, besides `MAX_GROWTH` times the size of the file."""
MAX_GROWTH = 8
MAX_PIXELS = 256 << 20
"""Pixels of all frames together, beyond which the file must have a byte for each `RATIO`."""
RATIO = 2_000
SAME = 3
"""Steps of a band between which pixels count as one colour."""
TINY = 4
WIDE = {"1": 1, "L": 1, "P": 1, "LA": 4, "PA": 4, "I;16": 2}


def identified(source: Source, format: str, magic: bool) -> Iterator[Item]:
    """Yield the identity check: the bytes start as the format does."""
    data = source.data()
    found = list(nothing(source, data, format))
    if not found and not magic:
        found = list(posing(data, format)) or [
            invalid(
                f"{format}.identity",
                "format_mismatch",
                f"It does not start as the format does, but with {data[:8].hex(' ')}.",
                depth="identity",
            )
        ]
    yield from found or [passed(f"{format}.identity", "identity")]


def is_padded(data: bytes) -> bool:
    """Say whether compressed data ends in a run of NULs, as a download that stopped leaves it."""
    return len(data) - len(data.rstrip(b"\x00")) > max(1024, len(data) // 16)


def decode(
    source: Source, format: str, readers: tuple[str, ...], contract: Mapping[str, Any]
) -> Iterator[Item]:
    """Yield whether each frame decodes, the facts, and whether there is something in them."""
    from PIL import Image, UnidentifiedImageError

    data = source.data()
    Image.MAX_IMAGE_PIXELS = None  # the bound below is ours, and counts bytes
    name = f"{format}.decodes"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=readers) as picture:
                picture.verify()
            picture = Image.open(io.BytesIO(data), formats=readers)
            yield from _frames(picture, data, format, contract)
    except UnidentifiedImageError:
        yield invalid(name, "damaged", "Its header cannot be read.")
    except (OSError, SyntaxError, ValueError, EOFError, KeyError, IndexError) as error:
        yield _told(error, name)


def _told(error: Exception, name: str) -> Item:
    text = str(error)
    if "Decompressed data too large" in text or "Too much memory" in text:
        return unsafe(name, "decompression_bomb", f"A text in it inflates without end: {text}.")
    if "truncated" in text.lower() or isinstance(error, EOFError):
        return invalid(name, "truncated", f"It ends before its last row: {text}.")
    reason = "crc_mismatch" if "checksum" in text or "CRC" in text else "damaged"
    return invalid(name, reason, f"It does not decode: {text or type(error).__name__}.")


def _frames(picture: Any, data: bytes, format: str, contract: Mapping[str, Any]) -> Iterator[Item]:
    width, height = picture.size
    count = 1 if picture.format == "MPO" else getattr(picture, "n_frames", 1)
    decoded = width * height * WIDE.get(picture.mode, 4)
    if decoded > MAX_DECODED + MAX_GROWTH * len(data) or (
        width * height * count > max(MAX_PIXELS, RATIO * len(data))
    ):
        cause = f"Its {len(data)} bytes decode to {count} times {width} x {height} pixels."
        yield unsafe(f"{format}.bounded", "decompression_bomb", cause)
        return
    seen: list[bool] = []
    for number in range(count):
        picture.seek(number)
        picture.load()
        seen.append(is_flat(picture))
    yield passed(f"{format}.decodes", "integrity", f"{width} x {height}, {picture.mode}")
    yield Fact("width", width)
    yield Fact("height", height)
    yield Fact("frames", count)
    yield from _substance((width, height), seen, format, contract)


def is_flat(picture: Any) -> bool:
    """Say whether all pixels are the same to the eye, over white where they are transparent."""
    from PIL import Image

    if picture.mode in ("P", "PA", "LA", "La", "RGBa") or (
        "transparency" in picture.info and picture.mode in ("L", "RGB", "1")
    ):
        picture = picture.convert("RGBA")
    if picture.mode == "RGBA" and picture.getextrema()[3][0] < 255:
        white = Image.new("RGBA", picture.size, "white")
        black = Image.new("RGBA", picture.size, "black")
        return all(_same(Image.alpha_composite(under, picture)) for under in (white, black))
    return _same(picture)


def _same(picture: Any) -> bool:
    extrema = picture.getextrema()
    bands = extrema if isinstance(extrema[0], tuple) else (extrema,)
    return all(high - low <= SAME for low, high in bands)


def _substance(
    size: tuple[int, int], flat: list[bool], format: str, contract: Mapping[str, Any]
) -> Iterator[Item]:
    name = f"{format}.has_content"
    width, height = size
    if contract.get("purpose") == "icon" or contract.get("allow_empty"):
        yield passed(name, "substance", "the contract takes small and flat pictures")
    elif size == (1, 1):
        yield hollow(name, "one_pixel", "It is one pixel.")
    elif width * height <= TINY:
        yield hollow(name, "one_pixel", f"It has {width} x {height} pixels.")
    elif all(flat):
        yield hollow(name, "flat", f"All of its {width} x {height} pixels are one colour.")
    elif len(flat) > 1 and sum(flat) * 2 > len(flat):
        cause = f"{sum(flat)} of its {len(flat)} frames are one colour."
        yield warned(name, "substance", "flat_frames", cause)
    else:
        yield passed(name, "substance")
