"""L2 and L3 of one round: a fresh process, loaded by the path that a run uses, then the spec."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent_runtime import Failure, Model
from reread import plugins, tools
from reread.extensions import loading, package
from reread.extensions._process import LIMITS
from reread.extensions.loading import Extension, Surroundings
from reread.files import ConfinedFolder, digest
from reread.skills import Skills
from reread.values import Code, Finding, Isolation, Permissions, Problem
from reread.verify import _judging
from reread.verify._stage import Call, Stage, filled
from reread.verify.acceptance import Acceptance, RailTest, SkillTest, ToolTest

SECONDS = 180.0
VERIFY_LIMITS = replace(LIMITS, timeout=SECONDS + 30.0, cpu=120.0)


@dataclass(slots=True)
class Trial:
    """What a round came to. Findings of L2 first; L3 is only there where L2 passed."""

    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    labels: tuple[str, ...] = ()
    loaded: bool = False
    finished: bool = False
    isolation: Isolation | None = None
    runtime: str = ""
    log: str = ""
    output: str = ""


async def run(
    held: Mapping[str, bytes],
    name: str,
    spec: Acceptance,
    scratch: Path,
    *,
    permissions: Permissions,
    runtime: str = "native",
    model: Model | None = None,
) -> Trial:
    """Load a package and put it through its spec; never raises for what the package does.

    Raises:
        Failure: sandbox_unavailable, sandbox_failed.
    """
    trial = Trial()
    stream: list[Any] = []
    around = replace(_surroundings(scratch, spec, permissions, stream), runtime=runtime)
    try:
        extension = await loading.start(held, name, around)
    except Failure as failure:
        if failure.code in (Code.sandbox_unavailable, Code.sandbox_failed):
            raise
        trial.findings += _not_loaded(failure)
        trial.output = str(failure.details.get("output", ""))
        return trial
    trial.loaded, trial.labels, trial.isolation = True, extension.labels, extension.isolation
    trial.runtime = extension.runtime
    try:
        async with asyncio.timeout(SECONDS):
            await _perform(trial, extension, held, spec, around, stream, model)
    except TimeoutError:
        cause = f"The acceptance took more than {SECONDS:g} seconds."
        problem = Problem(Code.timeout, name, cause, "Make the components faster.")
        trial.findings.append(_finding("L3", problem, "the whole spec", "an end"))
    finally:
        await extension.process.close()
        trial.log = extension.process.log
        trial.output = extension.process.tail() if trial.findings else ""
    trial.findings = [replace(one, log=one.log or trial.log) for one in trial.findings]
    return trial


def _surroundings(
    scratch: Path, spec: Acceptance, permissions: Permissions, stream: list[Any]
) -> Surroundings:
    work, home = scratch / "work", scratch / "home"
    for folder in (home, *(work / part for part in ("inputs", "outputs", "drafts"))):
        folder.mkdir(parents=True)
    inputs = ConfinedFolder((work / "inputs").resolve())
    for path, text in spec.inputs.items():
        inputs.write(path, text.encode())

    def emit(event: str, facts: Mapping[str, Any]) -> None:
        if event == "extension.stream":
            stream.append(facts["event"])

    return Surroundings(
        work=work.resolve(),
        writable=(work.resolve(),),
        home=home.resolve(),
        session_id=f"verify-{secrets.token_hex(6)}",
        taken=frozenset(plugins.names(tools)),
        permissions=replace(permissions, network=False),
        emit=emit,
        sealed=False,
        limits=VERIFY_LIMITS,
    )


def _not_loaded(failure: Failure) -> Iterator[Finding]:
    faults = failure.details.get("faults") or [
        {"code": failure.code, "where": "load", "cause": failure.cause}
    ]
    for fault in faults:
        problem = Problem(Code(fault["code"]), fault["where"], fault["cause"], failure.remedy)
        yield _finding("L2", problem, f"load {fault['where']}", "it is loaded and registered")


async def _perform(
    trial: Trial,
    extension: Extension,
    held: Mapping[str, bytes],
    spec: Acceptance,
    around: Surroundings,
    stream: list[Any],
    model: Model | None,
) -> None:
    context = _context(trial, extension)
    trial.findings += [
        *_registered(extension),
        *_strays("L2", extension, held, around, spec, set()),
    ]
    trial.loaded = not trial.findings
    if not trial.loaded:
        return
    stage = Stage(extension, around.work, context, stream)
    for query in spec.prewarm:
        await stage.play(query, ())
    outputs = set[str]()
    for number, test in enumerate(spec.tools):
        if extension.process.alive:
            trial.findings += await _tool_test(stage, test, number, outputs)
            outputs |= await _live(trial, stage, test, test.tool, model)
    for rail_test in spec.rails:
        if extension.process.alive:
            trial.findings += await _rail_test(stage, rail_test, outputs)
            outputs |= await _live(trial, stage, rail_test, "", model)
    trial.findings += _skill_tests(spec, extension, context)
    for skill_test in spec.skills:
        outputs |= await _live(trial, stage, skill_test, "", model)
    trial.findings += _left_open(extension, spec, trial.findings)
    trial.findings += _strays("L3", extension, held, around, spec, outputs)
    trial.finished = True


def _finding(layer: str, problem: Problem, query: str, expected: str, log: str = "") -> Finding:
    return Finding(layer, problem, query, expected, problem.cause, log)


def _registered(extension: Extension) -> Iterator[Finding]:
    """Look for each part in what an agent would hold, not in the labels."""
    made = {tool.name for tool in extension.tools}
    declared = extension.manifest.tools
    if len(made) != len(declared):
        cause = f"{len(declared)} tools are declared and {len(made)} are registered."
        problem = Problem(Code.tool_not_registered, extension.name, cause, "See the cards.")
        yield _finding("L2", problem, "load", "one tool for each entry")


def _context(trial: Trial, extension: Extension) -> str:
    """Return the skills as an agent's context; a skill that is not there is a finding."""
    texts = []
    for folder in extension.skill_dirs:
        skills = Skills(folder)
        skills.scan()
        for path in sorted(folder.iterdir()):
            if not path.is_dir():
                continue
            try:
                texts.append(skills.activate(path.name).text)
            except Failure as failure:
                where = f"{folder.name}/{path.name}"
                problem = Problem(Code.skill_not_loaded, where, failure.cause, failure.remedy)
                trial.findings.append(_finding("L2", problem, f"skill {path.name}", "it is loaded"))
    return "\n\n".join(texts)


async def _tool_test(stage: Stage, test: ToolTest, number: int, outputs: set[str]) -> list[Finding]:
    relative = f"outputs/result{number}{test.suffix or ('.' + test.format if test.format else '')}"
    outputs.add(relative)
    output = stage.work / relative
    arguments = filled(test.arguments, {"${OUTPUT}": str(output), "${WORK}": str(stage.work)})
    query = f"{test.tool}({arguments if isinstance(arguments, str) else json.dumps(arguments)})"
    scene = await stage.play(test.query, [(test.tool, arguments)])
    expected = "the call succeeds" if test.success else "the call is refused"
    return [
        _finding("L3", problem, query, expected)
        for problem in _judging.of_tool(test, scene, stage.extension, output)
    ]


async def _rail_test(stage: Stage, test: RailTest, outputs: set[str]) -> list[Finding]:
    relative = "outputs/rail-test.out"
    outputs.add(relative)
    words = {"${OUTPUT}": str(stage.work / relative), "${WORK}": str(stage.work)}
    calls: list[Call] = [(name, filled(given, words)) for name, given in test.calls]
    extension = stage.extension
    path = test.state_file or ".state/<session_id>.json"
    before = _judging.state_of(extension, path)
    scene = await stage.play(test.query, calls, stand_in=True)
    query = f"{test.query or 'a run'} with calls {json.dumps(calls)}"
    held = replace(test, calls=tuple(calls), rewritten=_filled_pair(test, words))
    return [
        _finding("L3", problem, query, "the effects that the spec names")
        for problem in _judging.of_rail(held, scene, extension, before)
    ]


def _filled_pair(test: RailTest, words: Mapping[str, str]) -> tuple[str, Mapping[str, Any]] | None:
    if test.rewritten is None:
        return None
    return test.rewritten[0], filled(test.rewritten[1], words)


def _skill_tests(spec: Acceptance, extension: Extension, context: str) -> Iterator[Finding]:
    there = {path.name for folder in extension.skill_dirs for path in folder.iterdir()}
    for test in spec.skills:
        missing = [text for text in test.context if text not in context]
        if test.skill not in there or missing:
            cause = f"'{test.skill}' is not loaded, or its text lacks {missing}."
            problem = Problem(Code.skill_not_loaded, test.name, cause, "Write it into SKILL.md.")
            yield _finding("L3", problem, f"skill {test.skill}", "its text is in the context")


async def _live(
    trial: Trial,
    stage: Stage,
    test: ToolTest | RailTest | SkillTest,
    tool: str,
    model: Model | None,
) -> set[str]:
    """Ask a real model the test's query, and see whether it calls the tool and what it answers.

    Returns:
        The paths in the work folder that its calls named; what lies there is no stray.
    """
    if model is None:
        if test.answer_contains_any:
            trial.notes.append(f"{test.name}: answer_contains_any counts only with --live: not_run")
        return set()
    if not test.query:
        trial.notes.append(f"{test.name}: it has no query to ask a model: not_run")
        return set()
    scene = await stage.play(test.query, (), model=model)
    if tool and not any(one.tool == tool for one in scene.invocations):
        cause = f"The model did not call '{tool}'."
        problem = Problem(Code.tool_not_called, test.name, cause, "Say when in its description.")
        trial.findings.append(_finding("L3", problem, test.query, f"a call of {tool}"))
    words = test.answer_contains_any
    if words and not any(word in scene.ended.text for word in words):
        cause = f"The answer holds none of {list(words)}: {scene.ended.text[:300]}"
        problem = Problem(Code.tool_not_called, test.name, cause, "Mend the texts for the model.")
        trial.findings.append(_finding("L3", problem, test.query, "one of these words"))
    return {path for call, _ in scene.results for path in _named(call.arguments, stage.work)}


def _named(arguments: Mapping[str, Any], work: Path) -> Iterator[str]:
    for value in arguments.values():
        if isinstance(value, str):
            path = os.path.normpath(work / value)
            if path.startswith(f"{work}{os.sep}"):
                yield Path(path).relative_to(work).as_posix()


def _left_open(extension: Extension, spec: Acceptance, found: list[Finding]) -> Iterator[Finding]:
    """Yield parts that no test proves, and hooks that raised without a test seeing it."""
    reached = {one.tool for one in extension.seen.invocations}
    for tool in extension.tools:
        if tool.name not in reached and not found:
            cause = f"No test of the spec reaches the tool '{tool.name}'."
            problem = Problem(Code.tool_not_called, tool.name, cause, "Add a tool test for it.")
            yield _finding("L3", problem, "the whole spec", "each tool is called")
    ran = {rail for run in extension.seen.hooks for rail in run.ran}
    faults = {
        (fault.get("rail"), run.hook): fault.get("error")
        for run in extension.seen.hooks
        for fault in run.faults
    }
    said = any(one.problem.code == Code.rail_hook_not_observed for one in found)
    for (rail, hook), error in faults.items():
        if not said and extension.process.alive:
            cause = f"{hook} of {rail} raised: {error}"
            problem = Problem(Code.rail_hook_not_observed, str(rail), cause, "Mend the hook.")
            yield _finding("L3", problem, f"a run with {hook}", "the hook runs to its end")
    for entry in extension.manifest.rails:
        silent = entry.name not in ran and entry.name not in {rail for rail, _ in faults}
        if silent and extension.process.alive and not said:
            cause = f"No hook of '{entry.name}' ran."
            remedy = "Override a hook of reread.extensions.api.HOOKS."
            problem = Problem(Code.rail_hook_not_observed, entry.name, cause, remedy)
            yield _finding("L3", problem, "the whole spec", "a hook that runs")


def _strays(
    layer: str,
    extension: Extension,
    held: Mapping[str, bytes],
    around: Surroundings,
    spec: Acceptance,
    outputs: set[str],
) -> Iterator[Finding]:
    """Yield what lies where nothing was declared, or was changed in the package itself."""
    for path, place in _changed(extension, held, around, spec, outputs):
        cause = f"'{path}' was written into {place}, where nothing declares it."
        remedy = "Write to output_path, to .state/<session id>.json, or to the temporary folder."
        problem = Problem(Code.undeclared_component, path, cause, remedy)
        yield _finding(
            layer, problem, "load" if layer == "L2" else "the whole spec", "no such file"
        )


def _changed(
    extension: Extension,
    held: Mapping[str, bytes],
    around: Surroundings,
    spec: Acceptance,
    outputs: set[str],
) -> Iterator[tuple[str, str]]:
    before = {path: digest(data) for path, data in held.items()}
    now = {
        entry.path: entry.kind
        for entry in ConfinedFolder(extension.package).walk()
        if not package.LEFT_OUT.intersection(entry.path.split("/")) and entry.kind != "folder"
    }
    digests = ConfinedFolder(extension.package).digests(trust_cache=False)
    yield from ((p, "the package") for p in now if digests.get(p) != before.get(p))
    yield from ((path, "the package") for path in before if path not in now)
    inputs = {f"inputs/{name}": digest(text.encode()) for name, text in spec.inputs.items()}
    folder = ConfinedFolder(around.work)
    after = folder.digests(trust_cache=False)
    for entry in folder.walk():
        known = entry.path in outputs or inputs.get(entry.path, "") == after.get(entry.path)
        if entry.kind != "folder" and not known:
            yield entry.path, "the work folder"
