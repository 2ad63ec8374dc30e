# /// script
# dependencies = []
# ///
"""Stop and end a process of the same user outside."""

import json
import os
import signal
from pathlib import Path

told = json.loads(Path("inputs/told.json").read_text())
for number in (signal.SIGTERM, signal.SIGKILL):
    try:
        os.kill(told["parent"], number)
    except OSError as error:
        print(error)
try:
    signal.pidfd_send_signal(os.pidfd_open(told["parent"]), signal.SIGKILL)
except OSError as error:
    print(error)
