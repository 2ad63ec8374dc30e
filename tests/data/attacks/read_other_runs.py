# /// script
# dependencies = []
# ///
"""Read what another run left, and the whole output of this one."""

import json
from pathlib import Path

told = json.loads(Path("inputs/told.json").read_text())
for folder in (told["other_run"], told["logs"]):
    try:
        for path in Path(folder).iterdir():
            print("ESCAPED:", path.name, path.read_bytes()[:80])
    except OSError as error:
        print(error)
