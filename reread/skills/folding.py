"""Text in the form in which triggers are compared, with the way back to the original.

NFKC, then casefold, format characters dropped, Traditional Chinese characters as Simplified ones.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# Scripts written without blanks between words: there a word has no edge that could be seen.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007"
    "\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text.

    Attributes:
        starts: index in `text` → index of the original character that it comes from.
        ends: index in `text` → index behind that character.
    """

    original: str
    text: str
    starts: tuple[int, ...] | range
    ends: tuple[int, ...] | range

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return where a stretch of the folded text, not empty, stands in the original."""
        return self.starts[start], self.ends[end - 1]


def fold(text: str) -> Folded:
    """Fold a text."""
    if text.isascii():
        return Folded(text, text.lower(), range(len(text)), range(1, len(text) + 1))
    simplified = _simplified()
    made: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    index = 0
    while index < len(text):
        end = index + 1
        while end < len(text) and unicodedata.category(text[end])[0] == "M":
            end += 1
        folded = unicodedata.normalize("NFKC", text[index:end]).casefold()
        folded = unicodedata.normalize("NFKC", folded)
        for character in folded:
            if unicodedata.category(character) != "Cf":
                made.append(simplified.get(character, character))
                starts.append(index)
                ends.append(end)
        index = end
    return Folded(text, "".join(made), tuple(starts), tuple(ends))


@cache
def _simplified() -> dict[str, str]:
    """Return Traditional character → Simplified one, where one stands for one."""
    table = Path(__file__).with_name("simplified.txt").read_text("utf-8")
    lines = (line for line in table.splitlines() if not line.startswith("#"))
    return {pair[0]: pair[1] for line in lines for pair in line.split()}
