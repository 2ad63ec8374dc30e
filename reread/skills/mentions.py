"""Stretches of a task that name or quote something instead of asking for it.

Code, paths, addresses, quotations: a trigger in there is worth a suggestion, no more. The type of a
file (`march.pdf`) is the exception, for it says what the work is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from reread.patterns import compiled_later
from reread.skills.folding import UNSPACED

Kind = Literal["in code", "in an address", "in a path", "in an identifier", "in a quotation"]

_FENCED = compiled_later(
    r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_INLINE = compiled_later(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_ADDRESS = compiled_later(
    rf"(?:\b[a-z][a-z0-9+.-]*://|\bwww\.)[^\s<>\"'{UNSPACED}，。]+|\b[\w.+-]+@[\w-]+\.[\w.-]+",
    re.IGNORECASE,
)
_QUOTED = compiled_later(
    r"“[^“”]{1,400}”|「[^「」]{1,400}」|『[^『』]{1,400}』|《[^《》]{1,200}》|‘[^‘’]{1,200}’"
    r"|(?<!\w)\"[^\"\n]{1,400}\"|(?<!\w)'[^'\n]{1,200}'(?!\w)|«[^«»]{1,400}»"
    r"|^[ \t]*>.*$",
    re.MULTILINE,
)
_TOKEN = compiled_later(rf"[^\s,，。;；：、!！?？\"'“”‘’「」<>《》()（）\[\]【】{{}}|`{UNSPACED}]+")
_FILE_TYPE = compiled_later(r"\.([A-Za-z0-9]{1,5})$")
_ROOTED = compiled_later(r"^(?:~|\.{1,2}|[A-Za-z]:)?[/\\]\S")

_TYPES = compiled_later(
    r"pdf|docx?|odt|rtf|txt|md|rst|tex|csv|tsv|xlsx?|xlsm|ods|parquet|jsonl?|ya?ml|toml|xml|html?"
    r"|css|[jt]sx?|vue|py|ipynb|rb|go|rs|c|h|cpp|hpp|java|kt|swift|php|sh|bat|ps1|sql|db|sqlite|ini"
    r"|cfg|log|pptx?|odp|png|jpe?g|gif|svg|webp|tiff?|bmp|ico|mp[34]|wav|mov|avi|mkv|zip|tar|t?gz"
    r"|bz2|xz|7z|rar|epub|eml|msg|ics|vcf",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Mention:
    """A stretch of the original text.

    Attributes:
        type_start: where the file's type begins in it; `end` where it has none.
    """

    start: int
    end: int
    kind: Kind
    type_start: int

    def weakens(self, start: int, end: int) -> bool:
        """Say whether a hit there names something; the hit may be the type of a file."""
        if end <= self.start or start >= self.end:
            return False
        if (start, end) == (self.start, self.end) and self.kind in (
            "in an identifier",
            "in a path",
        ):
            return False  # code_review and node.js as a whole are the phrase itself
        return start < self.type_start or self.kind in ("in code", "in a quotation")


def mentions(text: str) -> tuple[Mention, ...]:
    """Return the stretches of a task that only name something."""
    return tuple([*_of(_FENCED, "in code", text), *_code(text), *_quoted(text), *_named(text)])


def _of(pattern: re.Pattern[str], kind: Kind, text: str) -> Iterator[Mention]:
    for found in pattern.finditer(text):
        yield Mention(found.start(), found.end(), kind, found.end())


def _code(text: str) -> Iterator[Mention]:
    yield from _of(_INLINE, "in code", text)


def _quoted(text: str) -> Iterator[Mention]:
    yield from _of(_QUOTED, "in a quotation", text)


def _named(text: str) -> Iterator[Mention]:
    for found in _ADDRESS.finditer(text):
        yield Mention(*found.span(), "in an address", _type_start(found[0], found.start()))
    for found in _TOKEN.finditer(text):
        token = found[0].rstrip(".:")
        end = found.start() + len(token)
        if kind := _kind(token, text[end : end + 4]):
            yield Mention(found.start(), end, kind, _type_start(token, found.start()))
    for found in re.finditer(rf"[{UNSPACED}]+(?=\.([A-Za-z0-9]{{1,5}})(?![\w.]))", text):
        if _TYPES.fullmatch(found[1]):
            # Where a name in Chinese begins cannot be seen; what touches its type belongs to it.
            yield Mention(found.end() - 1, found.end(), "in a path", found.end())


def _kind(token: str, following: str) -> Kind | None:
    if _is_path(token):
        return "in a path"
    called = following.startswith("(") and not re.match(r"\(e?s\)", following)
    if token.isascii() and ((called and token.isidentifier()) or re.match(r"--?[A-Za-z]", token)):
        return "in an identifier" if not called else "in code"
    return "in an identifier" if "_" in token.strip("_") else None


def _is_path(token: str) -> bool:
    name = re.split(r"[/\\]", token)[-1]
    typed = _FILE_TYPE.search(name)
    if typed and _TYPES.fullmatch(typed[1]) and typed.start() > 0:
        return True
    slashes = token.count("/") + token.count("\\")
    ends = len(token) > 2 and token[-1] in "/\\"
    return slashes > 0 and (slashes > 1 or ends or bool(_ROOTED.match(token)))


def _type_start(token: str, start: int) -> int:
    typed = _FILE_TYPE.search(token)
    known = typed is not None and _TYPES.fullmatch(typed[1]) is not None
    return start + (typed.start(1) if typed and known else len(token))
