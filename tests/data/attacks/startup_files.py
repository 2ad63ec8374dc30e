# /// script
# dependencies = []
# ///
"""Leave code that a later interpreter would run at its start: sitecustomize, .pth, usercustomize."""

import json
import site
import sys
from pathlib import Path

told = json.loads(Path("inputs/told.json").read_text())
folders = [*sys.path[1:], sys.prefix, told["work"], told["work"] + "/scripts", told["home"]]
folders += [sys.base_prefix, *site.getsitepackages()]
for folder in folders:
    for name, text in (
        ("sitecustomize.py", "print('ESCAPED')"),
        ("usercustomize.py", "print('ESCAPED')"),
        ("evil.pth", "import sys; print('ESCAPED')"),
        ("pyvenv.cfg", "home = /tmp"),
    ):
        path = Path(folder, name)
        try:
            path.write_text(text)
            print("ESCAPED:", path)
        except OSError as error:
            print(error)
