# /// script
# dependencies = []
# ///
"""Write one file without end."""

with open("outputs/big", "wb", buffering=0) as file:
    for _ in range(64):
        file.write(b"x" * (8 << 20))
