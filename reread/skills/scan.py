"""The skills of a root, one level deep; what is broken is reported and left out, and nothing else.

A file whose size, times and inode are those of the last scan is not read again.

Proves: no link leads out of the roots; one bad file does not hide its neighbours.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent_runtime import Failure
from reread.files import check_name
from reread.files.directory import Directory
from reread.skills.diagnostics import Diagnostic
from reread.skills.roots import Root
from reread.skills.seed import Profile, held
from reread.skills.skill import FILE_NAME, MAX_FILE, Skill, parse

_BESIDES = frozenset({"references", "scripts", "script", "assets", "templates", "node_modules"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a skill lies.

    Attributes:
        folder: name of its folder in the root.
        file: name of the file in the folder, SKILL.md but for its case.
        target: the folder itself where `folder` is a link to it, else ''.
    """

    root: Root
    folder: str
    file: str = FILE_NAME
    target: str = ""

    @property
    def shown(self) -> str:
        """Return the path as it is shown."""
        return f"{self.root.shown}/{self.folder}/{self.file}"

    @property
    def path(self) -> Path:
        """Return the absolute path of the folder."""
        return Path(self.target) if self.target else self.root.path / self.folder


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a scan found in one folder; `skill` is None where it cannot be used."""

    place: Place
    skill: Skill | None
    diagnostics: tuple[Diagnostic, ...]


Stamp = tuple[int, int, int, int]


_SETTLED = 2_000_000_000
"""Nanoseconds after which a change has another time on every file system (FAT counts in twos)."""


class Scanner:
    """Scans roots; it remembers what it read."""

    def __init__(self, profile: Profile = "standard") -> None:
        self._profile = profile
        self._known: dict[Path, dict[str, tuple[Stamp, Loaded]]] = {}
        self._now = 0

    def scan(self, roots: Sequence[Root]) -> list[Loaded]:
        """Return what is in the roots: roots in order, folders sorted."""
        self._now = time.time_ns()
        return [loaded for root in roots for loaded in self._root(root, roots)]

    def _root(self, root: Root, roots: Sequence[Root]) -> list[Loaded]:
        before = self._known.get(root.path, {})
        known: dict[str, tuple[Stamp, Loaded]] = {}
        self._known[root.path] = known
        try:
            folder = Directory.at(str(root.path))
        except FileNotFoundError:
            return []
        except OSError as error:
            return [_unreadable(Place(root, ""), error)]
        found: list[Loaded] = []
        with folder:
            for name, is_link in sorted(_folders(folder)):
                if is_link:
                    found += self._link(root, name, roots)
                    continue
                old = before.get(name)
                if old and old[0] == _stamp(folder, name):
                    known[name] = old
                    found.append(_with_references(old[1]))
                else:
                    found += self._folder(folder, Place(root, name), known)
        return found

    def _link(self, root: Root, name: str, roots: Sequence[Root]) -> list[Loaded]:
        """Follow a link to a skill's folder, but only into a root."""
        target = (root.path / name).resolve()
        place = Place(root, name, target=str(target))
        if not target.is_dir():
            return []
        into = next((other for other in roots if target.is_relative_to(other.path)), None)
        if into is None or (into.digests is not None and into.path != root.path):
            outside = _say("E-LINK-OUTSIDE", place, f"it leads to '{target}'")
            return [Loaded(place, None, (outside,))]
        said = _say("I-LINK-FOLLOWED", place, f"it leads to '{target}'")
        try:
            with Directory.at(str(target)) as folder:
                found = self._read(folder, place, {})
        except OSError as error:
            return [_unreadable(place, error)]
        return [replace(loaded, diagnostics=(*loaded.diagnostics, said)) for loaded in found]

    def _folder(
        self, parent: Directory, place: Place, known: dict[str, tuple[Stamp, Loaded]]
    ) -> list[Loaded]:
        try:
            with parent.enter(place.folder) as folder:
                return [_with_references(one) for one in self._read(folder, place, known)]
        except OSError as error:
            return [_unreadable(place, error)]

    def _read(
        self, folder: Directory, place: Place, known: dict[str, tuple[Stamp, Loaded]]
    ) -> list[Loaded]:
        """Read the skill of an open folder. Raises OSError."""
        names, inner = _contents(folder)
        file = FILE_NAME if FILE_NAME in names else _other_case(names)
        said = _nested(folder, place, inner)
        if not file:
            return [Loaded(place, None, tuple(said))] if said else []
        if file != FILE_NAME:
            place = replace(place, file=file)
            said.append(_say("W-FILENAME-CASE", place, f"the file is called '{file}'"))
        data, state = _bytes(folder, file)
        if not place.root.allows(f"{place.folder}/{file}", data):
            changed = _say("E-UNREADABLE", place, "it is not what was trusted")
            return [Loaded(place, None, (changed,))]
        loaded = _judge(place, data, self._profile, said)
        if file == FILE_NAME and _is_settled(state, len(data), self._now):
            known[place.folder] = (_stamp_of(state), loaded)
        return [loaded]


def judge(place: Place, data: bytes, profile: Profile, said: Iterable[Diagnostic] = ()) -> Loaded:
    """Say what the bytes of a SKILL.md are worth under a profile, the files it names included."""
    return _with_references(_judge(place, data, profile, said))


def _judge(place: Place, data: bytes, profile: Profile, said: Iterable[Diagnostic] = ()) -> Loaded:
    parsed = parse(data, folder=place.folder, path=place.shown)
    if said:
        parsed = replace(parsed, diagnostics=(*parsed.diagnostics, *said))
    parsed = held(parsed, profile, size=len(data), folder=place.folder, path=place.shown)
    return Loaded(place, parsed.skill, parsed.diagnostics)


def _folders(folder: Directory) -> Iterator[tuple[str, bool]]:
    """Yield (name, is a link) of what may be a skill's folder."""
    with os.scandir(folder.path if folder.fd is None else folder.fd) as entries:
        for entry in entries:
            if entry.name[0] == "." or entry.name in ("node_modules", "__pycache__"):
                continue
            if entry.is_symlink():
                yield entry.name, True
            elif entry.is_dir(follow_symlinks=False):
                yield entry.name, False


def _contents(folder: Directory) -> tuple[set[str], list[str]]:
    """Return the names of all that is inside, and of the folders."""
    names = set(folder.names())
    folders: list[str] = []
    if names == {FILE_NAME}:
        return names, folders
    for name in names - {FILE_NAME}:
        found = folder.peek(name) if name[0] != "." else None
        if found and stat.S_ISDIR(found.st_mode):
            folders.append(name)
    return names, folders


def _other_case(names: Iterable[str]) -> str:
    return min((name for name in names if name.lower() == FILE_NAME.lower()), default="")


def _nested(folder: Directory, place: Place, inner: Iterable[str]) -> list[Diagnostic]:
    """Say which skills lie deeper, where they are not looked for."""
    return [
        _say("I-NESTED-SKILL", place, f"'{name}' holds a SKILL.md; it is not loaded")
        for name in sorted(inner)
        if name not in _BESIDES and folder.peek(f"{name}/{FILE_NAME}")
    ]


def _bytes(folder: Directory, file: str) -> tuple[bytes, os.stat_result]:
    """Return the bytes of a regular file, one more than allowed at most. Raises OSError."""
    fd = folder.open(file)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is no regular file", file)
        data = os.read(fd, min(found.st_size, MAX_FILE) + 1)
        while len(data) != found.st_size and len(data) <= MAX_FILE:
            more = os.read(fd, MAX_FILE + 1 - len(data))
            if not more:
                break
            data += more
        return data, found
    finally:
        os.close(fd)


def _is_settled(file: os.stat_result, size: int, now: int) -> bool:
    """Say whether a file was read whole and cannot change without looking changed."""
    return size == file.st_size and max(file.st_mtime_ns, file.st_ctime_ns) < now - _SETTLED


def _stamp(parent: Directory, name: str) -> Stamp | None:
    """Return how a skill's file looks now; what it is besides is found out when it is read."""
    file = parent.peek(f"{name}/{FILE_NAME}")
    return _stamp_of(file) if file else None


def _stamp_of(file: os.stat_result) -> Stamp:
    return file.st_size, file.st_mtime_ns, file.st_ctime_ns, file.st_ino


def _with_references(loaded: Loaded) -> Loaded:
    """Add what is wrong with the files that a skill names; they are looked at in each scan."""
    skill = loaded.skill
    if skill is None or not skill.references:
        return loaded
    said = [one for name in skill.references if (one := _reference(loaded.place, skill, name))]
    return Loaded(loaded.place, skill, (*loaded.diagnostics, *said)) if said else loaded


def _reference(place: Place, skill: Skill, name: str) -> Diagnostic | None:
    try:
        check_name(name)
    except Failure:
        return Diagnostic(
            "E-REF-ESCAPE", skill.name, place.shown, 0, f"the reference '{name}' leads out"
        )
    path = place.path
    for part in name.split("/"):
        path = path / part
        if path.is_symlink():
            text = f"the reference '{name}' goes over a link"
            return Diagnostic("E-REF-ESCAPE", skill.name, place.shown, 0, text)
    if path.is_file():
        return None
    text = f"the reference '{name}' is not there"
    return Diagnostic("W-REF-MISSING", skill.name, place.shown, 0, text)


def _say(code: str, place: Place, message: str) -> Diagnostic:
    return Diagnostic(code, place.folder, place.shown, 0, message)


def _unreadable(place: Place, error: OSError) -> Loaded:
    reason = error.strerror or str(error)
    return Loaded(place, None, (_say("E-UNREADABLE", place, f"it cannot be read: {reason}"),))
