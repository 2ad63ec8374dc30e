"""Folders that skills are read from, and whether a human trusts what is in them.

The workspace's own `skills/` and folders of the user's home need no word. A folder inside a project
(below the workspace, or in a checkout) came with the data: its skills are read only after a human
said so, and the word covers exactly the tree that was there.

Proves: what is read from a trusted root is what was there when the word was given.
Does not prove: that anybody looked at it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent_runtime import Failure
from reread.files import ConfinedFolder, digest
from reread.values import Code

_CHECKOUTS = (".git", ".hg", ".svn")
_REMEDY = "Look at the skills in it, then add --trust-skills; the word holds until a file changes."


@dataclass(frozen=True, slots=True)
class Root:
    """A folder whose subfolders are skills.

    Attributes:
        path: absolute, links resolved.
        shown: as it is shown, such as `skills`.
        digests: path → sha256 of every file, where only a trusted tree may be read; else None.
    """

    path: Path
    shown: str
    digests: Mapping[str, str] | None = field(default=None, compare=False)

    def allows(self, relative: str, data: bytes) -> bool:
        """Say whether these bytes of a file are the ones that were trusted."""
        return self.digests is None or self.digests.get(relative) == digest(data)


def tree_digest(digests: Mapping[str, str]) -> str:
    """Return one digest for a tree of files: path → sha256."""
    listed = json.dumps(sorted(digests.items()), ensure_ascii=True, separators=(",", ":"))
    return digest(listed.encode("ascii"))


def open_roots(
    own: Path, others: Sequence[Path], *, trusted: bool, store: Path | None = None
) -> tuple[Root, ...]:
    """Return the roots, the workspace's own first.

    Args:
        trusted: a human said so for every root that needs it; it is remembered.
        store: file that remembers; by default in the user's state folder.

    Raises:
        Failure: path_not_found, approval_required, approval_stale, folder_too_large.
    """
    roots = [Root(own.resolve(), own.name)]
    words = Words(store or default_store())
    for path in others:
        if not path.is_dir():
            raise Failure(
                Code.path_not_found,
                f"The skills root '{path}' is no folder.",
                "Name a folder that holds skill folders.",
            )
        resolved = path.resolve()
        if resolved in [root.path for root in roots]:
            continue
        digests = None
        if came_with_data(resolved, own.resolve().parent):
            digests = ConfinedFolder(resolved).digests()
            words.hold(resolved, tree_digest(digests), trusted=trusted)
        roots.append(Root(resolved, str(path), digests))
    return tuple(roots)


def came_with_data(root: Path, workspace: Path) -> bool:
    """Say whether a root lies inside the workspace or inside a checkout."""
    home = Path.home()
    for folder in (root, *root.parents):
        if folder == home:
            return False
        if folder == workspace or any((folder / name).exists() for name in _CHECKOUTS):
            return True
    return False


def default_store() -> Path:
    """Return the file in which trusted trees are remembered, outside of every workspace."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "reread" / "trusted-skills.json"


class Words:
    """The remembered words of a human: root → digest of the tree that they cover."""

    def __init__(self, store: Path) -> None:
        self._store = store

    def hold(self, root: Path, sha256: str, *, trusted: bool) -> None:
        """Take or check the word for a tree.

        Raises:
            Failure: approval_required, approval_stale.
        """
        words = self._read()
        known = words.get(str(root))
        if known == sha256:
            return
        if trusted:
            self._write({**words, str(root): sha256})
        elif known is None:
            raise Failure(
                Code.approval_required,
                f"The skills in '{root}' came with a project, and nobody has trusted them.",
                _REMEDY,
                {"root": str(root), "sha256": sha256},
            )
        else:
            raise Failure(
                Code.approval_stale,
                f"'{root}' was trusted with the tree {known[:12]}… and is {sha256[:12]}… now.",
                _REMEDY,
                {"root": str(root), "sha256": sha256},
            )

    def _read(self) -> dict[str, str]:
        try:
            words = json.loads(self._store.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return words if isinstance(words, dict) else {}

    def _write(self, words: Mapping[str, str]) -> None:
        try:
            self._store.parent.mkdir(parents=True, exist_ok=True)
            data = json.dumps(words, indent=1, sort_keys=True).encode("ascii")
            ConfinedFolder(self._store.parent).write(self._store.name, data)
        except OSError as error:
            raise Failure(
                Code.write_failed,
                f"'{self._store}' cannot be written: {error.strerror}.",
                "Set XDG_STATE_HOME to a folder that you can write to.",
            ) from error
