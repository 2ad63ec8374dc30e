"""One file judged, inside the limited child: its format's checks, then what the contract asks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, BinaryIO

from reread import contracts, formats, plugins
from reread.formats import Source
from reread.formats._checks import Fact, Item, failed, not_run, unsafe
from reread.values import Check, Code, Evidence, Problem

MAX_DETAIL = 2_000


def judge(
    stream: BinaryIO,
    *,
    name: str,
    format: str,
    contract: Mapping[str, Any],
    baseline: BinaryIO | None = None,
) -> Evidence:
    """Return what was found; the file is read to its end and digested, whatever it holds."""
    module = plugins.load(formats, format)
    source = Source(stream, name, os.fstat(stream.fileno()).st_size)
    found = _Found()
    found.take(_guarded(module.check(source, contract), format))
    found.facts.setdefault("bytes", source.size)
    if found.sound:
        found.take(_guarded(contracts.checks(contract, found.facts, format), format))
        found.take(_lost(module, source, baseline))
    return Evidence(
        path=name,
        format=format,
        sha256=source.sha256(),
        size=source.size,
        checks=tuple(_named(check, name) for check in found.checks),
        facts={key: value for key, value in found.facts.items() if not key.startswith("_")},
    )


class _Found:
    """What the checks of one file said, facts apart from checks."""

    def __init__(self) -> None:
        self.checks: list[Check] = []
        self.facts: dict[str, Any] = {}

    @property
    def sound(self) -> bool:
        """The bytes are of the format and hold something; a contract can be asked of them."""
        return not any(check.state == "failed" for check in self.checks)

    def take(self, items: Iterable[Item]) -> None:
        """Sort items in."""
        for item in items:
            if isinstance(item, Fact):
                self.facts[item.name] = item.value
            else:
                self.checks.append(item)


def _guarded(items: Iterator[Any], format: str) -> Iterator[Any]:
    """Pass the items on; what a parser does with hostile bytes becomes a check, not a crash."""
    try:
        yield from items
    except MemoryError:
        yield unsafe(f"{format}.bounded", "memory", "Reading it needs more memory than is allowed.")
    except RecursionError:
        yield unsafe(f"{format}.bounded", "too_deep", "It is nested too deeply to be read.")
    except ImportError as error:
        needed = str(error.name or error).partition(".")[0]
        why = f"the package '{needed}' is not installed: pip install -r requirements.txt"
        yield not_run(f"{format}.readable", "identity", why)
    except Exception as error:  # hostile bytes: whatever a parser raises is about the file
        yield failed(
            f"{format}.readable",
            "integrity",
            Code.artifact_unreadable,
            "parser_failed",
            f"Its reader gave up: {type(error).__name__}: {error}"[:300],
            "Write the file anew with a library made for the format.",
        )


def _lost(module: Any, source: Source, baseline: BinaryIO | None) -> Iterator[Item]:
    """Compare with the older document that this one is an edit of."""
    if baseline is None or not hasattr(module, "compare"):
        return
    old = Source(baseline, source.name, os.fstat(baseline.fileno()).st_size)
    yield from _guarded(module.compare(old, source), module.FORMAT.name)


def _named(check: Check, name: str) -> Check:
    """Put the file's name into a problem that has no place yet, and keep texts short."""
    if check.problem is None:
        return check
    cause = check.problem.cause[:MAX_DETAIL]
    where = check.problem.where or name
    return replace(check, problem=replace(check.problem, where=where, cause=cause))


def as_json(evidence: Evidence) -> dict[str, Any]:
    """Return evidence as it goes over the pipe."""
    return asdict(evidence)


def from_json(value: Mapping[str, Any]) -> Evidence:
    """Make evidence again from what came over the pipe."""
    return Evidence(**{**value, "checks": tuple(_check(item) for item in value["checks"])})


def _check(value: Mapping[str, Any]) -> Check:
    found = value["problem"]
    problem = Problem(**{**found, "code": Code(found["code"])}) if found else None
    return Check(**{**value, "problem": problem})
