"""What a person sees while a run goes on: a moving line on a terminal, plain lines elsewhere.

What is done is a line that stays. What goes on is one line that moves: what it is, for how long,
and the last that was heard of it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from reread.values import Evidence, Outcome

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

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
        if not text and kind == "dependencies" and data["requirements"]:
            text = f"… {doing_of(kind, data)}"  # it may take minutes, and here nothing moves
        if text:
            print(f"{_clock(self._started)}  {text}", file=self._stream, flush=True)

    def close(self) -> None:
        """Nothing is held open."""


@dataclass(frozen=True, slots=True)
class Doing:
    """What goes on now.

    Attributes:
        what: the work; its clock runs until another one begins.
        detail: the last that was heard of it.
        since: monotonic seconds.
    """

    what: str
    detail: str = ""
    since: float = 0.0


class Live:
    """A listener that keeps a moving line for what goes on now and prints what is done above it."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console  # 60 ms that a pipe does not need
        from rich.live import Live as Moving
        from rich.spinner import Spinner

        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._started = time.monotonic()
        self._doing = Doing("starting", since=self._started)
        self._spinner = Spinner("dots", style="cyan")
        self._moving = Moving(self, console=self._console, refresh_per_second=10, transient=True)
        self._moving.start()

    def __call__(self, kind: str, data: Data) -> None:
        """Show one event."""
        from rich.text import Text

        doing = activity_of(kind, data)
        if doing is not None:
            same = doing.what == self._doing.what
            since = self._doing.since if same else time.monotonic()
            self._doing = replace(doing, since=since)
        text = line_of(kind, data)
        if text:
            mark = Text(f"{_clock(self._started)}  ", style="dim")
            self._console.print(mark + Text(text, style=_style(kind, data)), soft_wrap=True)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the moving line; called ten times a second, by another thread."""
        from rich.text import Text

        now, doing = time.monotonic(), self._doing
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{_clock(self._started)}  ", style="dim")
        turning = self._spinner.render(now)
        line.append_text(turning if isinstance(turning, Text) else Text("…"))
        line.append(f" {doing.what}", style="bold")
        line.append(f" · {elapsed(now - doing.since)}", style="cyan")
        if doing.detail:
            line.append(f" · {doing.detail}", style="dim")
        yield line

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._moving.stop()


def _clock(started: float) -> str:
    return f"{time.monotonic() - started:7.1f}s"


def elapsed(seconds: float) -> str:
    """Return a length of time, in whole seconds."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _style(kind: str, data: Data) -> str:
    if kind == "tool.answered":
        return "" if data["result"].get("ok") else "red"
    if kind in ("gate.checked", "gate.read"):
        return "green" if data.get("ok") else "red"
    return _STYLES.get(kind, "")


_STYLES = {
    "run.started": "cyan",
    "round.ended": "dim",
    "environment": "dim",
    "host.step": "yellow",
    "model.again": "yellow",
    "model.adjusted": "yellow",
}


def line_of(kind: str, data: Data) -> str:
    """Return the line for something that is done, '' for what is not worth one."""
    make = _DONE.get(kind)
    return clean(make(data)) if make else ""


def doing_of(kind: str, data: Data) -> str:
    """Return what goes on from here as text, '' where that does not change."""
    doing = activity_of(kind, data)
    if doing is None:
        return ""
    return clean(f"{doing.what}: {doing.detail}" if doing.detail else doing.what)


def activity_of(kind: str, data: Data) -> Doing | None:
    """Return what goes on from here, None where that does not change."""
    make = _DOING.get(kind)
    if make is None:
        return None
    doing = make(data)
    return Doing(clean(doing.what), clean(doing.detail))


def clean(text: str) -> str:
    """Return one printable line: control characters shown, cut at `MAX_LINE`."""
    line = " ".join(text.split())
    line = _printable(line)
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 1] + "…"


def _called(data: Data) -> Doing:
    arguments = data.get("arguments", {})
    first = next((str(arguments[key]) for key in ("path", "name", "query") if key in arguments), "")
    return Doing(f"{data['name']} {first}".strip())


def _answered(data: Data) -> str:
    result, name = data["result"], data["name"]
    if not result.get("ok"):
        return f"✗ {name}: {result.get('code')}: {result.get('cause', '')}"
    said = [str(result[key]) for key in ("path", "name") if key in result][:1]
    if "exit_code" in result:
        said += [f"exit code {result['exit_code']}", f"{result.get('seconds', 0):.1f} s"]
        said += [_count(len(result.get("files_left", ())), "file")]
    elif "bytes" in result:
        said.append(f"{result['bytes']} bytes")
    return f"✓ {name} {' · '.join(said)}".strip()


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _checked(data: Data) -> str:
    if data["ok"]:
        return f"✓ {data['path']} · {_count(data['checks'], 'check')} held"
    return f"✗ {data['path']} · {data['code']}: {data['cause']}"


def _gate(data: Data) -> str:
    read = [*data["scripts"], *data["artifacts"]]
    good = sum(1 for evidence in read if evidence["ok"])
    return f"gate: {good} of {_count(len(read), 'file')} proven"


def _selected(data: Data) -> str:
    chosen = data.get("skills", {}).get("selected", {})
    return f"run {data['run_id']} · skills: {', '.join(chosen) or 'none'}"


def _environment(data: Data) -> str:
    if not data.get("packages"):
        return ""
    cached = ", from the cache" if data.get("cached") else ""
    return f"environment: {_count(data['packages'], 'package')}{cached}"


def _again(data: Data) -> str:
    return f"the service: {data['cause']}; asked again in {data['seconds']} s (try {data['try']})"


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _writes(data: Data) -> Doing:
    tokens = data.get("tokens")
    text = str(data.get("text", ""))[-80:]
    return Doing("the model writes", f"{tokens} tokens · {text}" if tokens else text)


_DONE: Mapping[str, Callable[[Data], str]] = {
    "run.started": _selected,
    "run.resumed": lambda data: f"goes on · {_selected(data)}",
    "tool.answered": _answered,
    "environment": _environment,
    "gate.checked": _checked,
    "gate.read": _gate,
    "round.ended": lambda data: f"round ended: {data['status']}",
    "host.step": lambda data: f"(host) {data['host']} {data['path']}",
    "model.again": _again,
    "model.adjusted": lambda data: f"the service: {data['cause']}",
}

_DOING: Mapping[str, Callable[[Data], Doing]] = {
    "model.asked": lambda data: Doing("waiting for the model", _count(data["messages"], "message")),
    "model.progress": _writes,
    "tool.called": _called,
    "dependencies": lambda data: Doing(
        "preparing the environment", ", ".join(data.get("requirements", ()))
    ),
    "environment": lambda data: Doing("the script runs"),
    "script.output": lambda data: Doing("the script runs", _last_line(str(data.get("text", "")))),
    "round.ended": lambda data: Doing("the gate reads the files"),
    "gate.checking": lambda data: Doing("the gate reads the files", str(data["path"])),
}


def choose(stream: TextIO) -> Lines | Live:
    """Return the live view on a terminal, plain lines elsewhere."""
    return Live(stream) if stream.isatty() else Lines(stream)


def last(outcome: Outcome, workspace: Path, *, kept: bool, stream: TextIO) -> None:
    """Say how it ended and where the files and the record are."""
    lines = [_verdict(outcome), *(_judged(evidence) for evidence in outcome.artifacts)]
    run = workspace / "runs" / outcome.run_id
    if kept:
        files = workspace if outcome.ok else run / "work"
        lines += [f"  files:  {files}", f"  record: {run / 'record.json'}"]
        lines += [f"  page:   python app.py report {run}"]
    else:
        lines.append("  The temporary workspace is removed; keep it with --workspace DIR.")
    print("\n".join(_printable(line) for line in lines), file=stream, flush=True)


def _verdict(outcome: Outcome) -> str:
    """Return how it ended and what it took; under it the cause and the remedy."""
    used = [f"{outcome.seconds:.1f} s", _count(outcome.turns, "turn")]
    used.append(_count(outcome.tool_calls, "call"))
    if outcome.usage.tokens:
        about = "about " if outcome.usage.estimated else ""
        used.append(f"{about}{outcome.usage.tokens:,} tokens")
    if outcome.usage.usd:
        used.append(f"${outcome.usage.usd:.4f}")
    if outcome.ok:
        return f"✓ complete · {' · '.join(used)}"
    first = f"✗ {outcome.status}: {outcome.reason} · {' · '.join(used)}"
    return "\n".join([first, f"  {clean(outcome.cause)}", f"  {clean(outcome.remedy)}"])


def _judged(evidence: Evidence) -> str:
    passed = sum(1 for check in evidence.checks if check.state == "passed")
    mark = "✓" if evidence.ok else "✗"
    return f"  {mark} {evidence.path} ({passed} of {len(evidence.checks)} checks passed)"


def _printable(text: str) -> str:
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
    )


def out() -> TextIO:
    """Return standard output, made safe for names and text in any script."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    return sys.stdout
