"""Whether the letters of a PDF have shapes: text that was written in a font without them is boxes.

Different letters never look alike. Where several of them do, in the pixels of the page, what is
drawn is the font's sign for "not here", whatever the text layer says.
"""

from __future__ import annotations

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
LONGEST = 3_000
MAX_CHARACTERS = 4_000
LATIN = 0x370


def stand_in_share(text: str) -> float:
    """Return the share of letters that are stand-ins for what could not be written."""
    letters = sum(1 for c in text if c.isalpha() or c in STAND_INS)
    bad = sum(1 for c in text if c in STAND_INS)
    return bad / letters if letters else 0.0


def boxed(page: Any, text_page: Any) -> float:
    """Return the share of a page's letters that are drawn as one and the same box."""
    letters, places, foreign = _letters(text_page)
    if len(places) < LEAST:
        return 0.0
    heights = sorted(box[3] - box[1] for box in places)
    width, height = page.get_size()
    scale = SCALE_PIXELS / max(heights[len(heights) // 2], 1.0)
    scale = min(scale, LONGEST / max(width, height, 1.0))
    picture = page.render(scale=scale, grayscale=True).to_pil()
    found = [_shape(picture, box, height, scale) for box in places]
    shapes = [shape for shape in found if shape is not None]
    groups: Counter[int] = Counter()
    firsts: list[bytes] = []
    for shape in shapes:
        same = next((n for n, first in enumerate(firsts) if _alike(first, shape)), len(firsts))
        if same == len(firsts):
            firsts.append(shape)
        groups[same] += 1
    most = max(groups.values(), default=0)
    return foreign / max(letters, 1) if most >= LEAST and most * 2 >= len(shapes) else 0.0


def _letters(text_page: Any) -> tuple[int, list[tuple[float, ...]], int]:
    """Return how many letters there are, the places of some that may lack a shape, and their count.

    Those are letters of other scripts, each once, and characters without a Unicode value, which is
    what a missing letter becomes when a font is cut down to the letters in use.
    """
    from pypdfium2 import raw

    places: dict[object, tuple[float, ...]] = {}
    letters = foreign = 0
    for index in range(min(text_page.count_chars(), MAX_CHARACTERS)):
        code = raw.FPDFText_GetUnicode(text_page, index)
        letter = chr(code) if 0 < code < 0x110000 else ""
        letters += letter.isalpha() or code == 0
        if code and not (code >= LATIN and letter.isalpha()):
            continue
        foreign += 1
        key: object = letter or index
        if key in places or len(places) >= SAMPLE:
            continue
        box = text_page.get_charbox(index, loose=True)
        if box[2] - box[0] > 1 and box[3] - box[1] > 1:
            places[key] = box
    return letters, list(places.values()), foreign


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
    if not inked or (inked[3] - inked[1]) * 5 < crop.height * 2:
        return None  # dots and dashes are alike, and right
    return bytes(crop.crop(inked).resize((SIDE, SIDE)).tobytes())


def _alike(one: bytes, other: bytes) -> bool:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) < ALIKE * SIDE * SIDE
