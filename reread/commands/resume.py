"""resume: go on with a run that was cut off."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from reread import commands, models, summary, view
from reread.commands import _runs
from reread.job import resume

HELP = (
    "Go on with a run that was cut off. Recorded turns are not asked again, finished side effects "
    "are not repeated, and the files are read again at the end. Asks the model service, unless the "
    "run replays a fixture."
)
SAMPLES = Path(__file__).resolve().parents[2]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    _runs.add_run(parser)
    _runs.add_allowed(parser)


def run(arguments: argparse.Namespace) -> int:
    """Resume a run; the exit status is that of the run."""
    workspace, folder = _runs.named(arguments)
    shown = None if arguments.json else view.choose(view.out())
    settings = models.settings_from_environment
    try:
        outcome = asyncio.run(
            resume(
                workspace,
                folder.root.name,
                settings,
                samples=SAMPLES,
                listeners=(shown,) if shown else (),
                allowed=_runs.allowed(arguments),
            )
        )
    finally:
        if shown:
            shown.close()
    if shown:
        view.last(outcome, workspace.root, kept=True, stream=view.out())
    commands.print_json(summary.outcome(outcome) | {"workspace": str(workspace.root)})
    return commands.exit_of(outcome)
