"""What others' loops cost on the same scripted work: each in its own environment and process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks import _peers

NAMES = (
    "smolagents",
    "pydantic-ai",
    "openai-agents",
    "langgraph",
    "deepagents",
    "agno",
    "strands",
    "mini-swe-agent",
)
_SPEECH = {"smolagents": "smolagents/", "mini-swe-agent": "shell/"}
MAIN = Path(__file__).with_name("_drivers") / "main.py"
TURN_SECONDS = 300.0


def there(names: tuple[str, ...]) -> dict[str, Path]:
    """Return the interpreters of the peers that can be had here; the others are named."""
    found = {}
    for name in names:
        try:
            found[name] = _peers.python(name)
        except _peers.Unavailable as error:
            print(f"left out: {error}", file=sys.stderr)
    return found


def start_command(name: str, python: Path, stub: str) -> list[str]:
    """Return the command that makes one request and waits."""
    return [str(python), str(MAIN), name, "start", stub, _url(name, stub)]


def _url(name: str, stub: str) -> str:
    return f"{stub}/now/{_SPEECH.get(name, '')}v1"


def turns(name: str, python: Path, stub: str, counts: tuple[int, ...]) -> Mapping[str, float]:
    """Return `turn@N` → milliseconds of CPU of a turn, for each N."""
    with tempfile.TemporaryDirectory(prefix="reread-bench-") as folder:
        done = subprocess.run(
            [str(python), str(MAIN), name, "turns", stub, _url(name, stub), *map(str, counts)],
            cwd=folder,
            env={**os.environ, "OPENAI_API_KEY": "none"},
            capture_output=True,
            text=True,
            timeout=TURN_SECONDS,
        )
    if done.returncode != 0:
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def tree(pid: int) -> Iterator[int]:
    """Yield a process and all that it has started (Linux)."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from tree(int(child))
