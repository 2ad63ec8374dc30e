"""Records come from elsewhere: replaying one reaches nothing outside, and opens no fence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_runtime import Failure
from reread import records
from reread.replay.again import again, replay
from reread.replay.audit import audit
from reread.replay.resume import open_resumed
from reread.values import Permissions
from tests.workplace import GOOD, RUN, SAY_SO, SCRIPT, Workplace, write

Tamper = Callable[[dict[str, Any]], None]


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    made = Workplace(tmp_path / "workspace")
    session = made.open()
    assert made.run(write(SCRIPT, GOOD), RUN, SAY_SO).ok
    made.session = session
    return made


def forge(place: Workplace, tamper: Tamper) -> None:
    """Change the record, and give it a digest that fits again."""
    assert place.session
    file = place.session.work.run.root / records.RECORD
    value = json.loads(file.read_text("utf-8"))
    del value["digest"]
    tamper(value)
    file.write_bytes(records.as_line({**value, "digest": records.digest(value)}))


def forge_event(place: Workplace, **data: str) -> None:
    assert place.session
    file = place.session.work.run.root / records.EVENTS
    lines = file.read_text("utf-8").splitlines()
    event = {**json.loads(lines[0]), "kind": "host.step", "data": data}
    file.write_text("\n".join([lines[0], json.dumps(event), *lines[1:]]) + "\n", "utf-8")


def replayed(place: Workplace, scratch: Path) -> Any:
    assert place.session
    scratch.mkdir()
    return asyncio.run(replay(place.workspace, place.session.work.run, scratch))


class TestReplay:
    def test_a_published_path_outside_is_not_removed(
        self, place: Workplace, tmp_path: Path
    ) -> None:
        users = tmp_path / "users.txt"
        users.write_text("mine")
        for path in (str(users), "../users.txt"):
            forge(place, lambda v, path=path: v["outcome"].update(published={path: "0" * 64}))  # type: ignore[misc]
            with pytest.raises(Failure) as refused:
                replayed(place, tmp_path / f"scratch{len(path)}")
            assert refused.value.code == "path_not_allowed"
            assert users.read_text() == "mine"

    def test_a_skill_outside_is_not_removed(self, place: Workplace, tmp_path: Path) -> None:
        users = tmp_path / "users"
        users.mkdir()
        (users / "mine.txt").write_text("mine")
        word = {"subject": f"skill-proposal:{users}", "sha256": "0", "granted_at": ""}
        forge(place, lambda v: v["approvals"].update(spent=[word]))
        replayed(place, tmp_path / "scratch")
        assert (users / "mine.txt").read_text() == "mine"

    @pytest.mark.parametrize("kind", ["write", "append", "delete", "symlink"])
    def test_a_step_of_the_host_stays_inside(
        self, place: Workplace, tmp_path: Path, kind: str
    ) -> None:
        users = tmp_path / "users.txt"
        users.write_text("mine")
        forge_event(place, host=kind, path=str(users), text="theirs", target="x")
        assert not replayed(place, tmp_path / "scratch").ok
        assert users.read_text() == "mine"

    def test_what_opens_the_fence_needs_a_human_again(self) -> None:
        recorded = Permissions(network=True, builds=True, unsandboxed=True)
        assert again(recorded, Permissions()) == Permissions()
        assert again(recorded, recorded) == recorded
        assert again(Permissions(), recorded) == Permissions()


class TestAMalformedRecord:
    @pytest.mark.parametrize("key", ["outcome", "files", "inputs", "task"])
    @pytest.mark.parametrize("value", [None, [1], 1])
    def test_is_refused_by_audit(self, place: Workplace, key: str, value: Any) -> None:
        assert place.session
        forge(place, lambda v: v.update({key: value}))
        with pytest.raises(Failure) as refused:
            audit(place.workspace.folder, place.session.work.run)
        assert refused.value.code == "record_invalid"

    def test_is_refused_by_resume(self, place: Workplace) -> None:
        assert place.session
        run = place.session.work.run
        (run.root / records.RECORD).unlink()
        line = {"schema": records.EVENTS_SCHEMA, "kind": "run.started", "data": {}}
        (run.root / records.EVENTS).write_text(json.dumps(line) + "\n")
        with pytest.raises(Failure) as refused:
            open_resumed(place.workspace, place.session.work.run_id)
        assert refused.value.code == "record_invalid"
