# /// script
# dependencies = []
# ///
"""Leave a FIFO and a socket, on which a reader outside would wait for ever."""

import os
import socket

os.mkfifo("outputs/report.txt")
socket.socket(socket.AF_UNIX).bind("outputs/socket")
