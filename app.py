"""The program: what a run is composed of, and the command line.

`python app.py` runs the demo; every other command is one file in reread/commands. Nothing heavy is
imported before it is needed, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_runtime import Failure
    from reread.fixtures import Fixture
    from reread.job import Job
    from reread.values import Outcome, Task

SAMPLES = Path(__file__).resolve().parent

EPILOG = """\
commands (python app.py COMMAND --help):
{commands}

exit status: 0 complete (or all checks held), 1 not complete, 2 wrong usage, 3 approval needed,
4 budget or limit reached, 5 model service failed or is not configured, 6 the required sandbox is
not available, 130 interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; `run` where none is named. Returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    from reread import commands

    commands.settle_streams()

    name = commands.named(arguments)
    if name != "run":
        return commands.start(name, arguments[1:])
    if arguments[:1] == ["run"]:
        arguments = arguments[1:]
    return run(arguments)


def run_parser() -> argparse.ArgumentParser:
    """Build the parser of `run`, which is also the front page of the help."""
    from reread import commands, flags

    parser = argparse.ArgumentParser(
        prog="app.py",
        usage="%(prog)s [run] [TASK.yaml] [options]",
        description="Do a task with a model and a confined Python script, and prove from disk "
        "that it is done.",
        epilog=EPILOG.format(commands=commands.summary()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    flags.what(parser.add_argument_group("what to do"))
    flags.who(parser.add_argument_group("who does it"))
    flags.allowed(parser.add_argument_group("what a person allows (never the model)"))
    flags.bounds(parser.add_argument_group("limits"))
    flags.shown(parser.add_argument_group("what is shown"))
    return parser


def run(argv: Sequence[str]) -> int:
    """Do one task as the flags say and print how it ended."""
    from reread import commands

    parser = run_parser()
    arguments = parser.parse_args(argv)
    from agent_runtime import Failure  # asyncio comes with it, which `--help` does not need

    try:
        fixture = _fixture(arguments)
        if fixture and fixture.options:
            arguments = parser.parse_args([*fixture.options, *argv])
        mode, job = compose(arguments, fixture)
    except Failure as failure:
        return _refused(arguments, failure)
    if not arguments.json:
        commands.say(mode)
    return _perform(arguments, job)


def _fixture(arguments: argparse.Namespace) -> Fixture | None:
    from agent_runtime import Failure
    from reread import fixtures
    from reread.values import Code

    if not arguments.live:
        return fixtures.load(arguments.fixture or "success", SAMPLES / "sample-data")
    if arguments.fixture:
        raise Failure(
            Code.usage_invalid,
            f"--live asks a model, and --fixture {arguments.fixture} replays a fixed conversation.",
            "Use one of the two.",
        )
    return None


def compose(arguments: argparse.Namespace, fixture: Fixture | None) -> tuple[str, Job]:
    """Return the first line that names the mode, and the job of the flags.

    Raises:
        Failure: usage_invalid, task_invalid, no_artifact_declared, model_not_configured, …
    """
    import tempfile
    from dataclasses import replace

    from agent_runtime import Failure
    from reread.job import Job

    if arguments.skill and arguments.no_skills:
        raise Failure(
            "usage_invalid",
            f"--no-skills uses none, and --skill names '{arguments.skill[0]}'.",
            "Use one of the two.",
        )
    settings, mode = None, ""
    if fixture:
        mode = f"mode=fixture scenario={fixture.name} ({fixture.about or 'fixed conversation'})"
    else:
        from reread import models

        settings = replace(
            models.settings_from_environment(),
            stream=not arguments.no_stream,
            prices=arguments.prices,
        )
        mode = "mode=live"
    return mode, Job(
        task=_task(arguments, fixture),
        workspace=arguments.workspace or Path(tempfile.mkdtemp(prefix="reread-")),
        samples=SAMPLES,
        fixture=fixture,
        settings=settings,
        api=arguments.api,
        overwrites=tuple(arguments.approve_overwrite),
        proposals=tuple(arguments.approve_skill_proposal),
        skill_roots=tuple(arguments.skills_root),
        trust_skills=arguments.trust_skills,
        extensions=tuple(arguments.extension),
        trusted_extensions=tuple(arguments.approve_extension),
        mcp=arguments.mcp,
        tidy=arguments.tidy,
    )


def _task(arguments: argparse.Namespace, fixture: Fixture | None) -> Task:
    """Return the task of the file, of the words, or of the fixture; flags win."""
    from dataclasses import replace

    from reread import flags, tasks
    from reread.values import Task

    if arguments.file:
        task = tasks.read_task(arguments.file)
    elif arguments.task and not arguments.fixture:
        task = Task(arguments.task, ())
    elif fixture:
        task = tasks.read_task(fixture.task)
    else:
        task = tasks.read_task(SAMPLES / "sample-data" / "tasks" / "monthly-summary.yaml")
    if arguments.output:
        task = replace(task, artifacts=tasks.renamed(task.artifacts, arguments.output))
    if arguments.no_skills or arguments.skill:
        task = replace(task, skills=tuple(arguments.skill))
    task = replace(
        task,
        text=arguments.task or task.text,
        topic=arguments.topic or task.topic,
        repairs=task.repairs if arguments.repairs is None else arguments.repairs,
        limits=flags.limits(arguments, task),
        permissions=flags.permissions(arguments, task),
    )
    return tasks.checked(task)


def _perform(arguments: argparse.Namespace, job: Job) -> int:
    """Run the job under a view, print the end, and clear a temporary workspace after a complete."""
    import asyncio

    from agent_runtime import Failure
    from reread import commands, junit, summary, view
    from reread.job import perform

    shown = None if arguments.json or arguments.quiet else view.choose(view.out())
    try:
        outcome = asyncio.run(_until_ended(perform(job, listeners=(shown,) if shown else ())))
    except Failure as failure:
        return _refused(arguments, failure, job)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return _refused(arguments, _interrupted(job), job)
    except OSError as error:  # a full disk, a cache that cannot be written: not a bug of ours
        return _refused(arguments, commands.of_system(error), job)
    finally:
        if shown:
            shown.close()
    kept = arguments.workspace is not None or not outcome.ok
    if shown:
        view.last(outcome, job.workspace, kept=kept, stream=view.out())
    if arguments.junit:
        name = job.task.name or "run"
        junit.write(arguments.junit, name, junit.of_outcome(outcome, name))
    value = summary.outcome(outcome) | {"workspace": str(job.workspace) if kept else ""}
    commands.print_json(value)
    if not kept:
        _remove(job.workspace)
    return commands.exit_of(outcome)


async def _until_ended(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Await the run; being told to terminate ends it as cleanly as Ctrl-C does."""
    import asyncio
    import contextlib
    import signal

    task = asyncio.ensure_future(work)
    with contextlib.suppress(NotImplementedError):  # no such handlers on Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


def _refused(arguments: argparse.Namespace, failure: Failure, job: Job | None = None) -> int:
    """Say why a run did not start or did not end, and keep the last line a JSON object."""
    from reread import commands

    if not arguments.json:
        commands.refused(failure)
    place = str(job.workspace) if job else ""
    status = "incomplete" if failure.code == "interrupted" else "error"
    commands.print_json(
        {**failure.as_json(), "status": status, "reason": failure.code, "workspace": place}
    )
    if job and arguments.workspace is None and not any((job.workspace / "runs").glob("*/*")):
        _remove(job.workspace)  # nothing has run, so nothing is to be seen
    return commands.exit_status(failure.code)


def _remove(workspace: Path) -> None:
    """Remove a temporary workspace, however deep a script has nested it."""
    from reread.files import ConfinedFolder

    ConfinedFolder(workspace.parent).remove_tree(workspace.name)


def _interrupted(job: Job) -> Failure:
    from agent_runtime import Failure

    return Failure(
        "interrupted",
        "The run was interrupted; nothing of yours has changed.",
        f"Look at it in '{job.workspace}/runs', or start it again.",
    )


if __name__ == "__main__":
    raise SystemExit(main())
