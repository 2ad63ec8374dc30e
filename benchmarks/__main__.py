"""Runs one benchmark: `python -m benchmarks NAME [--quick] [--write]`; without a name, lists them.

A benchmark is a file here with HELP, `configure(parser)` and `run(args) -> int`. With --write what
it printed goes to docs/benchmarks.md, between its two marks.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import sys
from pathlib import Path
from typing import Any

from benchmarks import _table

FOLDER = Path(__file__).resolve().parent


def names() -> tuple[str, ...]:
    """Return the names of the benchmarks in this folder."""
    return tuple(sorted(p.stem for p in FOLDER.glob("*.py") if not p.stem.startswith("_")))


def load(name: str) -> Any:
    """Import one of them."""
    return importlib.import_module(f"benchmarks.{name}")


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; 0 where what is promised held, else 1, 2 for wrong usage."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help"):
        print("python -m benchmarks NAME [--quick] [--write] [--help]\n")
        for name in names():
            print(f"  {name:14} {load(name).HELP}")
        return 0
    name, *rest = given
    if name not in names():
        print(f"There is no benchmark '{name}'. There are: {', '.join(names())}.", file=sys.stderr)
        return 2
    return _run(name, rest)


def _run(name: str, rest: list[str]) -> int:
    module = load(name)
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {name}", description=module.HELP)
    module.configure(parser)
    _table.add_write(parser)
    args = parser.parse_args(rest)
    if not args.write:
        return int(module.run(args))
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        status = int(module.run(args))
    text = shown.getvalue().strip()
    print(text)
    command = " ".join(["python -m benchmarks", name, *(r for r in rest if r != "--write")])
    _table.write(name, f"`{command}`: {_table.machine()}.\n\n{_block(text)}")
    return status


def _block(text: str) -> str:
    """Return a Markdown table as it is, and anything else as it would stand in a terminal."""
    return text if "|--" in text or "| --" in text else f"```text\n{text}\n```"


if __name__ == "__main__":
    sys.exit(main())
