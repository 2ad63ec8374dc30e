"""The words that all parts share: frozen values and the one list of codes.

These are pure values. They read no file, start no process and know no other module of the
package, only the kernel's own words. Who makes them and when is the business of the modules above.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from agent_runtime import Limits, ToolError, Usage


class Code(StrEnum):
    """Every code that a Failure, a Problem or a diagnostic of a run can carry.

    docs/failures.md holds the meaning and the remedy of each; a test compares the two lists.
    """

    # wrong use, before anything ran
    usage_invalid = "usage_invalid"
    task_invalid = "task_invalid"
    fixture_unknown = "fixture_unknown"
    fixture_invalid = "fixture_invalid"
    skill_unknown = "skill_unknown"
    skill_invalid = "skill_invalid"
    contract_invalid = "contract_invalid"
    workspace_invalid = "workspace_invalid"
    workspace_locked = "workspace_locked"
    run_unknown = "run_unknown"
    dependency_missing = "dependency_missing"

    # files
    path_not_allowed = "path_not_allowed"
    path_not_found = "path_not_found"
    not_a_regular_file = "not_a_regular_file"
    file_too_large = "file_too_large"
    folder_too_large = "folder_too_large"
    not_utf8 = "not_utf8"
    read_failed = "read_failed"
    write_failed = "write_failed"
    changed_meanwhile = "changed_meanwhile"

    # what a human must allow
    approval_required = "approval_required"
    approval_stale = "approval_stale"
    approval_used = "approval_used"
    proposal_invalid = "proposal_invalid"
    skill_exists = "skill_exists"

    # the loop
    tool_unknown = "tool_unknown"
    tool_arguments_invalid = "tool_arguments_invalid"
    tool_call_skipped = "tool_call_skipped"
    tool_failed = "tool_failed"
    tool_stopped = "tool_stopped"
    call_repeated = "call_repeated"
    limit_reached = "limit_reached"
    model_not_configured = "model_not_configured"
    model_failed = "model_failed"
    model_refused = "model_refused"
    model_output_cut = "model_output_cut"
    context_too_long = "context_too_long"
    interrupted = "interrupted"
    internal_error = "internal_error"

    # running a script
    uv_missing = "uv_missing"
    script_header_invalid = "script_header_invalid"
    dependency_not_allowed = "dependency_not_allowed"
    script_syntax_error = "script_syntax_error"
    dependency_error = "dependency_error"
    sandbox_unavailable = "sandbox_unavailable"
    sandbox_failed = "sandbox_failed"
    script_failed = "script_failed"
    script_killed = "script_killed"
    script_timeout = "script_timeout"
    script_memory_limit = "script_memory_limit"
    script_cpu_limit = "script_cpu_limit"
    script_process_limit = "script_process_limit"
    script_disk_limit = "script_disk_limit"
    script_output_limit = "script_output_limit"

    # the gate: the script and where an artifact came from
    script_not_run = "script_not_run"
    script_changed_since_run = "script_changed_since_run"
    artifact_not_created = "artifact_not_created"
    artifact_not_from_script = "artifact_not_from_script"
    artifact_changed_since_run = "artifact_changed_since_run"
    artifact_unchecked = "artifact_unchecked"
    no_artifact_declared = "no_artifact_declared"
    publish_failed = "publish_failed"

    # the gate: what an artifact is
    artifact_format_invalid = "artifact_format_invalid"
    artifact_placeholder_output = "artifact_placeholder_output"
    artifact_contract_unmet = "artifact_contract_unmet"
    artifact_content_lost = "artifact_content_lost"
    artifact_unsafe = "artifact_unsafe"
    artifact_unreadable = "artifact_unreadable"

    # extensions: structure, hot load, acceptance
    manifest_invalid = "manifest_invalid"
    entry_point_not_allowed = "entry_point_not_allowed"
    module_import_failed = "module_import_failed"
    class_init_failed = "class_init_failed"
    skill_manifest_invalid = "skill_manifest_invalid"
    undeclared_component = "undeclared_component"
    harness_load_failed = "harness_load_failed"
    rail_not_registered = "rail_not_registered"
    tool_not_registered = "tool_not_registered"
    skill_not_loaded = "skill_not_loaded"
    tool_not_called = "tool_not_called"
    tool_result_failed = "tool_result_failed"
    tool_result_schema_missing = "tool_result_schema_missing"
    rail_hook_not_observed = "rail_hook_not_observed"
    rail_tool_state_not_shared = "rail_tool_state_not_shared"
    extension_not_verified = "extension_not_verified"
    environment_unusable = "environment_unusable"
    verifier_crashed = "verifier_crashed"
    timeout = "timeout"

    # records
    record_invalid = "record_invalid"
    evidence_changed = "evidence_changed"
    replay_diverged = "replay_diverged"

    # batches
    batch_unknown = "batch_unknown"
    batch_stopped = "batch_stopped"
    store_failed = "store_failed"
    database_failed = "database_failed"
    worker_lost = "worker_lost"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that does not hold, found by a check. Checks yield problems, actions raise.

    Attributes:
        where: the file, the key or the place in a file that it is about.
        cause: one sentence with the offending value in it.
        remedy: what to do, as a command where there is one.
        reason: a short stable word under the code (`zip_truncated`), or '' where the code says all.
    """

    code: Code
    where: str
    cause: str
    remedy: str
    reason: str = ""


Depth = Literal["provenance", "identity", "integrity", "substance", "contract"]
State = Literal["passed", "failed", "warned", "not_run"]


@dataclass(frozen=True, slots=True)
class Check:
    """One question put to one file, and the answer.

    Attributes:
        name: what was asked, dotted and stable, such as `pdf.pages_render`.
        depth: provenance (who made it, when), identity (is it that format), integrity (does all
            of it open), substance (is there content), contract (what the task asked).
        state: `not_run` is never a pass; `warned` passes and is shown.
        detail: what was seen ("3 pages"), or why it did not run.
        problem: given exactly when the state is failed or warned.
    """

    name: str
    depth: Depth
    state: State
    detail: str = ""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """An artifact that a task declares.

    Attributes:
        path: relative to the workspace, under outputs/ or drafts/.
        format: a name of `reread.formats`.
        contract: the words of `reread.contracts`, already validated; empty asks nothing more.
        baseline: workspace path of the older document that this one is an edit of; '' for none.
    """

    path: str
    format: str
    contract: Mapping[str, Any] = field(default_factory=dict)
    baseline: str = ""


@dataclass(frozen=True, slots=True)
class ScriptLimits:
    """What one script may use. Bytes and seconds.

    Attributes:
        timeout: wall time.
        cpu: CPU time of the whole tree.
        memory: resident memory of the whole tree.
        processes: processes alive at once.
        open_files: file descriptors of one process.
        file_size: of one file.
        written: bytes in all writable folders together.
        output: stdout and stderr together; what the model sees is cut far below that.
    """

    timeout: float = 300.0
    cpu: float = 300.0
    memory: int = 2 << 30
    processes: int = 128
    open_files: int = 1024
    file_size: int = 256 << 20
    written: int = 512 << 20
    output: int = 64 << 20


@dataclass(frozen=True, slots=True)
class Permissions:
    """What the human or the task file allowed, never the model.

    Attributes:
        network: the run phase of scripts may use the network.
        version_specifiers: dependencies may carry versions.
        builds: dependencies without a wheel may be built.
        unsandboxed: scripts may run with no fence.
        require_sandbox: the least level that will do: '' for the default, or a mechanism's name.
    """

    network: bool = False
    version_specifiers: bool = False
    builds: bool = False
    unsandboxed: bool = False
    require_sandbox: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """What was asked for, from a task file or from flags.

    Attributes:
        script: `required` means that each artifact was left by a script that ended with 0;
            `optional` also takes `write_file`.
        skills: `None` selects by trigger; a tuple is explicit, and an empty one means none.
        inputs: workspace paths that must be there.
        repairs: how many times a failed verdict goes back to the model.
    """

    text: str
    artifacts: tuple[Expected, ...]
    name: str = ""
    topic: str = ""
    script: Literal["required", "optional"] = "required"
    skills: tuple[str, ...] | None = None
    inputs: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    script_limits: ScriptLimits = field(default_factory=ScriptLimits)
    permissions: Permissions = field(default_factory=Permissions)
    repairs: int = 3


@dataclass(frozen=True, slots=True)
class Isolation:
    """Which layers of the sandbox were really active for a script. The label never overstates.

    Attributes:
        mechanism: the file in `reread/sandbox/` that ran it.
        filesystem: confined (reads and writes), write-confined, or unconfined.
        network: blocked, open (allowed by the human), or not enforced.
        layers: what it is made of ("namespaces", "seccomp", "landlock"), as far as active here.
        limits: limit name → how it holds ("rlimit", "watched", "none").
        degraded: what this mechanism cannot hold here, in words.
    """

    mechanism: str
    filesystem: Literal["confined", "write-confined", "unconfined"]
    network: Literal["blocked", "open", "not enforced"]
    layers: tuple[str, ...] = ()
    limits: Mapping[str, str] = field(default_factory=dict)
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Environment:
    """The uv environment that a script ran in.

    Attributes:
        key: digest over requirements, interpreter, platform, index and cut-off date.
        python: path of its interpreter.
        packages: name → version of what uv resolved; empty for `dependencies = []`.
        lock: uv's resolution with hashes, as text.
        cached: it was there already.
    """

    key: str
    python: str
    python_version: str
    uv_version: str
    packages: Mapping[str, str] = field(default_factory=dict)
    lock: str = ""
    cached: bool = False


@dataclass(frozen=True, slots=True)
class ScriptRun:
    """One run of one script, from start to the death of its whole process tree.

    Attributes:
        path: relative to the work folder, or absolute for a script handed over as text.
        sha256: of the bytes that ran.
        exit_code: `None` where it did not end by itself.
        stdout: head and tail as the model sees them; the whole is in the run's folder.
        seconds: wall time of the run phase.
        peak_memory: bytes, 0 where it could not be measured.
        failure: the code of what went wrong, `None` for exit code 0.
    """

    path: str
    sha256: str
    exit_code: int | None
    stdout: str
    stderr: str
    seconds: float
    peak_memory: int
    environment: Environment | None
    isolation: Isolation
    failure: Code | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """The last recorded write of one path in the work folder: an entry of the ledger.

    Attributes:
        sha256: of what was on disk after the write.
        by: `script` or `write_file`.
        by_sha256: digest of the script version that ran; '' for `write_file`.
        ok: the script ended with exit code 0.
    """

    sha256: str
    by: Literal["script", "write_file"]
    by_sha256: str
    ok: bool


@dataclass(frozen=True, slots=True)
class Approval:
    """A human's word for one subject with exactly this content, good for one use.

    Attributes:
        subject: `overwrite:outputs/a.json`, `skill-proposal:inputs/p.json`, `extension:name` …
        sha256: digest of the content that was looked at.
        granted_at: ISO 8601, UTC.
    """

    subject: str
    sha256: str
    granted_at: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the gate read from disk for one file.

    Attributes:
        sha256: digest of the bytes read; `None` where nothing could be read.
        size: bytes.
        checks: in the order in which they were made.
        facts: what was counted on the way (`rows`, `pages`), for the contract and for people.
    """

    path: str
    format: str
    sha256: str | None
    size: int
    checks: tuple[Check, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def read(self) -> bool:
        """The file was there and its bytes were read."""
        return self.sha256 is not None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What keeps it from being proven, one for each failed check."""
        return tuple(c.problem for c in self.checks if c.state == "failed" and c.problem)

    @property
    def ok(self) -> bool:
        """At least one identity check passed, none failed, and none that must run was left out."""
        identified = any(c.depth == "identity" and c.state == "passed" for c in self.checks)
        must_run = all(
            c.state != "not_run"
            for c in self.checks
            if c.depth in ("provenance", "identity", "integrity")
        )
        return identified and must_run and not any(c.state == "failed" for c in self.checks)


@dataclass(frozen=True, slots=True)
class Finding:
    """One failure as it is handed on for repair.

    Attributes:
        layer: `gate`, `L1`, `L2` or `L3`.
        query: the smallest request or command that shows it.
        log: sha256 of the log that holds the rest, or ''.
    """

    layer: str
    problem: Problem
    query: str
    expected: str
    actual: str
    log: str = ""


Status = Literal["complete", "validation-failed", "incomplete", "error"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended, and what it is allowed to say about itself.

    Attributes:
        status: `complete` only when the gate proved every artifact and nothing stayed unresolved.
        reason: code of what kept it from `complete`; '' for complete.
        runtime_status: how the last round of the loop ended; says nothing about files.
        scans: how often the skill folders were read.
        tool_errors: each failed call, in order; `resolved` by a later success or not.
        scripts: what the gate read of the scripts that ran.
        artifacts: what it read of the declared artifacts, in the order of the task.
        published: workspace path → digest there; empty unless complete.
        semantic_correctness: always `not-assessed`; form and provenance are proven, not truth.
    """

    status: Status
    run_id: str
    reason: str = ""
    cause: str = ""
    remedy: str = ""
    runtime_status: str = "not-started"
    rounds: int = 0
    available_skills: tuple[str, ...] = ()
    selected_skills: tuple[str, ...] = ()
    scans: int = 0
    tool_errors: tuple[ToolError, ...] = ()
    scripts: tuple[Evidence, ...] = ()
    artifacts: tuple[Evidence, ...] = ()
    runs: tuple[ScriptRun, ...] = ()
    published: Mapping[str, str] = field(default_factory=dict)
    turns: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    semantic_correctness: Literal["not-assessed"] = "not-assessed"

    @property
    def ok(self) -> bool:
        """It is complete."""
        return self.status == "complete"

    @property
    def ok_artifacts(self) -> bool:
        """Every script and every declared artifact is proven, and there is at least one."""
        read = (*self.scripts, *self.artifacts)
        return bool(self.artifacts) and all(evidence.ok for evidence in read)
