"""Tables for people: medians with their spread, ratios, and the place they were measured in.

With --write a table goes into docs/benchmarks.md between the two marks of its benchmark; the words
around it are written by people, the table never is.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
_OPEN, _CLOSE = "<!-- measured: {} -->", "<!-- end of {} -->"


def add_write(parser: argparse.ArgumentParser) -> None:
    """Add the flag --write."""
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/benchmarks.md"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; the first column is a name, the others are numbers."""
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Return the median, and the least and the most where they differ."""
    middle = f"{statistics.median(values):.{digits}f}"
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return middle if low == high else f"{middle} ({low} to {high})"


def ratio(values: Sequence[float], base: Sequence[float]) -> str:
    """Return how many times the median of the base this median is."""
    return f"{statistics.median(values) / statistics.median(base):.2f}"


def machine() -> str:
    """Say where and when: processors, Python, system, and how busy it was."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    python = ".".join(map(str, sys.version_info[:3]))
    day = time.strftime("%Y-%m-%d", time.gmtime())
    return (
        f"{day}, {os.cpu_count()} processors ({platform.machine()}), {platform.system()}, "
        f"Python {python}{load}"
    )


def write(name: str, text: str, page: Path = PAGE) -> None:
    """Put a table between the marks of a benchmark; both marks are added at the end if missing."""
    opening, closing = _OPEN.format(name), _CLOSE.format(name)
    block = f"{opening}\n{text.strip()}\n{closing}"
    old = page.read_text("utf-8") if page.exists() else "# Benchmarks\n"
    before, found, rest = old.partition(opening)
    if not found:
        page.write_text(f"{old.rstrip()}\n\n{block}\n", "utf-8")
        return
    _, found, after = rest.partition(closing)
    if not found:
        raise SystemExit(f"{page} has '{opening}' and no '{closing}' after it.")
    page.write_text(f"{before}{block}{after}", "utf-8")
