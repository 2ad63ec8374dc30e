"""The keeper: a small process, without threads, that starts fenced children.

A program that runs an event loop and threads must not fork and go on in Python, and a fence is
put on by the child itself, between fork and exec. So one keeper is started for each program; for
every child it forks a supervisor (`_supervisor`), which does the rest. The keeper ends when the
program does, however it does, and each supervisor kills its tree then.
"""

from __future__ import annotations

import gc
import os
import signal
import socket

from reread.sandbox import _supervisor


def main(descriptor: int) -> None:
    """Serve requests from the socket on `descriptor` until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended supervisors need no collecting
    requests = socket.socket(fileno=descriptor)
    gc.disable()
    gc.freeze()
    while True:
        data, descriptors, _, _ = socket.recv_fds(requests, 1, 8)
        if not data:
            return
        if os.fork() == 0:
            requests.close()
            _supervisor.main(descriptors)
            os._exit(0)
        for received in descriptors:
            os.close(received)
