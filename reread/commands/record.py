"""record: save a recorded run as a fixture that replays without a model."""

from __future__ import annotations

import argparse
from pathlib import Path

from reread import commands
from reread.commands import _runs
from reread.replay.as_fixture import save

HELP = (
    "Save a recorded run as a fixture: the turns of its model, its task and the files that it was "
    "given. --fixture replays it without a model."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    _runs.add_run(parser)
    parser.add_argument(
        "--as-fixture", required=True, metavar="NAME", help="small letters, digits, hyphens"
    )
    parser.add_argument(
        "--to",
        type=Path,
        default=Path("recorded"),
        metavar="DIR",
        help="folder for fixtures/, tasks/ and files/ (default: recorded)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Save a run."""
    workspace, folder = _runs.named(arguments)
    saved = save(workspace, folder, arguments.as_fixture, arguments.to)
    if arguments.json:
        commands.print_json({"ok": True, "fixture": str(saved.path), "files": saved.files})
    else:
        print(f"{saved.path}: {saved.files} files. Replay it: python app.py --fixture {saved.path}")
    return 0
