"""The page over all runs of a workspace: the newest first, each with how it ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent_runtime import Failure
from reread import records
from reread.files import ConfinedFolder
from reread.report.page import read, templates, verdict
from reread.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Row:
    """One run in the list.

    Attributes:
        link: address of its page, relative to the index; '' where there is none.
    """

    run_id: str
    started: str
    task: str
    kind: str
    status: str
    why: str
    artifacts: int
    proven: int
    seconds: float
    turns: int
    usd: float
    link: str


def runs_of(workspace: Workspace) -> tuple[str, ...]:
    """Return the names of the runs, the newest first."""
    folders = (workspace.root / "runs").iterdir()
    return tuple(sorted((p.name for p in folders if _is_run(p)), reverse=True))


def _is_run(path: Any) -> bool:
    return path.is_dir() and not path.is_symlink() and (path / records.EVENTS).is_file()


def index_page(workspace: Workspace, links: Mapping[str, str]) -> str:
    """Return the HTML page over all runs.

    Args:
        links: run → address of its page, relative to this one.
    """
    rows = tuple(_rows(workspace, links))
    good = sum(1 for row in rows if row.kind == "good")
    template = templates().get_template("index.html.jinja")
    return template.render(rows=rows, good=good, place=str(workspace.root))


def _rows(workspace: Workspace, links: Mapping[str, str]) -> Iterator[Row]:
    for name in runs_of(workspace):
        run = workspace.folder.subfolder(f"runs/{name}")
        yield _row(run, name, links.get(name, ""))


def _row(run: ConfinedFolder, name: str, link: str) -> Row:
    try:
        record = read(run)
    except Failure as failure:
        return Row(name, _started(name), "", "bad", failure.code, failure.cause, 0, 0, 0, 0, 0, "")
    kind, why = verdict(record)
    outcome = record.get("outcome") or {}
    artifacts = outcome.get("artifacts") or ()
    return Row(
        run_id=name,
        started=_started(name),
        task=str((record.get("task") or {}).get("name") or ""),
        kind=kind,
        status=str(outcome.get("status") or "not ended"),
        why="" if kind == "good" else str(outcome.get("reason") or why),
        artifacts=len(artifacts),
        proven=sum(1 for artifact in artifacts if artifact.get("ok")),
        seconds=float(outcome.get("seconds") or 0.0),
        turns=int(outcome.get("turns") or 0),
        usd=float((outcome.get("usage") or {}).get("usd") or 0.0),
        link=link,
    )


def _started(name: str) -> str:
    try:
        return f"{datetime.strptime(name[:15], '%Y%m%d-%H%M%S'):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return ""
