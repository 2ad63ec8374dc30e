"""The databases that batches are tested on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.batch import postgres


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Cluster]:
    """One PostgreSQL for all tests; skipped where there is none, unless all tests must run."""
    why = postgres.missing()
    if why and os.environ.get("REREAD_ALL_TESTS") == "1":
        pytest.fail(why)
    if why:
        pytest.skip(why)
    with postgres.cluster() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a new database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'batches.sqlite'}"
    running: postgres.Cluster = request.getfixturevalue("server")
    return running.new_database()
