"""The user's folder, the work folder of a run, its ledger, and publishing.

    inputs/  skills/     read, never written by the model
    outputs/ drafts/     only what a run has proven and published
    runs/<id>/work/      outputs/ drafts/ scripts/: the only places that tools and scripts write
    runs/<id>/           events.jsonl, record.json, replaced/, publish.json while publishing

To the model the work folder is the workspace. `inputs/` and `previous/` are views of the user's
real folders, which the host maps itself; no link in the work folder is ever followed.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple

from agent_runtime import Failure
from reread.files import ConfinedFolder, check_name
from reread.values import Code
from reread.workspace.ledger import Ledger, Snapshot, snapshot
from reread.workspace.lock import locked

PUBLISHED = ("outputs", "drafts")
WRITABLE = ("outputs", "drafts", "scripts")
SCRIPT_WRITABLE = ("outputs", "drafts")
VIEWS = {"inputs": "inputs", "previous/outputs": "outputs", "previous/drafts": "drafts"}
"""What a run sees read-only: its name in the work folder → the user's folder."""


class Place(NamedTuple):
    """Where a path of the model really lies."""

    folder: ConfinedFolder
    relative: str


class Workspace:
    """A user's folder."""

    def __init__(self, root: Path) -> None:
        """Take a folder, made where it is missing.

        Raises:
            Failure: workspace_invalid, when it is a file or cannot be written.
        """
        try:
            root.mkdir(parents=True, exist_ok=True)
            for name in ("inputs", "skills", "outputs", "drafts", "runs"):
                (root / name).mkdir(exist_ok=True)
        except OSError as error:
            raise Failure(
                Code.workspace_invalid,
                f"'{root}' cannot be a workspace: {error.strerror}.",
                "Name a folder that you can write to with --workspace DIR.",
            ) from error
        if not os.access(root, os.W_OK | os.X_OK):
            raise Failure(
                Code.workspace_invalid,
                f"'{root}' cannot be written to.",
                "Name a folder that you can write to with --workspace DIR.",
            )
        self.folder = ConfinedFolder(root)
        self.root = self.folder.root

    def add_samples(self, samples: Path) -> None:
        """Copy sample skills and inputs in, where they are missing; nothing is overwritten."""
        for source, place in (("sample-skills", "skills"), ("sample-data/inputs", "inputs")):
            for path in sorted((samples / source).iterdir()):
                target = self.root / place / path.name
                if not os.path.lexists(target):
                    ignored = shutil.ignore_patterns("__pycache__", ".*")
                    (
                        shutil.copytree(path, target, ignore=ignored)
                        if path.is_dir()
                        else shutil.copyfile(path, target)
                    )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes out.

        Raises:
            Failure: workspace_locked.
        """
        with locked(self.root / "runs"):
            yield

    def begin(self, run_id: str = "") -> Work:
        """Make the empty work folder of a run."""
        run_id = run_id or new_run_id()
        for name in WRITABLE:
            self.folder.make_folder(f"runs/{run_id}/work/{name}")
        return Work(self, run_id)


class Work:
    """The work folder of one run.

    Attributes:
        folder: `runs/<id>/work`, what the model takes for its workspace.
        run: `runs/<id>`, where the record goes; out of reach for tools and scripts.
    """

    def __init__(self, workspace: Workspace, run_id: str) -> None:
        self.workspace = workspace
        self.run_id = run_id
        self.run = workspace.folder.subfolder(f"runs/{run_id}")
        self.folder = self.run.subfolder("work")
        self.ledger = Ledger()

    def locate(self, path: str) -> Place:
        """Say where a path that the model names is read from."""
        first, _, rest = path.partition("/")
        if first == "inputs" and rest:
            return Place(self.workspace.folder, path)
        if first == "previous" and rest.partition("/")[0] in PUBLISHED:
            return Place(self.workspace.folder, rest)
        return Place(self.folder, path)

    def open(self, path: str) -> BinaryIO:
        """Open a file by the path that the model uses for it.

        Raises:
            Failure: path_not_allowed, path_not_found, not_a_regular_file.
        """
        place = self.locate(path)
        return place.folder.open(place.relative)

    def locate_script(self, path: str) -> Place:
        """Say where a script that may run lies: below scripts/, or one that a skill brings along.

        Raises:
            Failure: path_not_allowed.
        """
        first = check_name(path)[0]
        if first == "skills":
            return Place(self.workspace.folder, path)
        if first == "scripts":
            return Place(self.folder, path)
        raise Failure(
            Code.path_not_allowed,
            f"'{path}' is not below scripts/, and scripts are run from there.",
            "Write it to scripts/ with write_file first, or hand it over as code.",
        )

    def snapshot(self) -> Snapshot:
        """Return what is in the places where scripts can write."""
        return snapshot(self.folder, SCRIPT_WRITABLE)


def new_run_id() -> str:
    """Return a name that sorts by time, to the millisecond, and that nobody can guess or repeat."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%d-%H%M%S}-{now.microsecond // 1000:03}{secrets.token_hex(3)}"
