"""Pages of documents and decks, by LibreOffice in the sandbox. Where either is missing: none."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import BinaryIO

from agent_runtime import Failure
from reread.sandbox import Fence, available, spawn
from reread.values import ScriptLimits

FORMATS = ("docx", "pptx", "odt", "odp")
READ = tuple(
    Path(place)
    for place in (
        "/etc/libreoffice",
        "/var/lib/libreoffice",
        "/etc/fonts",
        "/usr/share/fonts",
        "/usr/share/fontconfig",
        "/usr/local/share/fonts",
        "/var/cache/fontconfig",
        "/usr/share/liblangtag",
        "/usr/share/libexttextcat",
    )
)
RESTART = 81
"""Its exit code after it has made its profile, when it wants to be started once more."""
LIMITS = ScriptLimits(timeout=60.0, cpu=60.0, output=1 << 20)


def as_pdf(stream: BinaryIO, format: str, folder: Path) -> Path | None:
    """Convert an open document into a PDF in an empty folder; None where that cannot be done."""
    program = _program()
    if program is None or available().RANK == 0:
        return None
    source = folder / f"document.{format}"
    with source.open("wb") as copy:
        shutil.copyfileobj(stream, copy)
    try:
        asyncio.run(_convert(program, source, folder))
    except (Failure, OSError):
        return None
    made = source.with_suffix(".pdf")
    return made if made.is_file() and not made.is_symlink() else None


def _program() -> Path | None:
    """Return the program itself; the launcher before it wants a /tmp that it can write to."""
    launcher = shutil.which("soffice")
    program = Path(launcher).resolve().with_name("soffice.bin") if launcher else None
    return program if program is not None and program.is_file() else None


async def _convert(program: Path, source: Path, folder: Path) -> None:
    profile = folder / "profile"
    profile.mkdir()
    argv = [
        str(program),
        f"-env:UserInstallation={profile.as_uri()}",
        f"-env:OSL_SOCKET_PATH={folder}",  # it would insist on /tmp, which is not there
        *("--headless", "--norestore", "--convert-to", "pdf", "--outdir"),
        str(folder),
        str(source),
    ]
    env = {"PATH": os.defpath, "HOME": str(profile), "TMPDIR": str(profile), "LANG": "C.UTF-8"}
    readable = tuple(place for place in (program.parent.parent, *READ) if place.is_dir())
    fence = Fence(readable, (folder,), folder, env, limits=LIMITS, tmp=None)
    for _ in range(2):
        with (folder / "log").open("w+b") as out:
            child = spawn(available().launch(fence, argv), fence, stdout=out, stderr=out)
            ended = await child.ended()
        if ended.exit_code != RESTART:
            return
