"""The programs of others that ours is measured beside, each in an environment of its own.

An environment is made on first use with pinned versions and stays in a cache folder, so that
nothing of a peer is ever imported by this process and a second run downloads nothing. Bytecode is
compiled when it is made: a peer must not pay in a measurement for what it would pay once.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reread.scripts import find_uv

INSTALL_SECONDS = 900.0
_OPENAI = "openai==3.57.0"
_LIBRARIES = ("pandas==3.1.1", "openpyxl==3.1.5")


@dataclass(frozen=True, slots=True)
class Peer:
    """A program of others.

    Attributes:
        requires: what to install, pinned; the first names the program itself.
    """

    name: str
    requires: tuple[str, ...]

    @property
    def version(self) -> str:
        """The pinned version of the program itself."""
        return self.requires[0].partition("==")[2]


_ALL = (
    Peer("openai", (_OPENAI,)),
    Peer("smolagents", ("smolagents==1.26.0", _OPENAI)),
    Peer("pydantic-ai", ("pydantic-ai-slim[openai]==2.68.0",)),
    Peer("openai-agents", ("openai-agents==0.24.0",)),
    Peer("agno", ("agno==3.1.10", _OPENAI)),
    Peer("deepagents", ("deepagents==0.7.32", "langchain-openai==1.7.4")),
    Peer("langgraph", ("langgraph==1.2.24", "langchain-openai==1.7.4")),
    Peer("strands", ("strands-agents[openai]==1.62.0",)),
    Peer("mini-swe-agent", ("mini-swe-agent==2.4.6", "litellm==1.110.2")),
    Peer("jupyter", ("jupyter-client==8.10.0", "ipykernel==7.4.0", *_LIBRARIES)),
    Peer("smolagents executor", ("smolagents==1.26.0", *_LIBRARIES)),
    Peer("skills-ref", ("skills-ref==0.1.1",)),
    Peer(
        "careful check", ("python-docx==1.2.0", "openpyxl==3.1.5", "pypdf==6.1.1", "pillow==12.0.0")
    ),
)
PEERS: Mapping[str, Peer] = {peer.name: peer for peer in _ALL}


class Unavailable(Exception):
    """A peer could not be installed here; a table says so instead of a number."""


def cache() -> Path:
    """Return the folder that keeps the environments."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "reread" / "peers"


def python(name: str, folder: Path | None = None) -> Path:
    """Return the interpreter of a peer's environment, made on first use.

    Raises Unavailable, with the last words of the installer.
    """
    peer = PEERS[name]
    digest = hashlib.sha256("\n".join((*peer.requires, sys.version)).encode()).hexdigest()[:8]
    place = (folder or cache()) / f"{name.replace(' ', '-')}-{digest}"
    found = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if (place / "complete").exists() and found.exists():
        return found
    try:
        uv = str(find_uv())
        _install([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(place)])
        _install(
            [
                uv,
                "pip",
                "install",
                "--quiet",
                "--compile-bytecode",
                "--python",
                str(found),
                *peer.requires,
            ]
        )
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(place, ignore_errors=True)
        raise Unavailable(f"{name}: {_last_words(error)}") from error
    (place / "complete").touch()
    return found


def _install(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)


def _last_words(error: Exception) -> str:
    said = str(getattr(error, "stderr", "") or error).strip()
    return said.splitlines()[-1][:300] if said else type(error).__name__


def versions(name: str, *distributions: str) -> dict[str, str]:
    """Return the installed versions of distributions in a peer's environment."""
    code = (
        "import importlib.metadata as m, json, sys;"
        "print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
    )
    command = [str(python(name)), "-c", code, *distributions]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return dict(json.loads(done.stdout))


def ours() -> str:
    """Return the version of this program, or `source` where it is not installed."""
    try:
        return importlib.metadata.version("reread")
    except importlib.metadata.PackageNotFoundError:
        return "source"
