# /// script
# dependencies = []
# ///
"""Take memory that belongs to no process: anonymous files and what is writable in /dev and /."""

import os
import time

block = b"x" * (8 << 20)
held = []
for name in ("/dev/hole", "/hole", "/run/hole"):
    try:
        held.append(os.open(name, os.O_RDWR | os.O_CREAT))
    except OSError:
        pass
held += [os.memfd_create("hole") for _ in range(8)]
for descriptor in held:
    for _ in range(8):
        try:
            os.write(descriptor, block)
        except OSError:
            break
        time.sleep(0.02)
time.sleep(5)
