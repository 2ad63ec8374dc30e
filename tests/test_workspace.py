"""The workspace: publishing all or nothing, the ledger, approvals, the lock."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from dataclasses import asdict
from pathlib import Path

import pytest

from agent_runtime import Failure
from reread.approvals import Approvals
from reread.files import ConfinedFolder
from reread.workspace import Work, Workspace
from reread.workspace.ledger import Ledger, snapshot
from reread.workspace.publish import JOURNAL, Proven, publish, recover

ROOT = Path(__file__).resolve().parent.parent


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "w")


def made(work: Work, path: str, data: bytes, replaces: bytes | None = None) -> Proven:
    work.folder.write(path, data)
    return Proven(path, digest(data), digest(replaces) if replaces is not None else None)


class TestPublishing:
    def test_a_proven_file_moves_into_its_place(self, workspace: Workspace) -> None:
        work = workspace.begin()
        published = publish(work, [made(work, "outputs/a.txt", b"new")], {})
        assert published == {"outputs/a.txt": digest(b"new")}
        assert (workspace.root / "outputs/a.txt").read_bytes() == b"new"
        assert not (work.folder.root / "outputs/a.txt").exists()

    def test_the_old_file_is_kept_beside_the_record(self, workspace: Workspace) -> None:
        (workspace.root / "outputs/a.txt").write_bytes(b"old")
        work = workspace.begin()
        publish(work, [made(work, "outputs/a.txt", b"new", replaces=b"old")], {})
        assert (work.run.root / "replaced/outputs/a.txt").read_bytes() == b"old"

    def test_a_file_that_changed_since_its_approval_is_not_replaced(
        self, workspace: Workspace
    ) -> None:
        (workspace.root / "outputs/a.txt").write_bytes(b"changed by somebody")
        work = workspace.begin()
        with pytest.raises(Failure, match="publish_failed"):
            publish(work, [made(work, "outputs/a.txt", b"new", replaces=b"old")], {})
        assert (workspace.root / "outputs/a.txt").read_bytes() == b"changed by somebody"

    def test_a_file_that_appeared_meanwhile_is_not_replaced(self, workspace: Workspace) -> None:
        work = workspace.begin()
        proven = made(work, "outputs/a.txt", b"new")
        (workspace.root / "outputs/a.txt").write_bytes(b"somebody's")
        with pytest.raises(Failure, match="publish_failed"):
            publish(work, [proven], {})
        assert (workspace.root / "outputs/a.txt").read_bytes() == b"somebody's"

    def test_a_file_that_is_not_what_was_proven_is_not_published(
        self, workspace: Workspace
    ) -> None:
        work = workspace.begin()
        proven = made(work, "outputs/a.txt", b"new")
        (work.folder.root / "outputs/a.txt").write_bytes(b"tampered")
        with pytest.raises(Failure, match="publish_failed"):
            publish(work, [proven], {})
        assert list((workspace.root / "outputs").iterdir()) == []

    def test_when_the_second_file_fails_the_first_is_taken_back(self, workspace: Workspace) -> None:
        (workspace.root / "outputs/a.txt").write_bytes(b"old a")
        work = workspace.begin()
        first = made(work, "outputs/a.txt", b"new a", replaces=b"old a")
        second = made(work, "outputs/b.txt", b"new b")
        (workspace.root / "outputs/b.txt").write_bytes(b"in the way")
        with pytest.raises(Failure, match="publish_failed"):
            publish(work, [first, second], {})
        assert (workspace.root / "outputs/a.txt").read_bytes() == b"old a"
        assert (workspace.root / "outputs/b.txt").read_bytes() == b"in the way"
        assert (work.folder.root / "outputs/a.txt").read_bytes() == b"new a"
        assert not (work.run.root / JOURNAL).exists()


KILLED = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    from reread.files import ConfinedFolder
    from reread.workspace import Work, Workspace
    from reread.workspace.publish import Proven, publish

    root, run_id, steps = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    count = 0

    def counted(original):
        def step(*arguments, **options):
            global count
            count += 1
            if count > steps:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **options)
        return step

    for name in ("write", "move", "remove"):
        setattr(ConfinedFolder, name, counted(getattr(ConfinedFolder, name)))
    files = [Proven(*line.split(" ")[:2], None if line.endswith("-") else line.split(" ")[2])
             for line in sys.argv[4:]]
    publish(Work(Workspace(root), run_id), files, {"outcome": {"status": "complete"}})
    """
)


class TestACrashWhilePublishing:
    @pytest.mark.parametrize("steps", range(6))
    def test_the_next_start_finishes_or_undoes_it_and_loses_nothing(
        self, workspace: Workspace, steps: int
    ) -> None:
        (workspace.root / "outputs/a.txt").write_bytes(b"old a")
        work = workspace.begin()
        files = [
            made(work, "outputs/a.txt", b"new a", replaces=b"old a"),
            made(work, "outputs/b.txt", b"new b"),
        ]
        words = [f"{f.path} {f.sha256} {f.replaces or '-'}" for f in files]
        ran = subprocess.run(
            [sys.executable, "-c", KILLED, str(workspace.root), work.run_id, str(steps), *words],
            cwd=ROOT,
            check=False,
        )
        crashed = ran.returncode == -signal.SIGKILL
        assert crashed or steps >= 4
        found = recover(workspace)
        assert all(recovered.finished for recovered in found)
        place = workspace.root / "outputs"
        after = {p.name: p.read_bytes() for p in place.iterdir()}
        began = bool(found) or not crashed
        expected = {"a.txt": b"new a", "b.txt": b"new b"} if began else {"a.txt": b"old a"}
        assert after == expected

    def test_it_is_undone_when_it_cannot_be_finished(self, workspace: Workspace) -> None:
        (workspace.root / "outputs/a.txt").write_bytes(b"old a")
        work = workspace.begin()
        files = [
            made(work, "outputs/a.txt", b"new a", replaces=b"old a"),
            made(work, "outputs/b.txt", b"new b"),
        ]
        words = [f"{f.path} {f.sha256} {f.replaces or '-'}" for f in files]
        subprocess.run(
            [sys.executable, "-c", KILLED, str(workspace.root), work.run_id, "3", *words],
            cwd=ROOT,
            check=False,
        )
        assert (workspace.root / "outputs/a.txt").read_bytes() == b"new a"
        (work.folder.root / "outputs/b.txt").write_bytes(b"tampered after the crash")
        (recovered,) = recover(workspace)
        assert not recovered.finished
        assert (workspace.root / "outputs/a.txt").read_bytes() == b"old a"


class TestAJournalThatIsNone:
    @pytest.mark.parametrize(
        "text",
        [
            "",
            "[]",
            "{}",
            '{"files": 1}',
            '{"files": [{"path": "a"}]}',
            '{"files": [], "record": {}}',
        ],
    )
    def test_is_refused_and_left_where_it_is(self, tmp_path: Path, text: str) -> None:
        workspace = Workspace(tmp_path)
        journal = workspace.begin().run.root / JOURNAL
        journal.write_text(text)
        with pytest.raises(Failure) as refused:
            recover(workspace)
        assert refused.value.code == "record_invalid"
        assert journal.read_text() == text

    def test_an_undoing_that_was_cut_off_too_is_finished(self, workspace: Workspace) -> None:
        work = workspace.begin()
        proven = made(work, "outputs/a.txt", b"new", replaces=b"old")
        work.run.write("replaced/outputs/a.txt", b"old")  # moved back, and not yet restored
        journal = {"files": [asdict(proven)], "record": {"outcome": {}}}
        work.run.write(JOURNAL, json.dumps(journal).encode())
        (recovered,) = recover(workspace)
        assert not recovered.finished
        assert (workspace.root / "outputs/a.txt").read_bytes() == b"old"


class TestTheLedger:
    def folder(self, tmp_path: Path) -> ConfinedFolder:
        for name in ("outputs", "drafts"):
            (tmp_path / name).mkdir()
        return ConfinedFolder(tmp_path)

    def test_a_file_that_a_failing_version_left_stays_its_work(self, tmp_path: Path) -> None:
        folder, ledger = self.folder(tmp_path), Ledger()
        before = snapshot(folder, ("outputs",))
        (tmp_path / "outputs/a").write_text("by v1")
        between = snapshot(folder, ("outputs",))
        ledger.ran("v1", ok=False, before=before, after=between)
        ledger.ran("v2", ok=True, before=between, after=snapshot(folder, ("outputs",)))
        found = ledger.find("outputs/a")
        assert found and (found.by_sha256, found.ok) == ("v1", False)

    def test_a_later_version_that_writes_it_anew_takes_it_over(self, tmp_path: Path) -> None:
        folder, ledger = self.folder(tmp_path), Ledger()
        (tmp_path / "outputs/a").write_text("same")
        between = snapshot(folder, ("outputs",))
        ledger.ran("v1", ok=False, before={}, after=between)
        os.utime(tmp_path / "outputs/a", ns=(1, 1))
        (tmp_path / "outputs/a").write_text("same")
        ledger.ran("v2", ok=True, before=between, after=snapshot(folder, ("outputs",)))
        found = ledger.find("outputs/a")
        assert found and found.by_sha256 == "v2"

    def test_links_are_not_entered(self, tmp_path: Path) -> None:
        folder = self.folder(tmp_path)
        (tmp_path / "outputs/a").symlink_to("/etc/hostname")
        assert snapshot(folder, ("outputs",)) == {}

    def test_a_removed_file_leaves_the_list(self, tmp_path: Path) -> None:
        folder, ledger = self.folder(tmp_path), Ledger()
        (tmp_path / "outputs/a").write_text("x")
        first = snapshot(folder, ("outputs",))
        ledger.ran("v1", ok=True, before={}, after=first)
        (tmp_path / "outputs/a").unlink()
        ledger.ran("v2", ok=True, before=first, after=snapshot(folder, ("outputs",)))
        assert ledger.find("outputs/a") is None

    @pytest.mark.parametrize("hide", ["deep", "closed"])
    def test_what_was_hidden_from_the_look_before_is_nobodys_work(
        self, tmp_path: Path, hide: str
    ) -> None:
        folder, ledger = self.folder(tmp_path), Ledger()
        inner = tmp_path / "outputs/inner"
        inner.mkdir()
        (inner / "a").write_text("by v1, which failed")
        deep = inner / "/".join("d" * 70)
        if hide == "deep":
            deep.mkdir(parents=True)
        else:
            inner.chmod(0)
            if os.access(inner, os.R_OK):
                pytest.skip("nothing is closed to root")
        between = snapshot(folder, ("outputs",))
        ledger.ran("v1", ok=False, before={}, after=between)
        if hide == "deep":
            shutil.rmtree(inner / "d")
        inner.chmod(0o755)
        ledger.ran("v2", ok=True, before=between, after=snapshot(folder, ("outputs",)))
        assert ledger.find("outputs/inner/a") is None

    def test_what_is_written_again_after_it_was_hidden_is_its_writers(self, tmp_path: Path) -> None:
        folder, ledger = self.folder(tmp_path), Ledger()
        deep = tmp_path / "outputs" / "/".join("d" * 70)
        deep.mkdir(parents=True)
        hidden = snapshot(folder, ("outputs",))
        shutil.rmtree(tmp_path / "outputs/d")
        seen = snapshot(folder, ("outputs",))
        ledger.ran("v1", ok=True, before=hidden, after=seen)
        (tmp_path / "outputs/a").write_text("by v2")
        ledger.ran("v2", ok=True, before=seen, after=snapshot(folder, ("outputs",)))
        found = ledger.find("outputs/a")
        assert found and found.by_sha256 == "v2"


class TestApprovals:
    def spend(self, approvals: Approvals, sha256: str) -> None:
        approvals.spend("overwrite:a", sha256, cause="It would be replaced.", remedy="Approve it.")

    def test_one_covers_the_bytes_that_it_was_given_for(self) -> None:
        approvals = Approvals()
        approvals.grant("overwrite:a", "1" * 64)
        self.spend(approvals, "1" * 64)
        assert [approval.subject for approval in approvals.spent] == ["overwrite:a"]

    def test_other_bytes_are_refused(self) -> None:
        approvals = Approvals()
        approvals.grant("overwrite:a", "1" * 64)
        with pytest.raises(Failure, match="approval_stale"):
            self.spend(approvals, "2" * 64)

    def test_one_is_good_for_one_use(self) -> None:
        approvals = Approvals()
        approvals.grant("overwrite:a", "1" * 64)
        self.spend(approvals, "1" * 64)
        with pytest.raises(Failure, match="approval_used"):
            self.spend(approvals, "1" * 64)

    def test_none_is_refused(self) -> None:
        with pytest.raises(Failure, match="approval_required"):
            self.spend(Approvals(), "1" * 64)


def hold(root: str, ready: object, done: object) -> None:
    with Workspace(Path(root)).held():
        ready.set()  # type: ignore[attr-defined]
        done.wait(30)  # type: ignore[attr-defined]


class TestTheLock:
    def test_a_second_process_is_told_who_works_there(self, workspace: Workspace) -> None:
        context = multiprocessing.get_context("spawn")
        ready, done = context.Event(), context.Event()
        other = context.Process(target=hold, args=(str(workspace.root), ready, done))
        other.start()
        try:
            assert ready.wait(30)
            with pytest.raises(Failure, match=f"pid {other.pid}"), workspace.held():
                pass
        finally:
            done.set()
            other.join(30)

    def test_it_dies_with_its_process(self, workspace: Workspace) -> None:
        context = multiprocessing.get_context("spawn")
        ready, done = context.Event(), context.Event()
        other = context.Process(target=hold, args=(str(workspace.root), ready, done))
        other.start()
        assert ready.wait(30)
        other.kill()
        other.join(30)
        with workspace.held():
            pass

    def test_runs_of_one_process_share_it(self, workspace: Workspace) -> None:
        with workspace.held(), workspace.held():
            pass


class TestAWorkspaceThatCannotBe:
    def test_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "w").write_text("a file")
        with pytest.raises(Failure, match="workspace_invalid"):
            Workspace(tmp_path / "w")

    def test_samples_never_overwrite_what_is_there(self, workspace: Workspace) -> None:
        (workspace.root / "inputs/source-notes.md").write_text("mine")
        workspace.add_samples(ROOT)
        assert (workspace.root / "inputs/source-notes.md").read_text() == "mine"
