"""The gate and the runner as a server, seen by the official client over stdio and HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
if os.environ.get("REREAD_ALL_TESTS") != "1":
    pytest.importorskip("mcp", reason="the extra 'mcp' is not installed")

SCRIPT = """# /// script
# dependencies = []
# ///
from pathlib import Path
Path("outputs/answer.txt").write_text("forty-two is the answer", encoding="utf-8")
print("written")
"""
TASK = (ROOT / "sample-data/tasks/monthly-summary.yaml").read_text("utf-8")


def parameters(workspace: Path) -> Any:
    from mcp.client.stdio import StdioServerParameters

    flags = [str(ROOT / "app.py"), "mcp", "--workspace", str(workspace)]
    return StdioServerParameters(command=sys.executable, args=flags, cwd=str(ROOT))


@asynccontextmanager
async def over_stdio(workspace: Path) -> AsyncIterator[Any]:
    from mcp.client.client import Client

    async with Client(parameters(workspace)) as client:
        yield client


async def call(client: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    value: dict[str, Any] = json.loads(result.content[0].text)
    return value


class TestOverStdio:
    def test_a_client_sees_exactly_the_six_tools(self, tmp_path: Path) -> None:
        async def go() -> list[str]:
            async with over_stdio(tmp_path) as client:
                return sorted(tool.name for tool in (await client.list_tools()).tools)

        assert asyncio.run(go()) == [
            "activate_skill",
            "check_file",
            "list_skills",
            "run_python",
            "run_task",
            "verify_extension",
        ]

    def test_a_file_is_judged_and_a_path_outside_refused(self, tmp_path: Path) -> None:
        (tmp_path / "outputs").mkdir()
        (tmp_path / "outputs/a.json").write_text('{"a": 1}')

        async def go() -> tuple[dict[str, Any], dict[str, Any]]:
            async with over_stdio(tmp_path) as client:
                good = await call(client, "check_file", path="outputs/a.json")
                return good, await call(client, "check_file", path="../a.json")

        good, outside = asyncio.run(go())
        assert good["ok"] is True
        assert outside["code"] == "path_not_allowed"

    def test_a_script_runs_in_the_sandbox_and_its_files_are_named(self, tmp_path: Path) -> None:
        async def go() -> dict[str, Any]:
            async with over_stdio(tmp_path) as client:
                return await call(client, "run_python", code=SCRIPT)

        result = asyncio.run(go())
        assert (result["exit_code"], result["files_left"]) == (0, ["outputs/answer.txt"])
        left = tmp_path / result["work"] / "outputs/answer.txt"
        assert left.read_text("utf-8") == "forty-two is the answer"

    def test_a_task_ends_with_the_verdict_from_disk(self, tmp_path: Path) -> None:
        async def go() -> tuple[dict[str, Any], dict[str, Any]]:
            async with over_stdio(tmp_path) as client:
                good = await call(client, "run_task", task=TASK, fixture="success")
                return good, await call(client, "run_task", task=TASK)

        good, live = asyncio.run(go())
        assert good["status"] == "complete"
        assert (tmp_path / "outputs/summary.json").is_file()
        assert live["code"] == "model_not_configured"

    def test_a_package_is_verified_in_three_layers(self, tmp_path: Path) -> None:
        shutil.copytree(ROOT / "sample-data/extensions/table_report", tmp_path / "table_report")

        async def go() -> tuple[dict[str, Any], dict[str, Any]]:
            async with over_stdio(tmp_path) as client:
                good = await call(client, "verify_extension", path="table_report")
                return good, await call(client, "verify_extension", path="../elsewhere")

        good, outside = asyncio.run(go())
        assert (good["ok"], set(good["layers"].values())) == (True, {"passed"})
        assert outside["code"] == "path_not_allowed"


class TestOverHttp:
    def test_only_a_client_with_the_token_gets_in(self, tmp_path: Path) -> None:
        async def go() -> tuple[int, list[str]]:
            import httpx2
            from mcp.client.client import Client
            from mcp.client.streamable_http import streamable_http_client

            port = free_port()
            flags = ["mcp", "--workspace", str(tmp_path), "--http", str(port), "--token", "t0ken"]
            server = await asyncio.create_subprocess_exec(
                sys.executable, str(ROOT / "app.py"), *flags, cwd=ROOT
            )
            url = f"http://127.0.0.1:{port}/mcp"
            try:
                await listening(port)
                async with httpx2.AsyncClient() as anyone:
                    refused = (await anyone.post(url, json={})).status_code
                headers = {"Authorization": "Bearer t0ken"}
                async with httpx2.AsyncClient(headers=headers) as trusted:
                    transport = streamable_http_client(url, http_client=trusted)
                    async with Client(transport) as client:
                        tools = (await client.list_tools()).tools
                return refused, [tool.name for tool in tools]
            finally:
                server.terminate()
                await server.wait()

        refused, tools = asyncio.run(go())
        assert refused == 401
        assert "check_file" in tools


class TestServersAsTools:
    def test_their_tools_are_prefixed_and_answer_the_model(self, tmp_path: Path) -> None:
        from reread.mcp_tools import tools_of

        (tmp_path / "outputs").mkdir()
        (tmp_path / "outputs/a.json").write_text('{"a": 1}')
        entry = {
            "command": sys.executable,
            "args": [str(ROOT / "app.py"), "mcp", "--workspace", str(tmp_path)],
        }

        async def go() -> tuple[list[str], str]:
            async with tools_of({"gate": entry}) as tools:
                by_name = {tool.name: tool for tool in tools}
                result = await by_name["gate__check_file"].handler({"path": "outputs/a.json"})
                return sorted(by_name), str(result["content"])

        names, content = asyncio.run(go())
        assert "gate__run_python" in names
        assert json.loads(content)["ok"] is True

    def test_a_server_that_does_not_start_is_named(self) -> None:
        from agent_runtime import Failure
        from reread.mcp_tools import tools_of

        async def go() -> None:
            async with tools_of({"none": {"command": sys.executable, "args": ["-c", "1/0"]}}):
                pass

        with pytest.raises(Failure, match="'none' cannot be reached"):
            asyncio.run(go())

    def test_a_configuration_with_a_wrong_key_is_refused(self, tmp_path: Path) -> None:
        from agent_runtime import Failure
        from reread.mcp_tools import read_config

        path = tmp_path / "mcp.json"
        path.write_text('{"mcpServers": {"a": {"cmd": "x"}}}')
        with pytest.raises(Failure, match="usage_invalid"):
            read_config(path)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def listening(port: int) -> None:
    for _ in range(200):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        return
    raise AssertionError("the server did not start")
