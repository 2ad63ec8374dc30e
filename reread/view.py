"""What a person sees while a run goes on: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from reread.values import Outcome

Data = Mapping[str, Any]
MAX_LINE = 160


class Lines:
    """A listener that writes one plain line for each thing that happens."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._started = time.monotonic()

    def __call__(self, kind: str, data: Data) -> None:
        """Show one event."""
        text = line_of(kind, data)
        if text:
            seconds = time.monotonic() - self._started
            with contextlib.suppress(
                BrokenPipeError
            ):  # whoever read along has gone; the run goes on
                print(f"{seconds:7.1f}s  {text}", file=self._stream, flush=True)

    def close(self) -> None:
        """Nothing is held open."""


class Live:
    """A listener that keeps a moving line for what goes on now and prints what is done above it."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console  # 60 ms that a pipe does not need
        from rich.status import Status

        self._console = Console(file=stream, highlight=False)
        self._started = time.monotonic()
        self._status = Status("starting", console=self._console)
        self._status.start()

    def __call__(self, kind: str, data: Data) -> None:
        """Show one event."""
        from rich.text import Text

        doing = doing_of(kind, data)
        if doing:
            self._status.update(Text(f"{doing}"))
        text = line_of(kind, data)
        if text:
            mark = Text(f"{time.monotonic() - self._started:7.1f}s  ", style="dim")
            self._console.print(mark + Text(text, style=_style(kind, data)), soft_wrap=True)

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._status.stop()


def _style(kind: str, data: Data) -> str:
    if kind == "tool.answered":
        return "" if data["result"].get("ok") else "red"
    if kind in ("gate.checked", "gate.read"):
        return "green" if data.get("ok") else "red"
    return {"round.ended": "dim", "skills.selected": "cyan"}.get(kind, "")


def line_of(kind: str, data: Data) -> str:
    """Return the line for something that is done, '' for what is not worth one."""
    make = _DONE.get(kind)
    return clean(make(data)) if make else ""


def doing_of(kind: str, data: Data) -> str:
    """Return what goes on from here, '' where that does not change."""
    make = _DOING.get(kind)
    return clean(make(data)) if make else ""


def clean(text: str) -> str:
    """Return one printable line: control characters shown, cut at `MAX_LINE`."""
    line = " ".join(text.split())
    line = _printable(line)
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 1] + "…"


def _called(data: Data) -> str:
    arguments = data.get("arguments", {})
    first = next((str(arguments[key]) for key in ("path", "name", "query") if key in arguments), "")
    return f"{data['name']} {first}".strip()


def _answered(data: Data) -> str:
    result = data["result"]
    if not result.get("ok"):
        return f"✗ {data['name']}: {result.get('code')}: {result.get('cause', '')}"
    shown = [str(result[key]) for key in ("path", "bytes", "exit_code") if key in result]
    return f"✓ {data['name']} {' · '.join(shown)}".strip()


def _gate(data: Data) -> str:
    read = [*data["scripts"], *data["artifacts"]]
    good = sum(1 for evidence in read if evidence["ok"])
    return f"gate: {good} of {len(read)} files proven"


def _selected(data: Data) -> str:
    chosen = data.get("skills", {}).get("selected", {})
    return f"skills: {', '.join(chosen) or 'none'} · run {data['run_id']}"


def _round(data: Data) -> str:
    return f"round ended: {data['status']}"


_DONE: Mapping[str, Callable[[Data], str]] = {
    "run.started": _selected,
    "tool.answered": _answered,
    "gate.read": _gate,
    "round.ended": _round,
    "host.step": lambda data: f"(host) {data['host']} {data['path']}",
}

_DOING: Mapping[str, Callable[[Data], str]] = {
    "model.asked": lambda data: f"waiting for the model ({data['messages']} messages)",
    "model.progress": lambda data: f"model: {data.get('tokens', '')} {data.get('text', '')}",
    "tool.called": _called,
    "dependencies": lambda data: f"environment: {data.get('step', '')} {data.get('detail', '')}",
    "script.output": lambda data: f"script: {data.get('line', '')}",
    "round.ended": lambda data: "the gate reads the files again",
}


def choose(stream: TextIO) -> Lines | Live:
    """Return the live view on a terminal, plain lines elsewhere."""
    return Live(stream) if stream.isatty() else Lines(stream)


def last(outcome: Outcome, workspace: Path, *, kept: bool, stream: TextIO) -> None:
    """Say how it ended and where the files and the record are."""
    lines = [f"{'✓' if outcome.ok else '✗'} {outcome.status}"]
    if outcome.reason:
        lines[0] += f": {outcome.reason}"
        lines += [f"  {outcome.cause}", f"  {outcome.remedy}"]
    for evidence in outcome.artifacts:
        passed = sum(1 for check in evidence.checks if check.state == "passed")
        mark = "✓" if evidence.ok else "✗"
        lines.append(f"  {mark} {evidence.path} ({passed} of {len(evidence.checks)} checks passed)")
    run = workspace / "runs" / outcome.run_id
    if kept:
        files = workspace if outcome.ok else run / "work"
        lines += [f"  files:  {files}", f"  record: {run / 'record.json'}"]
    else:
        lines.append("  The temporary workspace is removed; keep it with --workspace DIR.")
    with contextlib.suppress(BrokenPipeError):
        print("\n".join(_printable(line) for line in lines), file=stream, flush=True)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def out() -> TextIO:
    """Return standard output, made safe for names and text in any script."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    return sys.stdout
