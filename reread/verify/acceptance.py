"""acceptance.yaml: what a package must be seen to do, as values.

It is read once, before anything of the package runs, and known by its digest from then on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from agent_runtime import Failure
from reread import contracts, documents
from reread.extensions.package import ACCEPTANCE
from reread.files import digest
from reread.values import Code

MAX_FILE = 256 << 10


@dataclass(frozen=True, slots=True)
class ToolTest:
    """One call that the tool must carry.

    Attributes:
        arguments: an object, or JSON text as a model would send it.
        format: of the artifact; '' where none is asked for.
        state_file: below the package, with `<session_id>`; '' where none is asked for.
        shared: the result's field that must hold what the tool read from the state.
        degradable: a result may be a declared degradation with its reason instead.
    """

    name: str
    tool: str
    query: str = ""
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    suffix: str = ""
    timeout: float | None = None
    success: bool = True
    required_fields: tuple[str, ...] = ()
    json_contains: Mapping[str, Any] = field(default_factory=dict)
    format: str = ""
    contract: Mapping[str, Any] = field(default_factory=dict)
    degradable: bool = False
    state_file: str = ""
    state_keys: tuple[str, ...] = ()
    shared: str = ""
    answer_contains_any: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RailTest:
    """Effects that a rail must have while the calls are made.

    Attributes:
        gated: the tool whose call must be stopped.
        rewritten: (tool, arguments) that the tool must get instead.
    """

    name: str
    rail: str
    query: str = ""
    calls: tuple[tuple[str, Mapping[str, Any] | str], ...] = ()
    side_effect: bool = False
    state_file: str = ""
    json_contains: Mapping[str, Any] = field(default_factory=dict)
    prompt: tuple[str, ...] = ()
    gated: str = ""
    rewritten: tuple[str, Mapping[str, Any]] | None = None
    stream: tuple[str, ...] = ()
    steering: tuple[str, ...] = ()
    answer_contains_any: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillTest:
    """A skill that must be in the agent's context."""

    name: str
    skill: str
    query: str = ""
    context: tuple[str, ...] = ()
    answer_contains_any: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The whole spec.

    Attributes:
        sha256: of the file's bytes.
        inputs: name → text, put into inputs/ of the work folder.
    """

    path: str
    sha256: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    prewarm: tuple[str, ...] = ()
    tools: tuple[ToolTest, ...] = ()
    rails: tuple[RailTest, ...] = ()
    skills: tuple[SkillTest, ...] = ()


@cache
def schema() -> Mapping[str, Any]:
    """Return the JSON Schema of the spec."""
    text = Path(__file__).with_name("acceptance.schema.json").read_text("utf-8")
    return dict(json.loads(text))


def find(package: Path) -> Path:
    """Return the spec of a package: inside its folder, else beside it.

    Raises:
        Failure: manifest_invalid.
    """
    for folder in (package, package.parent):
        for name in ACCEPTANCE:
            if (folder / name).is_file():
                return folder / name
    raise Failure(
        Code.manifest_invalid,
        f"'{package}' has no {ACCEPTANCE[0]}, so nothing says what it must do.",
        f"Write {package / ACCEPTANCE[0]}, or name the spec: --acceptance FILE",
    )


def read(path: Path) -> Acceptance:
    """Read a spec.

    Raises:
        Failure: manifest_invalid, with file, line and key.
    """
    try:
        data = path.read_bytes()[: MAX_FILE + 1]
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(
            Code.manifest_invalid,
            f"The acceptance spec '{path}' cannot be read: {error}.",
            "Name a UTF-8 YAML file.",
        ) from error
    document = documents.read(text, path.name, code=Code.manifest_invalid)
    documents.check(document, schema(), code=Code.manifest_invalid)
    value = document.value
    return Acceptance(
        str(path),
        digest(data),
        value.get("inputs", {}),
        tuple(value.get("prewarm_queries", ())),
        tuple(_tool(one, place) for place, one in enumerate(value.get("tool_tests", ()))),
        tuple(_rail(one, place) for place, one in enumerate(value.get("rail_tests", ()))),
        tuple(_skill(one, place) for place, one in enumerate(value.get("skill_tests", ()))),
    )


def _tool(one: Mapping[str, Any], place: int) -> ToolTest:
    from reread.examine import format_named

    artifact = one.get("artifact", "")
    format = artifact if isinstance(artifact, str) else artifact["format"]
    contract = {} if isinstance(artifact, str) else artifact.get("contract", {})
    contracts.validate(contract, f"tool_tests.{place}.artifact.contract")
    must = one.get("must_call_tool", True)
    return ToolTest(
        name=one.get("name", f"tool_tests.{place}"),
        tool=must if isinstance(must, str) else one["tool_name"],
        query=one.get("query", ""),
        arguments=one.get("arguments", {}),
        suffix=one.get("suffix", ""),
        timeout=one.get("timeout"),
        success=one.get("tool_result_success", True),
        required_fields=tuple(one.get("required_fields", ())),
        json_contains=one.get("json_contains", {}),
        format=format_named(format) if format else "",
        contract=contract,
        degradable=one.get("degradation") == "allowed",
        state_file=one.get("rail_state_file") or one.get("observable_state_file", ""),
        state_keys=tuple(one.get("rail_state_keys", ())),
        shared=one.get("shared_field", ""),
        answer_contains_any=tuple(one.get("answer_contains_any", ())),
    )


def _rail(one: Mapping[str, Any], place: int) -> RailTest:
    rewritten = one.get("tool_arguments_rewritten")
    return RailTest(
        name=one.get("name", f"rail_tests.{place}"),
        rail=one["rail"],
        query=one.get("query", ""),
        calls=tuple((call["tool"], call.get("arguments", {})) for call in one.get("calls", ())),
        side_effect=one.get("must_observe_side_effect", False),
        state_file=one.get("observable_state_file", ""),
        json_contains=one.get("json_contains", {}),
        prompt=_texts(one.get("prompt_contains")),
        gated=one.get("tool_gated", ""),
        rewritten=(rewritten["tool"], rewritten["arguments"]) if rewritten else None,
        stream=_texts(one.get("stream_contains")),
        steering=_texts(one.get("steering_contains")),
        answer_contains_any=tuple(one.get("answer_contains_any", ())),
    )


def _skill(one: Mapping[str, Any], place: int) -> SkillTest:
    return SkillTest(
        one.get("name", f"skill_tests.{place}"),
        one["skill"],
        one.get("query", ""),
        _texts(one.get("context_contains")),
        tuple(one.get("answer_contains_any", ())),
    )


def _texts(value: str | Sequence[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)
