"""export: write a run and all that its audit needs into one file."""

from __future__ import annotations

import argparse
from pathlib import Path

from reread import commands
from reread.commands import _runs
from reread.replay.bundle import export

HELP = "Write a run, its inputs and what it published into one zip file that can be audited."


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    _runs.add_run(parser)
    parser.add_argument(
        "--to", type=Path, metavar="FILE.zip", help="default: RUN.zip in this folder"
    )


def run(arguments: argparse.Namespace) -> int:
    """Export a run."""
    workspace, folder = _runs.named(arguments)
    target = arguments.to or Path(f"{folder.root.name}.zip")
    count = export(workspace.folder, folder, target)
    if arguments.json:
        commands.print_json({"ok": True, "bundle": str(target), "files": count})
    else:
        print(f"{target}: {count} files. Check it with: python app.py audit --bundle {target}")
    return 0
