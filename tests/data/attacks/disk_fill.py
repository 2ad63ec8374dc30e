# /// script
# dependencies = []
# ///
"""Write many files, each below the limit."""

import time
from pathlib import Path

for number in range(256):
    Path(f"outputs/{number}").write_bytes(b"x" * (4 << 20))
    time.sleep(0.01)
time.sleep(5)
