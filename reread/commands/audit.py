"""audit: compare a record with the disk again, offline and without a model."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from reread import commands, summary
from reread.commands import _runs
from reread.replay.audit import Audit, audit
from reread.replay.bundle import audit_bundle

HELP = "Compare a run's record with the disk again: its files, what it read, what it published."


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    _runs.add_run(parser)
    parser.add_argument(
        "--bundle", type=Path, metavar="FILE.zip", help="audit an exported run instead"
    )


def run(arguments: argparse.Namespace) -> int:
    """Audit a run; 0 when everything still holds."""
    if arguments.bundle:
        with tempfile.TemporaryDirectory(prefix="reread-audit-") as scratch:
            found = audit_bundle(arguments.bundle, Path(scratch))
    else:
        workspace, folder = _runs.named(arguments)
        found = audit(workspace.folder, folder)
    _show(found, as_json=arguments.json)
    return 0 if found.ok else 1


def _show(found: Audit, *, as_json: bool) -> None:
    if as_json:
        problems = [summary.problem(problem) for problem in found.problems]
        commands.print_json(
            {
                "ok": found.ok,
                "run_id": found.run_id,
                "status": found.status,
                "files": found.files,
                "problems": problems,
            }
        )
        return
    for problem in found.problems:
        print(f"✗ {problem.code}: {problem.cause}")
    held = "everything holds" if found.ok else f"{len(found.problems)} things do not hold"
    print(f"run {found.run_id} ({found.status}): {found.files} files compared, {held}")
