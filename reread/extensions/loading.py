"""Loading packages into a run, and out of it again, while the program goes on.

Each package has a process of its own; unloading ends it, reloading starts a new one with fresh
code. A load is all or nothing: when one part fails, the process ends and nothing is registered.

Proves: what is loaded is the bytes whose digest passed verification, or that a human approved.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent_runtime import Failure, Rail, Tool
from reread.extensions import manifest, package, verified
from reread.extensions._process import LIMITS, LOAD_SECONDS, Place, Process
from reread.extensions._proxies import Emit, RailProxy, Seen, tool_of
from reread.extensions.manifest import Manifest
from reread.sandbox import View
from reread.scripts.environment import Ready, prepare
from reread.scripts.header import parse_header
from reread.values import Code, Isolation, Permissions, ScriptLimits

_MODEL_SAFE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
TAKEN_ELSEWHERE = frozenset({"bash", "shell", "edit_file", "grep", "glob", "read_file"})
"""Tools that the other runtime has built in; a package must be loadable there too."""
OPENJIUWEN = ("openjiuwen==0.1.19.post2",)
"""The release of the other runtime that the tests have run with."""
OPENJIUWEN_LIMITS = replace(LIMITS, memory=8 << 30, processes=512, open_files=1024)
OPENJIUWEN_SECONDS = 180.0
"""Its import alone takes some 6 seconds of CPU."""


@dataclass(frozen=True, slots=True)
class Extension:
    """A loaded package.

    Attributes:
        labels: `rail:<Class>`, `tool:<Class>`, `skill_dir:<path>`, one for each part.
        tools: for the agent; the handlers ask the package's process.
        rail: hooks of all its rails, in the order of the manifest.
        skill_dirs: folders of skills, inside the copy that was loaded.
        package: the copy; its `.state` is the session state.
        runtime: what loaded it, with its release where it is not ours.
    """

    name: str
    sha256: str
    manifest: Manifest
    labels: tuple[str, ...]
    tools: tuple[Tool, ...]
    rail: Rail
    skill_dirs: tuple[Path, ...]
    package: Path
    isolation: Isolation
    process: Process
    seen: Seen
    session_id: str
    runtime: str = "native"

    @property
    def state_file(self) -> Path:
        """The file in which its rails and tools share the state of the session."""
        return self.package / package.STATE / f"{self.session_id}.json"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where the packages of a run live.

    Attributes:
        work: the run's work folder; packages start there.
        writable: folders of it that they may change.
        home: folder for the copies, the logs and the private folders of the packages.
        session_id: of the run; safe as a file name.
        inputs: the user's inputs, seen read-only as `inputs/` of the work folder.
        taken: names of tools that are there already.
        state: folder that keeps `.state` between runs; None starts with none.
        sealed: the package's own folder is read-only, but for its state.
        limits: of each package's process.
        runtime: `native`, or `openjiuwen` for the real one, in an environment of its own.
    """

    work: Path
    writable: tuple[Path, ...]
    home: Path
    session_id: str
    inputs: Path | None = None
    taken: Collection[str] = ()
    permissions: Permissions = field(default_factory=Permissions)
    emit: Emit = lambda event, facts: None
    state: Path | None = None
    sealed: bool = True
    limits: ScriptLimits = LIMITS
    runtime: str = "native"


class Extensions:
    """The packages of one run or of one long-running host."""

    def __init__(self, surroundings: Surroundings, *, store: Path | None = None) -> None:
        self._surroundings = surroundings
        self._store = store
        self._loaded: dict[str, Extension] = {}

    @property
    def loaded(self) -> tuple[Extension, ...]:
        """What is loaded, in the order of loading."""
        return tuple(self._loaded.values())

    async def load(self, path: Path, *, approved: Callable[[str, str], bool] | None = None
    ) -> Extension:  # fmt: skip
        """Load a package.

        Args:
            approved: asked with (name, sha256) of a package that has not passed verification; a
                human's word for exactly these bytes.

        Raises:
            Failure: extension_not_verified; harness_load_failed for a name that is loaded; what
                the manifest and the package's process say (manifest_invalid, …).
        """
        held = package.contents(package.open_package(path))
        sha256, name = package.digest_of(held), path.resolve().name
        if name in self._loaded:
            raise _twice(name)
        if verified.find(sha256, self._store) is None and not (approved and approved(name, sha256)):
            raise _unverified(path, sha256)
        taken = {tool.name for loaded in self.loaded for tool in loaded.tools}
        around = replace(self._surroundings, taken={*self._surroundings.taken, *taken})
        extension = await start(held, name, around)
        self._loaded[name] = extension
        return extension

    async def unload(self, name: str) -> None:
        """End a package's process and forget it; its state of the session stays on disk.

        Raises:
            Failure: harness_load_failed, where it is not loaded.
        """
        extension = self._loaded.pop(name, None)
        if extension is None:
            raise Failure(
                Code.harness_load_failed,
                f"No extension '{name}' is loaded.",
                f"Loaded are: {', '.join(self._loaded) or 'none'}.",
            )
        await extension.process.close()

    async def reload(self, path: Path, *, approved: Callable[[str, str], bool] | None = None
    ) -> Extension:  # fmt: skip
        """Load the package's present code; the old one goes on where that fails."""
        name = path.resolve().name
        old = self._loaded.pop(name, None)
        try:
            extension = await self.load(path, approved=approved)
        except BaseException:
            if old is not None:
                self._loaded[name] = old
            raise
        if old is not None:
            await old.process.close()
        return extension

    async def aclose(self) -> None:
        """Unload all; safe to call twice."""
        for name in list(self._loaded):
            await self.unload(name)


async def start(held: Mapping[str, bytes], name: str, around: Surroundings) -> Extension:
    """Copy a package, start its process and register its parts; all of them or none.

    Raises:
        Failure: with every fault in `details["faults"]`, the first one's code as its own.
    """
    home = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=around.home)).resolve()
    folder = package.write(dict(held), home / "package" / name)
    found = manifest.read(folder, name)
    if isinstance(found, tuple):
        raise _refused([(p.code, p.where, p.cause) for p in found])
    if strays := list(package.undeclared(list(held), found.skill_dirs)):
        raise _refused([(p.code, p.where, p.cause) for p in strays])
    foreign = around.runtime == "openjiuwen"
    ready = await environment(held, around.permissions, OPENJIUWEN if foreign else ())
    process = Process.start(_place(home, name, around), ready, around.permissions)
    try:
        seconds = OPENJIUWEN_SECONDS if foreign else LOAD_SECONDS
        told = await process.load(_opening(folder.root, found), seconds)
        faults = list(_faults(told, found, around.taken))
        if faults:
            raise _refused(faults, process.tail())
        return _registered(found, package.digest_of(dict(held)), told, process, folder.root, around)
    except BaseException:
        await process.close()
        raise


async def environment(
    held: Mapping[str, bytes], permissions: Permissions, more: Sequence[str] = ()
) -> Ready | None:
    """Return the environment of a package's requirements, None where the standard library will do.

    Args:
        more: requirements of the host's own, which may be pinned.

    Raises:
        Failure: environment_unusable, with uv's message.
    """
    lines = held.get(manifest.REQUIREMENTS, b"").decode("utf-8", "replace").splitlines()
    wanted = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not wanted and not more:
        return None
    quoted = ", ".join(f'"{line}"' for line in wanted if '"' not in line)
    header = f"# /// script\n# dependencies = [{quoted}]\n# ///\n".encode()
    try:
        asked = parse_header(header, permissions)
        asked = replace(asked, requirements=(*asked.requirements, *more))
        return await prepare(asked, permissions)
    except Failure as failure:
        raise Failure(
            Code.environment_unusable, failure.cause, failure.remedy, failure.details
        ) from failure


def _place(home: Path, name: str, around: Surroundings) -> Place:
    root = home / "package" / name
    state, tmp = root / package.STATE, home / "tmp"
    tmp.mkdir()
    if around.state is not None and around.state.is_dir():
        shutil.copytree(around.state, state, symlinks=True)
    state.mkdir(exist_ok=True)
    inner = state if around.sealed else root
    views = (View(around.inputs, around.work / "inputs"),) if around.inputs else ()
    return Place(
        package=root,
        work=around.work,
        writable=(*around.writable, inner),
        tmp=tmp,
        log=home / "output.log",
        limits=OPENJIUWEN_LIMITS if around.runtime == "openjiuwen" else around.limits,
        views=views,
        server="_openjiuwen" if around.runtime == "openjiuwen" else "_serve",
    )


def _opening(root: Path, found: Manifest) -> dict[str, Any]:
    return {
        "root": str(root),
        "prefix": found.prefix,
        "tools": [{"module": e.module, "class": e.name} for e in found.tools],
        "rails": [{"module": e.module, "class": e.name} for e in found.rails],
        "skills": list(found.skill_dirs),
    }


Fault = tuple[Code, str, str]


def _faults(told: Mapping[str, Any], found: Manifest, taken: Collection[str]) -> Sequence[Fault]:
    """Say what is wrong with the parts that the process made, from what it told."""
    if "faults" in told:
        return [(Code(f["code"]), f["where"], f["error"]) for f in told["faults"]]
    faults: list[Fault] = []
    names: set[str] = set()
    for card in told["tools"]:
        where = f"{card['class']}"
        faults += [(Code.class_init_failed, where, cause) for cause in _card(card)]
        name = card["name"]
        if isinstance(name, str) and name in names:
            faults.append((Code.tool_not_registered, where, f"A second tool is named '{name}'."))
        if name in taken or name in TAKEN_ELSEWHERE:
            cause = f"The name '{name}' is that of a tool that is there already."
            faults.append((Code.tool_not_registered, where, cause))
        names.add(str(name))
    for code, entries in (
        (Code.rail_not_registered, found.rails),
        (Code.tool_not_registered, found.tools),
    ):
        seen: set[str] = set()
        for entry in entries:
            if entry.name in seen:
                faults.append((code, entry.name, f"Two classes are named '{entry.name}'."))
            seen.add(entry.name)
    return faults


def _card(card: Mapping[str, Any]) -> Sequence[str]:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    causes = []
    if not isinstance(card["name"], str) or not _MODEL_SAFE.fullmatch(card["name"]):
        causes.append(f"ToolCard.name is {card['name']!r}, which no model can call.")
    if card["id"] != card["name"]:
        causes.append(f"ToolCard.id {card['id']!r} is not ToolCard.name {card['name']!r}.")
    if not isinstance(card["description"], str) or not card["description"].strip():
        causes.append("ToolCard.description is empty.")
    parameters = card["input_params"]
    if not isinstance(parameters, dict) or parameters.get("type") != "object":
        causes.append("ToolCard.input_params is no JSON Schema with type: object.")
        return causes
    try:
        Draft202012Validator.check_schema(parameters)
    except SchemaError as error:
        causes.append(f"ToolCard.input_params is no JSON Schema: {error.message[:200]}")
    return causes


def _registered(
    found: Manifest,
    sha256: str,
    told: Mapping[str, Any],
    process: Process,
    root: Path,
    around: Surroundings,
) -> Extension:
    seen = Seen()
    hooks = {hook for rail in told["rails"] for hook in rail["hooks"]}
    session_id = around.session_id
    return Extension(
        name=found.name,
        sha256=sha256,
        manifest=found,
        labels=found.labels,
        tools=tuple(tool_of(card, process, seen, session_id) for card in told["tools"]),
        rail=RailProxy(found.name, process, hooks, session_id, around.emit, seen),
        skill_dirs=tuple(root / path for path in found.skill_dirs),
        package=root,
        isolation=process.isolation,
        process=process,
        seen=seen,
        session_id=session_id,
        runtime=str(told.get("runtime", "native")),
    )


def _refused(faults: Sequence[Fault], output: str = "") -> Failure:
    code, where, cause = faults[0]
    return Failure(
        code,
        f"{where}: {cause}",
        "Mend the package, then: python app.py verify PACKAGE",
        {
            "faults": [{"code": c, "where": w, "cause": said} for c, w, said in faults],
            "output": output,
        },
    )


def _twice(name: str) -> Failure:
    return Failure(
        Code.harness_load_failed,
        f"The extension '{name}' is loaded already.",
        "Reload it, or unload it first.",
    )


def _unverified(path: Path, sha256: str) -> Failure:
    return Failure(
        Code.extension_not_verified,
        f"'{path}' (sha256 {sha256[:12]}…) has not passed verification as it is now.",
        f"Run: python app.py verify {path} — or look at it and add --approve-extension {path}",
        {"sha256": sha256},
    )
