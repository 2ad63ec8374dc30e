"""The self-test of a mechanism: a mechanism works if the fence that it makes was seen to hold.

Run inside the fence, with an interpreter, so that an installed program which cannot work here
(no user namespaces, a container that forbids mounts) is found out before a script relies on it.
"""

from __future__ import annotations

import functools
import json
import socket
import sys
import tempfile
from pathlib import Path

from agent_runtime import Failure
from reread.sandbox import _system
from reread.sandbox._client import spawn
from reread.sandbox._fence import Fence, Mechanism
from reread.values import ScriptLimits

SECONDS = 15.0
PROBE = """
import json, socket, sys
secret, outside, inside, port = sys.argv[1:]
held = {}
def attempt(name, action):
    try:
        action()
        held[name] = False
    except OSError:
        held[name] = True
attempt("read", lambda: open(secret).read())
attempt("", lambda: open(outside, "w"))
attempt("connect", lambda: socket.create_connection(("127.0.0.1", int(port)), 2))
attempt("work", lambda: open(inside, "w").write("x"))
print(json.dumps(held))
"""


@functools.cache
def fault(mechanism: Mechanism) -> str:
    """Say why `mechanism` does not work on this machine, or '' if its fence held. Run once."""
    reason = mechanism.missing()
    if reason or mechanism.RANK == 0:  # no fence has nothing to hold
        return reason
    with tempfile.TemporaryDirectory(prefix="reread-probe-") as folder:
        try:
            return _try(mechanism, Path(folder).resolve())
        except (Failure, OSError, ValueError) as error:
            return f"{mechanism.NAME} could not be started: {error}"


def _try(mechanism: Mechanism, folder: Path) -> str:
    inside, tmp = folder / "inside", folder / "tmp"
    inside.mkdir()
    tmp.mkdir()
    secret = folder / "secret"
    secret.write_text("secret")
    python = Path(sys.executable).resolve()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        probe = (secret, folder / "outside", inside / "file", port)
        argv = (python, "-I", "-S", "-c", PROBE, *probe)
        fence = Fence(
            readable=_system.interpreter(python),
            writable=(inside,),
            cwd=inside,
            env={},
            limits=ScriptLimits(timeout=SECONDS),
            tmp=tmp,
        )
        return _judge(mechanism, fence, [str(word) for word in argv], folder)


def _judge(mechanism: Mechanism, fence: Fence, argv: list[str], folder: Path) -> str:
    output, errors = folder / "output", folder / "errors"
    with output.open("wb") as out, errors.open("wb") as err:
        child = spawn(mechanism.launch(fence, argv), fence, stdout=out, stderr=err)
        ended = child.wait(SECONDS)
    if ended.exit_code != 0:
        said = errors.read_text("utf-8", "replace").strip().splitlines()
        return f"{mechanism.NAME}: {ended.problem or 'failed'}: {' '.join(said[-1:])}"
    held = json.loads(output.read_bytes())
    held["write"] = not (folder / "outside").exists()  # in a private /tmp it may have been made
    open_ends = [name for name in ("read", "write", "connect") if not held[name]]
    if held["work"]:
        return f"{mechanism.NAME}: the work folder could not be written to"
    return f"{mechanism.NAME} did not hold: {', '.join(open_ends)}" if open_ends else ""
