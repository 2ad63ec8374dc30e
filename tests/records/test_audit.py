"""audit: one byte changed in any part is found, in the folder and in the bundle."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_runtime import Failure
from reread import records
from reread.replay.audit import audit
from reread.replay.bundle import audit_bundle, export
from reread.workspace import Workspace
from tests.records.runs import ROOT, files, last_run, opened, record, run


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with one run that replaced a user's file."""
    place = tmp_path_factory.mktemp("audit") / "w"
    (place / "outputs").mkdir(parents=True)
    (place / "outputs/summary.json").write_text("the older one")
    assert run("success", place, overwrites=("outputs/summary.json",)).ok
    return place


def flipped(path: Path, at: int = -1) -> None:
    """Change one bit of one byte in the middle of a file; an empty file gets a byte."""
    data = bytearray(path.read_bytes())
    if data:
        data[len(data) // 2 if at < 0 else at] ^= 1
    path.write_bytes(bytes(data) or b"x")


def parts(place: Path) -> Iterator[Path]:
    """Yield every file that the record speaks of, and the record."""
    yield from files(last_run(place))
    yield from files(place / "inputs")
    yield from files(place / "outputs")


class TestAFolder:
    def test_what_nobody_touched_holds(self, whole: Path) -> None:
        workspace, folder = opened(whole)
        found = audit(workspace.folder, folder)
        assert found.ok
        assert found.files == len(list(parts(whole))) - 1  # all but record.json itself

    def test_one_changed_byte_is_found_in_each_file(self, whole: Path) -> None:
        workspace, folder = opened(whole)
        missed = []
        for path in parts(whole):
            before = path.read_bytes()
            flipped(path)
            try:
                if audit(workspace.folder, folder).ok:
                    missed.append(path)
            except Failure as failure:
                assert (failure.code, path.name) == ("record_invalid", records.RECORD)
            path.write_bytes(before)
        assert missed == []
        assert audit(workspace.folder, folder).ok

    def test_every_byte_of_the_record_is_covered(self, whole: Path, tmp_path: Path) -> None:
        run_copy = tmp_path / "run"
        shutil.copytree(last_run(whole), run_copy)
        path = run_copy / records.RECORD
        data = path.read_bytes()
        folder = opened(whole)[1].__class__(run_copy)
        for at in range(0, len(data) - 1, 61):  # the last byte is the end of the line
            flipped(path, at)
            with pytest.raises(Failure):
                records.read_record(folder)
            path.write_bytes(data)

    def test_a_file_that_the_record_does_not_know_is_found(self, whole: Path) -> None:
        workspace, folder = opened(whole)
        added = last_run(whole) / "scripts" / "added.py"
        added.write_text("x = 1")
        problems = audit(workspace.folder, folder).problems
        added.unlink()
        assert [problem.where for problem in problems] == ["scripts/added.py"]

    def test_a_file_that_is_gone_is_found(self, whole: Path) -> None:
        workspace, folder = opened(whole)
        path = whole / "outputs/report.md"
        data = path.read_bytes()
        path.unlink()
        problems = audit(workspace.folder, folder).problems
        path.write_bytes(data)
        assert [problem.code for problem in problems] == ["evidence_changed"]

    def test_a_link_in_the_place_of_a_file_is_found(self, whole: Path, tmp_path: Path) -> None:
        workspace, folder = opened(whole)
        path, kept = whole / "outputs/report.md", tmp_path / "kept"
        shutil.move(path, kept)
        path.symlink_to(kept)
        problems = audit(workspace.folder, folder).problems
        path.unlink()
        shutil.move(kept, path)
        assert [problem.where for problem in problems] == ["outputs/report.md"]

    def test_the_page_of_the_run_is_no_part_of_it(self, whole: Path) -> None:
        workspace, folder = opened(whole)
        page = last_run(whole) / records.REPORT
        page.write_text("a page")
        found = audit(workspace.folder, folder)
        page.unlink()
        assert found.ok

    def test_a_record_with_a_digest_made_to_fit_does_not_make_the_files_fit(
        self, whole: Path
    ) -> None:
        workspace, folder = opened(whole)
        path = last_run(whole) / records.RECORD
        before = path.read_bytes()
        value = record(last_run(whole))
        value.pop("digest")
        value["outcome"]["published"]["outputs/report.md"] = "0" * 64
        path.write_bytes(records.as_line({**value, "digest": records.digest(value)}))
        problems = audit(workspace.folder, folder).problems
        path.write_bytes(before)
        assert [problem.where for problem in problems] == ["outputs/report.md"]


@pytest.fixture(scope="module")
def bundle(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace, folder = opened(whole)
    target = tmp_path_factory.mktemp("bundle") / "run.zip"
    export(workspace.folder, folder, target)
    return target


class TestABundle:
    def audited(self, bundle: Path, scratch: Path) -> bool:
        scratch.mkdir()
        return audit_bundle(bundle, scratch).ok

    def test_it_holds_all_that_its_audit_needs(self, bundle: Path, tmp_path: Path) -> None:
        assert self.audited(bundle, tmp_path / "s")

    def test_the_same_run_gives_the_same_bytes(self, whole: Path, bundle: Path) -> None:
        workspace, folder = opened(whole)
        again = bundle.with_name("again.zip")
        export(workspace.folder, folder, again)
        assert again.read_bytes() == bundle.read_bytes()

    def test_one_changed_byte_is_found_in_each_member(self, bundle: Path, tmp_path: Path) -> None:
        with zipfile.ZipFile(bundle) as archive:
            members = {info.filename: archive.read(info) for info in archive.infolist()}
        missed = []
        for number, name in enumerate(members):
            data = bytearray(members[name] or b"x")
            if members[name]:
                data[len(data) // 2] ^= 1
            changed = tmp_path / f"{number}.zip"
            with zipfile.ZipFile(changed, "w") as archive:  # with checksums that fit again
                for other, content in members.items():
                    archive.writestr(other, bytes(data) if other == name else content)
            try:
                if self.audited(changed, tmp_path / f"s{number}"):
                    missed.append(name)
            except Failure as failure:
                assert (failure.code, name) == ("record_invalid", "run/record.json")
        assert missed == []

    def test_a_damaged_archive_is_told(self, bundle: Path, tmp_path: Path) -> None:
        data = bundle.read_bytes()
        for at in range(30, len(data), len(data) // 40):
            changed = tmp_path / f"{at}.zip"
            changed.write_bytes(data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :])
            try:
                held = self.audited(changed, tmp_path / f"d{at}")
            except Failure as failure:
                assert failure.code in ("record_invalid", "path_not_allowed", "write_failed")
            else:
                assert not held or self._same(bundle, changed)
        with pytest.raises(Failure, match="record_invalid"):
            cut = tmp_path / "cut.zip"
            cut.write_bytes(data[: len(data) // 2])
            self.audited(cut, tmp_path / "cut")

    def _same(self, one: Path, other: Path) -> bool:
        """Say whether two archives hold the same: some bytes of the format mean nothing."""
        with zipfile.ZipFile(one) as a, zipfile.ZipFile(other) as b:
            return {n: a.read(n) for n in a.namelist()} == {n: b.read(n) for n in b.namelist()}

    def test_a_member_outside_of_its_folders_is_refused(self, bundle: Path, tmp_path: Path) -> None:
        for number, name in enumerate(("../evil", "/etc/evil", "run/../../evil")):
            changed = tmp_path / f"{number}.zip"
            shutil.copy(bundle, changed)
            with zipfile.ZipFile(changed, "a") as archive:
                archive.writestr(name, b"x")
            with pytest.raises(Failure):
                self.audited(changed, tmp_path / f"o{number}")
        assert not (tmp_path / "evil").exists()

    def test_a_run_that_no_longer_holds_is_not_exported(self, whole: Path, tmp_path: Path) -> None:
        workspace, folder = opened(whole)
        path = whole / "outputs/report.md"
        before = path.read_bytes()
        path.write_bytes(b"changed")
        with pytest.raises(Failure, match="evidence_changed"):
            export(workspace.folder, folder, tmp_path / "b.zip")
        path.write_bytes(before)


class TestTheCommand:
    def audit(self, place: Path, *flags: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(ROOT / "app.py"), "audit", "--workspace", str(place), *flags]
        return subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)

    def test_it_ends_with_zero_where_all_holds(self, whole: Path) -> None:
        ran = self.audit(whole, "--json")
        assert (ran.returncode, json.loads(ran.stdout)["ok"]) == (0, True)

    def test_it_ends_with_one_and_names_the_file(self, whole: Path) -> None:
        path = whole / "outputs/report.md"
        before = path.read_bytes()
        flipped(path)
        ran = self.audit(whole)
        path.write_bytes(before)
        assert ran.returncode == 1
        assert "evidence_changed" in ran.stdout
        assert "outputs/report.md" in ran.stdout

    def test_an_unknown_run_is_wrong_usage(self, whole: Path) -> None:
        assert self.audit(whole, "nothing-like-this").returncode == 2


class TestARunThatFailed:
    def test_its_record_can_be_audited_as_well(self, tmp_path: Path) -> None:
        run("invalid", tmp_path / "w")
        workspace, folder = opened(tmp_path / "w")
        assert audit(workspace.folder, folder).ok
        kept = [path for path in record(last_run(tmp_path / "w"))["files"] if "work/" in path]
        assert kept
        flipped(last_run(tmp_path / "w") / kept[0])
        assert not audit(workspace.folder, folder).ok

    def test_a_run_without_an_end_has_nothing_to_compare_with(self, tmp_path: Path) -> None:
        run("skip", tmp_path / "w")
        (last_run(tmp_path / "w") / records.RECORD).unlink()
        workspace, folder = opened(tmp_path / "w")
        with pytest.raises(Failure, match="record_invalid"):
            audit(Workspace(tmp_path / "w").folder, folder)
        assert workspace.root
