"""Optional packages: what to install, said in one way wherever one is missing."""

from __future__ import annotations

import importlib.util

from agent_runtime import Failure
from reread.values import Code

EXTRAS = {
    "mcp": "mcp>=2.2,<3",
    "dbos": "dbos>=3.4,<4",
    "fsspec": "fsspec>=2024.6",
    "pyarrow": "pyarrow>=17",
    "opentelemetry": "opentelemetry-sdk",
}


def need(package: str) -> None:
    """Go on only where an optional package is installed.

    Raises:
        Failure: dependency_missing, with the command that installs it.
    """
    if importlib.util.find_spec(package) is None:
        raise Failure(
            Code.dependency_missing,
            f"The optional package '{package}' is not installed.",
            f"pip install '{EXTRAS.get(package, package)}'",
        )
