"""run_python: one script, in its own uv environment, in the sandbox.

What the script left is entered in the ledger after its whole process tree is dead.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_runtime import Failure, Tool
from reread import summary
from reread.scripts import Place, check_syntax, parse_header, run_script, temp_script
from reread.session import Session
from reread.tools import schema, text
from reread.values import Code, ScriptRun
from reread.workspace import VIEWS

SCRIPT_LIMIT = 256 << 10

PARAMETERS = schema(
    (),
    path=text("a script that write_file put below scripts/", minLength=1),
    code=text("the whole script as text", minLength=1),
) | {"oneOf": [{"required": ["path"]}, {"required": ["code"]}]}


def tool(session: Session) -> Tool:
    """Make the tool for a run."""

    async def run(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        name, file, data = _script(session, arguments)
        before = session.work.snapshot()
        ran = await run_script(
            data,
            name=name,
            file=file,
            place=_place(session),
            permissions=session.task.permissions,
            limits=session.task.script_limits,
            shipped=session.shipped,
            emit=lambda kind, data: _tell(session, kind, data),
        )
        left = session.work.ledger.ran(
            ran.sha256, ok=ran.failure is None, before=before, after=session.work.snapshot()
        )
        _keep(session, data, ran, left)
        return answer(ran, left)

    return Tool(
        "run_python",
        "Run a Python script that opens with a PEP 723 block naming its dependencies (bare names; "
        "`dependencies = []` for none). It gets no arguments and no stdin; its working directory "
        "is the workspace; it reads inputs/ and writes outputs/ and drafts/. No network.",
        PARAMETERS,
        run,
        changes=True,
        ends_round=True,
    )


def _script(session: Session, arguments: Mapping[str, Any]) -> tuple[str, Path, bytes]:
    """Return the script's name, its file and its bytes; text becomes a file only when it parses."""
    if "path" in arguments:
        path = arguments["path"]
        place = session.work.locate_script(path)
        data = place.folder.read(place.relative, limit=SCRIPT_LIMIT)
        return path, place.folder.root / place.relative, data
    data = arguments["code"].encode("utf-8")
    check_syntax(data, "the script given as code")
    parse_header(data, session.task.permissions)
    file = temp_script(data)
    return str(file), file, data


def _tell(session: Session, kind: str, data: Mapping[str, Any]) -> None:
    """Record what happened; output is only shown, since the whole of it is kept in logs/."""
    (session.record.tell if kind == "script.output" else session.record.event)(kind, data)


def _place(session: Session) -> Place:
    work = session.work
    return Place(
        work=work.folder.root,
        views={name: work.workspace.root / real for name, real in VIEWS.items()},
        logs=work.run.root / "logs",
    )


def _keep(session: Session, data: bytes, ran: ScriptRun, left: tuple[str, ...]) -> None:
    """Keep what ran beside the record: the script's bytes and the lock of its environment."""
    session.progress.runs.append(ran)
    made = session.work.ledger.made
    kept = f"scripts/{ran.sha256}.py"
    session.work.run.write(kept, data)
    lock = ""
    if ran.environment and ran.environment.lock:
        lock = f"locks/{ran.environment.key}.txt"
        session.work.run.write(lock, ran.environment.lock.encode())
    session.record.event(
        "script.ran",
        {
            **summary.script_run(ran),
            "kept": kept,
            "lock": lock,
            "left": {path: made[path].sha256 for path in left},
        },
    )


def answer(ran: ScriptRun, left: tuple[str, ...]) -> dict[str, Any]:
    """Return what the model is told of a script that ran; raises the code of one that failed."""
    if ran.failure is not None:
        raise _failed(ran, left)
    return _result(ran, left)


def _result(ran: ScriptRun, left: tuple[str, ...]) -> dict[str, Any]:
    return {
        "path": ran.path,
        "sha256": ran.sha256,
        "exit_code": ran.exit_code,
        "stdout": ran.stdout,
        "stderr": ran.stderr,
        "seconds": round(ran.seconds, 3),
        "files_left": list(left),
        "sandbox": ran.isolation.mechanism,
    }


def _failed(ran: ScriptRun, left: tuple[str, ...]) -> Failure:
    code = ran.failure or Code.script_failed
    how = "was ended" if ran.exit_code is None else f"ended with exit code {ran.exit_code}"
    return Failure(
        code,
        f"'{ran.path}' {how} after {ran.seconds:.1f} s.{_last_line(ran.stderr)}",
        "The file is kept. Read the traceback, mend the script and run it again.",
        _result(ran, left),
    )


def _last_line(stderr: str) -> str:
    lines = [line for line in stderr.strip().splitlines() if line.strip()]
    return f" Its last word: {lines[-1][:300]}" if lines else ""
