"""L3's questions: what was seen in a scene, held against what the spec asks.

Every question yields what does not hold; the first one names the cause where one failure brings
others along.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_runtime import Failure
from reread.examine import examine, format_named
from reread.extensions.loading import Extension
from reread.files import ConfinedFolder
from reread.values import Code, Evidence, Problem
from reread.verify._stage import Scene, contains
from reread.verify.acceptance import RailTest, ToolTest

STATE_LIMIT = 4 << 20
SHORT = 64 << 10
LAST_WORDS = (Code.verifier_crashed, Code.timeout)


def of_tool(test: ToolTest, scene: Scene, extension: Extension, output: Path) -> Iterator[Problem]:
    """Yield what a tool test did not show."""
    kept = list(_called(test, scene))
    if kept:
        yield from kept
        return
    answer = next(a for call, a in reversed(scene.results) if call.name == test.tool)
    if not answer.get("ok"):
        if test.success or answer.get("code") == Code.tool_arguments_invalid:
            cause = str(answer.get("cause"))
            yield _problem(Code.tool_result_failed, test.name, cause, "Let the tool succeed.")
        return
    if not test.success:
        cause = f"'{test.tool}' says success, and the spec expects that it refuses."
        yield _problem(Code.tool_result_failed, test.name, cause, "Let the tool refuse it.")
        return
    facts = _facts(answer)
    yield from _fields(test, facts)
    degraded = facts.get("degraded") is True
    if degraded and not (test.degradable and facts.get("reason")):
        cause = "The result is degraded, and the spec does not allow that, or it gives no reason."
        yield _problem(Code.tool_result_failed, test.name, cause, "Do what was asked.")
    bad = list(_artifact(test, facts, output)) if test.format and not degraded else []
    # A tool that does not do its work shares no state either: one cause, one problem.
    yield from bad or _rails(test, scene, extension, facts)


def _problem(code: Code, where: str, cause: str, remedy: str, reason: str = "") -> Problem:
    return Problem(code, where, cause[:1500], remedy, reason)


def _called(test: ToolTest, scene: Scene) -> Iterator[Problem]:
    """Yield why the call did not reach the tool, or why its process has ended."""
    for invocation in scene.invocations:
        if invocation.answer.get("code") in LAST_WORDS:
            code = Code(invocation.answer["code"])
            # A tool that blocks past its own time has failed; the layer had time enough.
            code = Code.tool_result_failed if code == Code.timeout else code
            cause = str(invocation.answer["error"])
            yield _problem(code, test.name, cause, "Let the tool return.")
            return
    if any(invocation.tool == test.tool for invocation in scene.invocations):
        return
    faults = [(run.hook, fault) for run in scene.hooks for fault in run.faults]
    if faults:
        hook, fault = faults[0]
        cause = f"{hook} of {fault.get('rail')} raised: {fault.get('error')}"
        yield _problem(Code.rail_hook_not_observed, test.name, cause, "Mend the hook.")
    answer = next((a for call, a in scene.results if call.name == test.tool), {})
    if answer.get("code") == Code.tool_arguments_invalid:
        if test.success:
            cause = str(answer["cause"])
            yield _problem(
                Code.tool_result_failed, test.name, cause, "Mend the schema or the spec."
            )
        return
    cause = str(answer.get("cause", f"'{test.tool}' was never called ({scene.ended.status})."))
    yield _problem(Code.tool_not_called, test.name, cause, "Let the call reach the tool.")


def _facts(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    data = answer.get("data")
    return {**answer, **data} if isinstance(data, Mapping) else answer


def _fields(test: ToolTest, facts: Mapping[str, Any]) -> Iterator[Problem]:
    wanted = list(test.required_fields)
    if test.format and not any(facts.get(key) for key in ("path", "absolute_path")):
        wanted.append("path")
    if test.format:
        wanted += ["exists", "format", "size_bytes"]
    missing = [key for key in dict.fromkeys(wanted) if facts.get(key) is None]
    if missing:
        cause = f"The result has no {', '.join(missing)}."
        yield _problem(Code.tool_result_schema_missing, test.name, cause, "Return them in data.")
    if not contains(facts, test.json_contains):
        cause = f"The result does not contain {json.dumps(test.json_contains)[:300]}."
        yield _problem(Code.tool_result_schema_missing, test.name, cause, "Return it in data.")


def _artifact(test: ToolTest, facts: Mapping[str, Any], output: Path) -> Iterator[Problem]:
    """Yield what is wrong with the file, from its bytes; what the tool claims comes second."""
    folder = ConfinedFolder(output.parent)
    try:
        stream = folder.open(output.name)
    except Failure as failure:
        said = facts.get("path") or facts.get("absolute_path")
        cause = f"The tool says success and '{said}', and the file it was to write is not there."
        code = Code.artifact_not_created
        yield _problem(code, str(output.name), f"{cause} {failure.cause}", "Write output_path.")
        return
    with stream:
        claimed = facts.get("format")
        if isinstance(claimed, str) and not _same_format(claimed, test.format):
            cause = f"The tool says it wrote {claimed}, and {test.format} was asked for."
            yield _problem(Code.artifact_format_invalid, output.name, cause, "Write that format.")
            return
        evidence = examine(stream, name=output.name, format=test.format, contract=test.contract)
        yield from _evidence(evidence, folder, output.name)
    told = facts.get("exists"), facts.get("size_bytes")
    if evidence.ok and told != (True, evidence.size):
        cause = (
            f"It says exists={told[0]!r} and size_bytes={told[1]!r}; "
            f"on disk are {evidence.size} bytes."
        )
        yield _problem(Code.tool_result_failed, test.name, cause, "Say what is on disk.")
    place = facts.get("absolute_path") or facts.get("path")
    if isinstance(place, str) and (output.parent.parent / place).resolve() != output.resolve():
        cause = f"The result names '{place}', and '{output}' was asked for."
        yield _problem(Code.artifact_not_created, test.name, cause, "Write to output_path.")


def _same_format(claimed: str, wanted: str) -> bool:
    try:
        return format_named(claimed.lstrip(".")) == wanted
    except Failure:
        return False


def _evidence(evidence: Evidence, folder: ConfinedFolder, name: str) -> Iterator[Problem]:
    """Yield the gate's problems; nothing, or text that only promises the file, is a placeholder."""
    problems = list(evidence.problems)
    if not evidence.ok and not problems:
        yield _problem(Code.artifact_unreadable, name, "A check could not run.", "See the notes.")
    promised = any(p.code == Code.artifact_format_invalid for p in problems) and (
        evidence.size == 0 or _promises(folder, name, evidence.size)
    )
    if promised:
        cause = "It is empty, or a text that only promises the content."
        code = Code.artifact_placeholder_output
        problems = [_problem(code, name, cause, "Write the content itself.", "promise")]
    yield from problems


def _promises(folder: ConfinedFolder, name: str, size: int) -> bool:
    if size > SHORT:
        return False
    with folder.open(name) as stream:
        text = examine(stream, name=f"{name}.txt", format="txt", contract={})
    return any(p.code == Code.artifact_placeholder_output for p in text.problems)


def _rails(
    test: ToolTest, scene: Scene, extension: Extension, facts: Mapping[str, Any]
) -> Iterator[Problem]:
    ran = any(run.ran for run in extension.seen.hooks)
    if test.state_file:
        state = state_of(extension, test.state_file)
        if state is None:
            # A hook that ran and left nothing on disk keeps its state where no tool can rely on it.
            code = Code.rail_tool_state_not_shared if ran else Code.rail_hook_not_observed
            cause = f"After the call there is no '{test.state_file}' for this session."
            yield _problem(code, test.name, cause, "Write it with reread.extensions.api.State.")
            return
        missing = [key for key in test.state_keys if key not in state]
        if missing:
            cause = f"'{test.state_file}' has no {', '.join(missing)}."
            yield _problem(Code.rail_hook_not_observed, test.name, cause, "Let the hook write it.")
    if test.shared and facts.get(test.shared) in (None, "", 0, False, [], {}):
        cause = (
            f"The result's '{test.shared}' is {facts.get(test.shared)!r}: the tool read no state."
        )
        remedy = "Take the session from kwargs and read its state file."
        yield _problem(Code.rail_tool_state_not_shared, test.name, cause, remedy)


def state_of(extension: Extension, path: str) -> Mapping[str, Any] | None:
    """Read a state file of the session from disk, None where there is none that is an object."""
    relative = path.replace("<session_id>", extension.session_id)
    try:
        value = json.loads(ConfinedFolder(extension.package).read(relative, limit=STATE_LIMIT))
    except (Failure, ValueError):
        return None
    return value if isinstance(value, dict) else None


def of_rail(
    test: RailTest, scene: Scene, extension: Extension, before: Mapping[str, Any] | None
) -> Iterator[Problem]:
    """Yield which of the effects that the spec names could not be observed.

    Args:
        before: the state before the scene.
    """
    for what, there in _effects(test, scene, extension, before):
        if not there:
            yield _problem(
                Code.rail_hook_not_observed,
                f"{test.name} ({test.rail})",
                f"{what} was not observed.",
                "Let the hook have that effect.",
            )
    if test.rail not in {entry.name for entry in extension.manifest.rails}:
        cause = f"The package declares no rail '{test.rail}'."
        yield _problem(Code.rail_not_registered, test.name, cause, "Correct the spec.")


def _effects(
    test: RailTest, scene: Scene, extension: Extension, before: Mapping[str, Any] | None
) -> Iterator[tuple[str, bool]]:
    state_path = test.state_file or ".state/<session_id>.json"
    state = state_of(extension, state_path)
    ran = any(test.rail in run.ran for run in scene.hooks)
    yield f"A hook of {test.rail} that ran to its end", ran
    if test.state_file:
        yield f"The state file {test.state_file}", state is not None
    if test.json_contains:
        yield f"State with {dict(test.json_contains)}", contains(state or {}, test.json_contains)
    if test.side_effect:
        effects = any(run.effects for run in scene.hooks)
        yield "Any side effect", effects or (state is not None and state != before)
    for text in test.prompt:
        yield f"'{text}' in the system prompt", text in scene.prompt
    for text in test.stream:
        stream = json.dumps(scene.stream, ensure_ascii=False)
        yield f"'{text}' in the stream", text in stream
    for text in test.steering:
        said = [s for run in scene.hooks for s in run.effects.get("steering", ())]
        heard = any(
            message["role"] == "user" and text in str(message.get("content"))
            for message in scene.messages
        )
        yield f"'{text}' as steering", heard and any(text in str(one) for one in said)
    if test.gated:
        yield f"A stopped call of {test.gated}", _gated(test.gated, scene)
    if test.rewritten:
        yield f"Rewritten arguments of {test.rewritten[0]}", _rewritten(test, scene)


def _gated(tool: str, scene: Scene) -> bool:
    stopped = [a for call, a in scene.results if call.name == tool]
    reached = [i.tool for i in scene.invocations] + [name for name, _ in scene.stand_ins]
    return (
        bool(stopped)
        and tool not in reached
        and all(answer.get("code") == Code.tool_stopped for answer in stopped)
    )


def _rewritten(test: RailTest, scene: Scene) -> bool:
    tool, wanted = test.rewritten or ("", {})
    got = [i.arguments for i in scene.invocations if i.tool == tool]
    got += [arguments for name, arguments in scene.stand_ins if name == tool]
    asked = [given for name, given in test.calls if name == tool]
    return any(contains(one, wanted) and one not in asked for one in got)
