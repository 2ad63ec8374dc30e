"""What a child may reach, and how a mechanism says to start it. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from reread.values import Isolation, ScriptLimits


@dataclass(frozen=True, slots=True)
class View:
    """A folder or file that the child sees, read-only, under another name.

    Where the mechanism has mounts it is bound there; else the caller puts a link at `target` and
    the mechanism grants reading of `source`.
    """

    source: Path
    target: Path


@dataclass(frozen=True, slots=True)
class Fence:
    """What a child may reach. All paths are absolute and exist.

    Attributes:
        readable: files and folders that it may read and execute, beside the system's libraries.
        writable: folders that it may change. A readable folder must not lie inside one of them
            where the mechanism cannot subtract (Landlock), which is refused.
        views: read-only folders under another name.
        tmp: its private folder, writable; TMPDIR and HOME should point there.
        cwd: where it starts.
        env: its whole environment; nothing is inherited.
        network: it may use the network.
    """

    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    cwd: Path
    env: Mapping[str, str]
    limits: ScriptLimits = field(default_factory=ScriptLimits)
    network: bool = False
    views: tuple[View, ...] = ()
    tmp: Path | None = None

    @property
    def changeable(self) -> tuple[Path, ...]:
        """All folders that the child may write to."""
        return (*self.writable, self.tmp) if self.tmp else self.writable


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a command inside a fence; JSON values, read by the keeper.

    Attributes:
        argv: the whole command line, the program's path absolute.
        env: what `argv[0]` gets.
        landlock: `LandlockRules` as a dict, applied before exec; `None` for no ruleset.
        seccomp: filter program applied before exec, as hex; '' for none.
        files: descriptor number → content that `argv` reads from it, as hex.
        opened: descriptor number → path of a file that `argv` reads from it.
        kind: of the keeper whose child it is.
        mounts: (ro or rw, source, target) for a child in namespaces; `None` for a plain one.
        status_fd: descriptor on which `argv` reports the child's exit (bubblewrap's JSON); 0 for
            none.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    landlock: Mapping[str, Any] | None = None
    seccomp: str = ""
    files: Mapping[int, str] = field(default_factory=dict)
    opened: Mapping[int, str] = field(default_factory=dict)
    mounts: Sequence[tuple[str, str, str]] | None = None
    kind: str = ""
    status_fd: int = 0


class Mechanism(Protocol):
    """What a module of this folder offers; each is one file.

    Attributes:
        NAME: as the label and `--require-sandbox` say it.
        RANK: a mechanism of a higher rank will do where a lower one is required.
        MOUNTS: views are bound; where they are not, the caller puts links in their place.
    """

    NAME: str
    RANK: int
    MOUNTS: bool

    def __hash__(self) -> int: ...

    def missing(self) -> str:
        """Say why it cannot work here, or ''. Cheap: looks, but runs nothing."""
        ...

    def launch(self, fence: Fence, argv: Sequence[str]) -> Launch:
        """Say how to start `argv` inside `fence`."""
        ...

    def isolation(self, fence: Fence) -> Isolation:
        """Say which layers hold, and which do not."""
        ...
