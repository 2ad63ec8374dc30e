"""Scripts that try to get out of the fence, and a world in which it would show if they did.

Each file in `tests/data/attacks/` is one attack. What it says is believed only against the fence
("ESCAPED"); that it failed is seen from outside: nothing changed where nothing may change, the
secret is not in its output, no server heard of it, the bystander lives, and nobody of its tree is
left.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import hashlib
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent_runtime import Failure
from reread.sandbox import Mechanism
from reread.scripts import Place, run_script
from reread.values import Code, Permissions, ScriptLimits, ScriptRun

SCRIPTS = Path(__file__).parents[1] / "data/attacks"
SECRET = "the-secret-of-the-house-93b1"
LIMITS = ScriptLimits(
    timeout=60.0,
    cpu=30.0,
    memory=256 << 20,
    processes=48,
    open_files=256,
    file_size=24 << 20,
    written=48 << 20,
    output=16 << 20,
)
KILLED_BY: dict[str, set[Code]] = {
    "fork_bomb": {Code.script_process_limit},
    "memory_bomb": {Code.script_memory_limit},
    "memory_bomb_many": {Code.script_memory_limit},
    "memory_bomb_hidden": {Code.script_memory_limit, Code.script_disk_limit},
    "disk_fill": {Code.script_disk_limit},
    "disk_fill_one": {Code.script_disk_limit},
    "disk_fill_hidden": {Code.script_disk_limit},
    "flood_stdout": {Code.script_output_limit},
    "burn_processor": {Code.script_cpu_limit},
    "child_ignores_sigterm": {Code.script_timeout},
}
"""What must end an attack that would not end by itself."""

LIMITS_OF = {
    "child_ignores_sigterm": replace(LIMITS, timeout=0.8),
    "burn_processor": replace(LIMITS, cpu=0.4),
}
"""A limit is low only for the attack that it must end: a busy machine makes all others slow."""

NOT_WITHOUT_A_FENCE = {"new_powers", "startup_files"}
"""Without a fence it would change the machine that measures."""


@dataclass(frozen=True, slots=True)
class Result:
    """One attack against one mechanism.

    Attributes:
        held: nothing got out.
        seen: what got out, or what ended it.
    """

    attack: str
    mechanism: str
    user: str
    held: bool
    seen: str = ""
    seconds: float = 0.0


def names() -> list[str]:
    """Return the attacks, in order."""
    return sorted(path.stem for path in SCRIPTS.glob("*.py"))


def title(name: str) -> str:
    """Return what an attack does, in its own words."""
    module = ast.parse((SCRIPTS / f"{name}.py").read_text("utf-8"))
    return (ast.get_docstring(module) or name).rstrip(".").replace("\n", " ")


@dataclass(slots=True)
class World:
    """A user's machine in small: a home with a secret, a workspace, servers, a bystander."""

    root: Path
    heard: list[str] = field(default_factory=list)

    @property
    def work(self) -> Path:
        return self.root / "workspace/runs/this/work"

    @property
    def script(self) -> Path:
        return self.work / "scripts/attack.py"

    @property
    def place(self) -> Place:
        workspace = self.root / "workspace"
        return Place(
            work=self.work,
            views={"inputs": workspace / "inputs"},
            logs=workspace / "runs/this/logs",
            readable=(workspace / "skills",),
        )

    def furnish(self) -> None:
        """Make the folders and the files that must stay as they are."""
        workspace = self.root / "workspace"
        inside = ("inputs", "skills", "runs/other", "runs/this/logs", "runs/this/work")
        folders = [workspace / name for name in inside]
        for folder in (*folders, self.root / "outside", self.root / "home", self.script.parent):
            folder.mkdir(parents=True)
            (folder / "kept.txt").write_text("kept")
        (self.root / "home/secret").write_text(SECRET)

    def guarded(self) -> dict[str, Any]:
        """Return all that no script may change, as something to compare."""
        free = {self.work / "outputs", self.work / "drafts", self.work / "inputs"}
        logs = self.place.logs
        return {
            str(path): _state(path)
            for path in self.root.rglob("*")
            if not any(path.is_relative_to(folder) for folder in free)
            and not (path.parent == logs and path.name.startswith("attack-"))
            and path not in (self.work, logs, self.script, self.root / "unix")
        }


def _state(path: Path) -> tuple[Any, ...]:
    found = path.lstat()
    content = path.read_bytes() if stat.S_ISREG(found.st_mode) else b""
    changed = found.st_mtime_ns if stat.S_ISREG(found.st_mode) else 0
    return found.st_mode, changed, hashlib.sha256(content).hexdigest()


@contextlib.contextmanager
def world() -> Iterator[tuple[World, dict[str, Any]]]:
    """Make a world, its servers and its bystander; give it and what an attacker is told."""
    with tempfile.TemporaryDirectory(prefix="reread-world-") as folder, contextlib.ExitStack() as s:
        here = World(Path(folder).resolve())
        here.furnish()
        told: dict[str, Any] = {
            "secret": str(here.root / "home/secret"),
            "outside": str(here.root / "outside"),
            "home": str(here.root / "home"),
            "work": str(here.work),
            "inputs": str(here.root / "workspace/inputs"),
            "skills": str(here.root / "workspace/skills"),
            "runs": str(here.root / "workspace/runs"),
            "other_run": str(here.root / "workspace/runs/other"),
            "logs": str(here.place.logs),
        }
        told |= _serve(here, s)
        yield here, told


def _serve(here: World, stack: contextlib.ExitStack) -> dict[str, Any]:
    """Open a server of each kind; each notes that somebody came."""
    abstract = f"reread-{os.getpid()}-{time.monotonic_ns()}"
    addresses: dict[str, tuple[int, int, Any]] = {
        "tcp": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        "udp": (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        "unix": (socket.AF_UNIX, socket.SOCK_STREAM, str(here.root / "unix")),
        "abstract": (socket.AF_UNIX, socket.SOCK_STREAM, "\0" + abstract),
    }
    told: dict[str, Any] = {}
    for name, (family, kind, address) in addresses.items():
        server = stack.enter_context(socket.socket(family, kind))
        server.bind(address)
        told[name] = server.getsockname()[1] if family == socket.AF_INET else address.lstrip("\0")
        if kind == socket.SOCK_STREAM:
            server.listen()
        server.settimeout(0.02)
        stop = threading.Event()
        listener = threading.Thread(target=_listen, args=(name, server, here, stop))
        listener.start()
        stack.callback(listener.join)
        stack.callback(stop.set)
    return told


def _listen(name: str, server: socket.socket, here: World, stop: threading.Event) -> None:
    while not stop.is_set():
        with contextlib.suppress(OSError):
            if server.type == socket.SOCK_STREAM:
                server.accept()[0].close()
            else:
                server.recv(100)
            here.heard.append(name)


@contextlib.contextmanager
def _bystander() -> Iterator[subprocess.Popen[bytes]]:
    """Give a process of this user that stands for the program: its environment holds the secret."""
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"],
                               env={"SECRET": SECRET})  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def attack(name: str, mechanism: Mechanism) -> Result:
    """Run one attack in a world of its own and look at what is left of the world."""
    started = time.monotonic()
    user = "root" if os.getuid() == 0 else "user"
    with world() as (here, told), _bystander() as bystander:
        told |= {"parent": bystander.pid, "careful": mechanism.RANK > 0}
        (here.place.views["inputs"] / "told.json").write_text(json.dumps(told))
        data = (SCRIPTS / f"{name}.py").read_bytes()
        here.script.write_bytes(data)
        before = here.guarded()
        ran = asyncio.run(_run(here, data, mechanism, LIMITS_OF.get(name, LIMITS)))
        seen = [*_escapes(name, here, ran), *_differences(before, here.guarded())]
        if not here.script.is_file() or here.script.read_bytes() != data:
            seen.append("its own script changed")
        if bystander.poll() is not None or _stopped(bystander.pid):
            seen.append("a process outside was stopped")
        seen += [f"{kind} server reached" for kind in sorted(set(here.heard))]
    ended_by = str(ran.failure) if name in KILLED_BY else ""
    seconds = time.monotonic() - started
    return Result(name, mechanism.NAME, user, not seen, "; ".join(seen) or ended_by, seconds)


async def _run(here: World, data: bytes, mechanism: Mechanism, limits: ScriptLimits) -> ScriptRun:
    """Run it as the program would; the user's own environment holds traps."""
    traps = {"PYTHONPATH": str(here.root / "outside"), "SECRET": SECRET}
    kept = {name: os.environ.get(name) for name in traps}
    os.environ.update(traps)
    try:
        return await run_script(
            data,
            name="attack.py",
            file=here.script,
            place=here.place,
            permissions=Permissions(unsandboxed=mechanism.RANK == 0),
            limits=limits,
            shipped=False,
            emit=lambda event, facts: None,
            mechanism=mechanism,
        )
    except Failure as failure:
        raise AssertionError(f"the attack did not run: {failure}") from failure
    finally:
        for name, value in kept.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _escapes(name: str, here: World, ran: ScriptRun) -> Iterator[str]:
    """Yield what the run itself shows."""
    if SECRET in ran.stdout:
        yield "the secret was read"
    for line in ran.stdout.splitlines():
        if "ESCAPED" in line:
            yield line.partition("ESCAPED")[2].strip(": ")[:60] or "code ran at the next start"
    if ran.stdout == ran.stderr == "" and ran.failure is Code.script_failed:
        yield "no output"
    expected = KILLED_BY.get(name)
    if expected and ran.failure not in expected:
        yield f"ended as {ran.failure}"
    yield from _still_writing(here)
    yield from _planted(here)


def _still_writing(here: World) -> Iterator[str]:
    """Yield what changes in the writable folders after the end was told."""
    late = list((here.work / "outputs").glob("later*"))
    sizes = [path.stat().st_size for path in late]
    if not late:
        return
    time.sleep(0.3)
    if [path.stat().st_size for path in late] != sizes:
        yield "somebody still writes"


def _planted(here: World) -> Iterator[str]:
    """Yield what a reader of the outputs could trip over."""
    outputs = here.work / "outputs"
    if outputs.is_symlink() or not outputs.is_dir():
        yield "outputs/ was replaced"
        return
    for path in sorted(outputs.rglob("*")):
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            yield f"link {path.name}"
        elif not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
            yield f"special file {path.name}"
        elif stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
            yield f"hard link {path.name}"
        elif found.st_mode & (stat.S_ISUID | stat.S_ISGID) and stat.S_ISREG(found.st_mode):
            yield f"set-id file {path.name}"


def _differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    changed = sorted(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )
    return [f"{Path(name).parent.name}/{Path(name).name} changed" for name in changed]


def _stopped(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    return False
