"""Values as JSON: the last line of the program, the record, and what a failed verdict says.

Keys are a promise to those who read them by program; a new one may come, none goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from agent_runtime import ToolError, Usage
from reread.values import (
    Check,
    Code,
    Environment,
    Evidence,
    Finding,
    Isolation,
    Outcome,
    Problem,
    ScriptRun,
    Task,
)


def outcome(value: Outcome) -> dict[str, Any]:
    """Return the one JSON object that a run ends with."""
    first = value.artifacts[0] if value.artifacts else None
    errors = [problem(p) for e in (*value.artifacts, *value.scripts) for p in e.problems]
    return {
        "status": value.status,
        "reason": value.reason,
        "cause": value.cause,
        "remedy": value.remedy,
        "run_id": value.run_id,
        "runtime_status": value.runtime_status,
        "rounds": value.rounds,
        "selected_skills": list(value.selected_skills),
        "available_skills": list(value.available_skills),
        "scans": value.scans,
        "tool_errors": [tool_error(error) for error in value.tool_errors],
        "artifact_check": {
            "ok": value.ok_artifacts,
            "path": first.path if first else "",
            "artifact_read": bool(first and first.read),
            "sha256": first.sha256 if first else None,
            "errors": errors,
            "semantic_correctness": value.semantic_correctness,
        },
        "artifacts": [artifact(evidence, value) for evidence in value.artifacts],
        "scripts": [script_run(run) for run in value.runs],
        "published": dict(value.published),
        "turns": value.turns,
        "tool_calls": value.tool_calls,
        "usage": usage(value.usage),
        "seconds": round(value.seconds, 3),
    }


def artifact(value: Evidence, of: Outcome) -> dict[str, Any]:
    """Return one declared artifact with the fields of `artifact_check` and its checks."""
    return {
        "ok": value.ok,
        "path": value.path,
        "format": value.format,
        "artifact_read": value.read,
        "sha256": value.sha256,
        "size": value.size,
        "errors": [problem(found) for found in value.problems],
        "checks": [check(made) for made in value.checks],
        "facts": dict(value.facts),
        "semantic_correctness": of.semantic_correctness,
    }


def evidence(value: Evidence) -> dict[str, Any]:
    """Return what was read of one file."""
    return {
        "ok": value.ok,
        "path": value.path,
        "format": value.format,
        "sha256": value.sha256,
        "size": value.size,
        "checks": [check(made) for made in value.checks],
        "facts": dict(value.facts),
    }


def check(value: Check) -> dict[str, Any]:
    """Return one check."""
    made: dict[str, Any] = {
        "name": value.name,
        "depth": value.depth,
        "state": value.state,
        "detail": value.detail,
    }
    return made | ({"problem": problem(value.problem)} if value.problem else {})


def problem(value: Problem) -> dict[str, Any]:
    """Return one problem."""
    return {
        "code": str(value.code),
        "where": value.where,
        "cause": value.cause,
        "remedy": value.remedy,
        "reason": value.reason,
    }


def finding(value: Finding) -> dict[str, Any]:
    """Return one failure as the model gets it for repair."""
    return {
        "layer": value.layer,
        **problem(value.problem),
        "query": value.query,
        "expected": value.expected,
        "actual": value.actual,
        "log_sha256": value.log,
    }


def task(value: Task) -> dict[str, Any]:
    """Return a whole task; `reread.tasks.from_record` makes it again."""
    return asdict(value)


def tool_error(value: ToolError) -> dict[str, Any]:
    """Return one failed call."""
    return {
        "tool": value.tool,
        "subject": value.subject,
        "code": value.code,
        "cause": value.cause,
        "remedy": value.remedy,
        "resolved": value.resolved,
    }


def script_run(value: ScriptRun) -> dict[str, Any]:
    """Return one script run, its output cut as the model saw it."""
    return {
        "path": value.path,
        "sha256": value.sha256,
        "exit_code": value.exit_code,
        "failure": str(value.failure) if value.failure else None,
        "stdout": value.stdout,
        "stderr": value.stderr,
        "seconds": round(value.seconds, 3),
        "peak_memory": value.peak_memory,
        "environment": environment(value.environment) if value.environment else None,
        "isolation": isolation(value.isolation),
    }


def script_run_from(value: Mapping[str, Any]) -> ScriptRun:
    """Make a script run of a record again."""
    made = value["environment"]
    environment = Environment(**{**made, "python": ""}) if made else None
    fence = value["isolation"]
    return ScriptRun(
        **{key: value[key] for key in _RUN_FIELDS},
        environment=environment,
        isolation=Isolation(
            **{**fence, "layers": tuple(fence["layers"]), "degraded": tuple(fence["degraded"])}
        ),
        failure=Code(value["failure"]) if value["failure"] else None,
    )


_RUN_FIELDS = ("path", "sha256", "exit_code", "stdout", "stderr", "seconds", "peak_memory")


def environment(value: Environment) -> dict[str, Any]:
    """Return the environment that a script ran in; its lock file is kept beside the record."""
    return {
        "key": value.key,
        "python_version": value.python_version,
        "uv_version": value.uv_version,
        "packages": dict(value.packages),
        "cached": value.cached,
    }


def isolation(value: Isolation) -> dict[str, Any]:
    """Return which layers of the sandbox were active."""
    return {
        "mechanism": value.mechanism,
        "filesystem": value.filesystem,
        "network": value.network,
        "layers": list(value.layers),
        "limits": dict(value.limits),
        "degraded": list(value.degraded),
    }


def usage(value: Usage) -> Mapping[str, Any]:
    """Return tokens and money."""
    return {
        "input_tokens": value.input_tokens,
        "output_tokens": value.output_tokens,
        "usd": round(value.usd, 6),
        "estimated": value.estimated,
    }
