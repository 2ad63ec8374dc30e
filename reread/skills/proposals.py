"""A skill that a model proposes and a human may approve: parsed, shown whole, written in one step.

The digest is that of the bytes which will be written, so what was shown, approved and created is
the same.

Proves: nothing but those bytes is written, nothing that exists is replaced, and a crash leaves the
skill whole or not there.
Does not prove: that the human read it.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_runtime import Failure
from reread.files import ConfinedFolder, digest
from reread.files.directory import Directory
from reread.files.swap import UNSUPPORTED, rename_new
from reread.skills.diagnostics import visible_lines
from reread.skills.registry import Skills
from reread.skills.seed import MAX_TRIGGERS, NAME, TRIGGER_LENGTH, violations
from reread.skills.skill import DESCRIPTION_LENGTH, FILE_NAME, parse
from reread.values import Code

MAX_PROPOSAL = 32 << 10
_STAGED = re.compile(r"\.reread-[0-9a-f]{16}\.new")
_FIELDS = ("name", "description", "triggers", "content")

PROPOSAL_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z][a-z0-9-]{0,47}$"},
        "description": {"type": "string", "minLength": 1, "maxLength": DESCRIPTION_LENGTH},
        "triggers": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_TRIGGERS,
            "items": {"type": "string", "minLength": 2, "maxLength": TRIGGER_LENGTH},
        },
        "content": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_PROPOSAL,
            "description": "the body in Markdown, with a heading of the first level",
        },
    },
    "required": list(_FIELDS),
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed skill.

    Attributes:
        data: the bytes of the SKILL.md that would be written.
        sha256: of `data`.
    """

    name: str
    description: str
    triggers: tuple[str, ...]
    content: str
    data: bytes
    sha256: str

    @property
    def target(self) -> str:
        """Return where it would go, relative to the workspace."""
        return f"skills/{self.name}/{FILE_NAME}"

    @property
    def shown(self) -> str:
        """Return the exact text, with everything visible that would hide."""
        return visible_lines(self.data.decode("utf-8"))


@dataclass(frozen=True, slots=True)
class Created:
    """A skill that was written; `sha256` is that of the bytes read back from disk."""

    path: str
    sha256: str


def proposal_from(arguments: Mapping[str, Any]) -> Proposal:
    """Make a proposal of values.

    Raises:
        Failure: proposal_invalid, for the first thing that keeps it from the seed profile.
    """
    if set(arguments) != set(_FIELDS):
        odd = ", ".join(sorted(set(arguments) ^ set(_FIELDS)))
        raise _invalid(f"the fields are not exactly {', '.join(_FIELDS)}: {odd}")
    name, description, content = (arguments[key] for key in ("name", "description", "content"))
    triggers = arguments["triggers"]
    texts = [name, description, content, *(triggers if isinstance(triggers, list) else [None])]
    if not all(isinstance(text, str) for text in texts):
        raise _invalid("a field that must be text is none")
    if not NAME.fullmatch(name):
        raise _invalid(f"the name {name!r} is not of the form [a-z][a-z0-9-]{{0,47}}")
    for text in (description, *triggers):
        if not text.isprintable():
            raise _invalid(f"{text!r} holds characters that do not show")
    data = _canonical(name, description, triggers, content)
    _check(data, name, description, triggers, content)
    return Proposal(name, description, tuple(triggers), content, data, digest(data))


def read_proposal(folder: ConfinedFolder, path: str) -> Proposal:
    """Read a proposal from a JSON file.

    Raises:
        Failure: proposal_invalid, path_not_found, path_not_allowed, file_too_large, not_utf8.
    """
    text = folder.read_text(path, limit=MAX_PROPOSAL)
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise _invalid(f"'{path}' is not JSON: {str(error)[:200]}") from error
    if not isinstance(value, dict):
        raise _invalid(f"'{path}' is no JSON object")
    return proposal_from(value)


def persist_proposal(skills: Skills, proposal: Proposal) -> Created:
    """Write a skill in one step, scan again, and return what is on disk.

    Raises:
        Failure: skill_exists, write_failed.
    """
    root = skills.roots[0]
    root.path.mkdir(parents=True, exist_ok=True)
    if proposal.name in skills.names or os.path.lexists(root.path / proposal.name):
        raise _exists(proposal.name)
    _clear(root.path)
    staged = f".reread-{secrets.token_hex(8)}.new"
    try:
        (root.path / staged).mkdir()
        inside = ConfinedFolder(root.path / staged)
        written = inside.write(FILE_NAME, proposal.data, expect=None)
        with Directory.at(str(root.path)) as folder:
            _rename(folder, staged, proposal.name)
            folder.sync()
    except OSError as error:
        raise _not_written(proposal.name, error) from error
    finally:
        shutil.rmtree(root.path / staged, ignore_errors=True)
    skills.scan()
    return Created(proposal.target, written.sha256)


def _rename(folder: Directory, staged: str, name: str) -> None:
    try:
        rename_new(folder, staged, folder, name)
    except FileExistsError as error:
        raise _exists(name) from error
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        if folder.stat(name) is not None:
            raise _exists(name) from error
        folder.rename(staged, folder, name)


def _clear(root: Path) -> None:
    """Remove what a killed writer left; nobody else writes here while the workspace is held."""
    with suppress(OSError):
        for entry in list(os.scandir(root)):
            if _STAGED.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)


def _canonical(name: str, description: str, triggers: list[str], content: str) -> bytes:
    """Return the bytes of the SKILL.md: quoted texts that every YAML reader takes for the same."""
    lines = [
        "---",
        f"name: {name}",
        f"description: {_quoted(description)}",
        "triggers:",
        *(f"  - {_quoted(text)}" for text in triggers),
        "references: []",
        "---",
        content if content.endswith("\n") else f"{content}\n",
    ]
    try:
        return "\n".join(lines).encode("utf-8")
    except UnicodeEncodeError as error:
        raise _invalid("a text holds a lone surrogate") from error


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _check(data: bytes, name: str, description: str, triggers: list[str], content: str) -> None:
    """Refuse what would not be read back as exactly what it is."""
    if len(data) > MAX_PROPOSAL:
        raise _invalid(f"it has {len(data)} bytes; {MAX_PROPOSAL} are the limit")
    if found := re.search(r"[^\n\t\x20-\x7e\xa0-\U0010ffff]|[\u2028\u2029\ufeff]", content):
        raise _invalid(f"the content holds the control character U+{ord(found[0]):04X}")
    parsed = parse(data, folder=name, path=f"skills/{name}/{FILE_NAME}")
    found_wrong = next(violations(parsed, size=len(data), folder=name, path=FILE_NAME), None)
    if found_wrong:
        raise _invalid(f"{found_wrong.code}: {found_wrong.message}", found_wrong.hint)
    skill = parsed.skill
    same = skill is not None and (
        (skill.name, skill.description, list(skill.triggers)) == (name, description, triggers)
        and parsed.body.removesuffix("\n") == content.removesuffix("\n")
    )
    if not same:
        raise _invalid("read back, it would not be the same")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise ValueError(f"the key '{key}' is there twice")
        made[key] = value
    return made


def _invalid(cause: str, remedy: str = "") -> Failure:
    return Failure(
        Code.proposal_invalid,
        f"The skill proposal cannot be used: {cause}.",
        remedy or "Mend that and look at it with: app.py skills propose FILE",
    )


def _exists(name: str) -> Failure:
    return Failure(
        Code.skill_exists,
        f"There is a skill or a folder '{name}' already, and a proposal replaces nothing.",
        "Choose another name, or remove it yourself first.",
    )


def _not_written(name: str, error: OSError) -> Failure:
    return Failure(
        Code.write_failed,
        f"The skill '{name}' could not be written: {error.strerror}.",
        "Make the skills folder of the workspace writable.",
    )
