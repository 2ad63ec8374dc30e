# /// script
# dependencies = []
# ///
"""See whether the user's LD_PRELOAD, PYTHONPATH and kin, or a file that acts like them, get in."""

import json
import os
import sys
from pathlib import Path

told = json.loads(Path("inputs/told.json").read_text())
for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME"):
    if name in os.environ:
        print("ESCAPED:", name)
if any(folder.startswith(told["outside"]) or folder.endswith("scripts") for folder in sys.path):
    print("ESCAPED: sys.path", sys.path)
if told["careful"]:
    for path in ("/etc/ld.so.preload", "/etc/ld.so.conf.d/evil.conf"):
        try:
            Path(path).write_text(told["outside"] + "/evil.so\n")
            print("ESCAPED:", path)
        except OSError as error:
            print(error)
