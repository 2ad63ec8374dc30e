# /// script
# dependencies = []
# ///
"""Write where nobody looks: to files without a name, /tmp and /dev/shm."""

import tempfile
import time

held = []
for _ in range(16):
    for folder in ("/tmp", "/dev/shm", "/var/tmp", tempfile.gettempdir()):
        try:
            held.append(tempfile.TemporaryFile(dir=folder))  # noqa: SIM115
            for _ in range(4):
                held[-1].write(b"x" * (4 << 20))
                held[-1].flush()
                time.sleep(0.01)
        except OSError as error:
            print(folder, error)
time.sleep(5)
