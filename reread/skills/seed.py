"""The seed profile: the strict form of a skill, for the tutorial and for all that is written here.

Proves: a skill that passes loads the same under every profile, and its folder, name and triggers
are what they say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, get_args

from reread.skills.diagnostics import Diagnostic
from reread.skills.skill import SEED_FIELDS, Parsed, headings

Profile = Literal["seed", "standard", "standard-strict"]
PROFILES: tuple[Profile, ...] = get_args(Profile)

MAX_FILE = 64 << 10
MAX_TRIGGERS = 12
TRIGGER_LENGTH = 80
MAX_REFERENCES = 4
NAME = re.compile(r"[a-z][a-z0-9-]{0,47}")

_READ: dict[str, str] = {
    "E-FM-MISSING": "no-frontmatter",
    "I-BOM": "no-frontmatter",
    "I-FENCE-WS": "no-frontmatter",
    "E-FM-UNCLOSED": "unclosed",
    "E-FM-NOT-MAPPING": "not-mapping",
    "E-DUP-KEY": "duplicate",
    "E-ENCODING": "encoding",
    "E-YAML": "yaml",
    "E-YAML-ALIAS": "yaml",
    "E-YAML-TAG": "yaml",
    "E-YAML-LIMIT": "yaml",
    "E-CONTROL": "yaml",
    "W-YAML-REPAIRED": "yaml",
    "W-YAML-SALVAGED": "yaml",
}
"""Code of the lenient reading → word of the rule that the seed profile breaks."""


def violations(parsed: Parsed, *, size: int, folder: str, path: str) -> Iterator[Diagnostic]:
    """Yield what keeps a file from the seed profile, the first cause first.

    Args:
        size: bytes of the file.
    """
    key = parsed.skill.name if parsed.skill else folder
    if size > MAX_FILE:
        yield Diagnostic("E-SEED-FORM", key, path, 0, f"it has {size} bytes", "size")
    for found in parsed.diagnostics:
        if found.code in _READ:
            text = f"{found.code}: {found.message}"
            yield Diagnostic("E-SEED-FORM", key, path, found.line, text, _READ[found.code])
    front = parsed.front
    if front is None:
        # The skill did not load; whatever kept it from that is in a field.
        if not any(found.code in _READ for found in parsed.diagnostics):
            yield Diagnostic("E-SEED-FIELDS", key, path, 2, "a field is missing or odd", "fields")
        return
    if not front.values:
        yield Diagnostic("E-SEED-FORM", key, path, 2, "the front matter is empty", "not-mapping")
    elif front.values.keys() != SEED_FIELDS:
        shown = ", ".join(sorted(front.values.keys() ^ SEED_FIELDS))
        text = f"too many or too few: {shown}"
        yield Diagnostic("E-SEED-FIELDS", key, path, 2, text, "fields")
    else:
        yield from _fields(parsed, folder, path)


def _fields(parsed: Parsed, folder: str, path: str) -> Iterator[Diagnostic]:
    front = parsed.front
    if front is None:
        return
    values, lines = front.values, front.lines

    def wrong(code: str, field: str, message: str) -> Diagnostic:
        return Diagnostic(code, folder, path, lines.get(field, 2), message, field)

    def is_text(*place: str | int, value: object) -> bool:
        return isinstance(value, str) and place not in front.typed

    name, description = values["name"], values["description"]
    if not is_text("name", value=name) or not NAME.fullmatch(str(name)) or name != folder:
        yield wrong("E-SEED-NAME", "name", f"the name is '{name}', the folder '{folder}'")
    if not is_text("description", value=description) or not str(description).strip():
        yield wrong("E-SEED-DESCRIPTION", "description", "it is blank or no text")
    triggers = values["triggers"]
    if not isinstance(triggers, list) or not 1 <= len(triggers) <= MAX_TRIGGERS:
        yield wrong("E-SEED-TRIGGERS", "triggers", "there are not 1 to 12 of them")
    elif bad := [
        item
        for index, item in enumerate(triggers)
        if not is_text("triggers", index, value=item) or not _is_trigger(str(item))
    ]:
        yield wrong("E-SEED-TRIGGERS", "triggers", f"{bad[0]!r} is no trigger")
    references = values["references"]
    fits = isinstance(references, list) and len(references) <= MAX_REFERENCES
    if not fits or not all(
        is_text("references", index, value=item) and str(item).strip()
        for index, item in enumerate(references)
    ):
        yield wrong("E-SEED-REFERENCES", "references", "it is not a list of at most 4 paths")
    if not any(level == 1 for level, _ in headings(parsed.body)):
        line = parsed.skill.body_line if parsed.skill else 0
        text = "there is no heading of the first level"
        yield Diagnostic("E-SEED-BODY", folder, path, line, text, "body")


def _is_trigger(text: str) -> bool:
    return 2 <= len(text) <= TRIGGER_LENGTH and text == text.strip() and text.isprintable()


def held(parsed: Parsed, profile: Profile, *, size: int, folder: str, path: str) -> Parsed:
    """Return what a profile makes of a file that was read leniently."""
    if profile == "standard":
        return parsed
    if profile == "seed":
        broken = tuple(violations(parsed, size=size, folder=folder, path=path))
        if not broken:
            return parsed
        return Parsed(None, broken, parsed.parts, parsed.front)
    if any(found.code[0] in "EW" for found in parsed.diagnostics):
        return Parsed(None, parsed.diagnostics, parsed.parts, parsed.front)
    return parsed


def profile_for(parsed: Parsed) -> Profile:
    """Return the profile that a skill is validated by where none is asked for."""
    return "seed" if parsed.front and parsed.front.values.keys() == SEED_FIELDS else "standard"
