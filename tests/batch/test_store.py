"""The store and the journal: whole or not at all, restored as recorded, highest fence first."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path

import pytest

from agent_runtime import Failure
from reread import fixtures, records, tasks
from reread.batch.journal import Journal, restore
from reread.batch.store import FolderStore, Store, open_store
from reread.files import ConfinedFolder
from reread.job import Job, go_on, perform
from reread.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample-data"


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return open_store(str(tmp_path / "store"))
    pytest.importorskip("fsspec")
    return open_store(f"memory://{tmp_path.name}")


class TestStores:
    def test_a_blob_comes_back_by_its_digest(self, store: Store, tmp_path: Path) -> None:
        sha256 = store.put_blob(b"values")
        assert store.get_blob(sha256) == b"values"
        store.fetch(sha256, tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes() == b"values"
        assert store.has_blob(sha256)
        assert not store.has_blob("0" * 64)

    def test_a_stream_that_is_not_what_it_should_be_is_refused(self, store: Store) -> None:
        with pytest.raises(Failure) as refused:
            store.put_stream(io.BytesIO(b"other"), "0" * 64)
        assert refused.value.code == "store_failed"
        assert not store.has_blob("0" * 64)

    def test_entries_are_listed_in_order(self, store: Store) -> None:
        for name in ("a/2/000001", "a/1/000000", "b/1/000000"):
            store.put(name, name.encode())
        assert store.list("a") == ["a/1/000000", "a/2/000001"]
        assert store.get("a/1/000000") == b"a/1/000000"
        assert store.get("a/1/000009") is None
        assert store.list("c") == []

    def test_a_damaged_blob_is_found(self, tmp_path: Path) -> None:
        store = FolderStore(tmp_path)
        sha256 = store.put_blob(b"values")
        (tmp_path / "blobs" / sha256[:2] / sha256[2:]).write_bytes(b"valuez")
        with pytest.raises(Failure) as refused:
            store.get_blob(sha256)
        assert refused.value.code == "store_failed"


def job(workspace: Path) -> Job:
    fixture = fixtures.load("success", SAMPLES)
    task = tasks.read_task(fixture.task)
    return Job(task, workspace, samples=ROOT, fixture=fixture, run_id="r1")


class TestTheJournal:
    def test_a_run_cut_off_anywhere_goes_on_elsewhere_and_repeats_no_turn(
        self, tmp_path: Path
    ) -> None:
        """Every prefix of what was sent is a point where a worker can have died."""
        store = FolderStore(tmp_path / "store")
        first = tmp_path / "first"
        journal = Journal(store, "i/000001-w", first / "runs" / "r1")
        outcome = asyncio.run(perform(job(first), listeners=(journal,)))
        assert outcome.ok
        entries = store.list("i")
        assert len(entries) >= 8
        for kept in (1, 3, 5, len(entries) - 2, len(entries)):
            assert self._from(store, entries[:kept], tmp_path / f"after-{kept}") == 4

    def _from(self, store: FolderStore, entries: list[str], workspace: Path) -> int:
        """Go on after these entries and return how many turns the record then has."""
        place = f"cut-{len(entries)}/000001-w"
        for name in entries:
            store.put(f"{place}/{name[-6:]}", store.get(name) or b"")
        Workspace(workspace).add_samples(ROOT)
        run = workspace / "runs" / "r1"
        assert restore(store, place.partition("/")[0], run)
        before = _turns(run)
        outcome = asyncio.run(go_on(job(workspace)))
        assert outcome.ok
        assert _turns(run)[: len(before)] == before
        return len(_turns(run))

    def test_what_an_overtaken_attempt_still_sends_is_not_read(self, tmp_path: Path) -> None:
        store = FolderStore(tmp_path / "store")
        for place, text in (("000001-a/000000", "old"), ("000002-b/000000", "new")):
            store.put(f"i/{place}", json.dumps({"events": text, "files": {}}).encode())
        store.put("i/000001-a/000001", json.dumps({"events": "late", "files": {}}).encode())
        assert restore(store, "i", tmp_path / "run")
        assert (tmp_path / "run" / records.EVENTS).read_bytes() == b"new"

    def test_what_comes_after_a_gap_is_not_read(self, tmp_path: Path) -> None:
        store = FolderStore(tmp_path / "store")
        for number in ("000000", "000002"):
            entry = {"events": f"{number}\n", "files": {}}
            store.put(f"i/000001-a/{number}", json.dumps(entry).encode())
        assert restore(store, "i", tmp_path / "run")
        assert (tmp_path / "run" / records.EVENTS).read_bytes() == b"000000\n"

    def test_nothing_sent_is_nothing_to_restore(self, tmp_path: Path) -> None:
        assert not restore(FolderStore(tmp_path / "store"), "i", tmp_path / "run")


def _turns(run: Path) -> list[str]:
    events = records.read_events(ConfinedFolder(run))
    return [json.dumps(e["data"]) for e in events if e["kind"] == "model.replied"]
