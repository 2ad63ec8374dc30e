"""Finds the modules of a folder: a folder is a kind of thing, a file in it is one of them."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType


def names(package: ModuleType) -> tuple[str, ...]:
    """Return the public module names of a package, sorted, importing none of them."""
    found = (info.name for info in pkgutil.iter_modules(package.__path__))
    return tuple(sorted(name for name in found if not name.startswith("_")))


def load(package: ModuleType, name: str) -> ModuleType:
    """Import one module of a package by its file name."""
    return importlib.import_module(f"{package.__name__}.{name}")
