"""Confined files under attack: swapped folders, killed writers, full disks, many writers.

The races run until a first escape, or 1.5 seconds each; REREAD_SLOW_TESTS=1 makes that 10.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_runtime import Failure
from reread.files import ConfinedFolder, digest
from reread.values import Code
from tests.owners import USER, as_owner, become_owner, fork, in_child, names, place

__all__ = ["place"]  # the fixture

ROOT = Path(__file__).resolve().parent.parent
RACE = 10.0 if os.environ.get("REREAD_SLOW_TESTS") == "1" else 1.5
MOMENTS = ("opened", "written", "synced", "exchanged", "renamed")
CASES = [
    (expect, moment)
    for expect in ("any", "none", "digest")
    for moment in MOMENTS
    if moment != "exchanged" or expect == "digest"  # only a named file is exchanged
]
EXCHANGE = 2
OLD, NEW = b"old" * 50_000, b"new!" * 60_000

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the attacks use calls of Linux"
)


@contextmanager
def swapping(place: Path, one: str, other: str) -> Iterator[Callable[[], int]]:
    """Exchange two names as fast as a process can; yields how often it has done so."""
    assert fork is not None
    count = fork.RawValue(ctypes.c_long, 0)

    def swap() -> None:
        become_owner(place)
        call = ctypes.CDLL(None, use_errno=True).renameat2
        first, second = os.fsencode(place / one), os.fsencode(place / other)
        while True:
            if call(-100, first, -100, second, EXCHANGE) == 0:
                count.value += 1

    child = fork.Process(target=swap, daemon=True)
    child.start()
    try:
        yield lambda: int(count.value)
    finally:
        child.kill()
        child.join()


def operations(folder: ConfinedFolder) -> tuple[Callable[[], object], ...]:
    """Return everything that touches files, each on a path that the attacker swaps."""
    return (
        lambda: folder.read("inside/a"),
        lambda: folder.sha256("inside/a"),
        lambda: folder.write("inside/a", b"mine"),
        lambda: folder.write("inside/new/b", b"mine"),
        lambda: folder.write("inside/c", b"mine", expect=None),
        lambda: folder.write("inside/a", b"mine", expect=digest(b"mine")),
        lambda: folder.move("inside/c", folder, "inside/d"),
        lambda: folder.move("inside/d", folder, "kept"),
        lambda: folder.make_folder("inside/e/f"),
        lambda: folder.remove("inside/e/f"),
        lambda: folder.remove_tree("inside/new"),
        lambda: folder.subfolder("inside").digests(),
        lambda: list(folder.walk()),
        lambda: folder.digests(),
        lambda: folder.sweep(),
    )


def plant(root: Path) -> None:
    """Put a file of ours below the folder, and beside it a link to one outside."""
    (root / "fresh").write_bytes(b"mine")
    (root / "fresh").replace(root / "inside" / "a")
    (root / "fresh").symlink_to(root.parent / "outside" / "a")
    (root / "fresh").replace(root / "link")


def state(outside: Path) -> list[tuple[str, int, int, bytes]]:
    """Return all that a write into the folder would change."""
    paths = [outside, *sorted(outside.rglob("*"))]
    return [
        (str(p), p.stat().st_mtime_ns, p.stat().st_ino, p.read_bytes() if p.is_file() else b"")
        for p in paths
    ]


class TestRaces:
    @pytest.mark.parametrize("swapped", ("folder", "file"))
    def test_nothing_outside_is_read_or_touched_while_links_are_swapped_in(
        self, place: Path, swapped: str
    ) -> None:
        root, outside = place / "root", place / "outside"
        for path in (root / "inside", outside / "new", outside / "e" / "f"):
            path.mkdir(parents=True)
        for name in ("a", "c", "d", "new/b"):
            (outside / name).write_bytes(b"secret")
        (root / "inside" / "a").write_bytes(b"mine")
        if swapped == "folder":
            (root / "link").symlink_to(outside, target_is_directory=True)
            pair = ("root/inside", "root/link")
        else:
            plant(root)
            pair = ("root/inside/a", "root/link")
        if place.stat().st_uid != os.geteuid():
            for path in place.rglob("*"):
                os.chown(path, USER, USER, follow_symlinks=False)
        before = state(outside)
        with swapping(place, *pair) as swaps:
            assert in_child(place, lambda: self.use(root, swapped, swaps)) == 0
            assert swaps() > 200
        assert state(outside) == before

    @staticmethod
    def use(root: Path, swapped: str, swaps: Callable[[], int]) -> None:
        """Do everything until the time is over; each outcome must be ours or a refusal."""
        folder = ConfinedFolder(root)
        secret = digest(b"secret")
        until = time.monotonic() + RACE
        outcomes: dict[str, int] = {}
        while time.monotonic() < until or swaps() < 200:
            if swapped == "file":
                plant(root)  # a write may replace the link itself, which ends the attack
            for operation in operations(folder):
                try:
                    result = operation()
                except Failure as failure:
                    outcomes[failure.code] = outcomes.get(failure.code, 0) + 1
                    continue
                outcomes["done"] = outcomes.get("done", 0) + 1
                if result in (b"secret", secret):
                    sys.exit("a file outside was read")
                if isinstance(result, dict) and secret in result.values():
                    sys.exit("a file outside was digested")
        if not (outcomes.get("done") and outcomes.get(Code.path_not_allowed)):
            sys.exit(f"the race had one side only: {outcomes}")


class TestKilledWriters:
    @pytest.mark.parametrize(("expect", "moment"), CASES)
    def test_the_old_file_or_the_new_one_is_there_and_the_next_start_leaves_nothing_else(
        self, place: Path, moment: str, expect: str
    ) -> None:
        if expect != "none":
            (place / "a").write_bytes(OLD)
        wanted = {"any": {}, "none": {"expect": None}, "digest": {"expect": digest(OLD)}}[expect]

        def write() -> None:
            ConfinedFolder(place, watch=kill_at(moment)).write("a", NEW, **wanted)  # type: ignore[arg-type]

        assert in_child(place, write) == -signal.SIGKILL
        there = (place / "a").read_bytes() if (place / "a").exists() else None
        if moment in ("exchanged", "renamed"):
            assert there == NEW
        else:
            assert there == (None if expect == "none" else OLD)
            assert len(names(place)) == 1 + (there is not None)
        assert in_child(place, lambda: sweep_once(place)) == 0
        assert names(place) == ([] if there is None else ["a"])

    @pytest.mark.parametrize("moment", MOMENTS)
    def test_a_writer_killed_at_any_time_blocks_no_later_one(
        self, place: Path, moment: str
    ) -> None:
        def write() -> None:
            ConfinedFolder(place, watch=kill_at(moment)).write("a", OLD, expect=digest(b"first"))

        (place / "a").write_bytes(b"first")
        os.chown(place / "a", place.stat().st_uid, place.stat().st_gid)
        assert in_child(place, write) == -signal.SIGKILL
        start = time.monotonic()
        assert ConfinedFolder(place).write("a", NEW).sha256 == digest(NEW)
        assert time.monotonic() - start < 2

    def test_a_writer_killed_at_a_random_time_leaves_one_whole_file(self, place: Path) -> None:
        def write() -> None:
            folder = ConfinedFolder(place)
            while True:
                folder.write("a", OLD)
                folder.write("a", NEW, expect=digest(OLD))

        assert fork is not None
        whole = {digest(OLD), digest(NEW)}
        (place / "a").write_bytes(OLD)
        if place.stat().st_uid:
            os.chown(place / "a", place.stat().st_uid, place.stat().st_gid)
        for number in range(12):
            child = fork.Process(target=as_owner, args=(place, write))
            child.start()
            time.sleep(0.02 + 0.0037 * number)
            child.kill()
            child.join()
            assert hashlib.sha256((place / "a").read_bytes()).hexdigest() in whole
        ConfinedFolder(place).sweep()
        assert names(place) == ["a"]

    @pytest.mark.parametrize("moment", ("exchanged", "renamed"))
    def test_a_mover_killed_loses_neither_file(self, place: Path, moment: str) -> None:
        (place / "new").write_bytes(NEW)
        (place / "a").write_bytes(OLD)
        for name in ("new", "a"):
            os.chown(place / name, place.stat().st_uid, place.stat().st_gid)

        def move() -> None:
            folder = ConfinedFolder(place, watch=kill_at(moment))
            folder.move("new", folder, "a", expect=digest(OLD))

        assert in_child(place, move) == -signal.SIGKILL
        assert (place / "a").read_bytes() == NEW
        if moment == "exchanged":
            assert (place / "new").read_bytes() == OLD
        assert names(place) == (["a", "new"] if moment == "exchanged" else ["a"])


def kill_at(moment: str) -> Callable[[str], None]:
    def watch(now: str) -> None:
        if now == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    return watch


def sweep_once(place: Path) -> None:
    folder = ConfinedFolder(place)
    folder.sweep()
    if folder.sweep():
        sys.exit("there was something to sweep again")


ON_A_SMALL_DISK = """
import subprocess, sys
from pathlib import Path

root, disk = sys.argv[1:]
sys.path[:0] = [root, f"{root}/tests"]
mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "full", disk]
subprocess.run(mount, check=True)
import test_file_attacks

test_file_attacks.fill_up(Path(disk))
"""


class TestFullDisks:
    def test_a_write_past_the_limit_of_a_file_keeps_the_old_one(self, place: Path) -> None:
        (place / "a").write_bytes(OLD)
        os.chown(place / "a", place.stat().st_uid, place.stat().st_gid)

        def write() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
            refused(lambda: ConfinedFolder(place).write("a", NEW))
            refused(lambda: ConfinedFolder(place).write("a", NEW, expect=digest(OLD)))

        assert in_child(place, write) == 0
        assert (place / "a").read_bytes() == OLD
        assert names(place) == ["a"]

    def test_a_write_to_a_full_disk_keeps_the_old_file(self, tmp_path: Path) -> None:
        if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"]).returncode:
            pytest.skip("no small file system can be mounted here")
        done = subprocess.run(
            ["unshare", "-rm", sys.executable, "-c", ON_A_SMALL_DISK, ROOT, tmp_path],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert names(tmp_path) == []  # it was mounted for the child alone


def refused(call: Callable[[], object]) -> None:
    try:
        call()
    except Failure as failure:
        if failure.code == Code.write_failed:
            return
        raise
    sys.exit("it was written")


def fill_up(disk: Path) -> None:
    folder = ConfinedFolder(disk)
    folder.write("a", OLD)
    folder.write("b", b"")
    refused(lambda: folder.write("a", NEW))
    refused(lambda: folder.write("a", NEW, expect=digest(OLD)))
    refused(lambda: folder.write("new", NEW))
    if (disk / "a").read_bytes() != OLD or names(disk) != ["a", "b"]:
        sys.exit(f"{names(disk)} was left")
