"""reread: an agent whose "done" is proven from disk.

Modules in import order. Each may import only what stands below it; tests/test_house.py reads
this list and fails on an upward import, a cycle, or a module that is not listed.

    commands     one file per command of the program
    flags        the flags of a run, and what they mean for its task
    batch        many tasks on a durable engine, with workers on any number of machines
    mcp          the gate and the runner as an MCP server
    api          the Python API
    view         what a person sees while a run goes on
    job          what a run is composed of; what commands, batch and mcp start
    report       one record as one self-contained HTML page
    replay       a recorded run again: audit, replay, resume, export
    additions    what a human adds to a run: extensions and MCP servers
    mcp_tools    MCP servers as tools of our own model
    run          execute(): the story of one run
    fixtures     fixed conversations, and the host's own steps between their turns
    brief        what the model is told
    gate         rereads script and artifacts and says what holds; never raises
    verify       proves in three layers that an extension works; repair and activation
    tools        one file per tool the model may call
    rails        one file per built-in lifecycle hook
    models       live models: one file per API
    session      what one run works with
    tasks        task files and flags become a Task
    summary      values as JSON
    records      the run's folder: events, record, evidence
    extensions   packages of tools, rails and skills, each in a fenced process of its own
    scripts      PEP 723 header, environment, ScriptRun
    sandbox      the operating system's fence, one file per mechanism
    skills       SKILL.md: parse, scan, select with reasons, context, proposals
    workspace    the user's folder, the work folder of a run, its ledger, and publishing
    approvals    what a human allowed: subject and digest, spent once
    junit        JUnit XML
    reconcile    facts that lie outside of one file: links, and numbers that must agree
    examine      one file judged in a limited child process
    contracts    what a task asks of an artifact, as data
    formats      one file per artifact format: the checks that prove it
    documents    YAML and JSON files that people write, read strictly
    files        every read and write inside a folder that others can change
    extras       optional packages
    values       the words that all of these share
    patterns     regular expressions that are compiled when they are first used
    plugins      finds the modules of a folder
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_runtime import Failure
    from reread.api import (
        check_file,
        check_file_async,
        run_task,
        run_task_async,
        verify_extension,
        verify_extension_async,
    )
    from reread.values import Evidence, Outcome, Permissions, Task

__all__ = [
    "Evidence",
    "Failure",
    "Outcome",
    "Permissions",
    "Task",
    "check_file",
    "check_file_async",
    "run_task",
    "run_task_async",
    "verify_extension",
    "verify_extension_async",
]

_PLACES = {"Failure": "agent_runtime"} | dict.fromkeys(
    ("Evidence", "Outcome", "Permissions", "Task"), "reread.values"
)


def __getattr__(name: str) -> Any:
    """Load a name of the API when it is first used, so that importing the package costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'reread' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(_PLACES.get(name, "reread.api")), name)
