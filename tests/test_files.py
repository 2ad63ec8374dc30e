"""Confined files: reading, writing, moving and listing, and what each of them refuses."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_runtime import Failure
from reread.files import ConfinedFolder, Written, digest
from reread.values import Code

ONE, TWO = digest(b"one"), digest(b"two")


@pytest.fixture(params=("descriptors", "by name"))
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> ConfinedFolder:
    """A folder, as systems with and without descriptors of folders reach it."""
    (tmp_path / "root").mkdir()
    return ConfinedFolder(tmp_path / "root", descriptors=request.param == "descriptors")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the root, with a file that must stay unread and unchanged."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_bytes(b"secret")
    return tmp_path / "outside"


def refusal(call: Callable[[], object]) -> Failure:
    with pytest.raises(Failure) as caught:
        call()
    assert caught.value.cause
    assert caught.value.remedy
    return caught.value


def code(call: Callable[[], object]) -> str:
    return refusal(call).code


class TestReading:
    def test_the_bytes_come_back_as_they_are(self, folder: ConfinedFolder) -> None:
        data = bytes(range(256)) * 9000
        (folder.root / "a").write_bytes(data)
        assert folder.read("a") == data
        assert folder.sha256("a") == hashlib.sha256(data).hexdigest()

    def test_an_open_file_is_a_stream_that_can_seek(self, folder: ConfinedFolder) -> None:
        (folder.root / "a").write_bytes(b"12345")
        with folder.open("a") as stream:
            assert (stream.read(2), stream.seek(4), stream.read()) == (b"12", 4, b"5")

    def test_text_is_utf8(self, folder: ConfinedFolder) -> None:
        (folder.root / "a").write_bytes("汇总".encode())
        assert folder.read_text("a") == "汇总"

    def test_what_is_no_utf8_is_refused_with_the_place(self, folder: ConfinedFolder) -> None:
        (folder.root / "a").write_bytes(b"ab\xff")
        failure = refusal(lambda: folder.read_text("a"))
        assert failure.code == Code.not_utf8
        assert "byte 2" in failure.cause
        assert "0xff" in failure.cause

    def test_a_file_of_just_the_limit_is_read_and_one_byte_more_is_not(
        self, folder: ConfinedFolder
    ) -> None:
        (folder.root / "a").write_bytes(b"12345")
        assert folder.read("a", limit=5) == b"12345"
        assert code(lambda: folder.read("a", limit=4)) == Code.file_too_large
        assert code(lambda: folder.read_text("a", limit=4)) == Code.file_too_large

    def test_an_endless_file_is_refused_without_reading_it(self, folder: ConfinedFolder) -> None:
        with (folder.root / "a").open("wb") as stream:
            stream.truncate(1 << 40)
        assert code(lambda: folder.read("a", limit=1 << 16)) == Code.file_too_large

    def test_a_file_that_is_not_there_has_no_digest(self, folder: ConfinedFolder) -> None:
        (folder.root / "file").write_text("")
        assert folder.sha256("a") is None
        assert folder.sha256("no/folder/a") is None
        assert folder.sha256("file/a") is None

    def test_a_file_that_is_not_there_cannot_be_read(self, folder: ConfinedFolder) -> None:
        assert code(lambda: folder.read("a")) == Code.path_not_found
        assert code(lambda: folder.open("no/folder/a")) == Code.path_not_found

    def test_a_root_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        failure = refusal(lambda: ConfinedFolder(tmp_path / "gone").read("a"))
        assert failure.code == Code.path_not_found
        assert str(tmp_path / "gone") in failure.cause


class TestLinks:
    def test_no_operation_follows_a_link_to_a_file(
        self, folder: ConfinedFolder, outside: Path
    ) -> None:
        (folder.root / "link").symlink_to(outside / "a.txt")
        folder.write("mine", b"mine")
        for call in (
            lambda: folder.read("link"),
            lambda: folder.open("link"),
            lambda: folder.sha256("link"),
            lambda: folder.write("link", b"new"),
            lambda: folder.write("link", b"new", expect=digest(b"secret")),
            lambda: folder.move("link", folder, "moved"),
            lambda: folder.move("mine", folder, "link"),
            lambda: folder.make_folder("link"),
        ):
            assert code(call) == Code.path_not_allowed
        assert (outside / "a.txt").read_bytes() == b"secret"
        assert folder.read("mine") == b"mine"

    @pytest.mark.parametrize("place", ("link/a.txt", "deep/link/a.txt", "deep/link/deep/a.txt"))
    def test_no_operation_follows_a_link_to_a_folder_at_any_depth(
        self, folder: ConfinedFolder, outside: Path, place: str
    ) -> None:
        (folder.root / "deep").mkdir()
        (outside / "deep").mkdir()
        for link in ("link", "deep/link"):
            (folder.root / link).symlink_to(outside, target_is_directory=True)
        folder.write("mine", b"mine")
        for call in (
            lambda: folder.read(place),
            lambda: folder.sha256(place),
            lambda: folder.write(place, b"new"),
            lambda: folder.remove(place),
            lambda: folder.move(place, folder, "moved"),
            lambda: folder.move("mine", folder, place),
            lambda: folder.make_folder(f"{place}.d"),
            lambda: folder.subfolder(place.rsplit("/", 1)[0]),
            lambda: list(folder.walk(place.rsplit("/", 1)[0])),
            lambda: folder.digests(place.rsplit("/", 1)[0]),
        ):
            assert code(call) == Code.path_not_allowed
        assert sorted(entry.name for entry in outside.iterdir()) == ["a.txt", "deep"]
        assert (outside / "a.txt").read_bytes() == b"secret"

    def test_a_link_that_stays_inside_or_leads_nowhere_is_refused_too(
        self, folder: ConfinedFolder
    ) -> None:
        folder.write("a", b"a")
        (folder.root / "inner").symlink_to("a")
        (folder.root / "broken").symlink_to("nowhere")
        (folder.root / "loop").symlink_to("loop")
        for name in ("inner", "broken", "loop"):
            assert code(lambda name=name: folder.read(name)) == Code.path_not_allowed  # type: ignore[misc]
            assert code(lambda name=name: folder.write(name, b"")) == Code.path_not_allowed  # type: ignore[misc]
        assert not (folder.root / "nowhere").exists()

    def test_a_subfolder_that_was_exchanged_for_a_link_is_refused(
        self, folder: ConfinedFolder, outside: Path
    ) -> None:
        folder.make_folder("outputs")
        outputs = folder.subfolder("outputs")
        (folder.root / "outputs").rmdir()
        (folder.root / "outputs").symlink_to(outside, target_is_directory=True)
        assert code(lambda: outputs.read("a.txt")) == Code.path_not_allowed
        assert code(lambda: outputs.write("a.txt", b"new")) == Code.path_not_allowed
        assert (outside / "a.txt").read_bytes() == b"secret"

    def test_a_link_itself_can_be_removed(self, folder: ConfinedFolder, outside: Path) -> None:
        (folder.root / "link").symlink_to(outside, target_is_directory=True)
        folder.remove("link")
        assert not (folder.root / "link").is_symlink()
        assert (outside / "a.txt").read_bytes() == b"secret"

    def test_a_link_above_the_root_is_the_callers_affair(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        assert ConfinedFolder(tmp_path / "link").write("a", b"a").size == 1
        assert (tmp_path / "real" / "a").read_bytes() == b"a"


class TestOtherKinds:
    @pytest.mark.parametrize("kind", ("folder", "fifo", "socket", "device"))
    def test_only_regular_files_are_read_or_replaced_and_nothing_waits(
        self, folder: ConfinedFolder, kind: str
    ) -> None:
        self.make(folder.root / "a", kind)
        folder.write("mine", b"mine")
        for call in (
            lambda: folder.read("a"),
            lambda: folder.open("a"),
            lambda: folder.sha256("a"),
            lambda: folder.write("a", b"new"),
            lambda: folder.write("a", b"new", expect=None),
            lambda: folder.move("a", folder, "b"),
            lambda: folder.move("mine", folder, "a"),
        ):
            assert code(call) == Code.not_a_regular_file
        assert list(folder.digests()) == ["mine"]

    @staticmethod
    def make(path: Path, kind: str) -> None:
        if kind == "folder":
            path.mkdir()
        elif kind == "fifo":
            os.mkfifo(path)
        elif kind == "socket":
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(os.path.relpath(path))
        elif os.geteuid() == 0:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero
        else:
            pytest.skip("only root makes devices")

    def test_a_file_with_a_second_name_is_read_but_not_replaced(
        self, folder: ConfinedFolder, outside: Path
    ) -> None:
        os.link(outside / "a.txt", folder.root / "a")
        assert folder.read("a") == b"secret"
        folder.write("mine", b"mine")
        assert code(lambda: folder.write("a", b"new")) == Code.path_not_allowed
        assert code(lambda: folder.move("mine", folder, "a")) == Code.path_not_allowed
        assert (outside / "a.txt").read_bytes() == b"secret"

    def test_moving_a_file_with_a_second_name_moves_a_copy(
        self, folder: ConfinedFolder, outside: Path
    ) -> None:
        os.link(outside / "a.txt", folder.root / "a")
        folder.move("a", folder, "b")
        (outside / "a.txt").write_bytes(b"later!")
        assert folder.read("b") == b"secret"
        assert not (folder.root / "a").exists()


class TestWriting:
    def test_it_says_what_is_on_disk_and_makes_the_folders(self, folder: ConfinedFolder) -> None:
        assert folder.write("a/b/c.txt", b"one") == Written("a/b/c.txt", 3, ONE)
        assert (folder.root / "a/b/c.txt").read_bytes() == b"one"

    def test_it_makes_no_folder_when_told_not_to(self, folder: ConfinedFolder) -> None:
        call = lambda: folder.write("a/b", b"", make_parents=False)  # noqa: E731
        assert code(call) == Code.path_not_found
        assert list(folder.root.iterdir()) == []

    def test_a_reader_that_has_the_old_file_open_keeps_it(self, folder: ConfinedFolder) -> None:
        folder.write("a", b"one")
        with folder.open("a") as stream:
            folder.write("a", b"two")
            assert stream.read() == b"one"

    def test_the_mode_stays_but_for_what_gives_rights_away(self, folder: ConfinedFolder) -> None:
        folder.write("a", b"one")
        (folder.root / "a").chmod(0o4751)
        folder.write("a", b"two")
        assert stat.S_IMODE((folder.root / "a").stat().st_mode) == 0o751

    def test_a_new_file_has_the_mode_of_the_umask(self, folder: ConfinedFolder) -> None:
        old = os.umask(0o027)
        try:
            folder.write("a", b"one")
        finally:
            os.umask(old)
        assert stat.S_IMODE((folder.root / "a").stat().st_mode) == 0o640

    def test_nothing_else_is_left_in_the_folder(self, folder: ConfinedFolder) -> None:
        folder.write("a", b"one")
        folder.write("a", b"two", expect=ONE)
        refusal(lambda: folder.write("a", b"three", expect=ONE))
        assert os.listdir(folder.root) == ["a"]  # noqa: PTH208 hidden ones as well

    def test_a_file_in_the_place_of_a_folder_is_refused(self, folder: ConfinedFolder) -> None:
        folder.write("a", b"one")
        assert code(lambda: folder.write("a/b", b"")) == Code.path_not_found
        assert code(lambda: folder.make_folder("a")) == Code.path_not_found
        assert folder.read("a") == b"one"

    def test_no_descriptor_stays_open(self, folder: ConfinedFolder) -> None:
        def calls() -> None:
            folder.write("a/b", b"one")
            folder.digests()
            list(folder.walk())
            refusal(lambda: folder.read("a/none"))
            refusal(lambda: folder.read("none/none"))
            refusal(lambda: folder.write("a/b", b"", expect=None))
            refusal(lambda: folder.write("a", b""))
            refusal(lambda: folder.subfolder("a/b"))
            folder.sweep()

        calls()
        before = os.listdir("/proc/self/fd")  # noqa: PTH208
        calls()
        assert os.listdir("/proc/self/fd") == before  # noqa: PTH208


class TestCompareAndSwap:
    def test_the_expected_file_is_replaced(self, folder: ConfinedFolder) -> None:
        folder.write("a", b"one", expect=None)
        assert folder.write("a", b"two", expect=ONE).sha256 == TWO

    @pytest.mark.parametrize("expect", (None, TWO))
    def test_another_file_is_kept(self, folder: ConfinedFolder, expect: str | None) -> None:
        folder.write("a", b"one")
        failure = refusal(lambda: folder.write("a", b"three", expect=expect))
        assert (failure.code, failure.details) == (Code.changed_meanwhile, {"sha256": ONE})
        assert folder.read("a") == b"one"

    def test_an_expected_file_that_is_gone_is_not_made_again(self, folder: ConfinedFolder) -> None:
        assert code(lambda: folder.write("a", b"two", expect=ONE)) == Code.changed_meanwhile
        assert list(folder.root.iterdir()) == []

    @pytest.mark.parametrize("change", ("in place", "replaced", "removed", "linked"))
    def test_a_change_while_the_new_bytes_are_written_is_found_out(
        self, tmp_path: Path, change: str
    ) -> None:
        target = tmp_path / "root" / "a"
        target.parent.mkdir()
        target.write_bytes(b"one")

        def meddle(moment: str) -> None:
            if moment == "synced" and change == "in place":
                target.write_bytes(b"two")
            elif moment == "synced" and change == "replaced":
                (tmp_path / "new").write_bytes(b"two")
                (tmp_path / "new").replace(target)
            elif moment == "synced" and change == "removed":
                target.unlink()
            elif moment == "synced":
                os.link(target, tmp_path / "second")

        folder = ConfinedFolder(target.parent, watch=meddle)
        expected = Code.path_not_allowed if change == "linked" else Code.changed_meanwhile
        assert code(lambda: folder.write("a", b"three", expect=ONE)) == expected
        left = {"removed": None, "linked": b"one"}.get(change, b"two")
        assert (target.read_bytes() if target.exists() else None) == left
        assert os.listdir(target.parent) == ([] if left is None else ["a"])  # noqa: PTH208

    def test_a_file_that_appears_meanwhile_is_not_replaced(self, tmp_path: Path) -> None:
        def meddle(moment: str) -> None:
            if moment == "synced":
                (tmp_path / "a").write_bytes(b"two")

        folder = ConfinedFolder(tmp_path, watch=meddle)
        assert code(lambda: folder.write("a", b"one", expect=None)) == Code.changed_meanwhile
        assert (tmp_path / "a").read_bytes() == b"two"

    def test_an_unfinished_file_that_was_exchanged_for_a_link_never_takes_the_name(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "secret").write_bytes(b"secret")
        (tmp_path / "root").mkdir()

        def meddle(moment: str) -> None:
            if moment == "synced":
                (unfinished,) = (tmp_path / "root").iterdir()
                unfinished.unlink()
                unfinished.symlink_to(tmp_path / "secret")

        folder = ConfinedFolder(tmp_path / "root", watch=meddle)
        assert code(lambda: folder.write("a", b"mine")) == Code.changed_meanwhile
        assert list((tmp_path / "root").iterdir()) == []
        assert (tmp_path / "secret").read_bytes() == b"secret"
