"""Servers that others wrote, each in an environment of its own that uv makes and keeps."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from reread.scripts import cache_folder, find_uv

BUILD_TIMEOUT = 3600
START_TIMEOUT = 90


def environment(name: str, *installs: Sequence[str]) -> Path:
    """Return the Python of an environment; each of `installs` is what `uv pip install` gets.

    REREAD_WHEELS may name a folder with wheels that were built before.
    """
    folder = cache_folder() / "tests" / name
    python = folder / "bin" / "python"
    made = folder / "made"
    if made.exists():
        return python
    uv = str(find_uv())
    wheels = os.environ.get("REREAD_WHEELS", "")
    found = ("--find-links", wheels) if wheels else ()
    subprocess.run([uv, "venv", "-q", "--clear", str(folder)], check=True, timeout=120)
    for wanted in installs:
        command = [uv, "pip", "install", "-q", "--python", str(python), *found, *wanted]
        subprocess.run(command, check=True, timeout=BUILD_TIMEOUT)
    made.touch()
    return python


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


@contextmanager
def serving(command: Sequence[str], url: str) -> Iterator[None]:
    """Run a server until the block ends; it must answer at `url` first."""
    with subprocess.Popen(
        list(command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            _wait(process, url)
            yield
        finally:
            process.kill()


def _wait(process: subprocess.Popen[bytes], url: str) -> None:
    end = time.monotonic() + START_TIMEOUT
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except urllib.error.HTTPError as error:
            error.close()
            return  # it answers
        except OSError:
            time.sleep(0.3)
        else:
            return
    raise RuntimeError(f"{process.args!r} did not start")
