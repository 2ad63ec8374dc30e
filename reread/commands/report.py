"""report: one self-contained HTML page of a run, or an index over all runs."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path
from urllib.parse import quote

from agent_runtime import Failure
from reread import commands, records
from reread.commands import _runs
from reread.report import index_page, run_page, runs_of
from reread.values import Code
from reread.workspace import Workspace

HELP = (
    "Write the HTML page of a run: the verdict and why, the checks and a preview of each file, "
    "scripts, transcript, time and cost. The page asks for nothing over the network."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    _runs.add_run(parser)
    parser.add_argument(
        "--to",
        type=Path,
        metavar="FILE.html",
        help="default: report.html in the run's folder, runs/index.html for --all",
    )
    parser.add_argument(
        "--all", action="store_true", help="a page for each run, and an index over them"
    )
    parser.add_argument("--open", action="store_true", help="show it in the browser")


def run(arguments: argparse.Namespace) -> int:
    """Write the page."""
    target = _all(arguments) if arguments.all else _one(arguments)
    if arguments.json:
        commands.print_json({"ok": True, "report": str(target)})
    else:
        print(target)
    if arguments.open:
        webbrowser.open(target.resolve().as_uri())
    return 0


def _one(arguments: argparse.Namespace) -> Path:
    workspace, folder = _runs.named(arguments)
    return _write(arguments.to or folder.root / records.REPORT, run_page(workspace, folder))


def _all(arguments: argparse.Namespace) -> Path:
    """Write a page beside each record, and the index over them."""
    workspace = _runs.workspace_of(arguments.workspace)
    target = arguments.to or workspace.root / "runs" / "index.html"
    links = {}
    for name in runs_of(workspace):
        page = workspace.root / "runs" / name / records.REPORT
        if _try(workspace, name, page):
            links[name] = _link(page, target)
    return _write(target, index_page(workspace, links))


def _try(workspace: Workspace, name: str, page: Path) -> bool:
    """Write the page of one run; a record that is not sound is told in the index instead."""
    try:
        _write(page, run_page(workspace, workspace.folder.subfolder(f"runs/{name}")))
    except Failure as failure:
        if failure.code != Code.record_invalid:
            raise
        return False
    return True


def _link(page: Path, target: Path) -> str:
    try:
        return quote(page.resolve().relative_to(target.resolve().parent).as_posix())
    except ValueError:
        return page.resolve().as_uri()


def _write(target: Path, text: str) -> Path:
    try:
        target.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise Failure(
            Code.write_failed,
            f"The page '{target}' cannot be written: {error.strerror}.",
            "Name a file in a folder that you can write to: --to FILE.html",
        ) from error
    return target
