# /// script
# dependencies = []
# ///
"""Change a skill, and add one."""

import json
import os
from pathlib import Path

skills = Path(json.loads(Path("inputs/told.json").read_text())["skills"])
for action in (
    lambda: (skills / "kept.txt").write_text("intruder"),
    lambda: (skills / "new").mkdir(),
    lambda: os.rename(skills, skills.parent / "gone"),
):
    try:
        action()
    except OSError as error:
        print(error)
