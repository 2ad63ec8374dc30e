# /// script
# dependencies = []
# ///
"""Talk to a server of this machine over a unix socket that has a name."""

import json
import socket
from pathlib import Path

told = json.loads(Path("inputs/told.json").read_text())
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    try:
        with socket.socket(socket.AF_UNIX, kind) as connection:
            connection.connect(told["unix"])
            connection.sendall(b"intruder")
    except OSError as error:
        print(error)
