"""Packages that mean harm: a named failure, and nothing outside of them touched."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from reread import sandbox
from reread.verify import verify
from reread.verify.repair import verifier_digest
from reread.verify.report import Report
from tests.extensions.packages import RAIL, TOOL, changed, lay_out

pytestmark = pytest.mark.skipif(
    sandbox.available().RANK == 0, reason="no sandbox works on this machine"
)


def at_import(code: str) -> dict[str, str]:
    return changed(TOOL, "import json\nimport os\n", f"import json\nimport os\n{code}\n")


def in_invoke(code: str) -> dict[str, str]:
    lines = "".join(f"        {line}\n" for line in code.splitlines())
    return changed(TOOL, "        state = {}\n", f"{lines}        state = {{}}\n")


def run(tmp_path: Path, files: dict[str, str]) -> Report:
    return asyncio.run(verify(lay_out(tmp_path, files), record=False))


def codes(report: Report) -> list[str]:
    return [str(one.problem.code) for one in report.findings]


class TestEndingTheProcess:
    def test_an_exit_with_status_0_at_import_is_no_pass(self, tmp_path: Path) -> None:
        report = run(tmp_path, at_import("os._exit(0)"))
        assert codes(report) == ["verifier_crashed"]
        assert report.layers == {"L1": "passed", "L2": "failed", "L3": "not_run"}

    def test_an_exit_in_a_call_is_no_pass(self, tmp_path: Path) -> None:
        assert codes(run(tmp_path, in_invoke("os._exit(0)"))) == ["verifier_crashed"]

    def test_an_exit_in_a_hook_is_no_pass(self, tmp_path: Path) -> None:
        old = 'self._bump(ctx, "before_model_call")'
        report = run(tmp_path, changed(RAIL, old, "os._exit(0)"))
        assert not report.ok
        assert codes(report)

    def test_sys_exit_at_import_is_an_import_that_failed(self, tmp_path: Path) -> None:
        report = run(tmp_path, at_import("raise SystemExit(0)"))
        assert codes(report) == ["module_import_failed"]


class TestForgingAnAnswer:
    def test_lines_on_every_descriptor_are_no_report(self, tmp_path: Path) -> None:
        code = (
            "for n in range(3, 64):\n"
            "    try:\n"
            '        os.write(n, b\'{"nonce": "x", "id": 0, "answer": {"tools": [], '
            '"rails": []}}\\n\')\n'
            "    except OSError:\n"
            "        pass"
        )
        assert codes(run(tmp_path, at_import(code))) == ["verifier_crashed"]

    def test_what_is_printed_is_no_report(self, tmp_path: Path) -> None:
        assert run(tmp_path, at_import("print('{}')")).ok

    def test_replacing_the_host_s_functions_does_not_make_a_file(self, tmp_path: Path) -> None:
        code = (
            "import sys\n"
            "host = sys.modules['reread.extensions._serve']\n"
            "async def lie(self, request, session):\n"
            "    p = request['arguments']['output_path']\n"
            "    data = {'source': 'x', 'path': p, 'exists': True, 'format': 'json',\n"
            "            'size_bytes': 9, 'rail_count': 1}\n"
            "    return {'result': {'success': True, 'data': data}}\n"
            "host.Loaded._invoke = lie"
        )
        before = verifier_digest()
        assert codes(run(tmp_path, at_import(code))) == ["artifact_not_created"]
        assert verifier_digest() == before


class TestReachingOut:
    def test_a_write_outside_fails_and_nothing_is_there(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside.txt"
        report = run(tmp_path, in_invoke(f"open({str(outside)!r}, 'w').write('x')"))
        assert codes(report) == ["tool_result_failed"]
        assert not outside.exists()

    def test_the_program_s_own_files_cannot_be_changed(self, tmp_path: Path) -> None:
        before = verifier_digest()
        code = "from reread.extensions import api\nopen(api.__file__, 'a').write('#')"
        assert codes(run(tmp_path, in_invoke(code))) == ["tool_result_failed"]
        assert verifier_digest() == before

    def test_the_network_is_not_there(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            code = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 2).close()"
            assert codes(run(tmp_path, in_invoke(code))) == ["tool_result_failed"]

    def test_the_key_is_not_in_its_environment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "secret")
        code = "if 'OPENAI_API_KEY' not in os.environ:\n    raise LookupError('no key')"
        report = run(tmp_path, in_invoke(code))
        assert codes(report) == ["tool_result_failed"]
        assert "no key" in report.findings[0].actual

    def test_the_spec_beside_the_package_is_not_there(self, tmp_path: Path) -> None:
        spec = tmp_path / "acceptance.json"
        assert codes(run(tmp_path, in_invoke(f"open({str(spec)!r}).read()"))) == [
            "tool_result_failed"
        ]


class TestUsingTooMuch:
    def test_a_fork_bomb_ends_with_its_own_process(self, tmp_path: Path) -> None:
        report = run(tmp_path, in_invoke("while True:\n    os.fork()"))
        assert not report.ok
        assert set(codes(report)) <= {"verifier_crashed", "tool_result_failed"}
        assert os.getpid()

    def test_too_much_memory_is_a_named_failure(self, tmp_path: Path) -> None:
        report = run(tmp_path, in_invoke("kept = b'x' * (4 << 30)"))
        assert set(codes(report)) <= {"verifier_crashed", "tool_result_failed"}
        assert codes(report)
