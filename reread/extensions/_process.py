"""The program's side of a package's process: start it in the fence, ask, end it.

Only a whole line with this process's nonce and the number of the question is an answer. A process
that ends without one, whatever its exit status, has failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import secrets
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_runtime import Failure
from reread.sandbox import Child, Ended, Fence, View, choose, interpreter, spawn
from reread.scripts.environment import Ready
from reread.values import Code, Isolation, Permissions, ScriptLimits

HERE = Path(__file__).resolve().parent
BOOT = """
import sys, types
sys.dont_write_bytecode = True
for name, path in (("reread", ""), ("reread.extensions", sys.argv[1])):
    module = types.ModuleType(name)
    module.__path__ = [path] if path else []
    sys.modules[name] = module
sys.path[:] = [path for path in sys.path if path]
import importlib
importlib.import_module("reread.extensions." + sys.argv[2]).main()
"""
LINE_LIMIT = 8 << 20
LOAD_SECONDS = 30.0
HOOK_SECONDS = 20.0
LIMITS = ScriptLimits(
    timeout=24 * 3600.0,
    cpu=3600.0,
    memory=1 << 30,
    processes=32,
    open_files=256,
    file_size=256 << 20,
    written=512 << 20,
)


@dataclass(frozen=True, slots=True)
class Place:
    """What a package's process may reach.

    Attributes:
        package: the copy that it is loaded from.
        work: where it starts.
        writable: folders that it may change.
        views: read-only folders under another name.
        tmp: its private folder.
        log: file for what it prints, outside of what it can name.
        server: module of this folder that answers there.
    """

    package: Path
    work: Path
    writable: tuple[Path, ...]
    tmp: Path
    log: Path
    views: tuple[View, ...] = ()
    limits: ScriptLimits = LIMITS
    server: str = "_serve"


class Process:
    """A running package. One question at a time; after a failure it is dead and stays so."""

    def __init__(self, child: Child, channel: socket.socket, log: Path, isolation: Isolation):
        self.isolation = isolation
        self._child = child
        self._channel = channel
        self._log = log
        self._nonce = secrets.token_hex(16)
        self._number = -1
        self._ended: Ended | None = None
        self._kept = b""
        self._lock = asyncio.Lock()

    @classmethod
    def start(cls, place: Place, ready: Ready | None, permissions: Permissions) -> Process:
        """Start the process; nothing of the package runs before the first question.

        Raises:
            Failure: sandbox_unavailable, sandbox_failed.
        """
        mechanism = choose(permissions)
        fence = _fence(place, ready)
        python = ready.python if ready else Path(sys.executable)
        options = ("-I", "-B") if ready else ("-I", "-S", "-B")
        argv = [str(python), *options, "-c", BOOT, str(HERE), place.server]
        ours, theirs = socket.socketpair()
        with theirs, place.log.open("wb") as log:
            child = spawn(
                mechanism.launch(fence, argv),
                fence,
                stdin=theirs.fileno(),
                stdout=log.fileno(),
                stderr=log.fileno(),
            )
        ours.setblocking(False)
        return cls(child, ours, place.log, mechanism.isolation(fence))

    @property
    def alive(self) -> bool:
        """It can be asked."""
        return self._ended is None

    @property
    def log(self) -> str:
        """Return the digest of what it printed."""
        with contextlib.suppress(OSError):
            return hashlib.sha256(self._log.read_bytes()).hexdigest()
        return ""

    def tail(self, size: int = 2000) -> str:
        """Return the end of what it printed."""
        with contextlib.suppress(OSError):
            return self._log.read_bytes()[-size:].decode("utf-8", "replace").strip()
        return ""

    async def load(self, opening: Mapping[str, Any], seconds: float = LOAD_SECONDS) -> Any:
        """Have the package loaded and return what it is made of.

        Raises:
            Failure: verifier_crashed, timeout.
        """
        return await self._exchange({"nonce": self._nonce, **opening}, seconds)

    async def ask(self, question: Mapping[str, Any], seconds: float) -> Any:
        """Ask one question.

        Raises:
            Failure: verifier_crashed, timeout.
        """
        return await self._exchange({**question, "id": self._number + 1}, seconds)

    async def close(self) -> Ended:
        """End the process and everything that it started; safe to call twice."""
        self._channel.close()
        if self._ended is None:
            self._child.kill()
            self._ended = await self._child.ended()
        return self._ended

    async def _exchange(self, line: Mapping[str, Any], seconds: float) -> Any:
        async with self._lock:
            if self._ended is not None:
                raise _crashed(f"its process has ended ({_how(self._ended)})", self.tail())
            self._number += 1
            try:
                async with asyncio.timeout(seconds):
                    await self._send(json.dumps(line).encode() + b"\n")
                    return self._read(await self._line())
            except TimeoutError:
                await self.close()
                raise Failure(
                    Code.timeout,
                    f"The extension did not answer within {seconds:g} seconds.",
                    "Make it faster; nothing may block its event loop.",
                ) from None
            except (OSError, ValueError, KeyError, TypeError) as error:
                ended = await self._died()
                raise _crashed(f"{error} ({_how(ended)})", self.tail()) from error
            except asyncio.CancelledError:
                await self.close()  # an answer may be under way that nobody will read
                raise

    async def _died(self) -> Ended:
        """Give it the moment that its own end takes to be told, then end it."""
        if self._ended is None:
            try:
                self._ended = await asyncio.wait_for(self._child.ended(), 2.0)
            except TimeoutError:  # cancelling that wait has killed it
                self._ended = Ended(None, verdict="killed")
        self._channel.close()
        return self._ended

    async def _send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._channel, data)

    async def _line(self) -> bytes:
        loop = asyncio.get_running_loop()
        pieces = [self._kept]
        size = len(self._kept)
        while b"\n" not in pieces[-1]:
            piece = await loop.sock_recv(self._channel, 1 << 16)
            if not piece:
                raise ValueError("it ended without an answer")
            pieces.append(piece)
            size += len(piece)
            if size > LINE_LIMIT:
                raise ValueError(f"its answer has more than {LINE_LIMIT} bytes")
        line, _, self._kept = b"".join(pieces).partition(b"\n")
        return line

    def _read(self, line: bytes) -> Any:
        answer = json.loads(line)
        if set(answer) != {"nonce", "id", "answer"} or answer["nonce"] != self._nonce:
            raise ValueError("it sent a line that is no answer of its host")
        if answer["id"] != self._number or self._kept:
            raise ValueError("it answered a question that was not asked")
        if not isinstance(answer["answer"], dict):
            raise ValueError("its answer is no object")
        return answer["answer"]


def _fence(place: Place, ready: Ready | None) -> Fence:
    base = interpreter(ready.base) if ready else interpreter()
    environment = (ready.folder,) if ready else (Path(sys.prefix), Path(sys.executable).parent)
    return Fence(
        readable=(*_outside((HERE, place.package, place.work), place), *base, *environment),
        writable=place.writable,
        cwd=place.work,
        env={
            "PATH": os.defpath,
            "LANG": "C.UTF-8",
            "PYTHONUTF8": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": str(place.tmp),
            "TMPDIR": str(place.tmp),
        },
        limits=place.limits,
        views=place.views,
        tmp=place.tmp,
    )


def _outside(paths: tuple[Path, ...], place: Place) -> list[Path]:
    """Leave out what is writable as a whole; a readable folder in it could not be held back."""
    return [path for path in paths if path not in place.writable]


def _how(ended: Ended) -> str:
    if not ended.started:
        return f"it did not start: {ended.problem}"
    if ended.verdict and ended.verdict != "killed":
        return f"it passed its limit of {ended.verdict}"
    return f"exit status {ended.exit_code}"


def _crashed(why: str, tail: str) -> Failure:
    return Failure(
        Code.verifier_crashed,
        f"The extension's process gave no complete answer: {why}.",
        "Let no part of the package end its process or write to descriptors that it did not open.",
        {"output": tail},
    )
