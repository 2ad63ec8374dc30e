# /// script
# dependencies = []
# ///
"""Talk to a server of this machine over TCP, by both families and any address."""

import json
import socket
from pathlib import Path

told = json.loads(Path("inputs/told.json").read_text())
for host in ("127.0.0.1", "localhost", "0.0.0.0", "::ffff:127.0.0.1"):
    try:
        with socket.create_connection((host, told["tcp"]), timeout=2) as connection:
            connection.sendall(b"intruder")
    except OSError as error:
        print(error)
