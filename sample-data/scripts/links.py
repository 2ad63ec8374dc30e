# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Try to leave a link where the report should be."""

from pathlib import Path

Path("outputs/report.md").symlink_to("/etc/hostname")
