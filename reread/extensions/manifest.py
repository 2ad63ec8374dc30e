"""harness_config.yaml: the strict subset of harness_config.v0.1 that is accepted.

Everything that the format does not name is refused by name: unknown keys, other kinds of entries,
modules and skill folders outside of the package.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from agent_runtime import Failure
from reread import documents
from reread.files import ConfinedFolder, check_name
from reread.values import Code, Problem

FILE_NAME = "harness_config.yaml"
REQUIREMENTS = "requirements.txt"
SCHEMA_VERSION = "harness_config.v0.1"
MAX_FILE = 256 << 10
PREFIXES: Mapping[str, Literal["native", "openjiuwen"]] = {
    "extensions.harness": "native",
    "openjiuwen.extensions.harness": "openjiuwen",
}
_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One tool or rail: the class and where it is."""

    module: str
    name: str

    def file(self, prefix: str, package: str) -> str:
        """Return the path of its module inside the package."""
        return self.module.removeprefix(f"{prefix}.{package}.").replace(".", "/") + ".py"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a package declares.

    Attributes:
        prefix: the namespace of its modules; it tells the runtime that it is written for.
        skill_dirs: folders inside the package that hold skill folders.
    """

    name: str
    description: str
    prefix: str
    tools: tuple[Entry, ...] = ()
    rails: tuple[Entry, ...] = ()
    skill_dirs: tuple[str, ...] = ()

    @property
    def runtime(self) -> Literal["native", "openjiuwen"]:
        """The runtime that its modules are written for."""
        return PREFIXES[self.prefix]

    @property
    def labels(self) -> tuple[str, ...]:
        """What a load returns when all of it is there."""
        return (
            *(f"rail:{entry.name}" for entry in self.rails),
            *(f"tool:{entry.name}" for entry in self.tools),
            *(f"skill_dir:{path}" for path in self.skill_dirs),
        )


@cache
def schema() -> Mapping[str, Any]:
    """Return the JSON Schema of the manifest."""
    text = Path(__file__).with_name("harness_config.schema.json").read_text("utf-8")
    return dict(json.loads(text))


def read(folder: ConfinedFolder, name: str) -> Manifest | tuple[Problem, ...]:
    """Read the manifest of a package, or say all that is wrong with it.

    Args:
        name: of the package's folder, which its `name` must be.
    """
    try:
        text = folder.read_text(FILE_NAME, limit=MAX_FILE)
        document = documents.read(text, FILE_NAME, code=Code.manifest_invalid)
        documents.check(document, schema(), code=Code.manifest_invalid)
    except Failure as failure:
        return (Problem(Code.manifest_invalid, FILE_NAME, failure.cause, failure.remedy),)
    problems = tuple(_problems(document, name))
    return problems or _manifest(document.value)


def _manifest(value: Mapping[str, Any]) -> Manifest:
    resources = value["resources"]
    tools, rails = (
        tuple(Entry(entry["module"], entry["class"]) for entry in resources.get(kind, ()))
        for kind in ("tools", "rails")
    )
    prefix = next((_prefix(e.module, value["name"]) for e in (*tools, *rails)), "")
    return Manifest(
        value["name"],
        value.get("description", ""),
        prefix or "extensions.harness",
        tools,
        rails,
        tuple(path.rstrip("/") for path in resources.get("skills", {}).get("dirs", ())),
    )


def _problems(document: documents.Document, folder: str) -> Iterator[Problem]:
    value = document.value
    name = value["name"]

    def wrong(code: Code, path: tuple[str | int, ...], cause: str, remedy: str) -> Problem:
        return Problem(code, f"{FILE_NAME}, line {document.line(path)}", cause, remedy)

    if not _NAME.fullmatch(name) or name != folder:
        yield wrong(
            Code.manifest_invalid,
            ("name",),
            f"The name '{name}' is not that of the folder '{folder}', or no identifier.",
            "Give both the same name: lower case letters, digits and '_'.",
        )
    for kind in ("tools", "rails"):
        for index, entry in enumerate(value["resources"].get(kind, ())):
            for key, cause, remedy in _entry(entry, folder):
                path = ("resources", kind, index, key)
                yield wrong(Code.entry_point_not_allowed, path, cause, remedy)
    for index, path in enumerate(value["resources"].get("skills", {}).get("dirs", ())):
        try:
            check_name(path.rstrip("/"))
        except Failure as failure:
            at = ("resources", "skills", "dirs", index)
            yield wrong(Code.skill_manifest_invalid, at, failure.cause, failure.remedy)
    prefixes = {
        _prefix(entry["module"], folder)
        for kind in ("tools", "rails")
        for entry in value["resources"].get(kind, ())
    }
    if len(prefixes) > 1 and "" not in prefixes:
        yield wrong(
            Code.entry_point_not_allowed,
            ("resources",),
            "The modules are written for two runtimes.",
            "Use one prefix for all: extensions.harness",
        )


def _entry(entry: Mapping[str, str], folder: str) -> Iterator[tuple[str, str, str]]:
    if entry["type"] != "package":
        yield "type", f"The type '{entry['type']}' is not accepted.", "Write type: package."
    if not _prefix(entry["module"], folder):
        yield (
            "module",
            f"The module '{entry['module']}' lies outside of this package.",
            f"Name a module below extensions.harness.{folder}.",
        )


def _prefix(module: str, name: str) -> str:
    return next((p for p in PREFIXES if module.startswith(f"{p}.{name}.")), "")
