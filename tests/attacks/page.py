"""docs/sandbox.md: the table of attacks and mechanisms, written from what was measured."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from reread import sandbox
from reread.sandbox import Mechanism

from . import NOT_WITHOUT_A_FENCE, Result, attack, title

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / "docs/sandbox.md"
USER = 4242
SECONDS = 300
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def working() -> list[Mechanism]:
    """Return the mechanisms that work for this user on this machine."""
    return [mechanism for mechanism in sandbox.MECHANISMS if not sandbox.fault(mechanism)]


def measure(chosen: Sequence[str], mechanisms: Sequence[str] | None = None) -> list[Result]:
    """Run these attacks as the user that we are."""
    return [
        attack(name, mechanism)
        for mechanism in working()
        if not mechanisms or mechanism.NAME in mechanisms
        for name in chosen
        if mechanism.RANK or name not in NOT_WITHOUT_A_FENCE
    ]


def python_for_others() -> Path | None:
    """Return an interpreter that an ordinary user can run; ours may lie in root's home."""
    found = (sys.executable, shutil.which("python3", path="/usr/local/bin:/usr/bin"))
    return next((Path(python) for python in found if python and _runs(python)), None)


def _runs(python: str) -> bool:
    try:
        return (
            subprocess.call(
                [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"],
                user=USER,
                group=USER,
                extra_groups=[],
                env={},
                cwd="/",
            )
            == 0
        )
    except OSError:
        return False


def measure_as_user(chosen: Sequence[str], mechanisms: Sequence[str] | None = None) -> list[Result]:
    """Run the same as an ordinary user; nothing where we are none but ourselves."""
    if os.getuid() != 0:
        return []
    python = python_for_others()
    if python is None:
        return []
    with tempfile.TemporaryDirectory(prefix="reread-user-") as home:
        os.chown(home, USER, USER)
        options = [f"--only={name}" for name in chosen]
        options += [f"--mechanism={name}" for name in mechanisms or ()]
        shown = subprocess.run(
            [str(python), "-m", "tests.attacks", "--json", *options],
            user=USER,
            group=USER,
            extra_groups=[],
            cwd=ROOT,
            env=_variables(home),
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    if shown.returncode != 0:
        raise AssertionError(shown.stderr.decode("utf-8", "replace"))
    return [Result(**result) for result in json.loads(shown.stdout)]


def _variables(home: str) -> dict[str, str]:
    packages = sysconfig.get_path("purelib")
    return {
        "HOME": home,
        "TMPDIR": home,
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PYTHONPATH": packages,
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def measure_all(chosen: Sequence[str]) -> list[Result]:
    """Run them as ourselves and as an ordinary user, at the same time."""
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(measure_as_user, chosen)
        return [*measure(chosen), *other.result()]


def cells(results: Sequence[Result]) -> dict[tuple[str, str], str]:
    """Return (attack, column) → what stands in the table; a column is a mechanism for a user."""
    return {
        (result.attack, f"{result.mechanism}, {result.user}"): "held" if result.held else "not held"
        for result in results
    }


def render(results: Sequence[Result]) -> str:
    """Return the page with a new table; the words around it stay."""
    before, _, rest = PATH.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n\n{_table(results)}\n{END}{after}"


def _table(results: Sequence[Result]) -> str:
    measured = cells(results)
    columns = list(dict.fromkeys(column for _, column in measured))
    lines = [
        f"Linux {platform.release().split('-')[0]}, {platform.machine()}. "
        "`none` is the control: what it does not hold shows that the attack is a real one.",
        "",
        "| attack | " + " | ".join(columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for name in dict.fromkeys(result.attack for result in results):
        row = (measured.get((name, column), "not run") for column in columns)
        lines.append(f"| `{name}`: {title(name)} | " + " | ".join(row) + " |")
    through = [result for result in results if not result.held and result.mechanism != "none"]
    for result in through:
        lines.append(f"\n`{result.attack}`, {result.mechanism}, {result.user}: {result.seen}")
    return "\n".join(lines) + "\n"


def written() -> dict[tuple[str, str], str]:
    """Return the cells that stand on the page."""
    text = PATH.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    columns = rows[0][1:]
    return {
        (row[0].split("`")[1], column): cell
        for row in rows[1:]
        for column, cell in zip(columns, row[1:], strict=True)
    }
