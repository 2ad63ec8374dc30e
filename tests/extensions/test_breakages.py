"""One small package, broken one way at a time: the right code, and no refusal of a sound one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from reread.verify import verify
from tests.extensions.packages import CASES, changed, lay_out, ported

ALONE = [case for case in CASES if not case.get("twice")]


def codes(package: Path, runtime: str = "auto") -> list[str]:
    report = asyncio.run(verify(package, runtime=runtime, record=False))
    found = [str(one.problem.code) for one in report.findings]
    assert report.ok is (not found)
    return found or ["pass"]


class TestEachBreakageHasItsCode:
    @pytest.mark.parametrize("case", ALONE, ids=[f"{c['id']} {c['name']}" for c in ALONE])
    def test_it_is_told_first(self, case: dict[str, Any], tmp_path: Path) -> None:
        test = {key: case[key] for key in ("tool_name", "arguments") if key in case}
        name = case.get("rename", "note_ext")
        package = lay_out(tmp_path, case["files"], name=name, **test)
        assert codes(package)[0] in case["expect"]


class TestTheNamesOfTheOtherRuntime:
    def test_ours_stands_in_only_when_asked_and_the_report_says_so(self, tmp_path: Path) -> None:
        package = ported(tmp_path)
        report = asyncio.run(verify(package, runtime="native", record=False))
        assert report.ok
        assert report.runtime == "native, standing in for openjiuwen"

    def test_an_import_that_ours_does_not_have_is_named(self, tmp_path: Path) -> None:
        package = ported(tmp_path)
        tool = package / "tools/note_tool.py"
        tool.write_text(f"import openjiuwen.core.memory\n{tool.read_text('utf-8')}", "utf-8")
        assert codes(package, "native") == ["module_import_failed"]


class TestWhatElseIsRefused:
    def test_a_module_of_another_package(self, tmp_path: Path) -> None:
        files = changed("harness_config.yaml", "note_ext.tools", "other.tools")
        assert codes(lay_out(tmp_path, files)) == ["entry_point_not_allowed"]

    def test_a_key_that_the_format_does_not_have(self, tmp_path: Path) -> None:
        files = changed(
            "harness_config.yaml", "class: NoteTool", "class: NoteTool\n      kwargs: {}"
        )
        assert codes(lay_out(tmp_path, files)) == ["manifest_invalid"]

    def test_a_folder_of_skills_outside_of_the_package(self, tmp_path: Path) -> None:
        files = changed("harness_config.yaml", "- skills/", "- ../outside/")
        assert codes(lay_out(tmp_path, files)) == ["skill_manifest_invalid"]

    @pytest.mark.parametrize(
        "path", ["soul.md", "tools/tools.yaml", "mcps/mcps.json", "manifest.json", "a.so"]
    )
    def test_side_files_that_other_loaders_act_on(self, path: str, tmp_path: Path) -> None:
        assert codes(lay_out(tmp_path, {path: "{}"})) == ["undeclared_component"]

    def test_a_link(self, tmp_path: Path) -> None:
        package = lay_out(tmp_path)
        (package / "tools" / "more.py").symlink_to("/etc/hostname")
        assert codes(package) == ["undeclared_component"]

    def test_an_init_that_reexports(self, tmp_path: Path) -> None:
        files = {"tools/__init__.py": "from .note_tool import NoteTool\n"}
        assert codes(lay_out(tmp_path, files)) == ["module_import_failed"]

    def test_two_tools_of_one_name(self, tmp_path: Path) -> None:
        entry = (
            "    - type: package\n"
            "      module: extensions.harness.note_ext.tools.{}\n"
            "      class: {}\n"
        )
        first = entry.format("note_tool", "NoteTool")
        files = changed("harness_config.yaml", first, first + entry.format("second", "SecondTool"))
        tool = changed("tools/note_tool.py", "NoteTool", "SecondTool")["tools/note_tool.py"]
        assert codes(lay_out(tmp_path, {**files, "tools/second.py": tool})) == [
            "tool_not_registered"
        ]

    def test_the_name_of_a_tool_that_is_built_in(self, tmp_path: Path) -> None:
        files = changed("tools/note_tool.py", '"note_write"', '"run_python"')
        package = lay_out(tmp_path, files, tool_name="run_python")
        assert codes(package) == ["tool_not_registered"]

    def test_a_tool_that_no_test_reaches(self, tmp_path: Path) -> None:
        package = lay_out(tmp_path)
        (tmp_path / "acceptance.json").write_text('{"prewarm_queries": ["hello"]}', "utf-8")
        assert codes(package)[0] == "tool_not_called"

    def test_a_package_without_a_spec(self, tmp_path: Path) -> None:
        package = lay_out(tmp_path)
        (tmp_path / "acceptance.json").unlink()
        assert codes(package) == ["manifest_invalid"]


class TestWhatAToolLeaves:
    def test_a_file_in_another_place_is_no_artifact(self, tmp_path: Path) -> None:
        files = changed(
            "tools/note_tool.py", 'Path(inputs["output_path"])', 'Path("elsewhere.json")'
        )
        assert codes(lay_out(tmp_path, files))[0] == "artifact_not_created"

    def test_an_empty_file_is_a_placeholder(self, tmp_path: Path) -> None:
        body = 'json.dumps({"title": inputs["title"], "session": sid, "rail_state": state})'
        files = changed("tools/note_tool.py", body, '""')
        assert codes(lay_out(tmp_path, files)) == ["artifact_placeholder_output"]

    def test_a_size_that_is_not_on_disk_is_no_success(self, tmp_path: Path) -> None:
        files = changed("tools/note_tool.py", "os.path.getsize(out)", "7")
        assert codes(lay_out(tmp_path, files)) == ["tool_result_failed"]

    def test_a_second_file_must_be_declared(self, tmp_path: Path) -> None:
        files = changed(
            "tools/note_tool.py",
            "        data = {",
            '        Path("more.txt").write_text("x")\n        data = {',
        )
        assert codes(lay_out(tmp_path, files)) == ["undeclared_component"]

    def test_a_missing_field_is_named(self, tmp_path: Path) -> None:
        files = changed("tools/note_tool.py", '"source": "note_ext",', "")
        assert codes(lay_out(tmp_path, files)) == ["tool_result_schema_missing"]

    def test_a_tool_that_blocks_past_its_time_has_failed(self, tmp_path: Path) -> None:
        text = changed(
            "tools/note_tool.py", "        state = {}", "        __import__('time').sleep(9)"
        )
        text["tools/note_tool.py"] = text["tools/note_tool.py"].replace(
            'id="note_write",', 'id="note_write", properties={"resilience": {"timeout_s": 0.3}},'
        )
        assert codes(lay_out(tmp_path, text)) == ["tool_result_failed"]


class TestAHookThatFails:
    def test_it_is_told_and_the_call_does_not_run(self, tmp_path: Path) -> None:
        old = 'self._bump(ctx, f"before_tool_call:{ctx.inputs.tool_name}")'
        files = changed("rails/note_rail.py", old, 'raise PermissionError("no")')
        found = codes(lay_out(tmp_path, files))
        assert found[0] == "rail_hook_not_observed"

    def test_state_under_another_id_is_not_shared(self, tmp_path: Path) -> None:
        old = 'f"{ctx.session.get_session_id()}.json"'
        files = changed("rails/note_rail.py", old, '"fixed.json"')
        assert codes(lay_out(tmp_path, files)) == ["rail_tool_state_not_shared"]
