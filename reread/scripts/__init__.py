"""Scripts that a model wrote: header, environment, and one run in the fence.

Two phases that cannot be mistaken for each other: uv prepares an environment from the names in the
script's block; then the environment's interpreter runs the script, with no uv in between.
"""

from __future__ import annotations

from reread.scripts.environment import cache_folder, find_uv
from reread.scripts.header import Header, check_syntax, parse_header
from reread.scripts.run import Place, run_script, temp_script

__all__ = [
    "Header",
    "Place",
    "cache_folder",
    "check_syntax",
    "find_uv",
    "parse_header",
    "run_script",
    "temp_script",
]
