"""What the commands about recorded runs share."""

from __future__ import annotations

import argparse
from pathlib import Path

from agent_runtime import Failure
from reread.files import ConfinedFolder
from reread.replay.audit import find_run
from reread.values import Code, Permissions
from reread.workspace import Workspace


def add_run(parser: argparse.ArgumentParser, *, optional: bool = True) -> None:
    """Add the flags that name a run."""
    parser.add_argument(
        "run",
        nargs="?" if optional else None,
        default="",
        metavar="RUN",
        help="run id or its beginning, or the run's folder (default: the last run)",
    )
    parser.add_argument(
        "--workspace", type=Path, default=Path(), metavar="DIR", help="default: this folder"
    )
    parser.add_argument("--json", action="store_true", help="print the result object alone")


def named(arguments: argparse.Namespace) -> tuple[Workspace, ConfinedFolder]:
    """Return the workspace and the run that the flags name.

    Raises:
        Failure: run_unknown.
    """
    place, name = arguments.workspace, arguments.run
    path = Path(name)
    if name and path.is_dir() and path.resolve().parent.name == "runs":
        place, name = path.resolve().parent.parent, path.resolve().name
    workspace = workspace_of(place)
    return workspace, find_run(workspace, name)


def workspace_of(place: Path) -> Workspace:
    """Return the workspace in a folder.

    Raises:
        Failure: run_unknown, when nothing has run there.
    """
    if not (place / "runs").is_dir():
        raise Failure(
            Code.run_unknown,
            f"'{place.resolve()}' has no runs/ folder, so it is not a workspace.",
            "Name the workspace with --workspace DIR.",
        )
    return Workspace(place)


def add_allowed(parser: argparse.ArgumentParser) -> None:
    """Add the words of a human that a record cannot give."""
    for name, what in (
        ("--allow-network", "scripts may use the network again"),
        ("--allow-builds", "dependencies without a wheel may be built again"),
        ("--unsandboxed", "scripts may run without any sandbox again"),
    ):
        parser.add_argument(name, action="store_true", help=f"{what}, if they might then")


def allowed(arguments: argparse.Namespace) -> Permissions:
    """Return what a human allows now."""
    return Permissions(
        network=arguments.allow_network,
        builds=arguments.allow_builds,
        unsandboxed=arguments.unsandboxed,
    )
