# /// script
# dependencies = []
# ///
"""Read a secret of the home folder: by name, by links, through /proc, by a hard link."""

import json
import os
from pathlib import Path

told = json.loads(Path("inputs/told.json").read_text())
secret = told["secret"]


def linked(make, name):
    try:
        make(secret, name)
    except OSError:
        pass
    return name


for path in (
    secret,
    f"/proc/self/root{secret}",
    f"/proc/1/root{secret}",
    f"/proc/self/cwd/{os.path.relpath(secret)}",
    f"/proc/{told['parent']}/root{secret}",
    linked(os.symlink, "outputs/soft"),
    linked(os.link, "outputs/hard"),
):
    try:
        print(Path(path).read_text())
    except OSError as error:
        print(error.strerror)
