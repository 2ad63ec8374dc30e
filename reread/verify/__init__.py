"""Verification of an extension package in three layers: nothing else lets one in.

    structure    L1: the files, read and parsed; nothing is imported
    _trial       L2 and L3: a fresh process in the sandbox, then the acceptance spec
    _stage       the kernel's real loop with a scripted model, and what was seen in it
    _judging     what was seen, held against the spec
    acceptance   the spec as values
    report       the verdict as values
    repair       rounds with an agent, the spec and the verifier out of its reach
    activation   a package that passed, in the workspace

Proves: these bytes load and do what the spec asks, in the sandbox, with a scripted model.
Does not prove: that a real model would call them, or that the spec asks enough.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from agent_runtime import Failure, Model
from reread.extensions import manifest, package, verified
from reread.extensions.manifest import Manifest
from reread.files import ConfinedFolder
from reread.values import Code, Finding, Permissions, Problem
from reread.verify import _trial, acceptance, structure
from reread.verify.acceptance import Acceptance
from reread.verify.report import LayerState, Report

__all__ = ["Acceptance", "Report", "verify", "verify_files"]

OTHER_RUNTIME = ("auto", "native", "openjiuwen")


async def verify(
    path: Path,
    *,
    spec: Acceptance | None = None,
    runtime: str = "auto",
    permissions: Permissions = Permissions(),  # noqa: B008 - frozen
    model: Callable[[], Model] | None = None,
    store: Path | None = None,
    record: bool = True,
) -> Report:
    """Verify a package and remember its digest when it passed.

    Args:
        spec: by default `acceptance.yaml` in the package, or beside it.
        runtime: `auto` goes by the prefix of the modules; `native` lets the native runtime stand
            in for the other one, and the report says so.
        record: a pass is remembered, so that a run loads the package.

    Raises:
        Failure: path_not_found, sandbox_unavailable, sandbox_failed, environment_unusable.
    """
    folder = package.open_package(path)
    try:
        held = package.contents(folder)
    except Failure as failure:
        return _unreadable(path, failure)
    try:
        spec = spec or acceptance.read(acceptance.find(path.resolve()))
    except Failure as failure:
        return _without_spec(path, held, failure)
    report = await verify_files(
        held,
        path.resolve().name,
        spec,
        shown=str(path),
        runtime=runtime,
        permissions=permissions,
        model=model,
    )
    if report.ok and record:
        verified.remember(
            report.sha256,
            name=report.name,
            acceptance=report.acceptance,
            runtime=report.runtime,
            store=store,
        )
    return report


async def verify_files(
    held: Mapping[str, bytes],
    name: str,
    spec: Acceptance,
    *,
    shown: str = "",
    runtime: str = "auto",
    permissions: Permissions = Permissions(),  # noqa: B008 - frozen
    model: Callable[[], Model] | None = None,
) -> Report:
    """Verify the files of a package in a scratch folder that is removed afterwards."""
    began = time.monotonic()
    sha256 = package.digest_of(dict(held))
    with tempfile.TemporaryDirectory(prefix="reread-verify-", ignore_cleanup_errors=True) as made:
        scratch = Path(made).resolve()
        found = manifest.read(package.write(dict(held), scratch / "read" / name), name)
        problems = found if isinstance(found, tuple) else tuple(structure.problems(held, found))
        findings = [_static(name, problem) for problem in problems]
        trial = _trial.Trial()
        label = "native"
        if not findings and isinstance(found, Manifest):
            label = _runtime(found, runtime)
            asked = model() if model else None
            try:
                trial = await _trial.run(
                    held,
                    name,
                    spec,
                    scratch,
                    permissions=permissions,
                    runtime="openjiuwen" if label == "openjiuwen" else "native",
                    model=asked,
                )
            finally:
                if asked is not None:
                    await asked.aclose()
    return Report(
        package=shown or name,
        name=name,
        sha256=sha256,
        acceptance=spec.sha256,
        runtime=trial.runtime if label == "openjiuwen" and trial.runtime else label,
        layers=_layers(bool(findings), trial),
        findings=(*findings, *trial.findings),
        labels=trial.labels,
        notes=tuple(trial.notes),
        isolation=trial.isolation,
        seconds=time.monotonic() - began,
        log=trial.log,
        output=trial.output,
    )


def _static(name: str, problem: Problem) -> Finding:
    return Finding("L1", problem, f"read {name}", "a sound package", problem.cause)


def _layers(broken: bool, trial: _trial.Trial) -> dict[str, LayerState]:
    if broken:
        return {"L1": "failed", "L2": "not_run", "L3": "not_run"}
    if not trial.loaded:
        return {"L1": "passed", "L2": "failed", "L3": "not_run"}
    passed = trial.finished and not trial.findings
    return {"L1": "passed", "L2": "passed", "L3": "passed" if passed else "failed"}


def _runtime(found: Manifest, asked: str) -> str:
    """Return the runtime's label.

    Raises:
        Failure: usage_invalid, for a native package in the other runtime.
    """
    wanted = found.runtime if asked == "auto" else asked
    if wanted == found.runtime:
        return wanted
    if wanted == "native":
        return "native, standing in for openjiuwen"
    raise Failure(
        Code.usage_invalid,
        f"'{found.name}' is written for the native runtime; openjiuwen cannot load it.",
        f"python app.py verify {found.name} --runtime native",
    )


def _unreadable(path: Path, failure: Failure) -> Report:
    problem = Problem(Code(failure.code), str(path), failure.cause, failure.remedy)
    return _failed(path, "", problem)


def _without_spec(path: Path, held: Mapping[str, bytes], failure: Failure) -> Report:
    """Say that there is no spec, after what is wrong with the manifest itself."""
    problem = Problem(Code(failure.code), "acceptance.yaml", failure.cause, failure.remedy)
    found = manifest.read(ConfinedFolder(path.resolve()), path.resolve().name)
    more = found if isinstance(found, tuple) else tuple(structure.problems(held, found))
    return _failed(path, package.digest_of(dict(held)), *more, problem)


def _failed(path: Path, sha256: str, *problems: Problem) -> Report:
    name = path.resolve().name
    return Report(
        package=str(path),
        name=name,
        sha256=sha256,
        acceptance="",
        runtime="native",
        layers={"L1": "failed", "L2": "not_run", "L3": "not_run"},
        findings=tuple(_static(name, problem) for problem in problems),
    )
