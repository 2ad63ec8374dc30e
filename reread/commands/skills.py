"""skills: what is there, what a task would select and why, and whether skills hold."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agent_runtime import Failure
from reread import commands, junit, skills
from reread.files import ConfinedFolder
from reread.skills import Choice, Diagnostic, Skills, Validated, visible
from reread.values import Code, Problem

HELP = (
    "Look at skills without a model: list them, explain a selection, validate and test them, and "
    "look at a proposal as it would be written. Exit status 0 when all hold, 1 when one does not."
)
MARKS = {"selected": "✓", "suggested": "?", "suppressed": "✗", "skipped": "·"}
SEVERITIES = {"error": "✗", "warning": "!", "info": "·"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the commands below this one and their flags."""
    inner = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = _action(inner, "list", "the skills of the roots, and what is wrong with them", _list)
    _roots(listed)
    listed.add_argument(
        "--diagnostics", action="store_true", help="also what loads and could be better"
    )
    explained = _action(inner, "explain", "what a task would select, and why", _explain)
    explained.add_argument("task", metavar="TASK", help="the words of the task")
    explained.add_argument(
        "--skill", action="append", metavar="NAME", help="as if it was named; repeatable"
    )
    _roots(explained)
    validated = _action(inner, "validate", "hold skills of any tree to a profile", _validate)
    validated.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files or folders")
    validated.add_argument(
        "--profile",
        choices=skills.PROFILES,
        help="default: seed for a skill with exactly its four keys, else standard",
    )
    validated.add_argument("--junit", type=Path, metavar="PATH", help="also write a JUnit report")
    tested = _action(inner, "test", "run a skill's own tests.yaml, offline", _test)
    tested.add_argument("path", type=Path, metavar="PATH", help="the skill's folder")
    tested.add_argument("--junit", type=Path, metavar="PATH", help="also write a JUnit report")
    proposed = _action(inner, "propose", "show a proposal exactly as it would be written", _propose)
    proposed.add_argument("file", type=Path, metavar="FILE", help="the proposal, a JSON file")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked for."""
    action: Callable[[argparse.Namespace], int] = arguments.act
    return action(arguments)


def _action(
    inner: Any, name: str, help: str, act: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = inner.add_parser(
        name, help=help, description=help, allow_abbrev=False
    )
    parser.add_argument("--json", action="store_true", help="print one object instead of lines")
    parser.set_defaults(act=act)
    return parser


def _roots(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workspace",
        type=Path,
        metavar="DIR",
        help="read its skills/ (default: skills/ here, else the samples that come along)",
    )
    parser.add_argument(
        "--skills-root",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="read these skills, too; repeatable",
    )
    parser.add_argument(
        "--trust-skills",
        action="store_true",
        help="trust roots that came with a project, as they are now",
    )
    parser.add_argument(
        "--skill-profile",
        choices=skills.PROFILES,
        default="standard",
        help="what a skill must hold to be read (default: standard)",
    )


def _open(arguments: argparse.Namespace) -> Skills:
    root = Path("skills")
    if arguments.workspace:
        root = arguments.workspace / "skills"
    elif not root.is_dir():
        root = Path(__file__).resolve().parents[2] / "sample-skills"
    opened = Skills(
        root,
        roots=arguments.skills_root,
        trusted=arguments.trust_skills,
        profile=arguments.skill_profile,
    )
    opened.scan()
    return opened


def _list(arguments: argparse.Namespace) -> int:
    opened = _open(arguments)
    shown = [one for one in opened.diagnostics if arguments.diagnostics or one.severity == "error"]
    if arguments.json:
        found = [
            {
                "name": skill.name,
                "path": str(opened.path(skill.name)),
                "description": skill.description,
                "triggers": list(skill.triggers),
                "seed": skill.seed,
                "hidden": skill.hidden,
                "files": list(opened.files(skill.name)),
            }
            for skill in opened.skills
        ]
        findings = [one.as_json() for one in opened.diagnostics]
        commands.print_json({"skills": found, "diagnostics": findings})
        return 0
    for skill in opened.skills:
        print(f"{visible(skill.name)}\n    {visible(skill.description, limit=200)}")
        if skill.triggers:
            print(f"    triggers: {visible(', '.join(skill.triggers), limit=200)}")
    _show(shown)
    more = len(opened.diagnostics) - len(shown)
    rest = f", {more} more findings with --diagnostics" if more else ""
    print(f"{len(opened.skills)} skills, {len(shown)} findings{rest}")
    return 0


def _explain(arguments: argparse.Namespace) -> int:
    opened = _open(arguments)
    selection = opened.select(arguments.task, arguments.skill)
    if arguments.json:
        choices = [one.as_json() for one in selection.choices]
        commands.print_json({**selection.as_json(), "choices": choices})
        return 0
    for one in selection.choices:
        print(_reason(one))
    _show(selection.diagnostics)
    print(f"selected: {', '.join(selection.chosen) or 'none'}")
    return 0


def _reason(one: Choice) -> str:
    line = f"{MARKS[one.outcome]} {visible(one.skill)}: {one.outcome}, {visible(one.rule)}"
    if not one.matched:
        return line
    trigger, matched = visible(one.trigger), visible(one.matched)
    return f"{line}\n    trigger '{trigger}' at {one.start}-{one.end}: '{matched}'"


def _validate(arguments: argparse.Namespace) -> int:
    found = [one for path in arguments.paths for one in skills.validate(path, arguments.profile)]
    if not found:
        raise Failure(
            Code.path_not_found,
            f"There is no SKILL.md below {', '.join(map(str, arguments.paths))}.",
            "Name a SKILL.md, a skill's folder or a folder that holds skills.",
        )
    wrong = [one for one in found if one.wrong]
    if arguments.junit:
        cases = [junit.Case("skills", one.path, _problems(one)) for one in found]
        junit.write(arguments.junit, "skills validate", cases)
    if arguments.json:
        commands.print_json({"ok": not wrong, "skills": [_verdict(one) for one in found]})
    else:
        for one in found:
            print(f"{'✗' if one.wrong else '✓'} {visible(one.path)} ({one.profile})")
            _show(one.diagnostics)
        print(f"{len(found) - len(wrong)} of {len(found)} skills hold")
    return 1 if wrong else 0


def _verdict(one: Validated) -> dict[str, Any]:
    return {
        "path": one.path,
        "name": one.name,
        "profile": one.profile,
        "ok": not one.wrong,
        "wrong": [found.code for found in one.wrong],
        "diagnostics": [found.as_json() for found in one.diagnostics],
    }


def _problems(one: Validated) -> tuple[Problem, ...]:
    return tuple(
        Problem(
            Code.skill_invalid,
            f"{one.path}:{found.line}",
            f"{found.code} {found.message}",
            found.hint,
            found.code,
        )
        for found in one.wrong
    )


def _test(arguments: argparse.Namespace) -> int:
    from reread.commands import _skill_tests

    cases = _skill_tests.run(arguments.path)
    failed = [case for case in cases if case.problems]
    if arguments.junit:
        junit.write(arguments.junit, "skills test", cases)
    if arguments.json:
        shown = [
            {
                "group": case.group,
                "name": case.name,
                "ok": not case.problems,
                "problems": [problem.cause for problem in case.problems],
            }
            for case in cases
        ]
        commands.print_json({"ok": not failed, "cases": shown})
    else:
        for case in cases:
            print(f"{'✗' if case.problems else '✓'} {case.group}: {visible(case.name)}")
            for problem in case.problems:
                print(f"    {problem.code}: {visible(problem.cause)}\n        {problem.remedy}")
        print(f"{len(cases) - len(failed)} of {len(cases)} hold")
    return 1 if failed else 0


def _propose(arguments: argparse.Namespace) -> int:
    file: Path = arguments.file
    proposal = skills.read_proposal(ConfinedFolder(file.parent), file.name)
    text = proposal.data.decode("utf-8")
    hidden = sorted({f"U+{ord(c):04X}" for c in text if not c.isprintable() and c not in "\n\t"})
    if arguments.json:
        shown = {"name": proposal.name, "target": proposal.target, "sha256": proposal.sha256}
        commands.print_json({**shown, "text": proposal.shown, "hidden": hidden})
        return 0
    print(f"would be written to {proposal.target} ({len(proposal.data)} bytes)")
    print(f"sha256 {proposal.sha256}")
    if hidden:
        print(f"holds characters that do not show, written out below: {', '.join(hidden)}")
    print("-" * 72)
    print(proposal.shown, end="")
    print("-" * 72)
    print(f"to allow it, once: --approve-skill-proposal inputs/{visible(file.name)}")
    return 0


def _show(diagnostics: Sequence[Diagnostic]) -> None:
    for one in diagnostics:
        place = f"{one.path}:{one.line}" if one.line else one.path
        print(f"    {SEVERITIES[one.severity]} {one.code} {visible(place)}: {visible(one.message)}")
        print(f"        {one.hint}")
