"""Proposals: what is shown, approved and written is the same bytes, whole or not there."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_runtime import Failure
from reread.files import ConfinedFolder, digest
from reread.skills import Proposal, Skills, persist_proposal, proposal_from, read_proposal
from reread.skills.skill import parse

GOOD: dict[str, Any] = {
    "name": "explain-cache",
    "description": 'Explain a cache: "why" and \\ how',
    "triggers": ["缓存检查", "check the cache"],
    "content": "# Explain a cache\n\nSay what is kept, where, and until when.\n",
}


def with_(**changes: Any) -> dict[str, Any]:
    return {**GOOD, **changes}


def opened(root: Path) -> Skills:
    found = Skills(root / "skills")
    found.scan()
    return found


class TestAProposalIsCreated:
    def test_the_bytes_on_disk_are_the_bytes_of_the_digest(self, tmp_path: Path) -> None:
        proposal = proposal_from(GOOD)
        created = persist_proposal(opened(tmp_path), proposal)
        data = (tmp_path / created.path).read_bytes()
        assert digest(data) == created.sha256 == proposal.sha256

    def test_it_is_scanned_and_found_at_once(self, tmp_path: Path) -> None:
        found = opened(tmp_path)
        persist_proposal(found, proposal_from(GOOD))
        assert found.scans == 2
        assert [one["skill"] for one in found.match("请做缓存检查")] == ["explain-cache"]

    def test_a_broken_neighbour_does_not_make_it_fail(self, tmp_path: Path) -> None:
        (tmp_path / "skills" / "bad").mkdir(parents=True)
        (tmp_path / "skills" / "bad" / "SKILL.md").write_text("no fence")
        found = opened(tmp_path)
        persist_proposal(found, proposal_from(GOOD))
        assert found.names == ("explain-cache",)

    def test_nothing_that_exists_is_replaced(self, tmp_path: Path) -> None:
        found = opened(tmp_path)
        persist_proposal(found, proposal_from(GOOD))
        with pytest.raises(Failure) as caught:
            persist_proposal(found, proposal_from(with_(content="# Other\n")))
        assert caught.value.code == "skill_exists"
        assert "# Other" not in (tmp_path / "skills/explain-cache/SKILL.md").read_text("utf-8")

    @pytest.mark.parametrize("kind", ["folder", "file", "link"])
    def test_a_name_that_anything_bears_is_taken(self, tmp_path: Path, kind: str) -> None:
        found = opened(tmp_path)
        target = tmp_path / "skills" / "explain-cache"
        target.parent.mkdir()
        if kind == "folder":
            target.mkdir()
        elif kind == "file":
            target.write_text("x")
        else:
            target.symlink_to(tmp_path)
        with pytest.raises(Failure) as caught:
            persist_proposal(found, proposal_from(GOOD))
        assert caught.value.code == "skill_exists"
        assert not (tmp_path / "SKILL.md").exists()

    def test_the_text_is_read_back_as_it_was_proposed(self, tmp_path: Path) -> None:
        persist_proposal(opened(tmp_path), proposal_from(GOOD))
        data = (tmp_path / "skills/explain-cache/SKILL.md").read_bytes()
        parsed = parse(data, folder="explain-cache", path="p")
        assert parsed.skill is not None
        assert parsed.skill.description == GOOD["description"]
        assert list(parsed.skill.triggers) == GOOD["triggers"]
        assert parsed.body == GOOD["content"]


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        "changes",
        [
            {"name": "Explain"},
            {"name": "../x"},
            {"name": "x" * 49},
            {"description": ""},
            {"description": "two\nlines"},
            {"description": "hid\u202eden"},
            {"description": 3},
            {"triggers": []},
            {"triggers": ["x"]},
            {"triggers": [" padded"]},
            {"triggers": ["x" * 81]},
            {"triggers": [f"word {i}" for i in range(13)]},
            {"triggers": "text"},
            {"content": "no heading"},
            {"content": "```\n# only in code\n```"},
            {"content": "# T\n\x0cform feed"},
            {"content": "# T\r\nreturns"},
            {"content": "# T\u2028separator"},
            {"content": "# T\n" + "x" * (33 << 10)},
            {"content": "# T \ud800"},
        ],
    )
    def test_each_of_these(self, changes: dict[str, Any]) -> None:
        with pytest.raises(Failure) as caught:
            proposal_from(with_(**changes))
        assert caught.value.code == "proposal_invalid"

    @pytest.mark.parametrize("field", sorted(GOOD))
    def test_a_missing_field(self, field: str) -> None:
        with pytest.raises(Failure) as caught:
            proposal_from({key: value for key, value in GOOD.items() if key != field})
        assert caught.value.code == "proposal_invalid"

    def test_a_field_more(self) -> None:
        with pytest.raises(Failure):
            proposal_from(with_(references=[]))

    def test_a_key_that_is_there_twice(self, tmp_path: Path) -> None:
        text = json.dumps(GOOD)[:-1] + ', "content": "# Another\\n"}'
        (tmp_path / "p.json").write_text(text, "utf-8")
        with pytest.raises(Failure) as caught:
            read_proposal(ConfinedFolder(tmp_path), "p.json")
        assert caught.value.code == "proposal_invalid"

    @pytest.mark.parametrize("text", ["", "[]", "{", '{"name": NaN}', "[" * 100_000])
    def test_what_is_no_object(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "p.json").write_text(text, "utf-8")
        with pytest.raises(Failure) as caught:
            read_proposal(ConfinedFolder(tmp_path), "p.json")
        assert caught.value.code in ("proposal_invalid", "file_too_large")


class TestTheDigest:
    def test_the_file_and_the_arguments_of_the_tool_have_the_same(self, tmp_path: Path) -> None:
        (tmp_path / "p.json").write_text(json.dumps(GOOD, ensure_ascii=True), "utf-8")
        assert read_proposal(ConfinedFolder(tmp_path), "p.json") == proposal_from(GOOD)

    @pytest.mark.parametrize(
        "changes",
        [
            {"name": "explain-cach"},
            {"description": "x"},
            {"triggers": ["缓存检查check the cache"]},
            {"content": GOOD["content"] + "more\n"},
        ],
    )
    def test_every_field_counts(self, changes: dict[str, Any]) -> None:
        assert proposal_from(with_(**changes)).sha256 != proposal_from(GOOD).sha256

    @settings(max_examples=150, deadline=None)
    @given(st.text(min_size=1, max_size=60), st.text(min_size=2, max_size=40), st.text(max_size=80))
    def test_whatever_is_taken_is_read_back_the_same(
        self, description: str, trigger: str, content: str
    ) -> None:
        try:
            proposal = proposal_from(
                with_(description=description, triggers=[trigger], content=f"# T\n{content}")
            )
        except Failure as failure:
            assert failure.code == "proposal_invalid"
            return
        parsed = parse(proposal.data, folder="explain-cache", path="p")
        assert parsed.skill is not None
        assert (parsed.skill.description, parsed.skill.triggers) == (description, (trigger,))
        assert parsed.body.rstrip("\n") == f"# T\n{content}".rstrip("\n")


class TestWhatAPersonSees:
    def test_the_text_is_the_file_to_the_letter(self) -> None:
        proposal = proposal_from(GOOD)
        assert proposal.shown == proposal.data.decode("utf-8")

    def test_what_hides_is_written_out(self) -> None:
        proposal = proposal_from(with_(content="# T\n\nsafe \u202eedis rehto\u2069 \u200b\n"))
        assert "\\u202eedis rehto\\u2069 \\u200b" in proposal.shown
        assert "\u202e" not in proposal.shown


SPEAKS_TO_THE_SYSTEM = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.scandir")


class TestACrash:
    def crash(self, point: int, root: Path) -> int:
        """Kill a writer at one of the places where it speaks to the system; 0 when it ended."""
        child = os.fork()
        if child == 0:
            found = opened(root)
            seen = 0

            def watch(event: str, _: object) -> None:
                nonlocal seen
                if event in SPEAKS_TO_THE_SYSTEM:
                    seen += 1
                    if seen == point:
                        os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(watch)
            persist_proposal(found, proposal_from(GOOD))
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def test_at_any_point_leaves_the_skill_whole_or_not_there(self, tmp_path: Path) -> None:
        states = set()
        for point in range(1, 200):
            root = tmp_path / str(point)
            (root / "skills").mkdir(parents=True)
            ended = self.crash(point, root)
            found = opened(root)
            states.add(found.names)
            if found.names:
                data = (root / "skills/explain-cache/SKILL.md").read_bytes()
                assert digest(data) == proposal_from(GOOD).sha256
            else:
                assert not os.path.lexists(root / "skills" / "explain-cache")
                persist_proposal(found, proposal_from(GOOD))
                assert found.names == ("explain-cache",)
                assert [path.name for path in (root / "skills").iterdir()] == ["explain-cache"]
            if ended == 0:
                break
            assert ended == -signal.SIGKILL
        assert states == {(), ("explain-cache",)}
        assert ended == 0


def test_a_proposal_is_a_value() -> None:
    assert isinstance(proposal_from(GOOD), Proposal)
    assert proposal_from(GOOD) == proposal_from(json.loads(json.dumps(GOOD)))
