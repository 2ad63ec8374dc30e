"""Confined files with many writers, without rights, and the renames of the system."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from agent_runtime import Failure
from reread.files import ConfinedFolder, digest
from reread.files.swap import exchange, rename_new
from reread.values import Code
from tests.owners import USER, as_owner, fork, in_child, names, place

__all__ = ["place"]  # the fixture

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the children need users and locks of Linux"
)


class TestManyWriters:
    def test_threads_that_write_one_path_each_read_back_what_they_wrote(
        self, tmp_path: Path
    ) -> None:
        folder = ConfinedFolder(tmp_path)
        failures: list[Failure] = []

        def write(number: int) -> None:
            data = b"%d" % number * 1000
            for _ in range(10):
                try:
                    assert folder.write("a", data).sha256 == digest(data)
                except Failure as failure:
                    failures.append(failure)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert names(tmp_path) == ["a"]

    def test_of_processes_that_expect_the_same_file_one_wins(self, place: Path) -> None:
        assert fork is not None
        won = fork.Value("i", 0)
        ready = fork.Barrier(4)

        def write(number: int) -> None:
            folder = ConfinedFolder(place)
            for turn in range(20):
                ready.wait(30)
                before = folder.sha256("a")
                ready.wait(30)
                with suppress(Failure):
                    folder.write("a", b"%d %d" % (turn, number), expect=before)
                    with won.get_lock():
                        won.value += 1

        children = [
            fork.Process(target=as_owner, args=(place, lambda n=number: write(n)))
            for number in range(4)
        ]
        for child in children:
            child.start()
        for child in children:
            child.join(60)
        assert [child.exitcode for child in children] == [0, 0, 0, 0]
        assert won.value == 20
        assert names(place) == ["a"]

    def test_of_processes_that_make_twins_one_wins(self, place: Path) -> None:
        assert fork is not None
        ready = fork.Barrier(3)

        def write(name: str) -> None:
            for turn in range(10):
                ready.wait(30)
                with suppress(Failure):
                    ConfinedFolder(place).write(f"{turn}{name}", b"x")

        children = [
            fork.Process(target=as_owner, args=(place, lambda n=name: write(n)))
            for name in ("abc", "ABC", "aBc")
        ]
        for child in children:
            child.start()
        for child in children:
            child.join(60)
        assert len(names(place)) == 10

    def test_a_folder_that_another_program_keeps_locked_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import fcntl

        monkeypatch.setattr("reread.files.locks.PATIENCE", 0.05)
        holder = os.open(tmp_path, os.O_RDONLY)
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(Failure) as caught:
            ConfinedFolder(tmp_path).write("a", b"x")
        os.close(holder)
        assert caught.value.code == Code.write_failed
        assert str(tmp_path) in caught.value.cause
        assert names(tmp_path) == []


class TestRights:
    def test_what_a_user_may_not_read_or_write_is_said(self) -> None:
        place = Path(tempfile.mkdtemp(prefix="reread-attack-"))
        owner = USER if os.geteuid() == 0 else os.geteuid()
        (place / "closed").mkdir()
        (place / "closed" / "a").write_bytes(b"x")
        (place / "a").write_bytes(b"x")
        for path in (place, *place.rglob("*")):
            os.chown(path, owner, -1)
        (place / "a").chmod(0)
        (place / "closed").chmod(0)

        def use() -> None:
            folder = ConfinedFolder(place)
            codes = [
                code_of(lambda: folder.read("a")),
                code_of(lambda: folder.read("closed/a")),
                code_of(lambda: folder.write("closed/a", b"")),
            ]
            if codes != [Code.read_failed] * 3:
                sys.exit(f"{codes}")
            if folder.digests() or [e.path for e in folder.walk()] != ["a", "closed"]:
                sys.exit("more was listed than can be read")
            place.chmod(0o500)
            if code_of(lambda: folder.write("b", b"")) != Code.write_failed:
                sys.exit("it was written")

        assert in_child(place, use) == 0
        shutil.rmtree(place)

    def test_folders_without_rights_are_removed_all_the_same(self, place: Path) -> None:
        def use() -> None:
            (place / "tree/closed/inner/closed").mkdir(parents=True)
            (place / "tree/closed/inner/a").write_bytes(b"x")
            for path in ("tree/closed/inner/closed", "tree/closed/inner", "tree/closed", "tree"):
                (place / path).chmod(0)
            ConfinedFolder(place).remove_tree("tree")

        assert in_child(place, use) == 0
        assert names(place) == []

    def test_root_keeps_the_owner_of_the_file_that_it_replaces(self, tmp_path: Path) -> None:
        if os.geteuid() != 0:
            pytest.skip("not root")
        (tmp_path / "a").write_bytes(b"old")
        os.chown(tmp_path / "a", USER, USER)
        ConfinedFolder(tmp_path).write("a", b"new")
        assert ((tmp_path / "a").stat().st_uid, (tmp_path / "a").stat().st_gid) == (USER, USER)


def code_of(call: Callable[[], object]) -> str:
    try:
        call()
    except Failure as failure:
        return failure.code
    return "done"


class TestTheRenamesOfTheSystem:
    def test_a_name_that_is_taken_is_not_taken_again(self, tmp_path: Path) -> None:
        from reread.files.directory import Directory

        (tmp_path / "a").write_text("a")
        (tmp_path / "b").write_text("b")
        with Directory.at(str(tmp_path)) as here:
            with pytest.raises(FileExistsError):
                rename_new(here, "a", here, "b")
            exchange(here, "a", here, "b")
            with pytest.raises(OSError) as caught:
                exchange(here, "a", here, "none")
        assert caught.value.errno == errno.ENOENT
        assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("b", "a")
