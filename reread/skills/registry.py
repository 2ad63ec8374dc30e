"""The skills of a run: found, selected with reasons, handed to the model.

Proves: a skill gives text and files of its own folder, and nothing else: `allowed-tools`, hooks and
inline commands grant and run nothing.
Does not prove: that the text is good advice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent_runtime import Failure
from reread import contracts, documents
from reread.files import check_name
from reread.skills import render, selection
from reread.skills.content import READ_LIMIT, Read, files_of, folder_of, read, read_body, text_of
from reread.skills.diagnostics import Diagnostic, visible
from reread.skills.render import Body
from reread.skills.roots import Root, open_roots
from reread.skills.scan import Loaded, Place, Scanner
from reread.skills.seed import Profile
from reread.skills.selection import Choice
from reread.skills.skill import CONTEXT_CAP, Skill
from reread.values import Code

GATE = "gate.yaml"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which skills a task gets, and why.

    Attributes:
        choices: one for each skill, the selected ones first and in order.
        bodies: what the selected ones say, as read at the selection.
        diagnostics: what went wrong with a selected one: a missing reference, a cap.
        explicit: a person named them, or asked for none.
    """

    choices: tuple[Choice, ...] = ()
    bodies: tuple[Body, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    explicit: bool = False

    @property
    def chosen(self) -> tuple[str, ...]:
        """Return the names of the selected skills, in order."""
        return tuple(one.skill for one in self.choices if one.outcome == "selected")

    @property
    def trace(self) -> tuple[Choice, ...]:
        """Return the choices for which something in the task spoke, or that were cut off."""
        return tuple(one for one in self.choices if one.outcome != "skipped" or one.trigger)

    def as_json(self) -> dict[str, Any]:
        """Return it as the record shows it; skills that nothing spoke for are only counted."""
        return {
            "explicit": self.explicit,
            "chosen": list(self.chosen),
            "trace": [one.as_json() for one in self.trace],
            "without_match": len(self.choices) - len(self.trace),
            "diagnostics": [one.as_json() for one in self.diagnostics],
        }


@dataclass(frozen=True, slots=True)
class _Registry:
    entries: Mapping[str, Loaded] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    broken: Mapping[str, Diagnostic] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()


class Skills:
    """The skills of some roots.

    Attributes:
        roots: the workspace's own first.
        scans: how often the folders were read.
    """

    def __init__(
        self,
        root: Path,
        *,
        roots: Sequence[Path] = (),
        trusted: bool = False,
        profile: Profile = "standard",
        store: Path | None = None,
    ) -> None:
        """Take the roots; nothing is read before the first scan.

        Args:
            root: the workspace's `skills/`; it may be missing.
            trusted: a human trusts roots that came with a project, as they are now.
            profile: what a skill is held to when it is read.
            store: file that remembers trusted trees; by default in the user's state folder.

        Raises:
            Failure: path_not_found, approval_required, approval_stale, for one of `roots`.
        """
        self.roots: tuple[Root, ...] = open_roots(root, roots, trusted=trusted, store=store)
        self.scans = 0
        self._scanner = Scanner(profile)
        self._registry = _Registry()

    def scan(self) -> int:
        """Read the folders, replace the registry, and return how many skills there are."""
        self._registry = _register(self._scanner.scan(self.roots))
        self.scans += 1
        return len(self._registry.entries)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all skills, sorted."""
        return tuple(sorted(self._registry.entries))

    @property
    def visible(self) -> tuple[str, ...]:
        """Return the names of the skills that the model may activate, sorted."""
        return tuple(skill.name for skill in self.skills if not skill.hidden)

    @property
    def skills(self) -> tuple[Skill, ...]:
        """Return the skills, sorted by name."""
        entries = sorted(self._registry.entries.items())
        return tuple(loaded.skill for _, loaded in entries if loaded.skill)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the findings of the last scan, in the order of the folders."""
        return self._registry.diagnostics

    def select(self, text: str, explicit: Sequence[str] | None = None) -> Selection:
        """Choose the skills for a task.

        Args:
            explicit: the names that a person gave, in order; empty for none, None for automatic.

        Raises:
            Failure: skill_unknown, skill_invalid (a named one is broken or over the cap).
        """
        if explicit is None:
            return self._capped(selection.choose(text, self.skills))
        names = list(dict.fromkeys(self._loaded(name)[0].name for name in explicit))
        choices = selection.explicitly(names, self.skills)
        bodies, said, room = [], [], CONTEXT_CAP
        for name in names:
            body, findings = self._body_of(name)
            room -= body.size
            if room < 0:
                raise _over_cap(name, body.size)
            bodies.append(body)
            said += findings
        return Selection(choices, tuple(bodies), tuple(said), explicit=True)

    def _capped(self, choices: Sequence[Choice]) -> Selection:
        """Read the selected skills as long as there is room, and name the ones cut off."""
        made: list[Choice] = []
        bodies: list[Body] = []
        said: list[Diagnostic] = []
        room = CONTEXT_CAP
        for one in choices:
            if one.outcome == "selected":
                try:
                    body, findings = self._body_of(one.skill)
                except Failure as failure:
                    made.append(selection.cut(one, f"cannot be read now: {failure.cause}"))
                    continue
                said += findings
                if body.size > room:
                    text = f"cut off: {body.size} bytes, and {room} of {CONTEXT_CAP} are left"
                    one = selection.cut(one, text)
                else:
                    room -= body.size
                    bodies.append(body)
            made.append(one)
        made.sort(key=lambda one: one.outcome == "skipped")
        return Selection(tuple(made), tuple(bodies), tuple(said))

    def context(self, selected: Selection) -> str:
        """Return the bodies of the selected skills for the system message, '' for none."""
        return render.context(selected.bodies)

    def digests(self, selected: Selection) -> dict[str, str]:
        """Return name → sha256 of the SKILL.md of the selected skills."""
        return {body.name: body.sha256 for body in selected.bodies}

    def catalog(self, budget: int) -> str:
        """Return names and descriptions for the model, at most `budget` characters."""
        return render.catalog([skill for skill in self.skills if not skill.hidden], budget)

    def match(self, query: str) -> list[dict[str, Any]]:
        """Return the skills that a text would select, suggest or suppress, with the reasons."""
        choices = selection.choose(query, self.skills)
        return [one.as_json() for one in choices if one.outcome != "skipped" or one.trigger]

    def activate(self, name: str) -> Body:
        """Return what a skill says, to be kept by the caller.

        Raises:
            Failure: skill_unknown, skill_invalid, file_too_large.
        """
        body, _ = self._body_of(name)
        if body.size > CONTEXT_CAP:
            raise Failure(
                Code.file_too_large,
                f"The skill '{name}' has {body.size} bytes; {CONTEXT_CAP} are the limit.",
                "Go on without it, or read its files one by one with read_skill_file.",
            )
        return body

    def files(self, name: str) -> tuple[str, ...]:
        """Return the files that a skill brings along, sorted, without its SKILL.md.

        Raises:
            Failure: skill_unknown, skill_invalid.
        """
        _, place = self._loaded(name)
        return files_of(place)

    def read_file(self, name: str, path: str) -> str:
        """Return the text of a file of a skill; `path` is relative to the skill's folder.

        Raises:
            Failure: skill_unknown, skill_invalid, path_not_allowed, path_not_found, not_utf8,
                file_too_large, not_a_regular_file, changed_meanwhile.
        """
        _, place = self._loaded(name)
        data = read(place, path, limit=READ_LIMIT)
        return text_of(data, path)

    def path(self, name: str, path: str = "") -> Path:
        """Return the absolute path of a skill's folder, or of a file in it that is there.

        Raises:
            Failure: skill_unknown, skill_invalid, path_not_allowed, path_not_found.
        """
        _, place = self._loaded(name)
        if not path:
            return place.path
        folder_of(place).open(path).close()
        return place.path.joinpath(*check_name(path))

    def contract(self, name: str) -> Mapping[str, Any] | None:
        """Return the contract that a skill brings along in gate.yaml, None where it has none.

        Raises:
            Failure: contract_invalid, skill_unknown.
        """
        _, place = self._loaded(name)
        if GATE not in files_of(place):
            return None
        shown = f"{place.root.shown}/{place.folder}/{GATE}"
        return contracts.read(text_of(read(place, GATE, limit=READ_LIMIT), shown), shown)

    def _body_of(self, name: str) -> Read:
        skill, place = self._loaded(name)
        return read_body(skill, place)

    def _loaded(self, name: str) -> tuple[Skill, Place]:
        """Find a skill by its name or its other name."""
        key = self._registry.aliases.get(name, name)
        loaded = self._registry.entries.get(key)
        if loaded and loaded.skill:
            return loaded.skill, loaded.place
        if finding := self._registry.broken.get(name):
            raise Failure(
                Code.skill_invalid,
                f"The skill '{visible(name)}' cannot be used: {finding.code} {finding.message} "
                f"({finding.path}, line {finding.line}).",
                finding.hint,
            )
        raise Failure(
            Code.skill_unknown,
            f"There is no skill '{visible(name)}'.",
            documents.nearest(name, self.names) if self.names else "No skills are there at all.",
        )


def _register(found: Iterable[Loaded]) -> _Registry:
    """Key the skills by name: earlier roots first, then the folder that bears the name, then order.

    The loser stays reachable by its folder's name and is reported.
    """
    found = list(found)
    entries: dict[str, Loaded] = {}
    said = [one for loaded in found for one in loaded.diagnostics]
    order: dict[int, int] = {}
    for loaded in found:
        order.setdefault(id(loaded.place.root), len(order))
    ranked = sorted(
        (loaded for loaded in found if loaded.skill),
        key=lambda one: (order[id(one.place.root)], bool(one.skill and one.skill.alias)),
    )
    losers: list[Loaded] = []
    for loaded in ranked:
        if loaded.skill is not None:
            if loaded.skill.name in entries:
                losers.append(loaded)
            else:
                entries[loaded.skill.name] = loaded
    for loser in losers:
        said.append(_demote(loser, entries))
    aliases: dict[str, str] = {}
    for name, loaded in entries.items():
        alias = loaded.skill.alias if loaded.skill else ""
        if alias and alias not in entries:
            aliases.setdefault(alias, name)
    broken = {
        loaded.place.folder: loaded.diagnostics[-1]
        for loaded in found
        if loaded.skill is None and loaded.diagnostics
    }
    return _Registry(entries, aliases, broken, tuple(said))


def _demote(loser: Loaded, entries: dict[str, Loaded]) -> Diagnostic:
    """Key a skill whose name is taken by its folder, where that is free."""
    skill, place = loser.skill, loser.place
    name = skill.name if skill else ""
    winner = entries[name].place
    where = f"{winner.root.shown}/{winner.folder}"
    if skill and place.folder not in entries:
        entries[place.folder] = Loaded(place, replace(skill, name=place.folder, alias=""), ())
    return Diagnostic(
        "W-NAME-COLLISION", name, place.shown, 0, f"'{name}' is the skill in '{where}'"
    )


def _over_cap(name: str, size: int) -> Failure:
    return Failure(
        Code.skill_invalid,
        f"The skill '{name}' has {size} bytes; {CONTEXT_CAP} is the limit for all of them.",
        "Name fewer skills, or move parts of it into files below references/.",
    )
