"""One run of one script: its environment, its fence, its output, its end.

Proves: the bytes that ran are those handed in; when the run is told, nobody of its process tree is
alive any more, so that what is on disk then is what it left.
Does not prove: that it did what it was written for.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from agent_runtime import Failure
from reread.sandbox import Ended, Fence, Mechanism, View, choose, interpreter, spawn
from reread.scripts.environment import Ready, prepare
from reread.scripts.header import check_syntax, parse_header
from reread.values import Code, Permissions, ScriptLimits, ScriptRun

WRITABLE = ("outputs", "drafts")
SHOWN_BYTES = 8 << 10
VERDICTS = {
    "timeout": Code.script_timeout,
    "memory": Code.script_memory_limit,
    "cpu": Code.script_cpu_limit,
    "processes": Code.script_process_limit,
    "written": Code.script_disk_limit,
    "output": Code.script_output_limit,
    "killed": Code.script_killed,
    "cancelled": Code.script_killed,
}
FATAL_SIGNALS = (4, 6, 7, 8, 9, 11, 15, 31)
SIGXCPU, SIGXFSZ = 24, 25

Emit = Callable[[str, Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a script runs.

    Attributes:
        work: its working folder; outputs/ and drafts/ in it are writable.
        views: relative name → folder of the user's that is seen there, read-only.
        logs: the whole of what it printed is kept here.
        readable: what else it may read.
    """

    work: Path
    views: Mapping[str, Path]
    logs: Path
    readable: tuple[Path, ...] = ()


def temp_script(data: bytes) -> Path:
    """Write a script that was handed over as text to the system's temporary folder."""
    stamp = time.strftime("%Y%m%d%H%M%S")
    path = Path(tempfile.gettempdir()) / f"uv_script_{stamp}_{secrets.token_hex(4)}.py"
    with path.open("xb") as file:
        file.write(data)
    return path


async def run_script(
    data: bytes,
    *,
    name: str,
    file: Path,
    place: Place,
    permissions: Permissions,
    limits: ScriptLimits,
    shipped: bool,
    emit: Emit,
    mechanism: Mechanism | None = None,
) -> ScriptRun:
    """Run the script `file`, whose bytes are `data`, and wait for the end of its whole tree.

    name: as messages show it.
    shipped: the script is the program's own, and runs with what fence there is.
    mechanism: this one and no other, for measurements.

    Raises:
        Failure: for all that kept it from running: uv_missing, script_header_invalid,
            dependency_not_allowed, script_syntax_error, dependency_error, sandbox_unavailable,
            sandbox_failed, changed_meanwhile.
    """
    header = parse_header(data, permissions)
    check_syntax(data, name)
    mechanism = mechanism or choose(permissions, shipped)
    emit("dependencies", {"requirements": list(header.requirements)})
    ready = await prepare(header, permissions)
    described = ready.described
    emit(
        "environment",
        {"key": described.key, "cached": described.cached, "packages": len(described.packages)},
    )
    _same(file, data)
    with _private_folder(place.work) as tmp, _logs(place.logs, name) as (out, err):
        fence = _fence(place, ready, file, tmp, permissions, limits)
        _prepare_views(fence.views, mechanism.MOUNTS)
        argv = [str(ready.python), "-I", "-B", "-u", "-X", "utf8", str(file)]
        child = spawn(mechanism.launch(fence, argv), fence, stdout=out, stderr=err, capture=True)
        child.on_output = lambda text: emit("script.output", {"text": text})
        ended = await child.ended()
        stdout, stderr = _shown(out), _shown(err)
    _refuse_unsound(ended, stderr, mechanism)
    return ScriptRun(
        path=_shown_path(file, place.work),
        sha256=hashlib.sha256(data).hexdigest(),
        exit_code=ended.exit_code,
        stdout=stdout,
        stderr=stderr,
        seconds=ended.seconds,
        peak_memory=ended.peak_memory,
        environment=ready.described,
        isolation=mechanism.isolation(fence),
        failure=_failure(ended, limits),
    )


def _same(file: Path, data: bytes) -> None:
    if file.read_bytes() != data:
        raise Failure(
            Code.changed_meanwhile,
            f"'{file}' is not the script that was checked; it was changed meanwhile.",
            "Run it again.",
        )


def _shown_path(file: Path, work: Path) -> str:
    return file.relative_to(work).as_posix() if file.is_relative_to(work) else str(file)


def _fence(
    place: Place,
    ready: Ready,
    file: Path,
    tmp: Path,
    permissions: Permissions,
    limits: ScriptLimits,
) -> Fence:
    writable = tuple(_folder(place.work / name) for name in WRITABLE)
    shown = {name: source for name, source in place.views.items() if source.is_dir()}
    views = tuple(View(source, place.work / name) for name, source in shown.items())
    base = interpreter(ready.base)
    return Fence(
        readable=(place.work, ready.folder, *base, file, *place.readable),
        writable=writable,
        cwd=place.work,
        env=_variables(ready, tmp),
        limits=limits,
        network=permissions.network,
        views=views,
        tmp=tmp,
    )


def _folder(path: Path) -> Path:
    with contextlib.suppress(FileExistsError):
        path.mkdir(parents=True)
    if path.is_symlink() or not path.is_dir():
        raise Failure(
            Code.path_not_allowed,
            f"'{path}' is not a folder of its own, so it cannot be given to a script.",
            "Remove what stands there.",
        )
    return path


def _prepare_views(views: tuple[View, ...], mounts: bool) -> None:
    """Put an empty folder where a view is mounted, else a link to what it shows."""
    for view in views:
        if view.target.is_symlink():
            view.target.unlink()
        if mounts:
            view.target.mkdir(exist_ok=True, parents=True)
            continue
        if view.target.is_dir():
            view.target.rmdir()
        view.target.parent.mkdir(exist_ok=True, parents=True)
        view.target.symlink_to(view.source)


def _variables(ready: Ready, tmp: Path) -> dict[str, str]:
    """Return the whole environment of the script: nothing of ours is inherited but the zone."""
    binaries = str(ready.python.parent)
    kept = {name: os.environ[name] for name in ("TZ", "SYSTEMROOT") if name in os.environ}
    return {
        **kept,
        "PATH": os.pathsep.join((binaries, "/usr/local/bin", "/usr/bin", "/bin")),
        "VIRTUAL_ENV": str(ready.folder),
        **dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP"), str(tmp)),
        **{f"XDG_{kind}_HOME": str(tmp / "xdg") for kind in ("CACHE", "CONFIG", "DATA", "STATE")},
        "XDG_RUNTIME_DIR": str(tmp),
        "MPLCONFIGDIR": str(tmp / "matplotlib"),
        "MPLBACKEND": "Agg",
        "LANG": "C.UTF-8",
        "PYTHONUTF8": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "2",
        "NO_COLOR": "1",
    }


@contextlib.contextmanager
def _private_folder(work: Path) -> Iterator[Path]:
    """Give one run a folder of its own, and take it away with all that is in it."""
    work.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".tmp-", dir=work))
    try:
        yield folder
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder of any depth and whatever modes are in it."""
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        with contextlib.suppress(OSError):
            _remove_level_by_level(folder)


def _remove_level_by_level(folder: Path) -> None:
    """Move what lies deep up before it is removed, so that no path grows long."""
    while entries := list(os.scandir(folder)):
        for entry in entries:
            path = Path(entry.path)
            if not entry.is_dir(follow_symlinks=False):
                path.unlink()
                continue
            path.chmod(0o700)
            for inner in list(os.scandir(path)):
                os.rename(inner.path, folder / secrets.token_hex(8))  # noqa: PTH104
            path.rmdir()
    folder.rmdir()


@contextlib.contextmanager
def _logs(folder: Path, name: str) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open the two files that keep all of what the script prints, never an older run's."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = Path(name).stem or "script"
    known = sum(1 for _ in os.scandir(folder)) // 2
    for number in itertools.count(known + 1):
        path = folder / f"{stem}-{number:03}.stdout"
        with contextlib.suppress(FileExistsError):
            with path.open("x+b") as out, path.with_suffix(".stderr").open("w+b") as err:
                yield out, err
            return


def _shown(log: BinaryIO) -> str:
    """Return head and tail of a log, and say what was left out between them."""
    size = log.seek(0, os.SEEK_END)
    log.seek(0)
    if size <= 2 * SHOWN_BYTES:
        return log.read().decode("utf-8", "replace")
    head = log.read(SHOWN_BYTES).decode("utf-8", "replace")
    log.seek(size - SHOWN_BYTES)
    tail = log.read().decode("utf-8", "replace")
    left_out = size - 2 * SHOWN_BYTES
    return f"{head}\n[… {left_out} of {size} bytes left out; the whole is in {log.name} …]\n{tail}"


def _refuse_unsound(ended: Ended, stderr: str, mechanism: Mechanism) -> None:
    if not ended.started:
        raise Failure(
            Code.sandbox_failed,
            f"The sandbox '{mechanism.NAME}' did not start the script: {ended.problem}. "
            f"{stderr.strip()}",
            "Run it again; if it stays, install bubblewrap, or run with no fence: --unsandboxed.",
        )
    if ended.survivors:
        raise Failure(
            Code.sandbox_failed,
            f"{ended.survivors} processes of the script could not be ended.",
            "End them by hand; what they may still write is no result.",
        )


def _failure(ended: Ended, limits: ScriptLimits) -> Code | None:
    """Name what went wrong; what the script printed is not looked at."""
    if ended.verdict:
        return VERDICTS[ended.verdict]
    code = ended.exit_code
    if code == 0:
        return None
    if code == 128 + SIGXCPU or (code == 137 and ended.cpu >= limits.cpu):
        return Code.script_cpu_limit
    if code == 128 + SIGXFSZ or ended.largest_file >= limits.file_size:
        return Code.script_disk_limit
    if code is not None and code - 128 in FATAL_SIGNALS:
        return Code.script_killed
    return Code.script_failed
