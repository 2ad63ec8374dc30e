"""What a human adds to the built-in powers of a run: extension packages and MCP servers.

Proves: nothing is added that no flag named, and every addition is in the record by name and digest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_runtime import Failure, Rail, Tool
from reread import extras
from reread.approvals import Approvals
from reread.session import Session
from reread.tools import all_tools
from reread.workspace import SCRIPT_WRITABLE

if TYPE_CHECKING:  # most runs load no package
    from reread.extensions.loading import Extension, Extensions, Surroundings

SKILL_LIMIT = 64 << 10


@dataclass(frozen=True, slots=True)
class Added:
    """More powers and hooks."""

    tools: tuple[Tool, ...] = ()
    rails: tuple[Rail, ...] = ()


@asynccontextmanager
async def added(
    session: Session, *, mcp: Path | None = None, extensions: tuple[Path, ...] = ()
) -> AsyncIterator[Added]:
    """Load what was named, and unload it at the end.

    Raises:
        Failure: extension_not_verified, harness_load_failed and their kin; dependency_missing.
    """
    packages = _packages(session) if extensions else None
    try:
        loaded = [await _load(session, packages, path) for path in extensions if packages]
        tools = tuple(_entered(session, tool) for one in loaded for tool in one.tools)
        rails = tuple(rail for one in loaded for rail in (one.rail, _Skills(one)))
        if mcp is None:
            yield Added(tools, rails)
            return
        async with _servers(session, mcp) as more:
            yield Added((*tools, *more), rails)
    finally:
        if packages is not None:
            await packages.aclose()


def approve_extension(approvals: Approvals, path: Path) -> None:
    """Take a human's word for a package exactly as it is now.

    Raises:
        Failure: manifest_invalid, when there is no package at the path.
    """
    from reread.extensions import package

    held = package.contents(package.open_package(path))
    approvals.grant(f"extension:{path.resolve().name}", package.digest_of(held))


async def _load(session: Session, packages: Extensions, path: Path) -> Extension:
    def approved(name: str, sha256: str) -> bool:
        word = session.approvals.find(f"extension:{name}")
        if word is None or word.sha256 != sha256:
            return False
        session.approvals.spent_on(word)
        return True

    extension = await packages.load(path, approved=approved)
    session.record.event(
        "extension.loaded",
        {"name": extension.name, "sha256": extension.sha256, "parts": list(extension.labels)},
    )
    return extension


def _packages(session: Session) -> Extensions:
    from reread.extensions.loading import Extensions

    return Extensions(_surroundings(session))


def _surroundings(session: Session) -> Surroundings:
    from reread.extensions.loading import Surroundings

    work = session.work
    work.run.make_folder("extensions")
    work.folder.make_folder("inputs")  # a view of the user's folder is mounted there
    return Surroundings(
        work=work.folder.root,
        writable=tuple(work.folder.root / name for name in SCRIPT_WRITABLE),
        home=work.run.root / "extensions",
        session_id=work.run_id,
        inputs=work.workspace.root / "inputs",
        taken=[tool.name for tool in all_tools(session)],
        permissions=session.task.permissions,
        emit=session.record.event,
    )


def _entered(session: Session, tool: Tool) -> Tool:
    """Enter what a tool of a package leaves in the ledger; it counts as write_file does."""
    handler: Callable[[Mapping[str, Any]], Any] = tool.handler

    async def handle(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        before = session.work.snapshot()
        result: Mapping[str, Any] = await handler(arguments)
        for path, seen in session.work.snapshot().items():
            if before.get(path) != seen:
                session.work.ledger.wrote(path, seen.sha256)
        return result

    return replace(tool, handler=handle)


class _Skills(Rail):
    """Puts the skills of a package into the system prompt."""

    def __init__(self, extension: Extension) -> None:
        self._extension = extension

    async def before_run(self, prompt: str) -> str:
        """Return the texts of the skills; they are text and grant nothing."""
        texts = []
        found = (sorted(folder.rglob("SKILL.md")) for folder in self._extension.skill_dirs)
        for file in (file for files in found for file in files):
            try:
                texts.append(file.read_text("utf-8")[:SKILL_LIMIT])
            except (OSError, UnicodeDecodeError) as error:
                raise Failure(
                    "skill_not_loaded",
                    f"'{file.name}' of the extension '{self._extension.name}': {error}.",
                    "python app.py verify PACKAGE says what is wrong with it.",
                ) from error
        return "\n\n".join(texts)


@asynccontextmanager
async def _servers(session: Session, config: Path) -> AsyncIterator[tuple[Tool, ...]]:
    extras.need("mcp")
    from reread.mcp_tools import read_config, tools_of

    async with tools_of(read_config(config)) as tools:
        session.record.event("tools.added", {"from": str(config), "names": [t.name for t in tools]})
        yield tools
