"""The flags of a run, and what they mean for its task."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_runtime import Limits
    from reread.values import Permissions, Task


def what(group: argparse._ArgumentGroup) -> None:
    """Add the flags that say what to do."""
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


def who(group: argparse._ArgumentGroup) -> None:
    """Add the flags that say who does it."""
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


def allowed(group: argparse._ArgumentGroup) -> None:
    """Add the flags that say what a person allows."""
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


def bounds(group: argparse._ArgumentGroup) -> None:
    """Add the flags that say what it may use."""
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


def shown(group: argparse._ArgumentGroup) -> None:
    """Add the flags that say what is shown."""
    group.add_argument("--json", action="store_true", help="print the result object alone")
    group.add_argument("--quiet", action="store_true", help="print the first and last line only")
    group.add_argument("--junit", type=Path, metavar="PATH", help="also write a JUnit report")
    group.add_argument(
        "--tidy", action="store_true", help="remove the work folder after publishing"
    )


def limits(arguments: argparse.Namespace, task: Task) -> Limits:
    """Return the limits of a task with those of the flags put over them."""
    from dataclasses import replace

    asked = {
        "turns": arguments.max_turns,
        "tool_calls": arguments.max_tool_calls,
        "tokens": arguments.max_tokens,
        "usd": arguments.max_usd,
        "timeout": arguments.timeout,
    }
    return replace(task.limits, **{key: value for key, value in asked.items() if value is not None})


def permissions(arguments: argparse.Namespace, task: Task) -> Permissions:
    """Return what the task file and the flags allow together."""
    from reread.values import Permissions

    allowed = task.permissions
    return Permissions(
        network=allowed.network or arguments.allow_network,
        version_specifiers=allowed.version_specifiers or arguments.allow_version_specifiers,
        builds=allowed.builds or arguments.allow_builds,
        unsandboxed=arguments.unsandboxed,
        require_sandbox=arguments.require_sandbox,
    )
