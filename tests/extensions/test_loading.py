"""Loading, unloading and reloading in a program that goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent_runtime import Failure
from reread.extensions import verified
from reread.extensions.loading import Extension, Extensions, Surroundings
from reread.verify import verify
from tests.extensions.packages import TOOL, changed, lay_out


def host(tmp_path: Path, events: list[Any] | None = None) -> Extensions:
    work, home = tmp_path / "work", tmp_path / "home"
    outputs = work / "outputs"
    for folder in (outputs, home):
        folder.mkdir(parents=True, exist_ok=True)
    seen = events if events is not None else []
    around = Surroundings(
        work=work,
        writable=(outputs,),
        home=home,
        session_id="run-1",
        emit=lambda event, facts: seen.append((event, dict(facts))),
    )
    return Extensions(around, store=tmp_path / "store.json")


def anyone(name: str, sha256: str) -> bool:
    return True


def within(tmp_path: Path, story: Callable[[Extensions], Awaitable[None]]) -> None:
    async def tell() -> None:
        extensions = host(tmp_path)
        try:
            await story(extensions)
        finally:
            await extensions.aclose()

    asyncio.run(tell())


async def note(extension: Extension, path: str = "outputs/a.json") -> Any:
    (tool,) = extension.tools
    return await tool.handler({"title": "hi", "output_path": path})


class TestOnlyWhatWasVerifiedIsLoaded:
    def test_a_package_that_nobody_verified_is_refused(self, tmp_path: Path) -> None:
        package = lay_out(tmp_path)

        async def story(extensions: Extensions) -> None:
            with pytest.raises(Failure) as refused:
                await extensions.load(package)
            assert refused.value.code == "extension_not_verified"

        within(tmp_path, story)

    def test_a_passed_verification_lets_exactly_these_bytes_in(self, tmp_path: Path) -> None:
        package = lay_out(tmp_path)
        report = asyncio.run(verify(package, store=tmp_path / "store.json"))
        assert report.ok
        assert verified.find(report.sha256, tmp_path / "store.json")

        async def story(extensions: Extensions) -> None:
            assert (await extensions.load(package)).sha256 == report.sha256
            await extensions.unload("note_ext")
            (package / TOOL).write_text(f"# \n{(package / TOOL).read_text('utf-8')}", "utf-8")
            with pytest.raises(Failure) as refused:
                await extensions.load(package)
            assert refused.value.code == "extension_not_verified"

        within(tmp_path, story)

    def test_a_human_s_word_is_for_a_digest(self, tmp_path: Path) -> None:
        package = lay_out(tmp_path)
        asked: list[tuple[str, str]] = []

        def approved(name: str, sha256: str) -> bool:
            asked.append((name, sha256))
            return True

        async def story(extensions: Extensions) -> None:
            extension = await extensions.load(package, approved=approved)
            assert asked == [("note_ext", extension.sha256)]

        within(tmp_path, story)


class TestAllOrNothing:
    def test_each_part_has_its_label(self, tmp_path: Path) -> None:
        package = lay_out(tmp_path)

        async def story(extensions: Extensions) -> None:
            extension = await extensions.load(package, approved=anyone)
            assert extension.labels == ("rail:NoteRail", "tool:NoteTool", "skill_dir:skills")
            assert [tool.name for tool in extension.tools] == ["note_write"]

        within(tmp_path, story)

    def test_one_broken_part_leaves_nothing_loaded(self, tmp_path: Path) -> None:
        files = changed(
            "rails/note_rail.py",
            "class NoteRail(Rail):\n",
            "class NoteRail(Rail):\n    def init(self, agent):\n        raise RuntimeError\n\n",
        )
        package = lay_out(tmp_path, files)

        async def story(extensions: Extensions) -> None:
            with pytest.raises(Failure) as refused:
                await extensions.load(package, approved=anyone)
            assert refused.value.code == "rail_not_registered"
            assert extensions.loaded == ()

        within(tmp_path, story)

    def test_the_same_package_twice_is_refused(self, tmp_path: Path) -> None:
        package = lay_out(tmp_path)

        async def story(extensions: Extensions) -> None:
            await extensions.load(package, approved=anyone)
            with pytest.raises(Failure) as refused:
                await extensions.load(package, approved=anyone)
            assert refused.value.code == "harness_load_failed"
            assert len(extensions.loaded) == 1

        within(tmp_path, story)


class TestFreshCode:
    def test_a_reload_runs_the_new_code(self, tmp_path: Path) -> None:
        package = lay_out(tmp_path)

        async def story(extensions: Extensions) -> None:
            old = await extensions.load(package, approved=anyone)
            assert (await note(old))["data"]["source"] == "note_ext"
            new = changed(TOOL, '"source": "note_ext"', '"source": "second"')
            (package / TOOL).write_text(new[TOOL], "utf-8")
            fresh = await extensions.reload(package, approved=anyone)
            assert (await note(fresh))["data"]["source"] == "second"
            assert not old.process.alive

        within(tmp_path, story)

    def test_a_reload_that_fails_leaves_the_old_one_running(self, tmp_path: Path) -> None:
        package = lay_out(tmp_path)

        async def story(extensions: Extensions) -> None:
            old = await extensions.load(package, approved=anyone)
            (package / TOOL).write_text("raise RuntimeError\n", "utf-8")
            with pytest.raises(Failure):
                await extensions.reload(package, approved=anyone)
            assert (await note(old))["success"] is True
            assert extensions.loaded == (old,)

        within(tmp_path, story)

    def test_an_unloaded_one_answers_no_more(self, tmp_path: Path) -> None:
        package = lay_out(tmp_path)

        async def story(extensions: Extensions) -> None:
            extension = await extensions.load(package, approved=anyone)
            await extensions.unload("note_ext")
            with pytest.raises(Failure) as refused:
                await note(extension)
            assert refused.value.code == "tool_failed"

        within(tmp_path, story)


class TestInARun:
    def test_a_tool_writes_only_where_the_run_may(self, tmp_path: Path) -> None:
        package = lay_out(tmp_path)

        async def story(extensions: Extensions) -> None:
            extension = await extensions.load(package, approved=anyone)
            await note(extension)
            assert json.loads((tmp_path / "work/outputs/a.json").read_text("utf-8"))
            with pytest.raises(Failure):
                await note(extension, "elsewhere.json")
            assert not (tmp_path / "work/elsewhere.json").exists()

        within(tmp_path, story)

    def test_its_own_code_is_read_only_for_it(self, tmp_path: Path) -> None:
        new = changed(
            TOOL,
            "        state = {}\n",
            "        (EXT_ROOT / 'x.py').write_text('')\n        state = {}\n",
        )
        package = lay_out(tmp_path, new)

        async def story(extensions: Extensions) -> None:
            extension = await extensions.load(package, approved=anyone)
            with pytest.raises(Failure):
                await note(extension)
            assert not (extension.package / "x.py").exists()

        within(tmp_path, story)
