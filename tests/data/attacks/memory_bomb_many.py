# /// script
# dependencies = []
# ///
"""Take memory in several processes, each below the limit."""

import os
import time

for _ in range(8):
    if os.fork() == 0:
        taken = bytearray(b"x") * (100 << 20)
        time.sleep(8)
        os._exit(0)
time.sleep(8)
