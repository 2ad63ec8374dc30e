# /// script
# dependencies = []
# ///
"""Leave a device node and a file that runs with its owner's rights."""

import os
import stat

for kind in (stat.S_IFCHR, stat.S_IFBLK):
    try:
        os.mknod(f"outputs/device-{kind}", kind | 0o666, os.makedev(1, 3))
    except OSError as error:
        print(error)
with open("outputs/tool", "w") as file:
    file.write("#!/bin/sh\n")
for mode in (0o4755, 0o2755):
    try:
        os.chmod("outputs/tool", mode)
    except OSError as error:
        print(error)
