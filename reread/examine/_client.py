"""The program's side: one server for the whole program, started when the first file is judged."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reread.examine._judge import from_json
from reread.values import Evidence

ROOT = Path(__file__).resolve().parent.parent.parent
ANSWER_SECONDS = 180.0
STOP_SECONDS = 2.0

_guard = threading.Lock()
_server: _Server | None = None


class _Server:
    """The process that forks; it ends when this one closes its socket or dies."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.control = ours
            self.process = subprocess.Popen(
                [sys.executable, "-m", "reread.examine._server", str(theirs.fileno())],
                cwd=ROOT,
                env={"PATH": os.defpath, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )

    @property
    def alive(self) -> bool:
        """It is there, and it is this process's own (not one from before a fork)."""
        return self.owner == os.getpid() and self.process.poll() is None


def ask(
    request: Mapping[str, Any], file: int, baseline: int | None
) -> tuple[Evidence | None, int | None]:
    """Have one file judged; returns the report, or None and how the child ended."""
    for _ in range(2):
        try:
            lines = _exchange(request, file, baseline)
        except OSError:
            _drop()  # the server died; a new one gets the same question, once
            continue
        if lines:
            return _told(lines)
    return None, None


def _exchange(request: Mapping[str, Any], file: int, baseline: int | None) -> list[bytes]:
    ours, theirs = socket.socketpair()
    with ours:
        fds = [theirs.fileno(), file, *([baseline] if baseline is not None else [])]
        with theirs, _guard:
            socket.send_fds(_running().control, [json.dumps(request).encode()], fds)
        ours.settimeout(ANSWER_SECONDS)
        pieces = []
        while piece := ours.recv(1 << 20):
            pieces.append(piece)
    return b"".join(pieces).splitlines()


def _told(lines: list[bytes]) -> tuple[Evidence | None, int | None]:
    """Read a report, which counts only when the child then ended well."""
    try:
        status = int(lines[-1])
        if len(lines) == 2 and status == 0:
            return from_json(json.loads(lines[0])), 0
    except (ValueError, TypeError, KeyError):
        return None, None
    return None, status


def _running() -> _Server:
    global _server
    if _server is None or not _server.alive:
        if _server is None:
            atexit.register(_stop)
        else:
            _server.control.close()
        _server = _Server()
    return _server


def _drop() -> None:
    global _server
    with _guard:
        if _server is not None:
            _server.control.close()
            _server = None


def _stop() -> None:
    """End the server with the program: it goes once nothing can ask it any more."""
    server = _server
    _drop()
    if server is not None and server.owner == os.getpid():
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.process.wait(STOP_SECONDS)
