# /// script
# dependencies = []
# ///
"""Become another script while running, so that what is proven is not what ran."""

import os
import tempfile
from pathlib import Path

other = Path("outputs/other.py")
other.write_text("print('harmless')\n")
for action in (
    lambda: Path(__file__).write_text("print('harmless')\n"),
    lambda: os.rename(other, __file__),
    lambda: os.unlink(__file__),
    lambda: os.chmod(__file__, 0o777),
):
    try:
        action()
    except OSError as error:
        print(error)
print(tempfile.gettempdir())
