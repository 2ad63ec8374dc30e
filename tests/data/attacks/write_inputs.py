# /// script
# dependencies = []
# ///
"""Change the inputs: content, names, modes, times; by the view and by the real folder."""

import json
import os
from pathlib import Path

told = json.loads(Path("inputs/told.json").read_text())
for folder in (Path("inputs"), Path(told["inputs"])):
    for action in (
        lambda f=folder: (f / "kept.txt").write_text("intruder"),
        lambda f=folder: (f / "new.txt").write_text("intruder"),
        lambda f=folder: os.chmod(f / "kept.txt", 0o777),
        lambda f=folder: os.utime(f / "kept.txt", (1, 1)),
        lambda f=folder: os.setxattr(f / "kept.txt", "user.mark", b"intruder"),
        lambda f=folder: os.unlink(f / "kept.txt"),
    ):
        try:
            action()
        except OSError as error:
            print(error)
