"""Measure the fence: every attack against every mechanism that works here, for each kind of user.

`python -m tests.attacks` prints the table; `--write` puts it into docs/sandbox.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from . import names, page


def main() -> int:
    """Return 0 if all is as the page says, or was written there."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/sandbox.md")
    parser.add_argument("--json", action="store_true", help="this user only, as JSON")
    parser.add_argument("--only", action="append", help="these attacks alone (repeatable)")
    parser.add_argument("--mechanism", action="append", help="these mechanisms alone (repeatable)")
    args = parser.parse_args()
    chosen = args.only or names()
    if args.json:
        results = page.measure(chosen, args.mechanism)
        print(json.dumps([asdict(result) for result in results]))
        return 0
    if args.write:
        results = page.measure_all(names())
        page.PATH.write_text(page.render(results), "utf-8")
        return 0
    results = page.measure(chosen, args.mechanism) + page.measure_as_user(chosen, args.mechanism)
    for result in results:
        word = "held" if result.held else "NOT HELD"
        label = f"{result.user:5} {result.mechanism:9} {result.attack:24} {result.seconds:5.1f} s"
        print(f"{label} {word:9} {result.seen}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
