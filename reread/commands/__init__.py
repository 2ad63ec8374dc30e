"""One file per command of the program: `HELP`, `configure(parser)`, `run(arguments) -> int`.

A command's module is imported when it is called; its one line of help is in the list below, so that
the front page loads none of them. Exit statuses are decided here, for all of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reread import plugins

if TYPE_CHECKING:
    from agent_runtime import Failure
    from reread.values import Outcome

SUMMARY: Mapping[str, str] = {
    "check": "judge files without a model: the gate alone",
    "skills": "list, explain, validate, test and propose skills",
    "verify": "prove in three layers that an extension works",
    "extension": "make a new extension package",
    "batch": "many tasks, durable, with any number of workers",
    "worker": "work on the batches of a database",
    "audit": "compare a record with the disk again",
    "replay": "run a record's scripts again against its recorded turns",
    "report": "write the HTML page of a run",
    "resume": "go on with a run that was cut off",
    "export": "write a run and all that it needs into one file",
    "record": "save a recorded run as a fixture",
    "mcp": "serve the gate and the runner to other agents",
    "doctor": "say what works on this machine",
}

EXIT_OF_CODE: Mapping[str, int] = {
    "usage_invalid": 2,
    "task_invalid": 2,
    "fixture_unknown": 2,
    "fixture_invalid": 2,
    "skill_unknown": 2,
    "skill_invalid": 2,
    "contract_invalid": 2,
    "no_artifact_declared": 2,
    "workspace_invalid": 2,
    "run_unknown": 2,
    "batch_unknown": 2,
    "path_not_allowed": 2,
    "path_not_found": 2,
    "approval_required": 3,
    "approval_stale": 3,
    "extension_not_verified": 3,
    "limit_reached": 4,
    "model_not_configured": 5,
    "model_failed": 5,
    "model_refused": 5,
    "model_output_cut": 5,
    "context_too_long": 5,
    "sandbox_unavailable": 6,
    "interrupted": 130,
}
"""Every other code ends with 1."""


def available() -> tuple[str, ...]:
    """Return the commands that are there, in the order of the summary."""
    there = plugins.names(sys.modules[__name__])
    return tuple(name for name in SUMMARY if name in there)


def summary() -> str:
    """Return the commands with a line each, for the help."""
    return "\n".join(f"  {name:<10} {SUMMARY[name]}" for name in available())


def named(arguments: Sequence[str]) -> str:
    """Return the command that the arguments name, `run` where they name none."""
    first = arguments[0] if arguments else ""
    return first if first in available() else "run"


def start(name: str, arguments: Sequence[str]) -> int:
    """Run a command and return the exit status."""
    import argparse

    from agent_runtime import Failure

    module = plugins.load(sys.modules[__name__], name)
    parser = argparse.ArgumentParser(
        prog=f"app.py {name}",
        description=module.HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.configure(parser)
    parsed = parser.parse_args(arguments)
    try:
        return int(module.run(parsed))
    except Failure as failure:
        return refused(failure, as_json=bool(getattr(parsed, "json", False)))
    except KeyboardInterrupt:
        return EXIT_OF_CODE["interrupted"]


def refused(failure: Failure, *, as_json: bool = False) -> int:
    """Print a failure and return the exit status that it has."""
    if as_json:
        print_json({"status": "error", "reason": failure.code, **failure.as_json()})
    else:
        print(f"{failure.code}: {failure.cause}\n  {failure.remedy}", file=sys.stderr)
    return exit_status(failure.code)


def exit_status(code: str) -> int:
    """Return the exit status for a code; '' is success."""
    return EXIT_OF_CODE.get(code, 1) if code else 0


OUTSIDE_THE_VERDICT = frozenset(
    {
        "limit_reached",
        "model_not_configured",
        "model_failed",
        "model_refused",
        "model_output_cut",
        "context_too_long",
        "sandbox_unavailable",
        "interrupted",
    }
)


def exit_of(outcome: Outcome) -> int:
    """Return the exit status of a run: 1 for a verdict, another for a cause outside of it."""
    if outcome.ok:
        return 0
    return exit_status(outcome.reason) if outcome.reason in OUTSIDE_THE_VERDICT else 1


def print_json(value: Mapping[str, Any]) -> None:
    """Print one object on one line, keys sorted, safe for every terminal encoding."""
    import json

    text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    encoding = sys.stdout.encoding or "utf-8"
    say(text.encode(encoding, "backslashreplace").decode(encoding))


def of_system(error: OSError) -> Failure:
    """Return what the system refused as a failure, with what to do about it."""
    from agent_runtime import Failure

    where = f" ('{error.filename}')" if error.filename else ""
    return Failure(
        "write_failed",
        f"The system refused something that the run needs: {error.strerror or error}{where}.",
        "Make room or name another place (--workspace, TMPDIR, REREAD_CACHE_DIR), and start again.",
    )


def settle_streams() -> None:
    """Have three open streams that take every character, whatever the program was started with.

    A closed one is /dev/null from here on. Left closed, its number would go to the next file that
    is opened, and what is printed would end up in there.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number, inheritable=False)
                os.close(null)
            mode = "w" if number else "r"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
        elif number and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """Print a line; a reader that has gone away changes nothing about the exit status."""
    try:
        print(text, flush=True)
    except OSError:  # nobody reads any more, or the disk that it goes to is full
        # What is left in the buffer would raise again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
