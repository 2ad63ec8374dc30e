"""Finds the modules of a folder: a folder is a kind of thing, a file in it is one of them."""

from __future__ import annotations

import importlib
import os
from types import ModuleType


def names(package: ModuleType) -> tuple[str, ...]:
    """Return the public module names of a package, sorted, importing none of them."""
    # Not pkgutil: it loads `inspect`, which costs more than all the rest of `--help`.
    found = (entry.name for place in package.__path__ for entry in os.scandir(place))
    modules = (
        name.removesuffix(".py") for name in found if name.endswith(".py") or "." not in name
    )
    return tuple(sorted(name for name in modules if not name.startswith("_")))


def load(package: ModuleType, name: str) -> ModuleType:
    """Import one module of a package by its file name."""
    return importlib.import_module(f"{package.__name__}.{name}")
