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
LIMITS = ScriptLimits(timeout=60.0, cpu=60.0, output=1 << 20)


def as_pdf(stream: BinaryIO, format: str, folder: Path) -> Path | None:
    """Convert an open document into a PDF in an empty folder; None where that cannot be done."""
    program = shutil.which("soffice")
    if program is None or available().RANK == 0:
        return None
    source = folder / f"document.{format}"
    with source.open("wb") as copy:
        shutil.copyfileobj(stream, copy)
    try:
        asyncio.run(_convert(Path(program).resolve(), source, folder))
    except (Failure, OSError):
        return None
    made = source.with_suffix(".pdf")
    return made if made.is_file() and not made.is_symlink() else None


async def _convert(program: Path, source: Path, folder: Path) -> None:
    profile = folder / "profile"
    profile.mkdir()
    argv = [
        str(program),
        f"-env:UserInstallation={profile.as_uri()}",
        *("--headless", "--norestore", "--convert-to", "pdf", "--outdir"),
        str(folder),
        str(source),
    ]
    env = {"PATH": os.defpath, "HOME": str(profile), "TMPDIR": str(profile), "LANG": "C.UTF-8"}
    readable = tuple(p for p in (program.parent.parent, Path("/etc/fonts")) if p.is_dir())
    fence = Fence(readable, (folder,), folder, env, limits=LIMITS, tmp=None)
    log = folder / "log"
    with log.open("w+b") as out:
        child = spawn(available().launch(fence, argv), fence, stdout=out, stderr=out)
        await child.ended()
