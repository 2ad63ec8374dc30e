"""Removing a folder with everything in it, however it was made to resist.

A script can nest folders deeper than a program can recurse or hold open, and can take the rights
from its own folders. So nothing recurses: each inner folder is first moved up beside the others,
which keeps every folder one level deep, and is given its rights back when it is refused.

Proves: no link is followed and no file outside is removed, whatever is swapped meanwhile.
Does not prove: that it ends while something still fills the folder.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress

from reread.files.directory import Directory

_PATH_ONLY = getattr(os, "O_PATH", 0)


def remove_tree(parent: Directory, name: str) -> None:
    """Remove a folder and everything in it. Raises OSError."""
    _give_rights(parent, name)
    with parent.enter(name) as top:
        while found := top.entries():
            for inner, state in found:
                if stat.S_ISDIR(state.st_mode):
                    _empty(top, inner)
                    top.rmdir(inner)
                else:
                    top.unlink(inner)
    parent.rmdir(name)


def _empty(top: Directory, name: str) -> None:
    """Leave nothing in a folder: files are removed, folders are moved up into `top`."""
    _give_rights(top, name)
    with top.enter(name) as folder:
        for inner, state in folder.entries():
            if stat.S_ISDIR(state.st_mode):
                _give_rights(folder, inner)
                folder.rename(inner, top, secrets.token_hex(16))
            else:
                folder.unlink(inner)


def _give_rights(parent: Directory, name: str) -> None:
    """Let the owner into a folder again. Only /proc reaches one that cannot be opened."""
    found = parent.stat(name)
    if found is None or found.st_mode & stat.S_IRWXU == stat.S_IRWXU or not _PATH_ONLY:
        return
    fd = parent.open(name, _PATH_ONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # what could not be given is refused when it is used
            os.chmod(f"/proc/self/fd/{fd}", 0o700)  # noqa: PTH101 names a descriptor
    finally:
        os.close(fd)
