"""What a verification says: three layers, findings, and what was not run. Values, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from reread.values import Finding, Isolation

LayerState = Literal["passed", "failed", "not_run"]
LAYERS = ("L1", "L2", "L3")


@dataclass(frozen=True, slots=True)
class Report:
    """How one verification of one package ended.

    Attributes:
        sha256: of the package's files, as verified.
        acceptance: sha256 of the spec; '' where none was read.
        runtime: `native`; `native, standing in for openjiuwen`, which proves nothing about that
            runtime; or `openjiuwen VERSION`.
        layers: each of L1, L2, L3.
        labels: what the load returned.
        notes: what was not run, and why; no failure.
        log: sha256 of what the package printed.
        output: the end of what it printed, where something failed.
    """

    package: str
    name: str
    sha256: str
    acceptance: str
    runtime: str
    layers: Mapping[str, LayerState]
    findings: tuple[Finding, ...] = ()
    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    isolation: Isolation | None = None
    seconds: float = 0.0
    log: str = ""
    output: str = ""

    @property
    def ok(self) -> bool:
        """All three layers passed; nothing less lets a package in."""
        return not self.findings and all(self.layers.get(one) == "passed" for one in LAYERS)

    def as_json(self) -> dict[str, Any]:
        """Return it as the command prints it."""
        return {
            "ok": self.ok,
            "package": self.package,
            "name": self.name,
            "sha256": self.sha256,
            "acceptance": self.acceptance,
            "runtime": self.runtime,
            "layers": dict(self.layers),
            "findings": [finding_json(one) for one in self.findings],
            "labels": list(self.labels),
            "notes": list(self.notes),
            "isolation": asdict(self.isolation) if self.isolation else None,
            "seconds": round(self.seconds, 3),
            "log": self.log,
            "output": self.output,
        }


def finding_json(one: Finding) -> dict[str, Any]:
    """Return a finding as the command prints it and the repairing agent reads it."""
    return {
        "layer": one.layer,
        "code": str(one.problem.code),
        "reason": one.problem.reason,
        "where": one.problem.where,
        "cause": one.problem.cause,
        "remedy": one.problem.remedy,
        "query": one.query,
        "expected": one.expected,
        "actual": one.actual,
        "log": one.log,
    }
