# /// script
# dependencies = []
# ///
"""Fork without end, each child too."""

import os
import time

until = time.monotonic() + 8
while time.monotonic() < until:
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)
