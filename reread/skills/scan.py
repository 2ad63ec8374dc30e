"""The skills of a root, one level deep; what is broken is reported and left out, and nothing else.

A file whose size, times and inode are those of the last scan is not read again.

Proves: no link leads out of the roots; one bad file does not hide its neighbours.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
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


Stamp = tuple[int, int, int, int, int, int]


class Scanner:
    """Scans roots; it remembers what it read."""

    def __init__(self, profile: Profile = "standard") -> None:
        self._profile = profile
        self._known: dict[tuple[str, str], tuple[Stamp, Loaded]] = {}

    def scan(self, roots: Sequence[Root]) -> list[Loaded]:
        """Return what is in the roots: roots in order, folders sorted."""
        found = [loaded for root in roots for loaded in self._root(root, roots)]
        there = {(str(one.place.root.path), one.place.folder) for one in found}
        self._known = {key: value for key, value in self._known.items() if key in there}
        return found

    def _root(self, root: Root, roots: Sequence[Root]) -> Iterator[Loaded]:
        try:
            folder = Directory.at(str(root.path))
        except FileNotFoundError:
            return
        except OSError as error:
            yield _unreadable(Place(root, ""), error)
            return
        with folder:
            for name, is_link in sorted(_folders(folder)):
                if is_link:
                    yield from self._link(root, folder, name, roots)
                else:
                    yield from self._folder(folder, Place(root, name))

    def _link(
        self, root: Root, folder: Directory, name: str, roots: Sequence[Root]
    ) -> Iterator[Loaded]:
        """Follow a link to a skill's folder, but only into a root."""
        target = (root.path / name).resolve()
        place = Place(root, name, target=str(target))
        if not target.is_dir():
            return
        into = next((other for other in roots if target.is_relative_to(other.path)), None)
        if into is None or (into.digests is not None and into.path != root.path):
            yield Loaded(place, None, (_say("E-LINK-OUTSIDE", place, f"it leads to '{target}'"),))
            return
        with suppress(OSError), Directory.at(str(target)) as opened:
            for loaded in self._read(opened, place, None):
                said = _say("I-LINK-FOLLOWED", place, f"it leads to '{target}'")
                yield Loaded(place, loaded.skill, (*loaded.diagnostics, said))

    def _folder(self, parent: Directory, place: Place) -> Iterator[Loaded]:
        key = (str(place.root.path), place.folder)
        known = self._known.get(key)
        if known and known[0] == _stamp(parent, place):
            yield _with_references(known[1])
            return
        try:
            folder = parent.enter(place.folder)
        except OSError as error:
            yield _unreadable(place, error)
            return
        with folder:
            for loaded in self._read(folder, place, key):
                yield _with_references(loaded)

    def _read(
        self, folder: Directory, place: Place, key: tuple[str, str] | None
    ) -> Iterator[Loaded]:
        names, inner = _contents(folder)
        file = FILE_NAME if FILE_NAME in names else _other_case(names)
        if not file:
            yield from _nested(folder, place, inner, ())
            return
        place = place if file == FILE_NAME else replace(place, file=file)
        said = [one.diagnostics[0] for one in _nested(folder, place, inner, _BESIDES)]
        if file != FILE_NAME:
            said.append(_say("W-FILENAME-CASE", place, f"the file is called '{file}'"))
        try:
            data, stamp = _bytes(folder, file)
        except OSError as error:
            yield _unreadable(place, error)
            return
        if not place.root.allows(f"{place.folder}/{place.file}", data):
            yield Loaded(place, None, (_say("E-UNREADABLE", place, "it is not what was trusted"),))
            return
        loaded = _judge(place, data, self._profile, said)
        if key is not None and stamp is not None:
            self._known[key] = ((*stamp, *_folder_stamp(folder)), loaded)
        yield loaded


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
    folders = []
    for name in names - {FILE_NAME}:
        found = folder.peek(name) if name[0] != "." else None
        if found and stat.S_ISDIR(found.st_mode):
            folders.append(name)
    return names, folders


def _other_case(names: Iterable[str]) -> str:
    return min((name for name in names if name.lower() == FILE_NAME.lower()), default="")


def _nested(
    folder: Directory, place: Place, inner: Iterable[str], besides: Iterable[str]
) -> Iterator[Loaded]:
    """Say which skills lie deeper, where they are not looked for."""
    for name in sorted(set(inner) - set(besides)):
        if folder.peek(f"{name}/{FILE_NAME}"):
            said = _say("I-NESTED-SKILL", place, f"'{name}' holds a SKILL.md; it is not loaded")
            yield Loaded(place, None, (said,))


def _bytes(folder: Directory, file: str) -> tuple[bytes, tuple[int, int, int, int] | None]:
    """Return the bytes of a regular file, one more than allowed at most, and its stamp."""
    fd = folder.open(file)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is no regular file", file)
        data = os.read(fd, min(found.st_size, MAX_FILE) + 1)
        while len(data) <= MAX_FILE and (more := os.read(fd, MAX_FILE + 1 - len(data))):
            data += more
        whole = len(data) == found.st_size
        return data, _file_stamp(found) if whole else None
    finally:
        os.close(fd)


def _file_stamp(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _folder_stamp(folder: Directory) -> tuple[int, int]:
    found = Path(folder.path).stat() if folder.fd is None else os.fstat(folder.fd)
    return found.st_mtime_ns, found.st_ino


def _stamp(parent: Directory, place: Place) -> Stamp | None:
    """Return how a skill's file and folder look now."""
    folder = parent.peek(place.folder)
    file = parent.peek(f"{place.folder}/{FILE_NAME}")
    if folder is None or file is None or not stat.S_ISREG(file.st_mode):
        return None
    return (*_file_stamp(file), folder.st_mtime_ns, folder.st_ino)


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
