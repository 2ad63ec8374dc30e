"""Which skills a task selects, and for each skill why or why not. The same every time.

Proves: every choice names the trigger, the words that matched, where they stand and by which rule.
Does not prove: that the skill helps; what a task means without saying it is left to the model,
which sees the catalog.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from reread.skills.folding import Folded, fold
from reread.skills.mentions import Mention, mentions
from reread.skills.negation import cue_before
from reread.skills.skill import Skill
from reread.skills.triggers import trigger

MAX_AUTOMATIC = 4

How = Literal["selected", "suggested", "suppressed", "skipped"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What became of one skill.

    Attributes:
        outcome: selected; suggested (named, not asked for); suppressed (the task says no);
            skipped (nothing matched, or it was cut off; `rule` says which).
        trigger: as declared; '' where none matched.
        matched: the words of the task.
        start: their place in the task, as is `end`; 0 and 0 where nothing matched.
        rule: why, in words.
    """

    skill: str
    outcome: How
    rule: str
    trigger: str = ""
    matched: str = ""
    start: int = 0
    end: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return it as the record shows it."""
        return {
            "skill": self.skill,
            "outcome": self.outcome,
            "rule": self.rule,
            "trigger": self.trigger,
            "matched": self.matched,
            "start": self.start,
            "end": self.end,
        }


@dataclass(frozen=True, slots=True)
class _Found:
    """One place in the task that speaks for a skill."""

    skill: str
    trigger: str
    start: int
    end: int
    rule: str
    explicit: bool = False
    outcome: How = "selected"

    @property
    def length(self) -> int:
        return self.end - self.start


def choose(task: str, skills: Sequence[Skill]) -> tuple[Choice, ...]:
    """Return one choice for each skill: the selected ones first, in order, then the others.

    Args:
        skills: every skill that loaded, in any order.
    """
    folded = fold(task)
    named = mentions(task)
    found = _drop_overlapped(_triggered(folded, skills))
    found = [_judged(folded, named, one) for one in found]
    found += _explicit(folded, named, skills)
    by_skill: dict[str, list[_Found]] = {}
    for one in found:
        by_skill.setdefault(one.skill, []).append(one)
    choices = [_choice(task, folded, skill, by_skill.get(skill.name, ())) for skill in skills]
    explicit = {one.skill for one in found if one.explicit and one.outcome == "selected"}
    return _limited(_ordered(choices, explicit), explicit)


def explicitly(names: Sequence[str], skills: Sequence[Skill]) -> tuple[Choice, ...]:
    """Return the choices where a person named the skills; an empty list means none."""
    rule = "not named" if names else "no skills were asked for"
    chosen = [Choice(name, "selected", "named by the person", name) for name in names]
    others = [skill.name for skill in skills if skill.name not in names]
    return (*chosen, *(Choice(name, "skipped", rule) for name in sorted(others)))


def _triggered(task: Folded, skills: Iterable[Skill]) -> list[_Found]:
    return [
        _Found(skill.name, hit.trigger, hit.start, hit.end, hit.rule)
        for skill in skills
        if not skill.salvaged
        for text in skill.triggers
        if (prepared := trigger(text)) is not None
        for hit in prepared.hits(task)
    ]


def _drop_overlapped(found: Sequence[_Found]) -> list[_Found]:
    """Keep the longest of the triggers of different skills that overlap."""
    kept: list[_Found] = []
    for one in sorted(found, key=lambda one: (-one.length, one.start, one.skill)):
        longer = next(
            (
                other
                for other in kept
                if other.outcome == "selected"
                and other.skill != one.skill
                and other.length > one.length
                and one.start < other.end
                and other.start < one.end
            ),
            None,
        )
        if longer is None:
            kept.append(one)
        else:
            rule = f"inside the longer trigger '{longer.trigger}' of {longer.skill}"
            kept.append(_with(one, "skipped", rule))
    return kept


def _judged(task: Folded, named: Sequence[Mention], one: _Found) -> _Found:
    """Say what a hit is worth where it stands."""
    if one.outcome != "selected":
        return one
    cue = cue_before(task.text, one.start, one.end)
    if cue:
        return _with(one, "suppressed", f"negated by '{cue}'")
    place = task.place(one.start, one.end)
    weak = next((mention.kind for mention in named if mention.weakens(*place)), None)
    return _with(one, "suggested", weak) if weak else one


def _with(one: _Found, outcome: How, rule: str) -> _Found:
    return _Found(one.skill, one.trigger, one.start, one.end, rule, one.explicit, outcome)


_USING = (
    r"(?:\b(?:use|using|run|running|with|via|invoke|call|try|apply|start|activate)\s+(?:the\s+)?"
    r"|[用行过按以]\s*)"
)
_NAMED = (
    # $name · /name at the start of a line or as the object of "use" · NAME skill · skill NAME
    r"(?<![a-z0-9_$])\${name}(?![a-z0-9_-])"
    r"|(?:(?<=\n)|(?<![\s\S])|{using})\s*/{name}(?![a-z0-9_/.-])"
    r"|(?<![a-z0-9_/.-])[`\"'“「]?{name}[`\"'”」]?\s*(?:skills?\b|技能)"
    r"|(?:\bskills?\s+|技能\s*[:：]?\s*)[`\"'“「]?{name}[`\"'”」]?(?![a-z0-9_-])"
)


def _explicit(task: Folded, named: Sequence[Mention], skills: Iterable[Skill]) -> list[_Found]:
    """Return the places where the task names a skill itself."""
    if not re.search(r"[$/]|skill|技能", task.text):
        return []
    found = []
    for skill in skills:
        for name in filter(None, (skill.name, skill.alias)):
            word = fold(name).text
            if word in task.text:
                found += [_named(task, named, skill, match) for match in _names(word, task)]
    return found


def _names(word: str, task: Folded) -> Iterable[re.Match[str]]:
    pattern = _NAMED.replace("{using}", _USING).replace("{name}", re.escape(word))
    return re.finditer(pattern, task.text)


def _named(
    task: Folded, mentioned: Sequence[Mention], skill: Skill, match: re.Match[str]
) -> _Found:
    start, end = match.span()
    one = _Found(skill.name, match[0].strip(), start, end, "named in the task", explicit=True)
    cue = cue_before(task.text, start, end)
    if cue:
        return _with(one, "suppressed", f"named, and negated by '{cue}'")
    place = task.place(start, end)
    inside = any(
        mention.kind == "in code" and mention.start < place[0] and place[1] < mention.end
        for mention in mentioned
    )
    return _with(one, "suggested", "named in code") if inside else one


_RANK: Mapping[How, int] = {"selected": 0, "suggested": 1, "suppressed": 2, "skipped": 3}


def _choice(task: str, folded: Folded, skill: Skill, found: Sequence[_Found]) -> Choice:
    """Decide about one skill from all that speaks for it."""
    if not found:
        return Choice(skill.name, "skipped", _why_nothing(skill))
    vetoes = [one for one in found if one.explicit and one.outcome == "suppressed"]
    wanted = [one for one in found if one.outcome == "selected"]
    # "not release notes" next to "release notes" elsewhere is a wish; a veto by name is not.
    pool = vetoes or wanted or list(found)
    best = min(pool, key=lambda one: (_worth(one), one.start, -one.length))
    start, end = folded.place(best.start, best.end)
    return Choice(
        skill.name, best.outcome, best.rule, best.trigger, task[start:end].strip(), start, end
    )


def _worth(one: _Found) -> tuple[bool, int]:
    # What the task denies explains more than what it merely mentions.
    ranks = {"selected": 0, "suppressed": 1, "suggested": 2, "skipped": 3}
    return not one.explicit, ranks[one.outcome]


def _why_nothing(skill: Skill) -> str:
    if skill.salvaged:
        return "its front matter is broken, so it is used only when named"
    return "no trigger occurs" if skill.triggers else "it declares no triggers"


def _ordered(choices: Sequence[Choice], explicit: set[str]) -> list[Choice]:
    return sorted(
        choices,
        key=lambda one: (_RANK[one.outcome], one.skill not in explicit, one.start, one.skill),
    )


def _limited(choices: Sequence[Choice], explicit: set[str]) -> tuple[Choice, ...]:
    """Cut the automatic ones off behind the limit, by name."""
    made, automatic = [], 0
    for one in choices:
        if one.outcome == "selected" and one.skill not in explicit:
            automatic += 1
            if automatic > MAX_AUTOMATIC:
                one = cut(one, f"cut off: only {MAX_AUTOMATIC} are selected by trigger")
        made.append(one)
    return tuple(sorted(made, key=lambda one: _RANK[one.outcome]))


def cut(one: Choice, rule: str) -> Choice:
    """Return the choice of a skill that was to be selected and is not."""
    return Choice(one.skill, "skipped", rule, one.trigger, one.matched, one.start, one.end)
