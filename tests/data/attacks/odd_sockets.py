# /// script
# dependencies = []
# ///
"""Open sockets of families that no script needs: the machine below, raw packets, the kernel."""

import socket

for family, kind in ((40, 1), (17, 3), (16, 3), (38, 5), (31, 3)):
    try:
        socket.socket(family, kind)
        print("ESCAPED: a socket of family", family)
    except OSError as error:
        print(family, error)
