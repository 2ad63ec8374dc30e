# /// script
# dependencies = []
# ///
"""Take over a process of the same user outside: ptrace, its memory, its descriptors."""

import ctypes
import json
import os
from pathlib import Path

parent = json.loads(Path("inputs/told.json").read_text())["parent"]
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(16, parent, None, None) == 0:
    print("ESCAPED: attached")
    libc.ptrace(17, parent, None, None)
local = ctypes.create_string_buffer(16)
piece = (ctypes.c_size_t * 2)(ctypes.addressof(local), 16)
try:
    start = int(Path(f"/proc/{parent}/maps").read_text().split("-")[0], 16)
    print("ESCAPED: read its map")
except OSError:
    start = 0x400000
there = (ctypes.c_size_t * 2)(start, 16)
if libc.process_vm_readv(parent, piece, 1, there, 1, 0) > 0:
    print("ESCAPED: read its memory")
try:
    with open(f"/proc/{parent}/mem", "r+b"):
        print("ESCAPED: opened its memory")
except OSError:
    pass
try:
    if libc.syscall(438, os.pidfd_open(parent), 0, 0) >= 0:
        print("ESCAPED: took a descriptor")
except OSError:
    pass
