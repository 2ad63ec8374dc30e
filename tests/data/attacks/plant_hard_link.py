# /// script
# dependencies = []
# ///
"""Leave a hard link to a file of somebody else for a writer outside."""

import json
import os
from pathlib import Path

told = json.loads(Path("inputs/told.json").read_text())
for number, path in enumerate((told["secret"], "inputs/told.json", __file__)):
    try:
        os.link(path, f"outputs/hard-{number}")
    except OSError as error:
        print(error)
