# /// script
# dependencies = []
# ///
"""Take memory until there is none, in one process."""

import time

taken = []
for _ in range(64):
    taken.append(bytearray(b"x") * (32 << 20))
    time.sleep(0.01)
time.sleep(5)
