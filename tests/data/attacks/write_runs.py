# /// script
# dependencies = []
# ///
"""Change the records of this run and of another one."""

import json
from pathlib import Path

told = json.loads(Path("inputs/told.json").read_text())
for folder in (told["logs"], told["other_run"], told["runs"]):
    for name in ("kept.txt", "new.txt"):
        try:
            Path(folder, name).write_text("intruder")
        except OSError as error:
            print(error)
