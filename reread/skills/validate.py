"""Skills of any tree held to a profile, for catalogues and their continuous integration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from agent_runtime import Failure
from reread.files import ConfinedFolder
from reread.skills.diagnostics import Diagnostic
from reread.skills.roots import Root
from reread.skills.scan import Place, judge
from reread.skills.seed import Profile, profile_for, violations
from reread.skills.skill import FILE_NAME, MAX_FILE, parse
from reread.values import Code

_BESIDES = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True)
class Validated:
    """One SKILL.md and what a profile says of it.

    Attributes:
        name: the skill's key, its folder's name where it has none.
        wrong: the findings for which it fails; empty where it holds.
        diagnostics: all findings, those of `wrong` among them.
    """

    path: str
    name: str
    profile: Profile
    wrong: tuple[Diagnostic, ...]
    diagnostics: tuple[Diagnostic, ...]


def validate(path: Path, profile: Profile | None = None) -> Iterator[Validated]:
    """Yield a verdict for each skill in a file, a folder or a tree, sorted by path.

    Args:
        profile: None holds a skill with exactly the seed's four keys to `seed`, others to
            `standard`.

    Raises:
        Failure: path_not_found, folder_too_large.
    """
    if not path.exists():
        raise Failure(
            Code.path_not_found,
            f"'{path}' is not there.",
            "Name a SKILL.md, a skill's folder or a folder that holds skills.",
        )
    files = _files(path) if path.is_dir() else [path]
    for file in sorted(files):
        yield _validated(file, profile)


def _files(folder: Path) -> list[Path]:
    """Return every SKILL.md of a tree; of two that differ in case only, the exact one."""
    found: dict[Path, Path] = {}
    for entry in ConfinedFolder(folder).walk():
        parts = entry.path.split("/")
        if parts[-1].lower() != FILE_NAME.lower() or _BESIDES.intersection(parts):
            continue
        file = folder / entry.path
        if parts[-1] == FILE_NAME or file.parent not in found:
            found[file.parent] = file
    return list(found.values())


def _validated(file: Path, asked: Profile | None) -> Validated:
    folder = file.absolute().parent
    place = Place(Root(folder.parent, str(file.parent.parent)), folder.name, file.name)
    try:
        data = ConfinedFolder(folder).read(file.name, limit=MAX_FILE + 1)
    except Failure as failure:
        said = Diagnostic("E-UNREADABLE", folder.name, str(file), 0, failure.cause)
        return Validated(str(file), folder.name, asked or "standard", (said,), (said,))
    loaded = judge(place, data, "standard")
    parsed = parse(data, folder=folder.name, path=str(file))
    profile = asked or profile_for(parsed)
    if profile == "seed":
        wrong = tuple(violations(parsed, size=len(data), folder=folder.name, path=str(file)))
        wrong += tuple(one for one in loaded.diagnostics if one.code == "E-REF-ESCAPE")
        loaded = replace(loaded, diagnostics=tuple(_beside_its_own_keys(loaded.diagnostics)))
    else:
        fatal = "EW" if profile == "standard-strict" else "E"
        wrong = tuple(one for one in loaded.diagnostics if one.code[0] in fatal)
    name = parsed.skill.name if parsed.skill else folder.name
    others = tuple(one for one in loaded.diagnostics if one not in wrong)
    return Validated(str(file), name, profile, wrong, (*wrong, *others))


def _beside_its_own_keys(found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Leave out that the seed's keys are not in the standard; the profile wants them."""
    return (one for one in found if one.code != "W-UNKNOWN-FIELD")
