"""Whether the letters of a PDF have shapes: text that was written in a font without them is boxes.

Different letters never look alike. Where several of them do, in the pixels of the page, what is
drawn is the font's sign for "not here", whatever the text layer says.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import Any

STAND_INS = frozenset("\u25a0\u25a1\u25af\ufffd\u2588")
"""What libraries write where a letter has no glyph: squares and the replacement character."""
SAMPLE = 60
SIDE = 12
ALIKE = 26
"""Mean difference of two pictures of letters, of 255, below which they are the same shape."""
LEAST = 4
SCALE_PIXELS = 28


def stand_in_share(text: str) -> float:
    """Return the share of letters that are stand-ins for what could not be written."""
    letters = sum(1 for c in text if c.isalpha() or c in STAND_INS)
    bad = sum(1 for c in text if c in STAND_INS)
    return bad / letters if letters else 0.0


def boxed(page: Any, text_page: Any, text: str) -> int:
    """Return how many different letters of a page, of at most `SAMPLE`, share one shape."""
    places = _letters(text_page, text)
    if len(places) < LEAST:
        return 0
    heights = sorted(box[3] - box[1] for box in places.values())
    scale = SCALE_PIXELS / max(heights[len(heights) // 2], 1.0)
    width, height = page.get_size()
    scale = min(scale, 3_000 / max(width, height, 1.0))
    picture = page.render(scale=scale, grayscale=True).to_pil()
    shapes = [
        shape
        for box in places.values()
        if (shape := _shape(picture, box, height, scale)) is not None
    ]
    groups = Counter[int]()
    firsts: list[bytes] = []
    for shape in shapes:
        same = next((n for n, first in enumerate(firsts) if _alike(first, shape)), len(firsts))
        if same == len(firsts):
            firsts.append(shape)
        groups[same] += 1
    most = groups.most_common(1)[0][1] if groups else 0
    return most if most >= LEAST and most * 2 >= len(shapes) else 0


def _letters(text_page: Any, text: str) -> dict[str, tuple[float, float, float, float]]:
    """Return the places of different letters that a Latin font may lack."""
    places: dict[str, tuple[float, float, float, float]] = {}
    for index, letter in enumerate(text):
        if ord(letter) < 0x370 or letter in places or not letter.isalpha():
            continue
        if unicodedata.category(letter) not in ("Lo", "Lu", "Ll"):
            continue
        if index >= text_page.count_chars() or len(places) >= SAMPLE:
            break
        box = text_page.get_charbox(index, loose=True)
        if box[2] - box[0] > 1 and box[3] - box[1] > 1:
            places[letter] = box
    return places


def _shape(picture: Any, box: tuple[float, ...], height: float, scale: float) -> bytes | None:
    """Return the letter's ink in a small square, None where there is none."""
    left, bottom, right, top = box
    area = (left * scale, (height - top) * scale, right * scale, (height - bottom) * scale)
    crop = picture.crop(tuple(round(value) for value in area))
    low, high = crop.getextrema() if crop.width and crop.height else (0, 0)
    if high - low < 40:
        return None
    ink = crop.point([255 if value > (low + high) // 2 else 0 for value in range(256)])
    inked = ink.point([255 - value for value in range(256)]).getbbox()
    return bytes(crop.crop(inked).resize((SIDE, SIDE)).tobytes()) if inked else None


def _alike(one: bytes, other: bytes) -> bool:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) < ALIKE * SIDE * SIDE
