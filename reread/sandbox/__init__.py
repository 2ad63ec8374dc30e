"""The operating system's fence around scripts: one file per mechanism, and an honest label."""
