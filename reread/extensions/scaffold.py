"""A new package that passes verification as it stands, for an author to change."""

from __future__ import annotations

import re
from pathlib import Path

from agent_runtime import Failure
from reread.extensions import package
from reread.values import Code

TEMPLATE = Path(__file__).resolve().parent / "template"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def make(name: str, folder: Path) -> Path:
    """Write a new package into `folder/name` and return it.

    Raises:
        Failure: usage_invalid, for a name that is none or that is there already.
    """
    if not _NAME.fullmatch(name):
        raise Failure(
            Code.usage_invalid,
            f"'{name}' is no name for an extension.",
            "Use lower case letters, digits and '_', at most 40, a letter first.",
        )
    target = folder / name
    if target.exists():
        raise Failure(
            Code.usage_invalid,
            f"'{target}' exists already.",
            "Name another folder with --into DIR.",
        )
    skill = f"{name.replace('_', '-').strip('-')}-words"
    skill = re.sub("-+", "-", skill)
    places = {
        "harness_config.yaml": "harness_config.yaml",
        "acceptance.yaml": "acceptance.yaml",
        "tools/words.py": "words.py",
        "rails/counting.py": "counting.py",
        f"skills/{skill}/SKILL.md": "SKILL.md",
    }
    held = {
        path: (TEMPLATE / f"{source}.txt").read_text("utf-8").replace("@NAME@", name)
        .replace("@SKILL@", skill).encode()
        for path, source in places.items()
    }  # fmt: skip
    empty = {path: b"" for path in ("__init__.py", "tools/__init__.py", "rails/__init__.py")}
    package.write({**held, **empty}, target)
    return target
