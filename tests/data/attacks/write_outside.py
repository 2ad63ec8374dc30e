# /// script
# dependencies = []
# ///
"""Write, append, truncate and rename where it has no business: beside the workspace and at home."""

import json
import os
from pathlib import Path

told = json.loads(Path("inputs/told.json").read_text())
for folder in (told["outside"], told["home"], told["work"], told["work"] + "/scripts"):
    Path("outputs/mine.txt").write_text("mine")
    for name, mode in (("new.txt", "w"), ("kept.txt", "a"), ("kept.txt", "r+")):
        try:
            with open(f"{folder}/{name}", mode) as file:
                file.write("intruder")
        except OSError:
            pass
    for action in (
        lambda f=folder: os.rename("outputs/mine.txt", f + "/moved.txt"),
        lambda f=folder: os.truncate(f + "/kept.txt", 0),
        lambda f=folder: os.unlink(f + "/kept.txt"),
        lambda f=folder: os.mkdir(f + "/made"),
    ):
        try:
            action()
        except OSError:
            pass
