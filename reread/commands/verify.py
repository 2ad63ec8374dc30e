"""verify: prove in three layers that an extension package works, and let an agent repair it."""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_runtime import Failure, Model, ScriptedModel, ScriptStep, scripted
from reread import commands, junit
from reread.extensions import package, verified
from reread.files import ConfinedFolder
from reread.values import Code, Finding, Permissions
from reread.verify import acceptance, verify
from reread.verify.activation import activate
from reread.verify.repair import ROUNDS, Repaired, agent_of, repair
from reread.verify.report import LAYERS, Report

SAMPLES = Path(__file__).resolve().parent.parent.parent
HELP = (
    "Prove in three layers that an extension package works: its structure without running it, its "
    "loading in a process of its own, and what its acceptance spec asks. Exit status 0 when all "
    "three pass, 1 when one does not, 6 without a sandbox."
)
MARKS = {"passed": "✓", "failed": "✗", "not_run": "?"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("package", type=Path, metavar="PACKAGE", help="folder of the package")
    parser.add_argument(
        "--acceptance",
        type=Path,
        metavar="FILE",
        help="what it must do (default: acceptance.yaml in the package or beside it)",
    )
    parser.add_argument(
        "--runtime",
        choices=("auto", "native", "openjiuwen"),
        default="auto",
        help="default: by the prefix of its modules",
    )
    parser.add_argument(
        "--live", action="store_true", help="also ask the model of OPENAI_MODEL; costs money"
    )
    parser.add_argument(
        "--repair", action="store_true", help=f"let an agent mend it, at most {ROUNDS} rounds"
    )
    parser.add_argument(
        "--fixture", type=Path, metavar="FILE", help="fixed conversation for the repairing agent"
    )
    parser.add_argument(
        "--activate", action="store_true", help="put a passed one into the workspace's extensions/"
    )
    parser.add_argument("--replace", action="store_true", help="another version there may go")
    parser.add_argument("--workspace", type=Path, metavar="DIR", help="for --activate (default: .)")
    parser.add_argument(
        "--unsandboxed", action="store_true", help="run the package without any sandbox"
    )
    parser.add_argument("--json", action="store_true", help="print one object with all of it")
    parser.add_argument("--junit", type=Path, metavar="PATH", help="also write a JUnit report")


def run(arguments: argparse.Namespace) -> int:
    """Verify, and repair and activate where that was asked."""
    permissions = Permissions(unsandboxed=arguments.unsandboxed)
    placed: Path | None = None
    if arguments.repair:
        repaired = _repair(arguments, permissions)
        report, held = repaired.reports[-1], dict(repaired.held)
        more: dict[str, Any] = {"rounds": [_summary(one) for one in repaired.reports]}
    else:
        report = asyncio.run(
            verify(
                arguments.package,
                spec=_spec(arguments),
                runtime=arguments.runtime,
                permissions=permissions,
                model=_live() if arguments.live else None,
            )
        )
        held = package.contents(package.open_package(arguments.package)) if report.ok else {}
        more = {}
    if arguments.activate and report.ok:
        workspace = arguments.workspace or Path()
        placed = activate(report, held, workspace, replace=arguments.replace)
        more["activated"] = str(placed)
    if arguments.junit:
        junit.write(arguments.junit, "verify", _cases(report))
    if arguments.json:
        commands.print_json({**report.as_json(), **more})
    else:
        _show(report, more)
    return 0 if report.ok else 1


def _spec(arguments: argparse.Namespace) -> acceptance.Acceptance | None:
    return acceptance.read(arguments.acceptance) if arguments.acceptance else None


def _live() -> Callable[[], Model]:
    from reread.models import open_model, settings_from_environment

    found = settings_from_environment()
    return lambda: open_model(found)


def _repair(arguments: argparse.Namespace, permissions: Permissions) -> Repaired:
    """Repair on a copy; a copy that passed is put back into the package, any other is kept."""
    path = arguments.package
    spec = _spec(arguments) or acceptance.read(acceptance.find(path.resolve()))
    if arguments.fixture:
        make = _scripted(arguments.fixture)
    elif arguments.live:
        live = _live()

        def make(number: int) -> Model:
            return live()

    else:
        raise Failure(
            Code.usage_invalid,
            "--repair needs an agent.",
            "Add --live, or --fixture FILE for a fixed conversation.",
        )
    draft = Path(tempfile.mkdtemp(prefix="reread-repair-"))
    work = repair(
        path,
        spec,
        agent_of(make, guidance=_guidance()),
        draft,
        runtime=arguments.runtime,
        permissions=permissions,
    )
    repaired = asyncio.run(work)
    if repaired.ok:
        _put_back(path, repaired)
        ConfinedFolder(draft.parent).remove_tree(draft.name)
    elif not arguments.json:
        print(f"the last attempt is kept in {draft}")
    return repaired


def _put_back(path: Path, repaired: Repaired) -> None:
    """Write the files that changed, and remember the digest."""
    folder = package.open_package(path)
    before = package.contents(folder)
    for file, data in repaired.held.items():
        if before.get(file) != data:
            folder.write(file, data)
    for file in before.keys() - repaired.held.keys():
        folder.remove(file)
    last = repaired.reports[-1]
    verified.remember(last.sha256, name=last.name, acceptance=last.acceptance, runtime=last.runtime)


def _guidance() -> str:
    path = SAMPLES / "sample-skills" / "verify-ext" / "SKILL.md"
    return path.read_text("utf-8") if path.is_file() else ""


def _scripted(path: Path) -> Callable[[int], Model]:
    """Return the models of a fixed conversation: one list of turns for each round."""
    try:
        fixture = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise Failure(
            Code.fixture_unknown, f"'{path}' is no fixture: {error}.", "Name a JSON file."
        ) from error

    def turns(number: int) -> list[ScriptStep]:
        rounds = fixture["rounds"]
        steps = rounds[number - 1] if number <= len(rounds) else []
        return [
            scripted(
                step.get("say", ""),
                *((call["tool"], _arguments(call, path)) for call in step.get("calls", ())),
                turn=place,
            )
            for place, step in enumerate(steps)
        ]

    return lambda number: ScriptedModel([turns(number)])


def _arguments(call: dict[str, Any], fixture: Path) -> dict[str, Any]:
    """Put the text of a named file in the place of {"$file": NAME}."""
    return {
        key: (fixture.parent / value["$file"]).read_text("utf-8")
        if isinstance(value, dict) and "$file" in value
        else value
        for key, value in call.get("arguments", {}).items()
    }


def _cases(report: Report) -> list[junit.Case]:
    return [
        junit.Case(
            report.name,
            layer,
            tuple(one.problem for one in report.findings if one.layer == layer),
            skipped="an earlier layer failed" if report.layers[layer] == "not_run" else "",
        )
        for layer in LAYERS
    ]


def _summary(report: Report) -> dict[str, Any]:
    codes = [str(one.problem.code) for one in report.findings]
    return {"ok": report.ok, "sha256": report.sha256, "layers": dict(report.layers), "codes": codes}


def _show(report: Report, more: dict[str, Any]) -> None:
    for number, one in enumerate(more.get("rounds", ())):
        print(f"round {number}: {'passed' if one['ok'] else ', '.join(one['codes'])}")
    print(f"{report.name}  sha256 {report.sha256[:12]}…  runtime {report.runtime}")
    for layer in LAYERS:
        print(f"{MARKS[report.layers[layer]]} {layer} {report.layers[layer]}")
        for finding in report.findings:
            if finding.layer == layer:
                _show_finding(finding)
    for note in report.notes:
        print(f"? {note}")
    if "activated" in more:
        print(f"activated in {more['activated']}")


def _show_finding(finding: Finding) -> None:
    problem = finding.problem
    print(f"  {problem.code}: {problem.where}: {problem.cause}")
    print(f"    {problem.remedy}\n    shown by: {finding.query[:200]}")
