"""The environment of a script: found by content, or made by uv and published by a rename.

uv sees requirements, never the script, and never runs inside the environment that it fills: a
wheel's `.pth` file would run there, outside any fence. Its working folder and its configuration
are the host's; nothing in a workspace can steer it.

Proves: what lies under a key was made for exactly these requirements, interpreter and index.
Does not prove: that the packages are harmless. They are imported only inside the fence.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import secrets
import shutil
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_runtime import Failure
from reread.sandbox import Fence, none, spawn
from reread.scripts.header import Header
from reread.values import Code, Environment, Permissions, ScriptLimits

SCHEMA = 1
RECORD = "reread.json"
INSTALL_LIMITS = ScriptLimits(
    timeout=900.0,
    cpu=3600.0,
    memory=8 << 30,
    processes=512,
    open_files=4096,
    file_size=16 << 30,
    written=64 << 30,
    output=8 << 20,
)
INDEX_VARIABLES = (
    *("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"),
    *("UV_INDEX_STRATEGY", "UV_EXCLUDE_NEWER", "UV_NO_INDEX"),
)
MACHINE_VARIABLES = (
    *("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "SYSTEMROOT", "PATH", "NETRC"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "SSL_CLIENT_CERT", "UV_INSECURE_HOST", "UV_OFFLINE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "UV_KEYRING_PROVIDER"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "UV_HTTP_TIMEOUT"),
)


@dataclass(frozen=True, slots=True)
class Ready:
    """An environment on disk.

    Attributes:
        folder: it and nothing else must be readable for a script, beside the interpreter.
        base: the interpreter that it was made from.
    """

    folder: Path
    base: Path
    described: Environment

    @property
    def python(self) -> Path:
        """The interpreter that knows the environment's packages."""
        return self.folder / _binaries() / ("python.exe" if os.name == "nt" else "python")


def cache_folder() -> Path:
    """Return where environments and uv's downloads are kept."""
    own = os.environ.get("REREAD_CACHE_DIR")
    if own:
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "reread"


def find_uv() -> Path:
    """Return uv's program: that of its Python package first, then the one on PATH.

    Raises:
        Failure: uv_missing, with the command that installs it.
    """
    with contextlib.suppress(ImportError, OSError):
        import uv

        return Path(uv.find_uv_bin())
    found = shutil.which("uv")
    if found:
        return Path(found).absolute()
    raise Failure(
        Code.uv_missing,
        "uv is neither installed beside this Python nor on PATH.",
        f"Run: {sys.executable} -m pip install uv",
    )


async def prepare(header: Header, permissions: Permissions) -> Ready:
    """Return the environment for these requirements, making it if it is not there.

    Raises:
        Failure: uv_missing, dependency_error (`details`: phase, exit_code and uv's whole message).
    """
    base, version = await _interpreter(header.requires_python)
    facts = _facts(header, permissions, base, version)
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]
    folder = cache_folder() / "environments" / key
    described = _described(folder)
    if described is not None:
        return Ready(folder, base, described)
    return Ready(folder, base, await _build(folder, header, permissions, base, version))


def _facts(header: Header, permissions: Permissions, base: Path, version: str) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "requirements": header.requirements,
        "python": [str(base), version],
        "platform": [sys.platform, platform.machine(), sysconfig.get_platform()],
        "index": {name: os.environ.get(name, "") for name in INDEX_VARIABLES},
        "builds": permissions.builds,
    }


async def _interpreter(requires_python: str) -> tuple[Path, str]:
    """Return (path, version) of an installed interpreter that will do; ours if it does."""
    from packaging.specifiers import SpecifierSet

    ours = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    version = platform.python_version()
    if SpecifierSet(requires_python).contains(version, prereleases=True):
        return ours, version
    finding = ("python", "find", "--no-project", "--offline", requires_python)
    found = await _uv(finding, cache_folder(), "interpreter")
    path = Path(found.strip()).resolve()
    asking = (str(path), "-I", "-S", "-c", "import platform; print(platform.python_version())")
    shown = await _run(asking, cache_folder(), "interpreter")
    return path, shown.strip()


def _described(folder: Path) -> Environment | None:
    """Return what was written down when the environment was finished, if it is still whole."""
    try:
        written = json.loads((folder / RECORD).read_bytes())
        if not Path(written["python"]).exists():
            return None
        return Environment(**written, cached=True)
    except (OSError, ValueError, TypeError, KeyError):
        return None


async def _build(
    folder: Path, header: Header, permissions: Permissions, base: Path, version: str
) -> Environment:
    """Make it beside its place and rename it; whoever comes second takes what is there."""
    staging = cache_folder() / "staging" / secrets.token_hex(8)
    staging.mkdir(parents=True)
    try:
        made = staging / "environment"
        await _uv(("venv", "--offline", "--no-project", "--python", str(base), str(made)), staging,
                  "environment")  # fmt: skip
        lock = ""
        if header.requirements:
            lock = await _fill(staging, made, header, permissions, base)
        described = Environment(
            key=folder.name,
            python=str(folder / _binaries() / "python"),
            python_version=version,
            uv_version=(await _uv(("--version",), staging, "environment")).split()[1],
            packages=_packages(lock),
            lock=lock,
        )
        _publish(made, folder, described)
        return described
    finally:
        shutil.rmtree(staging, ignore_errors=True)


async def _fill(
    staging: Path, made: Path, header: Header, permissions: Permissions, base: Path
) -> str:
    """Resolve, then install exactly what was resolved; return the resolution with its hashes."""
    wanted, lock = staging / "requirements.txt", staging / "lock.txt"
    wanted.write_text("".join(f"{line}\n" for line in header.requirements), "utf-8")
    wheels = () if permissions.builds else ("--only-binary", ":all:")
    common = ("--python", str(base), *wheels)
    resolving = ("--generate-hashes", "--no-header", "--no-annotate", "--output-file", str(lock))
    await _uv(("pip", "compile", *resolving, *common, str(wanted)), staging, "resolve")
    target = next(iter(sorted(made.glob("lib/python*/site-packages"))), made / "Lib/site-packages")
    installing = ("--require-hashes", "--no-deps", "--compile-bytecode", "--target", str(target))
    await _uv(("pip", "install", *installing, *common, "-r", str(lock)), staging, "install")
    return lock.read_text("utf-8")


def _packages(lock: str) -> dict[str, str]:
    pairs = (line.split(" ")[0].partition("==") for line in lock.splitlines() if line[:1].isalnum())
    return {name.partition("[")[0]: version for name, _, version in pairs}


def _publish(made: Path, folder: Path, described: Environment) -> None:
    written = {
        name: getattr(described, name)
        for name in ("key", "python", "python_version", "uv_version", "packages", "lock")
    }
    (made / RECORD).write_text(json.dumps(written, indent=1), "utf-8")
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.exists() and _described(folder) is None:
        shutil.rmtree(folder, ignore_errors=True)  # its interpreter is gone
    with contextlib.suppress(OSError):
        made.rename(folder)
    if _described(folder) is None:
        raise Failure(
            Code.dependency_error,
            f"The environment could not be moved to {folder}.",
            "Look at the rights of that folder, or name another one in REREAD_CACHE_DIR.",
        )


def _binaries() -> str:
    return "Scripts" if os.name == "nt" else "bin"


async def _uv(arguments: Sequence[str], folder: Path, phase: str) -> str:
    """Run uv with nothing but the machine's own settings; return its output."""
    settings = _user_settings()
    configured = ("--config-file", str(settings)) if settings else ("--no-config",)
    return await _run((str(find_uv()), *arguments, *configured), folder, phase)


def _user_settings() -> Path | None:
    """Return the settings of this user or machine, which uv would find by itself.

    They are named to it, since it would look into the folders around its working folder first.
    """
    base = os.environ.get("XDG_CONFIG_HOME") or os.environ.get("APPDATA")
    own = (Path(base) if base else Path.home() / ".config") / "uv/uv.toml"
    return next((path for path in (own, Path("/etc/uv/uv.toml")) if path.is_file()), None)


def _uv_variables() -> Mapping[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in INDEX_VARIABLES or name in MACHINE_VARIABLES or name.startswith("UV_INDEX_")
    }
    return {
        "UV_HTTP_RETRIES": "2",
        **kept,
        "UV_CACHE_DIR": str(cache_folder() / "uv"),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_SYSTEM_CERTS": "1",
        "UV_NO_PROGRESS": "1",
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
    }


async def _run(argv: Sequence[str], folder: Path, phase: str) -> str:
    """Run a command of the preparation; its whole tree ends with it, also when cancelled."""
    folder.mkdir(parents=True, exist_ok=True)
    fence = Fence(readable=(), writable=(), cwd=folder, env=_uv_variables(), limits=INSTALL_LIMITS)
    name = secrets.token_hex(8)
    output, errors = folder / f"{name}.out", folder / f"{name}.err"
    try:
        with output.open("x+b") as out, errors.open("x+b") as err:
            child = spawn(none.launch(fence, argv), fence, stdout=out, stderr=err, capture=True)
            ended = await child.ended()
        if ended.exit_code != 0:
            raise _failed(phase, ended.exit_code, ended.verdict or ended.problem, errors)
        return output.read_text("utf-8", "replace")
    finally:
        output.unlink(missing_ok=True)
        errors.unlink(missing_ok=True)


def _failed(phase: str, exit_code: int | None, verdict: str, errors: Path) -> Failure:
    said = errors.read_text("utf-8", "replace").strip()
    causes = {
        "interpreter": "No installed Python satisfies the script's requires-python",
        "environment": "uv could not make the environment",
        "resolve": "uv could not resolve the dependencies",
        "install": "uv could not install the dependencies",
    }
    return Failure(
        Code.dependency_error,
        f"{causes[phase]} ({verdict or f'exit code {exit_code}'}):\n{said}",
        "Correct 'dependencies' or 'requires-python' in the script's block; if the index could not "
        "be reached, look at the network, UV_DEFAULT_INDEX, HTTPS_PROXY and SSL_CERT_FILE.",
        {"phase": phase, "exit_code": exit_code, "uv": said},
    )
