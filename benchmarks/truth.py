"""Forty agents end with "done". Which harness says that the work is done?

Each agent is a script on a model service on loopback; each harness runs it with its own loop and
its own tools. Ten did the work; of thirty the deliverable is absent, stale, tampered with, fake,
corrupt, partial, left by a script that failed, or somewhere else. Every peer runs twice: as it
comes, and with its strongest hook switched on (final-answer checks, output validators, guardrails,
post hooks, middleware) and, in it, a check of the file as a careful user would write it
(`_careful_check.py`). Ours runs as `app.py --live` and is told nothing more than the peers' check.

Shows: how often "finished" was wrong, both ways, over these cases.
Does not show: how often models end so; nor that a peer could not be given a better check.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import _peers, _table
from benchmarks._truth_cases import CASES, ORDERS, QUICK, Case
from benchmarks._truth_stub import Scripted, Service, serving

HELP = "forty agents that say they are done: which harness believes which of them"
ROOT = Path(__file__).resolve().parent.parent
MAIN = Path(__file__).with_name("_drivers") / "main.py"
CHECK = Path(__file__).with_name("_careful_check.py")
CASE_SECONDS = 60.0
HOOKS: Mapping[str, str] = {
    "openai": "a check after the loop",
    "smolagents": "final_answer_checks",
    "pydantic-ai": "output validator",
    "openai-agents": "output guardrail",
    "agno": "post hook",
    "deepagents": "middleware",
    "langgraph": "post_model_hook",
    "strands": "after-invocation hook",
    "mini-swe-agent": "",
}
"""Peer → its strongest hook; '' where it has none."""
_SPEECH = {"smolagents": "smolagents", "mini-swe-agent": "shell"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one harness said of one agent.

    Attributes:
        finished: it calls the run finished, or complete.
        why: what it said where it did not; a code, or an exception.
    """

    case: Case
    finished: bool
    why: str = ""

    @property
    def wrong(self) -> bool:
        """It said done of what is not, or did not say it of what is."""
        return self.finished != self.case.good


Verdicts = tuple[Verdict, ...]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--quick", action="store_true", help="a few agents, no peers")
    parser.add_argument("--peer", action="append", choices=HOOKS, help="only these; repeatable")
    parser.add_argument("--json", action="store_true", help="print every verdict as JSON")


def run(args: argparse.Namespace) -> int:
    """Ask all, print, and return 0 if ours was wrong of none, else 1."""
    cases = tuple(case for case in CASES if not args.quick or case.id in QUICK)
    with tempfile.TemporaryDirectory(prefix="reread-truth-") as folder, serving() as service:
        found = {"reread": ours(cases, service, Path(folder).resolve() / "ours")}
        if not args.quick:
            found |= _peers_say(args.peer or HOOKS, cases, service, Path(folder).resolve())
    print(json.dumps(_plain(found), indent=1) if args.json else shown(found, cases))
    wrong = [verdict for verdict in found["reread"] if verdict.wrong]
    for verdict in wrong:
        print(f"wrong: {verdict.case.id}: {verdict.case.about}: {verdict.why}", file=sys.stderr)
    return 1 if wrong else 0


def _plain(found: Mapping[str, Verdicts]) -> dict[str, Any]:
    return {
        name: {v.case.id: {"finished": v.finished, "wrong": v.wrong, "why": v.why} for v in said}
        for name, said in found.items()
    }


def prepare(case: Case, root: Path) -> None:
    """Lay out a work folder as it was before the run, an hour ago."""
    for name in ("inputs", "outputs", "drafts", "scripts"):
        (root / name).mkdir(parents=True)
    (root / "inputs/orders.csv").write_text(ORDERS, "utf-8")
    for path, text in case.before.items():
        (root / path).write_text(text, "utf-8")
        os.utime(root / path, (time.time() - 3600,) * 2)


# -- ours


def ours(cases: Iterable[Case], service: Service, folder: Path) -> Verdicts:
    """Run the program on each case."""
    return tuple(_ours(case, service, folder / case.id / "work") for case in cases)


def _ours(case: Case, service: Service, root: Path) -> Verdict:
    prepare(case, root)
    url = service.add(f"ours-{case.id}", Scripted(case, "ours", root))
    task = {
        "name": case.id,
        "text": case.asked.text,
        "inputs": ["inputs/orders.csv"],
        "artifacts": [{"path": case.asked.path, "contract": dict(case.asked.contract)}],
        "repairs": 1,
    }
    file = root.parent / "task.yaml"
    file.write_text(json.dumps(task), "utf-8")
    command = [sys.executable, "app.py", str(file), "--workspace", str(root)]
    command += ["--live", "--no-stream", "--json"]
    for path in case.before:
        command += ["--approve-overwrite", path]
    service_of = {"API_KEY": "none", "MODEL": "stub", "BASE_URL": url}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **{f"OPENAI_{name}": value for name, value in service_of.items()}},
        capture_output=True,
        text=True,
        timeout=CASE_SECONDS,
    )
    return _judged(case, root, done)


def _judged(case: Case, root: Path, done: subprocess.CompletedProcess[str]) -> Verdict:
    try:
        said = json.loads(done.stdout)
    except ValueError:
        return Verdict(case, False, f"exit {done.returncode}: {done.stderr[-300:]}")
    complete = said["status"] == "complete" and done.returncode == 0
    if complete and not (root / case.asked.path).is_file():
        return Verdict(case, not case.good, "complete, and the file is not in the workspace")
    return Verdict(case, complete, "" if complete else f"{said['status']}: {said['reason']}")


# -- peers


def _peers_say(
    names: Iterable[str], cases: tuple[Case, ...], service: Service, folder: Path
) -> dict[str, Verdicts]:
    found: dict[str, Verdicts] = {}
    try:
        checker = str(_peers.python("careful check"))
    except _peers.Unavailable as error:
        raise SystemExit(str(error)) from error
    for name in names:
        try:
            python = _peers.python(name)
        except _peers.Unavailable as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        for hook in dict.fromkeys(("", HOOKS[name])):
            label = f"{name} {_peers.PEERS[name].version}{' + ' + hook if hook else ''}"
            jobs = tuple(_jobs(label, name, bool(hook), cases, service, folder, checker))
            found[label] = drive(python, name, cases, jobs)
    return found


def _jobs(
    label: str,
    name: str,
    checked: bool,
    cases: Iterable[Case],
    service: Service,
    folder: Path,
    checker: str,
) -> Iterator[dict[str, Any]]:
    place = label.replace(" ", "-")
    for case in cases:
        root = folder / place / case.id / "work"
        prepare(case, root)
        scripted = Scripted(case, _SPEECH.get(name, "tools"), root)
        contract = json.dumps(dict(case.asked.contract))
        yield {
            "id": case.id,
            "url": service.add(f"{place}-{case.id}", scripted),
            "root": str(root),
            "task": case.asked.text,
            "checked": checked,
            "check": [checker, str(CHECK), str(root), case.asked.path, contract, str(time.time())],
        }


def drive(
    python: Path, name: str, cases: Iterable[Case], jobs: Iterable[Mapping[str, Any]]
) -> Verdicts:
    """Let one peer do all jobs in one process of its environment."""
    asked = "".join(json.dumps(job) + "\n" for job in jobs)
    done = subprocess.run(
        [str(python), str(MAIN), name, "truth"],
        input=asked,
        capture_output=True,
        text=True,
        timeout=900,
    )
    said = {line["id"]: line for line in map(json.loads, done.stdout.splitlines())}
    missing = [case.id for case in cases if case.id not in said]
    if missing:
        raise SystemExit(f"{name} stopped before {missing[0]}: {done.stderr[-1500:]}")
    return tuple(
        Verdict(case, said[case.id]["finished"], said[case.id].get("error", "")) for case in cases
    )


# -- the table


def shown(found: Mapping[str, Verdicts], cases: tuple[Case, ...]) -> str:
    """Return the score, and where each was wrong, as tables."""
    kinds = tuple(dict.fromkeys(case.kind for case in cases))
    counts = {kind: sum(case.kind == kind for case in cases) for kind in kinds}
    bad = sum(not case.good for case in cases)
    head: tuple[str, ...] = ("harness", f"wrong of {len(cases)}", f"false done of {bad}")
    head += tuple(f"{kind} ({count})" for kind, count in counts.items())
    rows = []
    for name, said in found.items():
        wrong = [verdict for verdict in said if verdict.wrong]
        false = sum(verdict.finished for verdict in wrong)
        by_kind = (str(sum(v.case.kind == kind for v in wrong)) for kind in kinds)
        rows.append((name, str(len(wrong)), str(false), *by_kind))
    return _table.table(head, rows)


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=HELP)
    configure(flags)
    sys.exit(run(flags.parse_args()))
