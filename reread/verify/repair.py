"""Repair: an agent works on a copy of the package, and each round is verified afresh.

The agent sees the package's files and the findings. The acceptance spec is taken out of the copy
and put back from memory, and the verifier's own files are known by their digest: an agent can make
the package pass, and nothing else pass for it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from agent_runtime import (
    Budget,
    Conversation,
    Failure,
    Limits,
    Model,
    Rail,
    ScriptedModel,
    Tool,
    run_agent,
)
from reread.extensions import package
from reread.files import ConfinedFolder
from reread.skills import tree_digest
from reread.values import Code, Finding, Permissions
from reread.verify import verify_files
from reread.verify.acceptance import Acceptance
from reread.verify.report import Report, finding_json

ROUNDS = 3
FILE_LIMIT = 256 << 10
Agent = Callable[[Path, Sequence[Finding], int], Awaitable[None]]
"""Takes the folder to work in, the findings and the number of the round, from 1."""

INSTRUCTIONS = """You repair an extension package. Its files are your whole workspace: list_files, \
read_file, write_file and remove_file work there and nowhere else. You get findings, each with a \
code, the smallest query that shows it, what was expected and what was seen. Mend the causes in \
the package, then stop calling tools; the package is then verified again in a fresh process. The \
acceptance spec and the verifier are not in reach."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """How a repair ended.

    Attributes:
        reports: one for each verification; the first is of the package as it came.
        held: the files as they were verified last.
    """

    reports: tuple[Report, ...]
    held: Mapping[str, bytes]

    @property
    def ok(self) -> bool:
        """The last verification passed."""
        return self.reports[-1].ok


async def repair(
    path: Path,
    spec: Acceptance,
    agent: Agent,
    draft: Path,
    *,
    rounds: int = ROUNDS,
    runtime: str = "auto",
    permissions: Permissions = Permissions(),  # noqa: B008 - frozen
) -> Repaired:
    """Verify, hand the findings to the agent, and go on until it passes or the rounds are used.

    Args:
        draft: a new folder; the agent works in `draft/<name>`, the package itself stays as it is.

    Raises:
        Failure: verifier_crashed, where the verifier's own files changed meanwhile.
    """
    held, name = package.contents(package.open_package(path)), path.resolve().name
    pinned = {file: data for file, data in held.items() if file in package.ACCEPTANCE}
    free = {file: data for file, data in held.items() if file not in package.ACCEPTANCE}
    folder = package.write(free, draft / name)
    verifier = verifier_digest()
    reports: list[Report] = []
    for number in range(rounds + 1):
        if number:
            await agent(folder.root, reports[-1].findings, number)
            held = {**_agents_files(folder), **pinned}
        if verifier_digest() != verifier:
            raise _changed()
        report = await verify_files(
            held, name, spec, shown=str(path), runtime=runtime, permissions=permissions
        )
        reports.append(report)
        if report.ok:
            break
    return Repaired(tuple(reports), held)


def verifier_digest() -> str:
    """Return the digest of the program's files that decide."""
    root = Path(__file__).resolve().parent.parent
    digests = {
        f"{part}/{path}": sha256
        for part in ("verify", "extensions", "examine", "formats", "sandbox")
        for path, sha256 in ConfinedFolder(root / part).digests(trust_cache=False).items()
        if PurePosixPath(path).suffix != ".pyc"
    }
    return tree_digest(digests)


def _agents_files(folder: ConfinedFolder) -> dict[str, bytes]:
    files = package.contents(folder)
    return {path: data for path, data in files.items() if path not in package.ACCEPTANCE}


def agent_of(make: Callable[[int], Model], *, guidance: str = "") -> Agent:
    """Return an agent that works with a model; `make` gives the model of a round."""

    async def work(folder: Path, findings: Sequence[Finding], number: int) -> None:
        model = make(number)
        rails: list[Rail] = [model] if isinstance(model, ScriptedModel) else []
        found = json.dumps([finding_json(one) for one in findings], ensure_ascii=False, indent=1)
        conversation = Conversation(
            [
                {"role": "system", "content": f"{INSTRUCTIONS}\n\n{guidance}".strip()},
                {"role": "user", "content": f"Round {number} of {ROUNDS}. Findings:\n{found}"},
            ],
            Budget(Limits(turns=30, tool_calls=100, timeout=900.0)),
        )
        try:
            ended = await run_agent(model, conversation, file_tools(folder), rails=rails)
        finally:
            await model.aclose()
        if ended.status == "model-failed" and ended.failure is not None:
            raise ended.failure

    return work


def file_tools(root: Path) -> tuple[Tool, ...]:
    """Return the repairing agent's tools; none of them leaves the folder."""
    folder = ConfinedFolder(root)

    async def list_files(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"files": [entry.path for entry in folder.walk() if entry.kind == "file"]}

    async def read_file(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"content": folder.read_text(arguments["path"], limit=FILE_LIMIT)}

    async def write_file(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        data = arguments["content"].encode()
        if len(data) > FILE_LIMIT:
            raise Failure(
                Code.file_too_large, f"The content has {len(data)} bytes.", "Write a smaller file."
            )
        written = folder.write(arguments["path"], data)
        return {"path": written.path, "bytes": written.size, "sha256": written.sha256}

    async def remove_file(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        folder.remove(arguments["path"])
        return {}

    path = {"path": {"type": "string"}}
    return (
        Tool("list_files", "List the files of the package.", _schema({}), list_files),
        Tool("read_file", "Read a file of the package.", _schema(path), read_file),
        Tool(
            "write_file",
            "Write a whole file of the package.",
            _schema({**path, "content": {"type": "string"}}),
            write_file,
            changes=True,
        ),
        Tool("remove_file", "Remove a file.", _schema(path), remove_file, changes=True),
    )


def _schema(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _changed() -> Failure:
    return Failure(
        Code.verifier_crashed,
        "The verifier's own files changed while a package was repaired.",
        "Install the program again, and find out what wrote there.",
    )
