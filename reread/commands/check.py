"""check: judge files without a model. The gate's format and contract checks alone."""

from __future__ import annotations

import argparse
import glob
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent_runtime import Failure
from reread import commands, contracts, junit, summary
from reread.api import check_file
from reread.examine import format_named, format_of
from reread.files import ConfinedFolder
from reread.values import Code, Evidence, Problem

HELP = (
    "Judge files from their bytes: is each really of its format, whole, with content, and does it "
    "hold what a contract asks? Exit status 0 when all hold, 1 when one does not."
)
MARKS = {"passed": "✓", "failed": "✗", "warned": "!", "not_run": "?"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="files, patterns or folders")
    parser.add_argument("--as", dest="format", metavar="FORMAT", help="default: by the suffix")
    parser.add_argument("--contract", type=Path, metavar="FILE.yaml", help="what is asked of each")
    parser.add_argument(
        "--topic", default="", metavar="TEXT", help="for a contract that asks for it"
    )
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="the older document of an edit"
    )
    parser.add_argument("--recursive", action="store_true", help="go into folders")
    parser.add_argument(
        "--json", action="store_true", help="print one object with all that was read"
    )
    parser.add_argument("--junit", type=Path, metavar="PATH", help="also write a JUnit report")
    parser.add_argument("--quiet", action="store_true", help="print a line for what fails only")


def run(arguments: argparse.Namespace) -> int:
    """Judge the files."""
    format = format_named(arguments.format) if arguments.format else ""
    contract = contracts.bind(_contract(arguments.contract), topic=arguments.topic)
    judged = []
    for path in _files(arguments.files, recursive=arguments.recursive, named=bool(format)):
        evidence = check_file(path, format=format, contract=contract, baseline=arguments.baseline)
        judged.append(evidence)
        if not arguments.json:
            _show(evidence, quiet=arguments.quiet)
    good = sum(1 for evidence in judged if evidence.ok)
    if arguments.junit:
        cases = [junit.Case("check", evidence.path, _problems(evidence)) for evidence in judged]
        junit.write(arguments.junit, "check", cases)
    if arguments.json:
        files = [summary.evidence(evidence) for evidence in judged]
        commands.print_json({"ok": good == len(judged), "files": files})
    elif not arguments.quiet or good < len(judged):
        print(f"{good} of {len(judged)} files hold")
    return 0 if good == len(judged) else 1


def _contract(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        return contracts.read(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(
            Code.contract_invalid,
            f"The contract '{path}' cannot be read: {error}.",
            "Name a UTF-8 YAML file, such as a skill's gate.yaml.",
        ) from error


def _files(names: list[str], *, recursive: bool, named: bool) -> Iterator[Path]:
    """Yield the files that the words mean; one that is meant and is not there is judged too."""
    for name in names:
        path = Path(name)
        if path.is_dir() and not path.is_symlink():
            yield from _inside(path, recursive=recursive, named=named)
        elif not path.exists() and glob.has_magic(name):
            found = sorted(glob.glob(name, recursive=recursive))  # noqa: PTH207 - a user's pattern
            if not found:
                raise Failure(
                    Code.path_not_found, f"No file matches '{name}'.", "Correct the pattern."
                )
            yield from (Path(item) for item in found if Path(item).is_file())
        else:
            yield path


def _inside(folder: Path, *, recursive: bool, named: bool) -> Iterator[Path]:
    """Yield the files of a folder whose suffix names a format."""
    if not recursive:
        raise Failure(Code.usage_invalid, f"'{folder}' is a folder.", f"check --recursive {folder}")
    for entry in ConfinedFolder(folder).walk():
        if entry.kind == "file" and (named or _known(entry.path)):
            yield folder / entry.path


def _known(path: str) -> bool:
    try:
        format_of(path)
    except Failure:
        return False
    return True


def _problems(evidence: Evidence) -> tuple[Problem, ...]:
    """Return what keeps a file from holding, checks that could not run among it."""
    if evidence.ok or evidence.problems:
        return evidence.problems
    undone = next((c for c in evidence.checks if c.state == "not_run"), None)
    cause = f"'{undone.name}' could not run: {undone.detail}" if undone else "No check has run."
    return (Problem(Code.artifact_unchecked, evidence.path, cause, "Install what it needs."),)


def _show(evidence: Evidence, *, quiet: bool) -> None:
    if quiet and evidence.ok:
        return
    mark = MARKS["passed" if evidence.ok else "failed"]
    print(f"{mark} {_plain(evidence.path)} ({evidence.format})")
    for check in evidence.checks:
        if quiet and check.state == "passed":
            continue
        detail = f"  {check.detail}" if check.detail else ""
        print(f"    {MARKS[check.state]} {check.name}{_plain(detail)}")
        if check.problem:
            reason = f"/{check.problem.reason}" if check.problem.reason else ""
            print(f"        {check.problem.code}{reason}: {_plain(check.problem.cause)}")
    sys.stdout.flush()


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
