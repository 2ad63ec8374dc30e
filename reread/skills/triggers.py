"""Where a trigger occurs in a text: whole words for alphabets, contiguous characters for Chinese.

The last word of a trigger may be inflected, from a closed set of English endings. A looser rule
(any ending, parts of words) finds more, and mostly what nobody asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from reread.skills.folding import UNSPACED, Folded, fold

SHORTEST = 2
INFLECTED_FROM = 4

Rule = Literal["whole words", "inflected", "contiguous characters"]

_EDGE_BEFORE = rf"(?<![^\W_{UNSPACED}])"
_EDGE_AFTER = rf"(?![^\W_{UNSPACED}])"
_BETWEEN = r"[\s_\-\u2010-\u2015]+"
_LOOSELY = r"[\s_\-\u2010-\u2015]*"
_TOKEN = re.compile(rf"([{UNSPACED}])|([^\W_{UNSPACED}]+)|([^\w\s])|([\s_]+)")


@dataclass(frozen=True, slots=True)
class Hit:
    """One occurrence of a trigger.

    Attributes:
        start: in the folded text, as is `end`; `Folded.place` leads to the original.
    """

    trigger: str
    start: int
    end: int
    rule: Rule


@dataclass(frozen=True, slots=True)
class Trigger:
    """A declared trigger, ready to be looked for.

    Attributes:
        needed: what every occurrence holds; a text without that is not searched, since compiling
            a pattern costs far more than most texts are worth.
    """

    text: str
    pattern: str
    needed: tuple[str, ...]
    spaced: bool

    def hits(self, task: Folded) -> Iterator[Hit]:
        """Yield every occurrence."""
        if not all(part in task.text for part in self.needed):
            return
        for found in _compiled(self.pattern).finditer(task.text):
            inflected = self.spaced and bool(found["ending"])
            rule: Rule = "inflected" if inflected else "whole words"
            yield Hit(self.text, *found.span(), rule if self.spaced else "contiguous characters")


@lru_cache(maxsize=65536)
def trigger(text: str) -> Trigger | None:
    """Prepare a trigger; None for one that is too short to mean anything."""
    folded = fold(text).text.strip()
    if len(re.sub(r"[\W_]", "", folded)) < SHORTEST:
        return None
    tokens = [found for found in _TOKEN.finditer(folded)]
    spaced = _is_spaced(tokens[-1])
    words = [token[0] for token in tokens if token[4] is None]
    needed = (*words[:-1], _uninflected(words[-1]) if spaced else words[-1])
    return Trigger(text, _pattern(tokens), needed, spaced)


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _is_spaced(token: re.Match[str]) -> bool:
    return token[2] is not None


def _pattern(tokens: list[re.Match[str]]) -> str:
    parts: list[str] = []
    words = sum(_is_spaced(token) for token in tokens)
    for index, token in enumerate(tokens):
        last = index == len(tokens) - 1
        before = tokens[index - 1] if index else None
        if before is not None and token[4] is None:
            parts.append(_gap(before, token))
        if token[4] is not None:
            parts.append(_between(tokens[index - 1 : index + 2]))
        elif _is_spaced(token) and last:
            parts.append(_EDGE_BEFORE + _inflections(token[2], phrase=words > 1) + _EDGE_AFTER)
        elif _is_spaced(token):
            parts.append(_EDGE_BEFORE + re.escape(token[2]) + _EDGE_AFTER)
        else:
            parts.append(re.escape(token[0]))
    return "".join(parts)


def _between(around: list[re.Match[str]]) -> str:
    """Return what may stand where the trigger has a blank."""
    both_words = len(around) == 3 and _is_spaced(around[0]) and _is_spaced(around[2])
    return _BETWEEN if both_words else _LOOSELY


def _gap(before: re.Match[str], token: re.Match[str]) -> str:
    """Return what may stand where the trigger has nothing between two characters."""
    if before[1] is not None and token[1] is not None:
        return r"[^\S\n]*\n?[^\S\n]*"
    return _LOOSELY if (before[1] or token[1]) and (before[2] or token[2]) else ""


def _inflections(word: str, *, phrase: bool) -> str:
    """Return the pattern of a word with its endings; the group `ending` holds what was added."""
    if not word.isascii() or not word.isalpha():
        return re.escape(word) + r"(?P<ending>(?!))?"
    forms = [f"{word}(?P<ending>{'|'.join(_endings(word))})?"]
    if phrase and len(word) >= INFLECTED_FROM and word.endswith("s") and not word.endswith("ss"):
        forms.append(word[:-1])
    changed = _changed(word)
    return f"(?:{'|'.join([*forms, *changed])})"


def _uninflected(word: str) -> str:
    """Return what all forms of a word begin with: tr for try, translat for translate."""
    return word[:-1] if word[-1] in "eys" else word


def _endings(word: str) -> list[str]:
    return ["s", "es", "ed", "ing"] if len(word) >= INFLECTED_FROM else ["s", "es"]


def _changed(word: str) -> list[str]:
    """Return the forms in which the word itself changes: tries, translating, plotted."""
    forms = []
    vowels = "aeiou"
    if word[-1] == "y" and len(word) > 2 and word[-2] not in vowels:
        forms += [f"{word[:-1]}ies", *([f"{word[:-1]}ied"] if len(word) >= INFLECTED_FROM else [])]
    if len(word) < INFLECTED_FROM:
        return forms
    if word[-1] == "e":
        forms += [f"{word[:-1]}ing", f"{word}d"]
    doubles = word[-1] not in f"{vowels}wxy" and word[-2] in vowels and word[-3] not in vowels
    if doubles:
        forms += [f"{word}{word[-1]}ed", f"{word}{word[-1]}ing"]
    return forms
