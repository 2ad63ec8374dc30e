"""extension: make a new extension package that passes verification as it stands."""

from __future__ import annotations

import argparse
from pathlib import Path

from reread.extensions import scaffold

HELP = (
    "Make a new extension package: a tool, a rail and a skill with their acceptance spec. It "
    "passes `verify` as it stands; change it from there. docs/extensions.md walks through it."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    new = actions.add_parser("new", help="write a new package", allow_abbrev=False)
    new.add_argument("name", metavar="NAME", help="lower case letters, digits and '_'")
    new.add_argument(
        "--into", type=Path, default=Path(), metavar="DIR", help="folder for it (default: .)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Do the action."""
    made = scaffold.make(arguments.name, arguments.into)
    print(f"made {made}\nnext: python app.py verify {made}")
    return 0
