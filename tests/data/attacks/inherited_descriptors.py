# /// script
# dependencies = []
# ///
"""Use what a careless parent left open: any descriptor beyond the three streams."""

import os

for name in os.listdir("/proc/self/fd"):
    try:
        target = os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        continue
    if int(name) > 2 and not target.startswith("/proc/"):
        print("ESCAPED:", name, target)
try:
    os.ftruncate(1, 0)
    print("ESCAPED: its log can be cut")
except OSError:
    pass
