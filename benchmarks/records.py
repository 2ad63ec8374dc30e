"""What a record costs: CPU per event, its share in a 300-turn run, and the page of such a run.

The run is the one of the benchmark `loop`, whole and live: 300 turns, each with a call that reads a
note, against a stub service in another process. Each run is a process of its own, and its overhead
is all the CPU that this process used, start included; without it, told beside.

    python -m benchmarks records
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_runtime import Limits
from benchmarks._loop_child import NOTE
from benchmarks.loop import _stub as stub
from reread.approvals import Approvals
from reread.files import ConfinedFolder
from reread.models import Settings, open_model, shorten
from reread.records import Record
from reread.report import run_page
from reread.run import execute
from reread.session import Session, open_session
from reread.skills import Skills
from reread.values import Expected, Outcome, Task
from reread.workspace import Workspace

HELP = "CPU per recorded event, its share in a 300-turn run, and the time of its page"
TURNS = 300
GOALS = {"event_ms": 2.0, "share_percent": 5.0, "page_s": 1.0}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--quick", action="store_true", help="one round instead of five")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    parser.add_argument("--child", metavar="STUB", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Measure; 0 where every goal is reached."""
    if args.child:
        print(json.dumps(_round(args.child)))
        return 0
    with stub() as place:
        found = [_in_child(place) for _ in range(1 if args.quick else 5)]
    numbers = {key: statistics.median(one[key] for one in found) for key in found[0]}
    print(json.dumps(numbers) if args.json else _shown(numbers))
    return 0 if all(numbers[key] <= goal for key, goal in GOALS.items()) else 1


def _shown(numbers: Mapping[str, float]) -> str:
    words = {
        "event_ms": "CPU of one event, ms",
        "share_percent": f"share of the CPU of a run of {TURNS} turns, %",
        "page_s": f"page of {TURNS} turns, s",
    }
    lines = [
        f"{words[key]:44} {numbers[key]:9.3f}   goal ≤ {goal:g}   "
        f"{'reached' if numbers[key] <= goal else 'MISSED'}"
        for key, goal in GOALS.items()
    ]
    alone, events, size = (numbers[key] for key in ("loop_percent", "events", "page_kb"))
    lines += ["", f"without the start: {alone:.1f} %; events: {events:.0f}, page: {size:.0f} KB"]
    return "\n".join(lines)


def _in_child(place: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks", "records", "--child", place]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return dict(json.loads(done.stdout))


class _Timed(Record):
    """A record that knows how much CPU its own writing took."""

    spent = 0.0

    def event(self, kind: str, data: Mapping[str, Any]) -> None:
        """Append one event."""
        before = time.process_time()
        super().event(kind, data)
        self.spent += time.process_time() - before


def _round(place: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="reread-bench-") as folder:
        workspace = Workspace(Path(folder))
        (workspace.root / "inputs/note.txt").write_text(NOTE, "utf-8")
        session = _session(workspace)
        before = time.process_time()
        asyncio.run(_executed(session, place))
        now = time.process_time()
        spent = getattr(session.record, "spent", 0.0)
        events = sum(1 for _ in (session.work.run.root / "events.jsonl").open("rb"))
        seconds, size = _page(workspace, session.work.run)
    return {
        "event_ms": spent / events * 1000,
        "share_percent": spent / now * 100,
        "loop_percent": spent / (now - before) * 100,
        "page_s": seconds,
        "page_kb": size / 1024,
        "events": events,
    }


def _session(workspace: Workspace) -> Session:
    from dataclasses import replace

    task = Task(
        "Read a note many times.",
        (Expected("drafts/none.txt", "txt"),),
        limits=Limits(turns=None, tool_calls=None),
        repairs=0,
    )
    opened = open_session(task, workspace, Skills(workspace.root / "skills"), Approvals())
    opened.record.close()
    return replace(opened, record=_Timed(opened.work.run))


async def _executed(session: Session, place: str) -> Outcome:
    settings = Settings("none", "stub", f"{place}/t{TURNS}-c0-l0/v1", stream=False)
    model = open_model(settings, tell=session.record.tell)
    return await execute(model, session, shorten=shorten)


def _page(workspace: Workspace, run: ConfinedFolder) -> tuple[float, int]:
    run_page(workspace, run)  # the templates are compiled once in a process
    before = time.perf_counter()
    page = run_page(workspace, run)
    return time.perf_counter() - before, len(page.encode())
