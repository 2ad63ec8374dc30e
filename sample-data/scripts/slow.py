# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Append to a file until somebody ends it: for the test of an interruption."""

import time
from pathlib import Path

for number in range(6000):
    with Path("outputs/started.txt").open("a", encoding="utf-8") as stream:
        stream.write(f"{number}\n")
    time.sleep(0.05)
