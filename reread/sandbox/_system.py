"""The parts of a Linux system that any program needs to read, and nothing of the user's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

LIBRARIES = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SETTINGS = ("/etc/alternatives", "/etc/fonts")
NAME_SERVICE = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf"),
    *("/etc/host.conf", "/etc/services", "/etc/ssl", "/etc/ca-certificates", "/etc/pki"),
)


def existing(paths: tuple[str, ...]) -> Iterator[Path]:
    """Yield those that are there."""
    return (path for path in map(Path, paths) if path.exists())


def interpreter(python: Path = Path(sys.executable)) -> tuple[Path, ...]:
    """Return what an installed interpreter needs beside the libraries: itself and its prefix."""
    real = python.resolve()
    prefix = real.parent.parent
    if prefix in (Path("/"), Path("/usr")):
        return ()
    return (prefix,)
