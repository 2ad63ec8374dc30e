# /// script
# dependencies = []
# ///
"""Talk to a server of this machine over an abstract unix socket."""

import json
import socket
from pathlib import Path

told = json.loads(Path("inputs/told.json").read_text())
try:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0" + told["abstract"])
        connection.sendall(b"intruder")
except OSError as error:
    print(error)
