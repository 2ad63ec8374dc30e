"""What the loader has to say about a skill: code, severity, place, hint.

The first letter of a code is its severity: E (that skill, or that file of it, is not used), W (it
loads, and something should be put right), I (worth knowing). CODES is the closed list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]

_SEVERITIES: Mapping[str, Severity] = {"E": "error", "W": "warning", "I": "info"}

CODES: Mapping[str, str] = {
    "E-FM-MISSING": "Start the file with a line ---, then name and description, then --- again.",
    "E-FM-UNCLOSED": "Put a line --- behind the front matter.",
    "E-FM-NOT-MAPPING": "Write the front matter as lines of the form key: value.",
    "E-YAML": "Put quotes around values that hold ': ' or start with a special character.",
    "E-YAML-ALIAS": "Write the value out; anchors (&) and aliases (*) are not followed.",
    "E-YAML-TAG": "Leave the tag (!…) out; nothing is constructed from front matter.",
    "E-YAML-LIMIT": "Make the front matter smaller and flatter.",
    "E-DUP-KEY": "Keep one of the two.",
    "E-DESC-MISSING": "Add description: what the skill does and when to use it.",
    "E-DESC-TYPE": "Write the description as one text.",
    "E-NAME-UNSAFE": "Use small letters, digits and single hyphens.",
    "E-CONTROL": "Remove the character; only line feeds and tabs are allowed.",
    "E-ENCODING": "Save the file as UTF-8.",
    "E-TOO-LARGE": "Move parts of it into files below references/.",
    "E-UNREADABLE": "Make it a regular file that you may read.",
    "E-LINK-OUTSIDE": "Copy it in, or name the folder it points into with --skills-root.",
    "E-REF-ESCAPE": "Keep the file inside the skill's folder and name it from there.",
    "W-YAML-REPAIRED": "Put quotes around the value.",
    "W-YAML-SALVAGED": "Mend the YAML; until then the skill is used only when named exactly.",
    "W-NAME-MISSING": "Add name:, equal to the folder.",
    "W-NAME-DIR": "Make the name and the folder equal.",
    "W-NAME-CHARS": "Use small letters, digits and single hyphens.",
    "W-NAME-LEN": "Use at most 64 characters.",
    "W-NAME-COLLISION": "Rename one of the two.",
    "W-DESC-LONG": "Use at most 1024 characters; the catalog shortens it.",
    "W-COMPAT-LONG": "Use at most 500 characters.",
    "W-UNKNOWN-FIELD": "Put it below metadata:, where clients keep what is theirs.",
    "W-FIELD-TYPE": "Write it as the kind of value that the field has.",
    "W-METADATA-NESTED": "Keep metadata a flat map of texts.",
    "W-METADATA-TYPE": "Write metadata as key: value lines.",
    "W-FILENAME-CASE": "Call the file SKILL.md.",
    "W-BODY-OVER-CAP": "Move parts of it into files below references/.",
    "W-REF-MISSING": "Add the file or take the name out.",
    "I-BOM": "Save the file without a byte order mark.",
    "I-CRLF": "Line ends are read as line feeds.",
    "I-FENCE-WS": "Write the fence as exactly ---.",
    "I-NAME-NONASCII": "Some clients take ASCII names only.",
    "I-DESC-COMMENT": "Put quotes around the description, or the text behind # is a comment.",
    "I-DESC-MARKUP": "It is escaped where it is shown.",
    "I-ALLOWED-TOOLS-LIST": "The standard wants one text with spaces.",
    "I-ALLOWED-TOOLS-COMMA": "The standard separates with spaces.",
    "I-BODY-EMPTY": "Say in the body what to do.",
    "I-BODY-LONG": "Keep the body below 500 lines and the rest in references/.",
    "I-NESTED-SKILL": "Move it up: only the folders directly in a root are skills.",
    "I-LINK-FOLLOWED": "The link points into a configured root.",
    "E-SEED-FORM": "Save it as UTF-8 without a byte order mark, at most 64 KiB, without aliases.",
    "E-SEED-FIELDS": "Write exactly name, description, triggers and references.",
    "E-SEED-NAME": "Use [a-z][a-z0-9-]{0,47}, equal to the folder.",
    "E-SEED-DESCRIPTION": "Write the description as one text that is not blank.",
    "E-SEED-TRIGGERS": "Give 1 to 12 texts of 2 to 80 characters without blanks around them.",
    "E-SEED-REFERENCES": "Give at most 4 relative paths inside the skill's folder.",
    "E-SEED-BODY": "Give the body a heading of the first level: # Title.",
}
"""Code → what to do about it."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about one skill.

    Attributes:
        skill: key of the skill, or its folder's name where it has none.
        path: of the file, as it was found.
        line: from 1; 0 where it is about the whole file.
        message: what was found, with the offending value.
        reason: word of the rule of the seed profile that rejects it, else ''.
    """

    code: str
    skill: str
    path: str
    line: int
    message: str
    reason: str = ""

    @property
    def severity(self) -> Severity:
        """Return error, warning or info."""
        return _SEVERITIES[self.code[0]]

    @property
    def hint(self) -> str:
        """Return what to do about it."""
        return CODES[self.code]

    def as_json(self) -> dict[str, Any]:
        """Return it as the result and the record show it."""
        return {
            "code": self.code,
            "severity": self.severity,
            "skill": visible(self.skill),
            "path": visible(self.path),
            "line": self.line,
            "message": self.message,
            "hint": self.hint,
        }

    def __str__(self) -> str:
        place = f"{visible(self.path)}:{self.line}" if self.line else visible(self.path)
        return f"{place}: {self.code} {self.message}\n    {self.hint}"


def visible(text: str, *, limit: int = 0) -> str:
    r"""Return text in which nothing hides: what does not print becomes \u202e and the like.

    Args:
        limit: characters after which the rest is left out; 0 for none.
    """
    shown = "".join(c if c.isprintable() else _escaped(c) for c in text)
    return shown if not limit or len(shown) <= limit else f"{shown[:limit]}…"


def visible_lines(text: str) -> str:
    r"""Return a text of several lines in which only line feeds and tabs stay what they are."""
    return "".join(c if c.isprintable() or c in "\n\t" else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
