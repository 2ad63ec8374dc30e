"""What a fence names, as mounts in their order."""

from __future__ import annotations

from pathlib import Path

from reread.sandbox._fence import Fence


def named(fence: Fence) -> list[tuple[str, str, str]]:
    """Return (ro or rw, source, target), outer folders before inner ones.

    What another mount shows already needs none.
    """
    wanted = {folder: ("ro", folder) for folder in fence.readable}
    wanted |= {folder: ("rw", folder) for folder in fence.changeable}
    wanted |= {view.target: ("ro", view.source) for view in fence.views}
    mounts: list[tuple[str, str, str]] = []
    above: dict[Path, str] = {}
    for target in sorted(wanted, key=lambda path: len(path.parts)):
        how, source = wanted[target]
        outer = next((above[folder] for folder in target.parents if folder in above), "")
        above[target] = how
        if not (outer == how == "ro" and source == target):
            mounts.append((how, str(source), str(target)))
    return mounts
