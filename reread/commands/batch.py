"""batch: many tasks, durable, with any number of workers."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_runtime import Failure
from reread import commands, extras
from reread.values import Code

if TYPE_CHECKING:
    from reread.batch.coordinator import Batch, Start
    from reread.batch.database import Database
    from reread.batch.plan import Plan

ROOT = Path(__file__).resolve().parents[2]
HELP = """\
Do many tasks. A kill at any moment loses nothing: the same command goes on, asks no recorded turn
again, and skips every item whose record is there and still matches the disk.

  batch TASKS.jsonl | DIR | 'GLOB'          a task file each
  batch --template task.yaml --table t.csv  one task with {{column}} for each row
  batch status|resume|cancel ID
"""
ACTIONS = ("status", "resume", "cancel")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "what", nargs="*", metavar="TASKS", help="list, folder or pattern; or an action and an ID"
    )
    what = parser.add_argument_group("what to do")
    what.add_argument("--template", type=Path, metavar="TASK.yaml", help="task with {{column}}")
    what.add_argument("--table", type=Path, metavar="CSV|JSONL", help="a row for each task")
    what.add_argument(
        "--workspace", type=Path, metavar="DIR", help="where inputs/ and skills/ come from"
    )
    what.add_argument("--batches", type=Path, default=Path("batches"), metavar="DIR")
    what.add_argument(
        "--retry", action="store_true", help="also do again what ended without being complete"
    )
    who = parser.add_argument_group("who does it")
    who.add_argument("--fixture", default="", metavar="NAME", help="fixed conversation for all")
    who.add_argument(
        "--samples",
        type=Path,
        default=ROOT / "sample-data",
        metavar="DIR",
        help="where fixtures/ come from",
    )
    who.add_argument("--live", action="store_true", help="ask the model named by OPENAI_MODEL")
    who.add_argument("--api", choices=("chat", "responses"), default="chat")
    who.add_argument(
        "--workers", type=int, default=1, metavar="N", help="processes here; 0: others (default: 1)"
    )
    who.add_argument(
        "--at-once", type=int, default=4, metavar="N", help="items at once in each (default: 4)"
    )
    who.add_argument("--max-at-once", type=int, metavar="N", help="items at once over all workers")
    who.add_argument("--database-url", default="", metavar="URL", help="share it with others")
    who.add_argument("--store", default="", metavar="URL", help="folder or fsspec URL")
    who.add_argument("--heartbeat", type=float, default=5.0, metavar="SECONDS")
    _bounds(parser.add_argument_group("limits over the whole batch"))
    allowed = parser.add_argument_group("what a person allows")
    allowed.add_argument("--unsandboxed", action="store_true")
    allowed.add_argument("--require-sandbox", default="", metavar="LEVEL")
    shown = parser.add_argument_group("what is shown")
    shown.add_argument("--json", action="store_true", help="print the result object alone")
    shown.add_argument("--junit", type=Path, metavar="PATH", help="also write a JUnit report")


def _bounds(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--requests-per-minute", type=int, metavar="N")
    group.add_argument("--tokens-per-minute", type=int, metavar="N")
    group.add_argument("--max-tokens", type=int, metavar="N", help="budget in tokens")
    group.add_argument("--max-usd", type=float, metavar="X", help="budget in money")
    group.add_argument(
        "--outage",
        type=float,
        default=900.0,
        metavar="SECONDS",
        help="stop when the service stays down for so long (default: 900)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Start, resume, show or cancel a batch."""
    extras.need("dbos")
    what = arguments.what
    if len(what) == 2 and what[0] in ACTIONS:
        return {"status": _status, "resume": _resume, "cancel": _cancel}[what[0]](arguments)
    if len(what) > 1 or bool(what) == bool(arguments.template and arguments.table):
        raise Failure(
            Code.usage_invalid,
            f"A batch is made of one list of tasks or of a template with a table, not of {what}.",
            "python app.py batch TASKS.jsonl, or --template TASK.yaml --table ROWS.csv",
        )
    if not arguments.live and not arguments.fixture and not _names_fixtures(what):
        raise Failure(
            Code.usage_invalid,
            "Nobody is named who answers.",
            "Add --live to ask the model service, or --fixture NAME.",
        )
    return _work(arguments, _planned(arguments))


def _names_fixtures(what: list[str]) -> bool:
    """Say whether the tasks are a list, whose lines may name fixtures of their own."""
    return bool(what) and what[0].endswith(".jsonl")


def _planned(arguments: argparse.Namespace) -> Path:
    """Fix the plan, unless it is there already, and return the batch's folder."""
    from reread.batch import plan
    from reread.batch.store import open_store

    made = _plan(arguments, open_store(arguments.store or str(arguments.batches / "store")))
    folder: Path = arguments.batches.resolve() / made.id
    if not (folder / plan.PLAN).is_file():
        plan.save(made, folder)
    return folder


def _plan(arguments: argparse.Namespace, store: Any) -> Plan:
    from reread.batch import plan

    samples = arguments.samples.resolve()
    fixture = arguments.fixture
    if arguments.live and fixture:
        raise Failure(
            Code.usage_invalid,
            f"--live asks a model, and --fixture {fixture} replays a fixed conversation.",
            "Use one of the two.",
        )
    found = (
        plan.from_template(arguments.template, arguments.table, fixture=fixture)
        if arguments.template
        else plan.sources(arguments.what[0], fixture=fixture, samples=samples)
    )
    if not arguments.live and any(not source.fixture for source in found):
        raise Failure(
            Code.usage_invalid,
            "Some of the tasks name no fixture, so a model would have to be asked.",
            "Add --live, or --fixture NAME.",
        )
    workspace = arguments.workspace
    return plan.build(
        found,
        workspace or samples,
        store,
        skills=workspace / "skills" if workspace else ROOT / "sample-skills",
        samples=samples,
        options={
            "api": arguments.api,
            "unsandboxed": arguments.unsandboxed,
            "require_sandbox": arguments.require_sandbox,
        },
    )


def _database(arguments: argparse.Namespace) -> Database:
    from reread.batch.database import Database, default_url

    return Database(
        arguments.database_url
        or os.environ.get("REREAD_DATABASE_URL")
        or default_url(arguments.batches)
    )


def _start(arguments: argparse.Namespace) -> Start:
    import sys

    from reread.batch.coordinator import Start

    return Start(
        workers=arguments.workers,
        at_once=arguments.at_once,
        at_once_all=arguments.max_at_once,
        limits={
            "requests_per_minute": arguments.requests_per_minute,
            "tokens_per_minute": arguments.tokens_per_minute,
            "tokens": arguments.max_tokens,
            "usd": arguments.max_usd,
            "outage": arguments.outage,
        },
        heartbeat=arguments.heartbeat,
        store=arguments.store,
        retry=arguments.retry,
        samples=arguments.samples.resolve(),
        program=(sys.executable, str(ROOT / "app.py")),
    )


def _resume(arguments: argparse.Namespace) -> int:
    return _work(arguments, arguments.batches.resolve() / arguments.what[1])


def _work(arguments: argparse.Namespace, folder: Path) -> int:
    """Work on a batch until it ends, and say how."""
    from reread.batch.coordinator import Batch
    from reread.batch.view import View

    batch = Batch(folder, _database(arguments), _start(arguments))
    view = View(batch, quiet=arguments.json)
    began = time.monotonic()
    try:
        view.began(batch.enter())
        try:
            stopped = batch.watch(view.ended, view.tick)
        except KeyboardInterrupt:
            stopped = "interrupted"
        view.close()
        lines = batch.write()
        return _finish(arguments, batch, lines, stopped, time.monotonic() - began)
    finally:
        view.close()
        batch.close()


def _finish(
    arguments: argparse.Namespace,
    batch: Batch,
    lines: list[dict[str, Any]],
    stopped: str,
    seconds: float,
) -> int:
    from collections import Counter

    counts = Counter(str(line["status"]) for line in lines)
    if arguments.junit:
        _junit(arguments.junit, batch.id, lines)
    _index(batch)
    complete = counts["complete"] == len(lines)
    commands.print_json(
        {
            "batch": batch.id,
            "status": "complete" if complete else "incomplete",
            "reason": "" if complete else _reason(stopped),
            "cause": stopped,
            "items": dict(sorted(counts.items())),
            "results": str(batch.folder / "results.jsonl"),
            "seconds": round(seconds, 3),
        }
    )
    if complete:
        return 0
    if stopped == Code.interrupted:
        return commands.exit_status(Code.interrupted)
    return 5 if stopped.startswith("stopped:") else 1


def _reason(stopped: str) -> str:
    return Code.batch_stopped if stopped else "items_not_complete"


def _junit(path: Path, name: str, lines: list[dict[str, Any]]) -> None:
    from reread import junit
    from reread.values import Problem

    def case(line: Mapping[str, Any]) -> junit.Case:
        problems: tuple[Problem, ...] = ()
        if line["status"] != "complete":
            reason = str(line["reason"])
            code = Code(reason) if reason in Code.__members__ else Code.batch_stopped
            cause = str(line["cause"]) or f"The item is {line['status']}."
            problems = (Problem(code, str(line["workspace"]), cause, str(line["remedy"])),)
        return junit.Case(name, f"{line['item']:05d} {line['name']}", problems)

    junit.write(path, name, [case(line) for line in lines])


def _index(batch: Batch) -> None:
    """Write the HTML index, where the part that makes it is there."""
    import importlib.util

    if importlib.util.find_spec("reread.report") is None:
        return
    module = importlib.import_module("reread.report")
    write = getattr(module, "write_index", None)
    if write is not None:
        write(batch.folder)


def _status(arguments: argparse.Namespace) -> int:
    from reread.batch import status

    database = _database(arguments)
    database.prepare()
    found = status.status(database, arguments.what[1])
    if found is None:
        raise _unknown(arguments)
    commands.print_json(found)
    return 0


def _cancel(arguments: argparse.Namespace) -> int:
    from reread.batch import status
    from reread.batch.engine import Queue

    database, name = _database(arguments), arguments.what[1]
    database.prepare()
    if status.status(database, name) is None:
        raise _unknown(arguments)
    cancelled = status.cancel(database, name)
    queue = Queue(database)
    queue.cancel(name)
    queue.destroy()
    commands.print_json({"batch": name, "cancelled": cancelled})
    return 0 if cancelled else 1


def _unknown(arguments: argparse.Namespace) -> Failure:
    from reread.batch import plan

    return plan.unknown(arguments.batches.resolve() / arguments.what[1])
