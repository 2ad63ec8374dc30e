"""Children that run as the owner of a folder, for tests of what an ordinary user meets."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

USER = 4242

fork = multiprocessing.get_context("fork") if hasattr(os, "fork") else None


@pytest.fixture(params=("root", "user"))
def place(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder that an ordinary user owns as well; the tests in it run as that user or as root."""
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("not root")
    path = Path(tempfile.mkdtemp(prefix="reread-attack-"))
    path.chmod(0o755)
    if request.param == "user" and os.geteuid() == 0:
        os.chown(path, USER, USER)
    yield path
    shutil.rmtree(path)


def in_child(place: Path, run: Callable[[], None]) -> int:
    """Run as the owner of the folder in a child; return the exit code, -9 for a kill."""
    assert fork is not None
    child = fork.Process(target=as_owner, args=(place, run))
    child.start()
    child.join(60)
    assert child.exitcode is not None
    return child.exitcode


def as_owner(place: Path, run: Callable[[], None]) -> None:
    become_owner(place)
    run()


def become_owner(place: Path) -> None:
    owner = place.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.setgroups([])
        os.setgid(owner.st_gid)
        os.setuid(owner.st_uid)


def names(path: Path) -> list[str]:
    return sorted(os.listdir(path))  # noqa: PTH208 hidden ones as well
