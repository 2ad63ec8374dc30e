"""A PostgreSQL of the tests' own: temporary folder, free port on loopback, user postgres."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Cluster:
    """A running server."""

    def __init__(self, folder: Path, binaries: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self._binaries = binaries
        self._numbers = itertools.count(1)

    def new_database(self) -> str:
        """Return the URL of a new database."""
        name = f"reread_{next(self._numbers)}"
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", name)
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    def start(self) -> None:
        """Start the server."""
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder}"
        data, log = str(self.folder / "data"), str(self.folder / "log")
        self._run("pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server, by default as a crash would."""
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", mode, "-w", "stop")

    def make(self) -> None:
        """Make the data folder."""
        data = str(self.folder / "data")
        self._run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8")

    def _run(self, program: str, *arguments: str) -> None:
        user = "postgres" if os.geteuid() == 0 else None
        subprocess.run(
            [str(self._binaries / program), *arguments],
            user=user,
            group=user,
            extra_groups=[] if user else None,
            cwd=self.folder,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            check=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def missing() -> str:
    """Say why there can be no server here; '' where there can."""
    if _binaries() is None:
        return "PostgreSQL is not installed (Debian: postgresql)"
    if os.geteuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            return "there is no user postgres, and root may not run PostgreSQL"
    return ""


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Run a server, and remove it afterwards."""
    binaries = _binaries()
    if binaries is None:
        raise RuntimeError(missing())
    folder = Path(tempfile.mkdtemp(prefix="reread-pg-"))
    if os.geteuid() == 0:
        found = pwd.getpwnam("postgres")
        os.chown(folder, found.pw_uid, found.pw_gid)
    server = Cluster(folder, binaries, _free_port())
    try:
        server.make()
        server.start()
        yield server
        server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    if found:
        return found[-1].parent
    return Path(on_path).parent if on_path else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
