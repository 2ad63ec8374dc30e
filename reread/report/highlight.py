"""Python source as HTML, one span a line, by one linear pattern.

Does not prove that the source is Python: what it cannot tell is shown as it is.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from html import escape

from markupsafe import Markup

from reread.report.shown import visible

LIMIT = 200_000
"""Characters; what is longer is shown without colours."""

_TOKEN = re.compile(
    r"""
    (?P<c>\#[^\n]*)
  | (?P<s>(?i:[rbfu]{0,2})(?:'''(?:\\.|[^\\])*?(?:'''|\Z)|\"\"\"(?:\\.|[^\\])*?(?:\"\"\"|\Z)
        |'(?:\\.|[^'\\\n])*'?|\"(?:\\.|[^\"\\\n])*\"?))
  | (?P<d>(?<=\n)[ \t]*@[\w.]+)
  | (?P<n>\b\d[\w.]*)
  | (?P<w>[^\W\d]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)
_DEFINES = ("def", "class")


def python(text: str) -> Markup:
    """Return the source as lines of spans; long source without colours."""
    pieces = _pieces(text) if len(text) <= LIMIT else iter([("", text)])
    lines: list[list[str]] = [[]]
    for kind, piece in pieces:
        for number, part in enumerate(piece.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append(_span(kind, part))
    if lines and not lines[-1]:
        lines.pop()
    # Every piece was escaped on its way in; only the spans around them are ours.
    return Markup("\n".join(f'<span class="line">{"".join(line)}</span>' for line in lines))


def _span(kind: str, text: str) -> str:
    shown = escape(visible(text))
    return f'<span class="t-{kind}">{shown}</span>' if kind else shown


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield (kind, text) pieces that together are the source."""
    end, before = 0, ""
    for found in _TOKEN.finditer(text):
        if found.start() > end:
            yield "", text[end : found.start()]
        kind, piece = found.lastgroup or "", found.group()
        if kind == "w":
            kind = _word(piece, before)
            before = piece
        yield kind, piece
        end = found.end()
    if end < len(text):
        yield "", text[end:]


def _word(word: str, before: str) -> str:
    if keyword.iskeyword(word):
        return "k"
    return "f" if before in _DEFINES else ""
