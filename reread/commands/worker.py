"""worker: work on the batches of a database."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from reread import commands, extras

HELP = (
    "Work on the batches of a database until it is stopped. Any number of workers on any number of "
    "machines may share one PostgreSQL database and one store."
)
SAMPLES = Path(__file__).resolve().parents[2] / "sample-data"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "--database-url",
        default=os.environ.get("REREAD_DATABASE_URL", ""),
        metavar="URL",
        help="postgresql://… or sqlite:///… (default: what REREAD_DATABASE_URL holds)",
    )
    parser.add_argument(
        "--store", default="", metavar="URL", help="use this store (default: what a batch names)"
    )
    parser.add_argument(
        "--scratch", type=Path, metavar="DIR", help="where workspaces lie while an item is done"
    )
    parser.add_argument(
        "--samples", type=Path, default=SAMPLES, metavar="DIR", help="where fixtures/ come from"
    )
    parser.add_argument(
        "--heartbeat",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="a worker that misses two is taken for dead (default: 5)",
    )
    parser.add_argument(
        "--attached",
        action="store_true",
        help="stop when standard input ends; for whoever starts workers",
    )


def run(arguments: argparse.Namespace) -> int:
    """Work until a signal comes."""
    extras.need("dbos")
    from agent_runtime import Failure
    from reread.batch.database import Database
    from reread.batch.worker import Worker, serve

    worker = Worker(
        Database(arguments.database_url),
        samples=arguments.samples,
        scratch=arguments.scratch,
        store=arguments.store,
        heartbeat=arguments.heartbeat,
    )
    if not arguments.attached:
        commands.say(f"worker {worker.lease.id} on {worker.database.shown}; Ctrl-C stops it")
    try:
        serve(worker, attached=sys.stdin if arguments.attached else None)
        status = 0
    except Failure as failure:
        status = commands.refused(failure)
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of items that are left to others never end by themselves.
    os._exit(status)
