# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
"""Where a temporary script goes, on Windows, macOS and Linux. Run it to print a fresh path."""

from __future__ import annotations

import secrets
import tempfile
from datetime import datetime
from pathlib import Path


def get_temp_dir() -> Path:
    """Return the system's folder for temporary files, as the standard library finds it."""
    return Path(tempfile.gettempdir())


def get_temp_file_path(prefix: str = "uv_script", suffix: str = ".py") -> Path:
    """Return a path there that nobody uses: `uv_script_<timestamp>_<random>.py`. Makes no file."""
    timestamp = datetime.now().strftime("%Y%m%d%H%M%S")
    return get_temp_dir() / f"{prefix}_{timestamp}_{secrets.token_hex(4)}{suffix}"


if __name__ == "__main__":
    print(get_temp_file_path())
