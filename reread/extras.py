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
    "opentelemetry.sdk": "opentelemetry-sdk>=1.30,<2",
    "opentelemetry.exporter.otlp.proto.http": "opentelemetry-exporter-otlp-proto-http>=1.30,<2",
}


def need(package: str) -> None:
    """Go on only where an optional package is installed.

    Raises:
        Failure: dependency_missing, with the command that installs it.
    """
    if not _there(package):
        raise Failure(
            Code.dependency_missing,
            f"The optional package '{package}' is not installed.",
            f"pip install '{EXTRAS.get(package, package)}'",
        )


def _there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # the package that it would lie in is missing as well
        return False
