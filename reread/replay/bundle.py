"""One file that holds a run and all that its audit needs: to be sent, kept, and checked elsewhere.

A zip: `run/` is the run's folder, `workspace/` the inputs that it read and the files that it
published. Entries have a fixed time, so that the same run gives the same bytes.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from agent_runtime import Failure
from reread import records
from reread.files import ConfinedFolder
from reread.replay.audit import Audit, audit
from reread.values import Code

FIXED_TIME = (1980, 1, 1, 0, 0, 0)
MAX_MEMBERS = 100_000
MAX_BYTES = 4 << 30


def export(workspace: ConfinedFolder, run: ConfinedFolder, target: Path) -> int:
    """Write the bundle of a finished run and return how many files are in it.

    Raises:
        Failure: record_invalid; evidence_changed, when a file is no longer what the record says;
            write_failed.
    """
    found = audit(workspace, run)
    if not found.ok:
        first = found.problems[0]
        raise Failure(first.code, first.cause, first.remedy)
    record = records.read_record(run)
    members = [("run", path, run) for path in (records.RECORD, *record["files"])]
    users = {**record["inputs"], **record["outcome"]["published"]}
    members += [("workspace", path, workspace) for path in users]
    try:
        with zipfile.ZipFile(target, "x", zipfile.ZIP_DEFLATED) as bundle:
            for place, path, folder in members:
                bundle.writestr(zipfile.ZipInfo(f"{place}/{path}", FIXED_TIME), folder.read(path))
    except OSError as error:
        raise Failure(
            Code.write_failed,
            f"The bundle '{target}' cannot be written: {error.strerror}.",
            "Name a file that does not exist yet, in a folder that you can write to.",
        ) from error
    return len(members)


def audit_bundle(path: Path, scratch: Path) -> Audit:
    """Unpack a bundle into an empty folder and audit it there.

    Raises:
        Failure: record_invalid, when it is no bundle or not whole.
    """
    for name in ("run", "workspace"):
        (scratch / name).mkdir()
    folder = ConfinedFolder(scratch)
    try:
        with zipfile.ZipFile(path) as bundle:
            for info in _members(bundle):
                folder.write(info.filename, bundle.read(info))
    except (OSError, EOFError, ValueError, RuntimeError, zlib.error, struct.error) as error:
        raise _no_bundle(path, f"{type(error).__name__}: {error}") from error
    except zipfile.BadZipFile as error:
        raise _no_bundle(path, str(error)) from error
    return audit(folder.subfolder("workspace"), folder.subfolder("run"))


def _members(bundle: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    infos = bundle.infolist()
    size = sum(info.file_size for info in infos)
    if len(infos) > MAX_MEMBERS or size > MAX_BYTES:
        raise zipfile.BadZipFile(f"{len(infos)} members with {size} bytes are too many")
    yield from infos


def _no_bundle(path: Path, why: str) -> Failure:
    return Failure(
        Code.record_invalid,
        f"'{path}' is not a whole bundle of a run: {why[:200]}",
        "Export it again: python app.py export RUN --to FILE.zip",
    )
