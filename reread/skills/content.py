"""The files of one skill, read when they are needed and never from outside its folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from agent_runtime import Failure
from reread.files import ConfinedFolder, digest
from reread.skills.diagnostics import Diagnostic, visible
from reread.skills.render import Body
from reread.skills.scan import Place
from reread.skills.skill import MAX_FILE, Skill, parse
from reread.values import Code

READ_LIMIT = 64 << 10
LISTED_FILES = 200


class Read(NamedTuple):
    """A skill's body, and what of it could not be had."""

    body: Body
    diagnostics: list[Diagnostic]


def read_body(skill: Skill, place: Place) -> Read:
    """Read what a skill says, now; its metadata stays that of the scan.

    Raises:
        Failure: path_not_found and its kin; changed_meanwhile, when it is another skill now.
    """
    data = read(place, place.file, limit=MAX_FILE)
    parsed = parse(data, folder=place.folder, path=place.shown)
    if parsed.skill is None or parsed.skill.name != skill.name:
        raise Failure(
            Code.changed_meanwhile,
            f"'{place.shown}' is no longer the skill that the scan found.",
            "Start again, so that it is scanned again.",
        )
    digests = {place.file: digest(data)}
    texts, said = [_with_folder(parsed.body, place)], []
    for reference in skill.references if skill.seed else ():
        try:
            content = read(place, reference, limit=READ_LIMIT)
            texts.append(f"--- {reference} ---\n{text_of(content, reference)}")
            digests[reference] = digest(content)
        except Failure as failure:
            said.append(_lost(skill, place, reference, failure))
    shown = f"{place.root.shown}/{place.folder}"
    files = tuple(file for file in files_of(place) if file not in digests)
    text = "\n\n".join(part.strip("\n") for part in texts)
    return Read(Body(skill.name, text, digests[place.file], files, shown, digests), said)


def folder_of(place: Place) -> ConfinedFolder:
    """Open a skill's folder; the way to it holds no link but the one that the scan followed."""
    if place.target:
        return ConfinedFolder(Path(place.target))
    return ConfinedFolder(place.root.path).subfolder(place.folder)


def read(place: Place, path: str, *, limit: int) -> bytes:
    """Return the bytes of a file of a skill.

    Raises:
        Failure: path_not_allowed, path_not_found, file_too_large, not_a_regular_file,
            changed_meanwhile (it is not what was trusted).
    """
    data = folder_of(place).read(path, limit=limit)
    if not place.root.allows(f"{place.folder}/{path}", data):
        raise Failure(
            Code.changed_meanwhile,
            f"'{path}' of the skill in '{place.folder}' is not what was trusted.",
            "Look at it again, then start with --trust-skills.",
        )
    return data


def files_of(place: Place) -> tuple[str, ...]:
    """List the files of a skill, hidden ones apart, up to a cap."""
    found = []
    for entry in folder_of(place).walk(depth=8):
        parts = entry.path.split("/")
        if entry.kind == "file" and not any(p[0] == "." or p == "__pycache__" for p in parts):
            found.append(entry.path)
    return tuple(sorted(path for path in found if path != place.file)[:LISTED_FILES])


def text_of(data: bytes, path: str) -> str:
    """Return bytes as text.

    Raises:
        Failure: not_utf8.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Failure(
            Code.not_utf8,
            f"'{visible(path)}' is not UTF-8 text: byte {error.start} is "
            f"0x{data[error.start]:02x}.",
            "Use it in a script, with the encoding or the library that it needs.",
        ) from error


def _with_folder(body: str, place: Place) -> str:
    """Fill in the one kind of variable that only says where the skill lies."""
    shown = f"{place.root.shown}/{place.folder}"
    return re.sub(r"\$\{(?:CLAUDE_)?SKILL_DIR\}", lambda _: shown, body)


def _lost(skill: Skill, place: Place, reference: str, failure: Failure) -> Diagnostic:
    missing = failure.code == Code.path_not_found
    code = "W-REF-MISSING" if missing else "E-REF-ESCAPE"
    return Diagnostic(code, skill.name, place.shown, 0, f"'{reference}': {failure.cause}")
