"""The two renames that Python does not offer: only where nothing is, and two names exchanged.

Both are one system call each, so nobody can slip in between a look and the rename.

Proves: nothing. Where a system or a file system has no such call, `UNSUPPORTED` is raised and the
caller has to look first and rename then.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
from collections.abc import Callable

from reread.files.directory import Directory

UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
"""What `rename_new` and `exchange` fail with where there is no such call."""

_SYMBOL, _NEW, _EXCHANGE = {"linux": ("renameat2", 1, 2), "darwin": ("renameatx_np", 4, 2)}.get(
    sys.platform, ("", 0, 0)
)
_Call = Callable[[int, bytes, int, bytes, int], int]


def rename_new(source: Directory, name: str, target: Directory, new: str) -> None:
    """Rename only if the new name is free. Raises OSError: EEXIST, EXDEV, UNSUPPORTED."""
    _rename(source, name, target, new, _NEW)


def exchange(source: Directory, name: str, target: Directory, new: str) -> None:
    """Let two names change places. Raises OSError: ENOENT, EXDEV, UNSUPPORTED."""
    _rename(source, name, target, new, _EXCHANGE)


def _rename(source: Directory, name: str, target: Directory, new: str, flag: int) -> None:
    call = _system_call()
    if call is None or source.fd is None or target.fd is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), name)
    if number := call(source.fd, os.fsencode(name), target.fd, os.fsencode(new), flag):
        raise OSError(number, os.strerror(number), name)


@functools.cache
def _system_call() -> _Call | None:
    """Find it in the C library; one that is too old for it counts as a system without."""
    import ctypes  # slow to load, and a run that only reads needs none

    call = getattr(ctypes.CDLL(None, use_errno=True), _SYMBOL, None) if _SYMBOL else None
    if call is None:
        return None
    folder, name = ctypes.c_int, ctypes.c_char_p
    call.argtypes = (folder, name, folder, name, ctypes.c_uint)
    call.restype = ctypes.c_int
    return lambda *arguments: ctypes.get_errno() if call(*arguments) else 0
