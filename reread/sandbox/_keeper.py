"""The keeper: a small process, without threads, that has fenced children ready to start.

A program that runs an event loop and threads must not fork and go on in Python, and a fence is
put on by the child itself, between fork and exec. So one keeper is started for each program. It
keeps one supervisor (`_supervisor`) waiting, which has its child waiting, so that nothing needs to
be forked when a script is to start. The keeper ends when the program does, however it does, and
each supervisor kills its tree then.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket

from reread.sandbox import _supervisor

REFILL_SECONDS = 0.25


def main(descriptor: int, kind: str) -> None:
    """Keep one supervisor listening at the socket, until its other end is closed.

    kind: '' for a plain child, or the namespaces that it enters before it waits.
    """
    if kind:
        from reread.sandbox import _namespaces  # noqa: F401  # once, for all that are forked
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended supervisors need no collecting
    os.set_inheritable(descriptor, False)
    requests = socket.socket(fileno=descriptor)
    gc.disable()
    gc.freeze()
    taken = True
    while taken:
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.close(reader)
            _supervisor.main(requests, writer, kind)
            os._exit(0)
        os.close(writer)
        taken = os.read(reader, 1) != b""  # nothing: it ended without work, as we do then
        os.close(reader)
        # The next one can wait until the command that now starts has had the processor.
        select.select([requests], [], [], REFILL_SECONDS)
