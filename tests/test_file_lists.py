"""Confined files: moving, removing, listing, digests of before, and what killed writers left."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_runtime import Failure
from reread.files import ConfinedFolder, Written, digest
from reread.files.listing import Digests
from reread.values import Code

ONE, TWO = digest(b"one"), digest(b"two")
SETTLED = 2.1
"""Seconds after which a digest is remembered."""


@pytest.fixture
def folder(tmp_path: Path) -> ConfinedFolder:
    return ConfinedFolder(tmp_path)


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders with files that were written long enough ago for their times to tell."""
    place = tmp_path_factory.mktemp("settled")
    for name in ("rewritten", "once", "future"):
        (place / name).mkdir()
        (place / name / "a").write_bytes(b"one")
    os.utime(place / "future" / "a", (time.time() + 3600, time.time() + 3600))
    for number in range(1000):
        inner = place / "thousand" / f"{number % 20}"
        inner.mkdir(parents=True, exist_ok=True)
        (inner / f"{number}").write_bytes(b"%d" % number)
    time.sleep(SETTLED)
    return place


@pytest.fixture
def elsewhere() -> Iterator[ConfinedFolder]:
    """A folder on another file system."""
    if not Path("/dev/shm").is_dir():
        pytest.skip("there is no second file system")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as path:
        yield ConfinedFolder(Path(path))


def code(call: Callable[[], object]) -> str:
    with pytest.raises(Failure) as caught:
        call()
    return caught.value.code


def names(path: Path) -> list[str]:
    return sorted(os.listdir(path))  # noqa: PTH208 hidden ones as well


class TestMoving:
    def test_the_file_itself_goes_to_the_other_folder(self, folder: ConfinedFolder) -> None:
        folder.write("work/a", b"one")
        inode = (folder.root / "work/a").stat().st_ino
        moved = folder.subfolder("work").move("a", folder, "outputs/deep/b")
        assert moved == Written("outputs/deep/b", 3, ONE)
        assert (folder.root / "outputs/deep/b").stat().st_ino == inode
        assert names(folder.root / "work") == []

    @pytest.mark.parametrize("expect", (None, ONE))
    def test_between_file_systems_it_is_copied(
        self, folder: ConfinedFolder, elsewhere: ConfinedFolder, expect: str | None
    ) -> None:
        folder.write("a", b"two")
        if expect:
            elsewhere.write("b", b"one")
        assert folder.move("a", elsewhere, "b", expect=expect) == Written("b", 3, TWO)
        assert (names(folder.root), names(elsewhere.root)) == ([], ["b"])

    def test_between_file_systems_another_file_is_kept_too(
        self, folder: ConfinedFolder, elsewhere: ConfinedFolder
    ) -> None:
        folder.write("a", b"two")
        elsewhere.write("b", b"other")
        call = lambda: folder.move("a", elsewhere, "b", expect=ONE)  # noqa: E731
        assert code(call) == Code.changed_meanwhile
        assert elsewhere.read("b") == b"other"
        assert folder.read("a") == b"two"

    def test_the_expected_file_is_replaced_and_gone(self, folder: ConfinedFolder) -> None:
        folder.write("work/a", b"two")
        folder.write("a", b"one")
        folder.move("work/a", folder, "a", expect=ONE)
        assert folder.read("a") == b"two"
        assert names(folder.root / "work") == []

    @pytest.mark.parametrize("expect", (None, TWO))
    def test_another_file_is_kept_and_so_is_the_one_to_move(
        self, folder: ConfinedFolder, expect: str | None
    ) -> None:
        folder.write("new", b"new")
        folder.write("a", b"one")
        call = lambda: folder.move("new", folder, "a", expect=expect)  # noqa: E731
        assert code(call) == Code.changed_meanwhile
        assert (folder.read("new"), folder.read("a")) == (b"new", b"one")

    def test_a_change_at_the_last_moment_keeps_both(self, tmp_path: Path) -> None:
        folder = ConfinedFolder(tmp_path)
        folder.write("new", b"new")
        folder.write("a", b"one")
        with (tmp_path / "a").open("r+b") as writer:
            moved = folder.move("new", folder, "a", expect=ONE)
            writer.write(b"lost")  # goes to a file without a name
        assert folder.read("a") == b"new"
        assert moved.sha256 == digest(b"new")

    def test_what_is_not_there_cannot_be_moved(self, folder: ConfinedFolder) -> None:
        assert code(lambda: folder.move("a", folder, "b")) == Code.path_not_found


class TestRemoving:
    def test_a_file_and_an_empty_folder_are_removed(self, folder: ConfinedFolder) -> None:
        folder.write("a/b", b"one")
        folder.remove("a/b")
        folder.remove("a")
        assert names(folder.root) == []

    def test_a_folder_with_something_in_it_is_kept(self, folder: ConfinedFolder) -> None:
        folder.write("a/b", b"one")
        assert code(lambda: folder.remove("a")) == Code.write_failed
        assert folder.read("a/b") == b"one"

    def test_a_whole_folder_is_removed_and_no_link_in_it_is_followed(
        self, folder: ConfinedFolder
    ) -> None:
        folder.write("kept/a", b"one")
        folder.write("gone/b/c/d", b"two")
        folder.write("gone/b/e", b"two")
        (folder.root / "gone/link").symlink_to("../kept")
        (folder.root / "gone/b/link").symlink_to("../../kept/a")
        os.mkfifo(folder.root / "gone/fifo")
        folder.remove_tree("gone")
        assert names(folder.root) == ["kept"]
        assert folder.read("kept/a") == b"one"

    def test_a_whole_folder_that_is_none_is_refused(self, folder: ConfinedFolder) -> None:
        folder.write("kept/a", b"one")
        (folder.root / "link").symlink_to("kept")
        assert code(lambda: folder.remove_tree("link")) == Code.path_not_allowed
        assert code(lambda: folder.remove_tree("kept/a")) == Code.path_not_found
        assert code(lambda: folder.remove_tree("none")) == Code.path_not_found
        assert folder.read("kept/a") == b"one"

    def test_what_is_not_there_cannot_be_removed(self, folder: ConfinedFolder) -> None:
        assert code(lambda: folder.remove("a")) == Code.path_not_found

    def test_a_folder_is_made_once_and_stays(self, folder: ConfinedFolder) -> None:
        folder.make_folder("a/b/c")
        folder.make_folder("a/b/c")
        assert (folder.root / "a/b/c").is_dir()


class TestWalking:
    def test_it_yields_everything_parents_first_and_sorted(self, folder: ConfinedFolder) -> None:
        folder.write("b/c", b"one")
        folder.write("a", b"")
        (folder.root / "link").symlink_to("/")
        os.mkfifo(folder.root / "b" / "fifo")
        found = [(entry.path, entry.kind) for entry in folder.walk()]
        assert found == [
            ("a", "file"),
            ("b", "folder"),
            ("link", "link"),
            ("b/c", "file"),
            ("b/fifo", "other"),
        ]

    def test_paths_below_a_folder_are_those_from_the_root(self, folder: ConfinedFolder) -> None:
        folder.write("a/b/c", b"one")
        assert [entry.path for entry in folder.walk("a")] == ["a/b", "a/b/c"]
        assert folder.digests("a/b") == {"a/b/c": ONE}
        assert folder.subfolder("a").digests() == {"b/c": ONE}

    def test_an_entry_has_what_the_file_system_says(self, folder: ConfinedFolder) -> None:
        folder.write("a", b"one")
        (entry,) = folder.walk()
        found = (folder.root / "a").stat()
        assert (entry.size, entry.nlink) == (3, 1)
        assert (entry.inode, entry.mtime_ns) == (found.st_ino, found.st_mtime_ns)
        assert entry.ctime_ns == found.st_ctime_ns

    def test_names_that_others_made_are_shown_so_that_they_can_be_encoded(
        self, folder: ConfinedFolder
    ) -> None:
        (folder.root / os.fsdecode(b"bad\xff")).write_bytes(b"one")
        (folder.root / "a:b\n").write_bytes(b"two")
        assert [entry.path for entry in folder.walk()] == ["a:b\n", "bad\\udcff"]
        assert folder.digests() == {"a:b\n": TWO, "bad\\udcff": ONE}

    def test_a_folder_of_too_many_entries_is_refused(self, folder: ConfinedFolder) -> None:
        for number in range(5):
            folder.write(f"{number}", b"")
        assert len(list(folder.walk(entries=5))) == 5
        assert code(lambda: list(folder.walk(entries=4))) == Code.folder_too_large

    def test_a_folder_of_too_many_levels_is_refused(self, folder: ConfinedFolder) -> None:
        folder.make_folder("1/2/3")
        assert len(list(folder.walk(depth=3))) == 3
        assert code(lambda: list(folder.walk(depth=2))) == Code.folder_too_large

    def test_a_folder_that_nests_without_end_is_refused_too(self, folder: ConfinedFolder) -> None:
        here = os.open(folder.root, os.O_RDONLY)
        for _ in range(1200):
            os.mkdir("a", dir_fd=here)
            inner = os.open("a", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inner
        os.close(here)
        assert code(lambda: list(folder.walk())) == Code.folder_too_large
        assert code(lambda: folder.digests()) == Code.folder_too_large
        folder.remove_tree("a")
        assert names(folder.root) == []

    def test_what_is_not_there_has_no_entries_to_walk_and_no_digests(
        self, folder: ConfinedFolder
    ) -> None:
        assert code(lambda: list(folder.walk("none"))) == Code.path_not_found
        assert folder.digests("none") == {}


class TestDigests:
    def test_they_are_those_of_every_regular_file(self, folder: ConfinedFolder) -> None:
        folder.write("a/b", b"one")
        folder.write("c", b"two")
        (folder.root / "link").symlink_to("c")
        os.mkfifo(folder.root / "fifo")
        assert folder.digests() == {"a/b": ONE, "c": TWO}

    def test_a_file_rewritten_at_once_is_read_again(self, folder: ConfinedFolder) -> None:
        path = folder.root / "a"
        for number in range(200):
            path.write_bytes(b"%03d" % number)
            assert folder.digests() == {"a": digest(b"%03d" % number)}

    def test_a_settled_file_with_its_old_size_and_time_is_read_again(self, settled: Path) -> None:
        folder, path = ConfinedFolder(settled / "rewritten"), settled / "rewritten" / "a"
        before = path.stat()
        assert folder.digests() == {"a": ONE}
        with path.open("r+b") as stream:
            stream.write(b"two")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        now = path.stat()
        assert (now.st_size, now.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
        assert now.st_ino == before.st_ino
        assert folder.digests() == {"a": TWO}
        assert folder.digests(trust_cache=False) == {"a": TWO}
        assert folder.sha256("a") == TWO

    def test_a_settled_file_is_read_once_and_a_recent_one_each_time(self, settled: Path) -> None:
        (settled / "once" / "new").write_bytes(b"one")
        known = Digests()
        for name, remembered in (("a", ONE), ("new", None)):
            with (settled / "once" / name).open("rb") as stream:
                assert known.read(stream.fileno()) == ONE
                assert known.get(os.fstat(stream.fileno())) == remembered

    def test_times_in_the_future_are_not_trusted(self, settled: Path) -> None:
        known = Digests()
        with (settled / "future" / "a").open("rb") as stream:
            assert known.read(stream.fileno()) == ONE
            assert known.get(os.fstat(stream.fileno())) is None

    def test_a_cache_that_lies_is_not_asked_where_it_counts(self, settled: Path) -> None:
        folder = ConfinedFolder(settled / "thousand" / "7")
        folder.digests()
        folder._digests._known = {
            key: (state, TWO) for key, (state, _) in folder._digests._known.items()
        }
        assert set(folder.digests().values()) == {TWO}
        assert TWO not in folder.digests(trust_cache=False).values()
        assert folder.sha256("7") == digest(b"7")

    def test_a_thousand_settled_files_take_less_than_fifty_milliseconds(
        self, settled: Path
    ) -> None:
        folder = ConfinedFolder(settled / "thousand")
        first = folder.digests()
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            assert folder.digests() == first
            seconds.append(time.perf_counter() - start)
        assert len(first) == 1000
        assert min(seconds) < 0.05

    def test_a_large_file_is_hashed_in_pieces(self, folder: ConfinedFolder) -> None:
        data = os.urandom(1 << 20) * 5 + b"end"
        (folder.root / "a").write_bytes(data)
        assert folder.digests() == {"a": hashlib.sha256(data).hexdigest()}


class TestSweeping:
    def test_unfinished_files_of_ended_writers_are_removed(self, folder: ConfinedFolder) -> None:
        folder.write("a/b", b"one")
        (folder.root / "a" / ".reread-0123456789abcdef.part").write_bytes(b"half")
        (folder.root / ".reread-0123456789abcdef.part").symlink_to("a")
        assert [entry.path for entry in folder.walk("a")] == ["a/b"]
        assert folder.sweep() == 2
        assert (names(folder.root), names(folder.root / "a")) == (["a"], ["b"])

    def test_the_unfinished_file_of_a_writer_at_work_is_kept(self, tmp_path: Path) -> None:
        swept = []

        def sweep(moment: str) -> None:
            if moment != "renamed":
                swept.append(ConfinedFolder(tmp_path).sweep())

        ConfinedFolder(tmp_path, watch=sweep).write("a", b"one")
        assert swept == [0, 0, 0]
        assert names(tmp_path) == ["a"]

    def test_other_names_are_not_ours_to_sweep(self, folder: ConfinedFolder) -> None:
        for name in (".reread-0123.part", "x.reread-0123456789abcdef.part", ".part"):
            (folder.root / name).write_bytes(b"")
        assert folder.sweep() == 0
        assert len(names(folder.root)) == 3
