"""The Model Context Protocol, both ways: the gate and the runner as a server, and other servers'
tools for our own model. Everything here needs the extra `mcp`."""

from __future__ import annotations

from agent_runtime import Failure
from reread.values import Code


def need_package() -> None:
    """Say what to install where the official package is missing.

    Raises:
        Failure: dependency_missing.
    """
    import importlib.util

    if importlib.util.find_spec("mcp") is None:
        raise Failure(
            Code.dependency_missing,
            "The package 'mcp' is not installed.",
            "pip install 'mcp>=2.2,<3'",
        )
