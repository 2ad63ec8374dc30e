# /// script
# dependencies = []
# ///
"""Send a datagram to a server of this machine."""

import json
import socket
from pathlib import Path

told = json.loads(Path("inputs/told.json").read_text())
try:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.sendto(b"intruder", ("127.0.0.1", told["udp"]))
except OSError as error:
    print(error)
