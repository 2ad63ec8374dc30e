# /// script
# dependencies = []
# ///
"""Have a child that ignores SIGTERM, hold the output open with it, and never end."""

import os
import signal
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.fork()
for _ in range(600):
    time.sleep(0.05)
    with open("outputs/later", "a") as file:
        file.write("x")
