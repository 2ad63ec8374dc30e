# /// script
# dependencies = []
# ///
"""Leave a symbolic link to the secret for a reader outside."""

import json
import os
from pathlib import Path

told = json.loads(Path("inputs/told.json").read_text())
os.symlink(told["secret"], "outputs/report.txt")
os.symlink(told["outside"], "outputs/folder")
