"""The program: what a run is composed of, and the command line.

`python app.py` runs the demo; every other command is one file in reread/commands. Nothing heavy is
imported before it is needed, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_runtime import Failure, Limits
    from reread.fixtures import Fixture
    from reread.job import Job
    from reread.values import Permissions, Task

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
    from reread import commands

    parser = argparse.ArgumentParser(
        prog="app.py",
        usage="%(prog)s [run] [TASK.yaml] [options]",
        description="Do a task with a model and a confined Python script, and prove from disk "
        "that it is done.",
        epilog=EPILOG.format(commands=commands.summary()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _what(parser.add_argument_group("what to do"))
    _who(parser.add_argument_group("who does it"))
    _allowed(parser.add_argument_group("what a person allows (never the model)"))
    _bounds(parser.add_argument_group("limits"))
    _shown(parser.add_argument_group("what is shown"))
    return parser


def _what(group: argparse._ArgumentGroup) -> None:
    group.add_argument("file", nargs="?", type=Path, metavar="TASK.yaml", help="a task file")
    group.add_argument("--task", metavar="TEXT", help="the task in words, instead of a file")
    group.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="PATH",
        help="file that must come out of it, below outputs/ or drafts/; the suffix says the "
        "format; repeatable",
    )
    group.add_argument("--topic", metavar="TEXT", help="what a text must be about")
    group.add_argument(
        "--workspace",
        type=Path,
        metavar="DIR",
        help="work here and keep the files (default: a temporary folder, removed after a complete)",
    )
    group.add_argument(
        "--skill",
        action="append",
        default=[],
        metavar="NAME",
        help="use exactly this skill; repeatable (default: chosen by trigger)",
    )
    group.add_argument("--no-skills", action="store_true", help="use none; the gate stays on")
    group.add_argument(
        "--skills-root",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="also read skills from here, such as .claude/skills; repeatable",
    )
    group.add_argument(
        "--extension",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="load a verified extension package; repeatable",
    )
    group.add_argument(
        "--mcp",
        type=Path,
        metavar="CONFIG.json",
        help="give the model the tools of these MCP servers (the usual mcpServers form)",
    )


def _who(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--fixture", metavar="NAME", help="fixed conversation to replay (default: success)"
    )
    group.add_argument(
        "--live",
        action="store_true",
        help="ask the model named by OPENAI_MODEL instead; costs money",
    )
    group.add_argument(
        "--api",
        choices=("chat", "responses"),
        default="chat",
        help="which API of the service to speak (default: chat)",
    )
    group.add_argument(
        "--no-stream", action="store_true", help="ask for whole answers, with no progress"
    )


def _allowed(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--approve-overwrite",
        action="append",
        default=[],
        metavar="PATH[@SHA256]",
        help="this existing file may be replaced, once, if it is still as it is now",
    )
    group.add_argument(
        "--approve-skill-proposal",
        action="append",
        default=[],
        metavar="PATH",
        help="the skill in this file may be created, exactly as it stands",
    )
    group.add_argument(
        "--approve-extension",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="load this extension, as it is now, without a passed verification",
    )
    group.add_argument(
        "--trust-skills", action="store_true", help="use the skills of --skills-root as they are"
    )
    group.add_argument("--allow-network", action="store_true", help="scripts may use the network")
    group.add_argument(
        "--allow-version-specifiers",
        action="store_true",
        help="scripts may ask for versions of their dependencies",
    )
    group.add_argument(
        "--allow-builds",
        action="store_true",
        help="dependencies without a wheel may be built, which runs their code",
    )
    group.add_argument(
        "--unsandboxed", action="store_true", help="scripts may run without any sandbox"
    )
    group.add_argument(
        "--require-sandbox",
        default="",
        metavar="LEVEL",
        help="refuse (exit 6) unless this mechanism works: namespaces, bwrap, landlock, seatbelt",
    )


def _bounds(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--repairs", type=int, choices=range(4), help="repair rounds (default: 3)")
    group.add_argument("--max-turns", type=int, metavar="N", help="requests (default: 60)")
    group.add_argument("--max-tool-calls", type=int, metavar="N", help="calls (default: 200)")
    group.add_argument("--max-tokens", type=int, metavar="N", help="tokens (default: no limit)")
    group.add_argument("--max-usd", type=float, metavar="X", help="money (default: no limit)")
    group.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="of the whole run (default: 1800)"
    )
    group.add_argument(
        "--prices", type=Path, metavar="FILE", help="price table to use instead of the shipped one"
    )


def _shown(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--json", action="store_true", help="print the result object alone")
    group.add_argument("--quiet", action="store_true", help="print the first and last line only")
    group.add_argument("--junit", type=Path, metavar="PATH", help="also write a JUnit report")
    group.add_argument(
        "--tidy", action="store_true", help="remove the work folder after publishing"
    )


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

    from reread import tasks
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
        limits=_limits(arguments, task),
        permissions=_permissions(arguments, task),
    )
    return tasks.checked(task)


def _limits(arguments: argparse.Namespace, task: Task) -> Limits:
    from dataclasses import replace

    asked = {
        "turns": arguments.max_turns,
        "tool_calls": arguments.max_tool_calls,
        "tokens": arguments.max_tokens,
        "usd": arguments.max_usd,
        "timeout": arguments.timeout,
    }
    return replace(task.limits, **{key: value for key, value in asked.items() if value is not None})


def _permissions(arguments: argparse.Namespace, task: Task) -> Permissions:
    from reread.values import Permissions

    allowed = task.permissions
    return Permissions(
        network=allowed.network or arguments.allow_network,
        version_specifiers=allowed.version_specifiers or arguments.allow_version_specifiers,
        builds=allowed.builds or arguments.allow_builds,
        unsandboxed=arguments.unsandboxed,
        require_sandbox=arguments.require_sandbox,
    )


def _perform(arguments: argparse.Namespace, job: Job) -> int:
    """Run the job under a view, print the end, and clear a temporary workspace after a complete."""
    import asyncio

    from agent_runtime import Failure
    from reread import commands, junit, summary, view
    from reread.job import perform

    shown = None if arguments.json or arguments.quiet else view.choose(view.out())
    try:
        outcome = asyncio.run(perform(job, listeners=(shown,) if shown else ()))
    except Failure as failure:
        return _refused(arguments, failure, job)
    except KeyboardInterrupt:
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
