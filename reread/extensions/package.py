"""The files of a package: its digest, and a copy that nobody can change meanwhile.

What is loaded is the copy, and the digest is the copy's, so what was verified is what runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from agent_runtime import Failure
from reread.extensions.manifest import FILE_NAME, REQUIREMENTS
from reread.files import ConfinedFolder
from reread.skills import tree_digest
from reread.values import Code, Problem

STATE = ".state"
LEFT_OUT = frozenset({STATE, "__pycache__"})
ACCEPTANCE = ("acceptance.yaml", "acceptance.yml", "acceptance.json")
MAX_FILES = 2000
MAX_FILE = 16 << 20
MAX_TOTAL = 64 << 20
_PAGES = frozenset({"readme", "changelog", "license", "notice", "contributing"})
_FREE = frozenset({"assets", "tests"})
_HARMLESS = frozenset({"", ".py", ".txt", ".csv", ".png", ".jpg", ".ttf", ".otf", ".typed"})


def open_package(path: Path) -> ConfinedFolder:
    """Open the folder of a package.

    Raises:
        Failure: path_not_found.
    """
    if not path.is_dir():
        raise Failure(
            Code.path_not_found,
            f"The extension '{path}' is no folder.",
            "Name a package's folder, or make one: python app.py extension new NAME",
        )
    return ConfinedFolder(path.resolve())


def files(folder: ConfinedFolder) -> Iterator[str]:
    """Yield the files of a package; its state and compiled modules are none of them.

    Raises:
        Failure: undeclared_component, for a link or anything that is neither file nor folder;
            file_too_large, folder_too_large.
    """
    total = count = 0
    for entry in folder.walk():
        if LEFT_OUT.intersection(PurePosixPath(entry.path).parts) or entry.kind == "folder":
            continue
        if entry.kind != "file" or entry.nlink > 1:
            raise Failure(
                Code.undeclared_component,
                f"'{entry.path}' is a link or no regular file.",
                "Put the file itself there.",
            )
        count, total = count + 1, total + entry.size
        if count > MAX_FILES or entry.size > MAX_FILE or total > MAX_TOTAL:
            raise Failure(
                Code.folder_too_large,
                f"The package has more than {MAX_FILES} files or {MAX_TOTAL >> 20} MiB.",
                "Leave out what it does not need.",
            )
        yield entry.path


def contents(folder: ConfinedFolder) -> dict[str, bytes]:
    """Read all files of a package into memory, once."""
    return {path: folder.read(path, limit=MAX_FILE) for path in files(folder)}


def digest_of(held: dict[str, bytes]) -> str:
    """Return the digest of a package's files and their names."""
    from reread.files import digest

    return tree_digest({path: digest(data) for path, data in held.items()})


def write(held: dict[str, bytes], target: Path) -> ConfinedFolder:
    """Write files into a new folder and return it."""
    target.mkdir(parents=True)
    folder = ConfinedFolder(target.resolve())
    for path, data in held.items():
        folder.write(path, data)
    return folder


def undeclared(paths: Iterator[str] | list[str], skill_dirs: tuple[str, ...]) -> Iterator[Problem]:
    """Yield what lies in a package without being a part of it: other loaders would act on it."""
    known = {FILE_NAME, REQUIREMENTS, *ACCEPTANCE}
    for path in paths:
        pure = PurePosixPath(path)
        if path in known or pure.parts[0] in _FREE:
            continue
        if any(path.startswith(f"{folder}/") for folder in skill_dirs):
            continue
        page = pure.stem.lower() in _PAGES and pure.suffix.lower() in ("", ".md", ".txt", ".rst")
        if not page and pure.suffix.lower() not in _HARMLESS:
            yield Problem(
                Code.undeclared_component,
                path,
                f"'{path}' is no part that the manifest declares.",
                f"Declare it in {FILE_NAME}, put it under assets/, or remove it.",
            )
