"""doctor: what works on this machine, and what to do about the rest."""

from __future__ import annotations

import argparse
import ast
import asyncio
import importlib.util
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from agent_runtime import Failure, Tool
from reread import commands, formats, plugins
from reread.values import Code

HELP = "Say what works on this machine: Python, uv, the sandbox, file formats, the model service."

LEAST_PYTHON = (3, 11)
ASKED = (
    {"role": "system", "content": "You check that function calling works."},
    {"role": "user", "content": "Call the tool `ready` with the word ok."},
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        state: `failed` keeps runs from working; `limited` keeps some; `skipped` was not asked for.
        code: of what is wrong, '' where nothing is.
    """

    name: str
    state: Literal["works", "limited", "failed", "skipped"]
    detail: str
    remedy: str = ""
    code: str = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "--live", action="store_true", help="also ask the model service; one small request"
    )
    parser.add_argument(
        "--api", choices=("chat", "responses"), default="chat", help="for --live (default: chat)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object alone")


def run(arguments: argparse.Namespace) -> int:
    """Look at everything; 0 where nothing failed, else the exit status of the first failure."""
    found = tuple(_findings(live=arguments.live, api=arguments.api))
    failed = [finding for finding in found if finding.state == "failed"]
    if arguments.json:
        commands.print_json({"ok": not failed, "findings": [asdict(f) for f in found]})
    else:
        _show(found)
    return commands.exit_status(failed[0].code) if failed else 0


def _findings(*, live: bool, api: str) -> Iterator[Finding]:
    yield _python()
    yield _uv()
    yield from _sandbox()
    yield from _formats()
    yield from _model(live=live, api=api)


def _show(found: tuple[Finding, ...]) -> None:
    marks = {"works": "✓", "limited": "!", "failed": "✗", "skipped": "·"}
    lines = []
    for finding in found:
        code = f"{finding.code}: " if finding.code else ""
        lines.append(f"{marks[finding.state]} {finding.name:<18} {code}{finding.detail}")
        if finding.remedy:
            lines.append(f"  {'':<18} {finding.remedy}")
    encoding = sys.stdout.encoding or "utf-8"
    print("\n".join(lines).encode(encoding, "replace").decode(encoding))


def _python() -> Finding:
    version, system = platform.python_version(), f"{platform.system()} {platform.machine()}"
    if sys.version_info < LEAST_PYTHON:
        remedy = "Use Python 3.11 or newer: uv python install 3.12"
        return Finding(
            "python", "failed", f"{version} is too old", remedy, Code.environment_unusable
        )
    return Finding("python", "works", f"{version} on {system}")


def _uv() -> Finding:
    from reread.scripts import find_uv

    try:
        found = find_uv()
        told = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=20)
    except Failure as failure:
        return _failed("uv", failure)
    except (OSError, subprocess.TimeoutExpired) as error:
        remedy = f"Run: {sys.executable} -m pip install --force-reinstall uv"
        return Finding("uv", "failed", f"it does not start: {error}", remedy, Code.uv_missing)
    return Finding("uv", "works", f"{told.stdout.strip()} ({found})")


def _sandbox() -> Iterator[Finding]:
    from reread import sandbox
    from reread.values import Permissions

    try:
        chosen = sandbox.choose(Permissions())
    except Failure as failure:
        yield _failed("sandbox", failure)
        return
    fence = sandbox.Fence(readable=(), writable=(), cwd=Path.cwd(), env={})
    layers = chosen.isolation(fence)
    degraded = f"; not held: {', '.join(layers.degraded)}" if layers.degraded else ""
    detail = f"{chosen.NAME}: files {layers.filesystem}, network {layers.network}{degraded}"
    yield Finding("sandbox", "limited" if layers.degraded else "works", detail)
    for mechanism in sandbox.MECHANISMS:
        why = "" if mechanism is chosen else sandbox.fault(mechanism)
        if why and mechanism.RANK > chosen.RANK:
            yield Finding(f"sandbox {mechanism.NAME}", "limited", why)


def _formats() -> Iterator[Finding]:
    """Say which formats can be judged: what a format's file imports must be installed."""
    folder = Path(formats.__path__[0])
    works, lacks = [], {}
    for name in plugins.names(formats):
        missing = sorted(m for m in _needs(folder / f"{name}.py", folder) if not _installed(m))
        if missing:
            lacks[name] = missing
        else:
            works.append(name)
    yield Finding("formats", "works" if works else "failed", ", ".join(works))
    for name, missing in lacks.items():
        detail = f"{', '.join(missing)} cannot be imported"
        remedy = f"Run: {sys.executable} -m pip install -r requirements.txt"
        yield Finding(f"format {name}", "limited", detail, remedy, Code.dependency_missing)


def _needs(path: Path, folder: Path) -> set[str]:
    """Return the packages that a file imports anywhere, through our private modules too."""
    found: set[str] = set()
    seen, waiting = set[Path](), [path]
    while waiting:
        at = waiting.pop()
        if at in seen or not at.is_file():
            continue
        seen.add(at)
        for node in ast.walk(ast.parse(at.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                if name.startswith("reread.formats."):
                    waiting.append(folder / f"{name.split('.')[2]}.py")
                found.add(name.partition(".")[0])
    return found - {"reread", "agent_runtime", "__future__"} - sys.stdlib_module_names


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _model(*, live: bool, api: str) -> Iterator[Finding]:
    from reread import models

    try:
        settings = models.settings_from_environment()
        model = models.open_model(settings, api=api)
    except Failure as failure:
        if live:
            yield _failed("model", failure)
        else:
            yield Finding("model", "skipped", failure.cause, failure.remedy, failure.code)
        return
    where = f"{settings.model} at {settings.host}"
    price = "price known" if model.price.known else "no price known, so --max-usd is refused"
    if not live:
        yield Finding("model", "skipped", f"{where}; {price}", "Add --live to ask it.")
        return
    yield asyncio.run(_asked(model, f"{where}; {price}"))


async def _asked(model: Any, where: str) -> Finding:
    """Make one small request that wants a tool called."""
    schema = {
        "type": "object",
        "properties": {"word": {"type": "string"}},
        "required": ["word"],
        "additionalProperties": False,
    }
    tool = Tool("ready", "Say that you are ready.", schema, _nothing)
    started = time.monotonic()
    try:
        reply = await model.reply([dict(message) for message in ASKED], [tool])
    except Failure as failure:
        return _failed("model", failure)
    finally:
        await model.aclose()
    took = f"{where}; answered in {time.monotonic() - started:.1f} s"
    counted = "" if not reply.usage.estimated else ", does not count its tokens"
    if not any(call.name == tool.name and not call.fault for call in reply.calls):
        remedy = "Name a model that calls functions; servers may need a flag for it (--jinja, …)."
        return Finding("model", "limited", f"{took}, called no tool{counted}", remedy)
    return Finding("model", "works", f"{took}, called the tool{counted}")


async def _nothing(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return {}


def _failed(name: str, failure: Failure) -> Finding:
    return Finding(name, "failed", failure.cause, failure.remedy, failure.code)
