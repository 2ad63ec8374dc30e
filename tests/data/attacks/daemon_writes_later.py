# /// script
# dependencies = []
# ///
"""Leave a daemon behind that nothing polite ends, and that writes when the run is over."""

import os
import signal
import time

for leave in (True, False):
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        try:
            if leave:
                os.setsid()
        except OSError:
            pass
        if os.fork() > 0:
            os._exit(0)
        for descriptor in range(3):
            os.close(descriptor)
        for _ in range(200):
            time.sleep(0.05)
            with open(f"outputs/later-{leave}", "a") as file:
                file.write("x")
        os._exit(0)
time.sleep(0.1)
