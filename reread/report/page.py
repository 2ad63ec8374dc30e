"""The page of one run: what the record says, put in the order in which people ask."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import ChainableUndefined, Environment, FileSystemLoader
from markupsafe import Markup

from agent_runtime import Failure
from reread import records
from reread.files import ConfinedFolder
from reread.report import highlight, timing
from reread.report.previews import Preview, preview
from reread.report.shown import visible
from reread.report.story import Story, as_text, tell
from reread.workspace import Workspace

HERE = Path(__file__).parent
LOG_LIMIT = 64 << 10
DEPTHS = ("provenance", "identity", "integrity", "substance", "contract")


@dataclass(frozen=True, slots=True)
class Artifact:
    """A declared file: what the gate read of it, and what can be shown now.

    Attributes:
        data: its entry in the record.
        groups: (depth, checks), in the order of the depths.
        stale: why the file that is there now is not the one that was judged; '' where it is.
    """

    data: Mapping[str, Any]
    groups: tuple[tuple[str, tuple[Mapping[str, Any], ...]], ...]
    preview: Preview
    stale: str


@dataclass(frozen=True, slots=True)
class Script:
    """A script that ran: the last run of each version, its source as it was kept, its whole log."""

    data: Mapping[str, Any]
    source: Markup
    lines: int
    stdout: str
    stderr: str
    runs: int


def run_page(workspace: Workspace, run: ConfinedFolder) -> str:
    """Return the HTML page of a run, also of one that was cut off.

    Raises:
        Failure: record_invalid, where there are no events, or the record is not what it was.
    """
    record = read(run)
    story = tell(records.read_events(run))
    facts = record or story.first
    template = templates().get_template("page.html.jinja")
    return template.render(
        run_id=run.root.name,
        record=record,
        facts=facts,
        task=facts.get("task") or {},
        outcome=record.get("outcome") or {},
        verdict=verdict(record),
        story=story,
        artifacts=tuple(_artifacts(workspace, run, record)),
        scripts=tuple(_scripts(workspace, run, story)),
        chart=timing.chart(story.spans, story.seconds),
        evidence=sorted((record.get("files") or {}).items()),
    )


def read(run: ConfinedFolder) -> dict[str, Any]:
    """Return the record of a run, or nothing where it has not ended."""
    return records.read_record(run) if run.sha256(records.RECORD) is not None else {}


def verdict(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return (kind, sentence): kind is good, bad, or open for a run without an end."""
    if not record:
        return "open", "The run has not ended, so nothing is proven."
    outcome = record["outcome"]
    if outcome.get("status") == "complete":
        count = len(outcome.get("artifacts") or ())
        files = "the declared file was" if count == 1 else f"all {count} declared files were"
        return "good", f"After the model had stopped, {files} read from disk, and every check held."
    return "bad", str(outcome.get("cause") or "Not every declared file could be proven.")


@cache
def templates() -> Environment:
    """Return the template environment: everything is escaped that is not markup of ours."""
    made = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=ChainableUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = (HERE / "style.css").read_text("utf-8")
    made.globals["style"] = Markup(style)  # our own file, and the policy names its digest
    made.globals["policy"] = policy(style)
    made.filters.update(
        duration=timing.duration, size=size, short=short, as_text=as_text, reflowed=reflowed
    )
    return made


def policy(style: str) -> str:
    """Return the content policy: our one style sheet and data: pictures, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; script-src 'none'; "
        "base-uri 'none'; form-action 'none'"
    )


def size(value: object) -> str:
    """Return a number of bytes as people say it."""
    number = float(value) if isinstance(value, int | float) else 0.0
    for unit in ("B", "KB", "MB"):
        if number < 1024 or unit == "MB":
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return ""


def short(value: object) -> str:
    """Return the beginning of a digest."""
    text = str(value or "")
    return f"{text[:12]}…" if len(text) > 12 else text


def reflowed(value: object) -> str:
    """Return text with the line breaks left out that only kept its source narrow."""
    return re.sub(r"(?<=[^\n])\n(?=[^\s\-*#|>\d])", " ", str(value))


def _artifacts(
    workspace: Workspace, run: ConfinedFolder, record: Mapping[str, Any]
) -> Iterator[Artifact]:
    outcome = record.get("outcome") or {}
    published = outcome.get("published") or {}
    for data in outcome.get("artifacts") or ():
        path = str(data.get("path"))
        inside = path in published
        folder, name = (workspace.folder, path) if inside else (run, f"work/{path}")
        shown, stale = _previewed(folder, name, data)
        yield Artifact(data, _groups(data.get("checks") or ()), shown, stale)


def _previewed(folder: ConfinedFolder, path: str, data: Mapping[str, Any]) -> tuple[Preview, str]:
    """Return a preview of the file that was judged, and none of another one."""
    then = data.get("sha256")
    if then is None:
        return Preview(note="There was no file to read."), ""
    try:
        now = folder.sha256(path)
        if now != then:
            what = "is gone" if now is None else "has changed"
            return Preview(), f"The file {what} since it was judged, so it is not shown."
        with folder.open(path) as stream:
            return preview(stream, str(data.get("format"))), ""
    except Failure as failure:
        return Preview(note=failure.cause), ""


def _groups(
    checks: Sequence[Mapping[str, Any]],
) -> tuple[tuple[str, tuple[Mapping[str, Any], ...]], ...]:
    found = ((depth, tuple(c for c in checks if c.get("depth") == depth)) for depth in DEPTHS)
    return tuple((depth, group) for depth, group in found if group)


def _scripts(workspace: Workspace, run: ConfinedFolder, story: Story) -> Iterator[Script]:
    """Yield the last run of each version of each script, the newest first."""
    last = {str(data.get("sha256")): data for data in story.scripts}
    for sha256, data in reversed(last.items()):
        text = _kept(run, str(data.get("kept", "")))
        yield Script(
            {**data, "path": _relative(workspace, str(data.get("path", "")))},
            highlight.python(text),
            text.count("\n") + 1 if text else 0,
            str(data.get("stdout", "")),
            str(data.get("stderr", "")),
            sum(1 for ran in story.scripts if ran.get("sha256") == sha256),
        )


def _relative(workspace: Workspace, path: str) -> str:
    """Return the path of a script as seen from the workspace, where it lies in it."""
    return path.removeprefix(f"{workspace.root}/")


def _kept(run: ConfinedFolder, path: str) -> str:
    try:
        return run.read(path).decode("utf-8", "backslashreplace") if path else ""
    except Failure:
        return ""
