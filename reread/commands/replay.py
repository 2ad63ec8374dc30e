"""replay: run the tools and scripts of a record again, against its recorded turns."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from reread import commands
from reread.commands import _runs
from reread.replay.again import replay

HELP = "Run a record's tools and scripts again in a copy, and show the first thing that differs."


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    _runs.add_run(parser)
    _runs.add_allowed(parser)


def run(arguments: argparse.Namespace) -> int:
    """Replay a run; 0 when nothing diverged."""
    workspace, folder = _runs.named(arguments)
    with tempfile.TemporaryDirectory(prefix="reread-replay-") as scratch:
        found = asyncio.run(
            replay(workspace, folder, Path(scratch), allowed=_runs.allowed(arguments))
        )
    if arguments.json:
        commands.print_json(
            {
                "ok": found.ok,
                "reason": "" if found.ok else "replay_diverged",
                "run_id": found.run_id,
                "steps": found.steps,
                "divergence": found.divergence,
                "status": found.outcome.status,
            }
        )
    elif found.ok:
        print(f"run {found.run_id}: {found.steps} steps, nothing diverged")
    else:
        print(f"run {found.run_id}: replay_diverged after {found.steps} equal steps")
        print(found.divergence)
    return 0 if found.ok else 1
