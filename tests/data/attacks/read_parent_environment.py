# /// script
# dependencies = []
# ///
"""Look for the secret in the environment, the memory and the words of every process there is."""

import os
from pathlib import Path

for process in os.listdir("/proc"):
    for name in ("environ", "cmdline"):
        try:
            found = Path(f"/proc/{process}/{name}").read_bytes()
            print(found if b"SECRET=" in found else "")
        except OSError:
            pass
print(dict(os.environ))
