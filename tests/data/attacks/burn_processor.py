# /// script
# dependencies = []
# ///
"""Compute for ever, in two processes, and ignore what says that the time is over."""

import os
import signal

signal.signal(signal.SIGXCPU, signal.SIG_IGN)
os.fork()
while True:
    pass
