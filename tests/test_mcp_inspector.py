"""The server, asked by a client that others wrote: the MCP inspector's command line, from npm.

Opt-in, since it installs 160 MB: REREAD_INSPECTOR=1.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.test_mcp import ROOT, free_port

PACKAGE = "@modelcontextprotocol/inspector@0.17.2"
SERVER = (sys.executable, str(ROOT / "app.py"), "mcp")
SECONDS = 120
pytestmark = pytest.mark.skipif(
    os.environ.get("REREAD_INSPECTOR") != "1" or shutil.which("npm") is None,
    reason="installs the MCP inspector with npm: REREAD_INSPECTOR=1",
)


@pytest.fixture(scope="module")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return its program."""
    place = tmp_path_factory.mktemp("inspector")
    (place / "package.json").write_text("{}")
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", PACKAGE]
    subprocess.run(command, cwd=place, check=True, capture_output=True, timeout=600)
    return place / "node_modules" / ".bin" / "mcp-inspector"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs/good.json").write_text('{"a": [1, 2, 3]}')
    (tmp_path / "outputs/bad.json").write_text('{"a": [1, 2')
    return tmp_path


def asked(inspector: Path, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [str(inspector), "--cli", *arguments], capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


class TestOverStdio:
    def test_it_lists_the_six_tools(self, inspector: Path, workspace: Path) -> None:
        flags = ("--workspace", str(workspace), "--method", "tools/list")
        tools = asked(inspector, *SERVER, *flags)["tools"]
        assert len(tools) == 6
        assert all(tool["inputSchema"]["type"] == "object" for tool in tools)

    @pytest.mark.parametrize(("name", "ok"), [("good.json", True), ("bad.json", False)])
    def test_it_has_a_file_judged(
        self, inspector: Path, workspace: Path, name: str, ok: bool
    ) -> None:
        flags = ("--workspace", str(workspace), "--method", "tools/call")
        call = ("--tool-name", "check_file", "--tool-arg", f"path=outputs/{name}")
        assert asked(inspector, *SERVER, *flags, *call)["structuredContent"]["ok"] is ok


@pytest.fixture
def served(workspace: Path) -> Iterator[str]:
    port = free_port()
    command = [*SERVER, "--workspace", str(workspace), "--http", str(port), "--token", "t0ken"]
    server = subprocess.Popen(command, cwd=ROOT)
    try:
        _until_it_answers(f"http://127.0.0.1:{port}/mcp")
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.terminate()
        server.wait(30)


def _until_it_answers(url: str) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(url, timeout=5)
        except urllib.error.HTTPError:
            return  # it refuses one without a token, so it is there
        except OSError:
            time.sleep(0.1)


class TestOverHttp:
    def test_it_gets_in_with_the_token(self, inspector: Path, served: str) -> None:
        header = ("--header", "Authorization: Bearer t0ken")
        tools = asked(inspector, served, "--transport", "http", *header, "--method", "tools/list")
        assert len(tools["tools"]) == 6

    def test_it_does_not_get_in_without(self, inspector: Path, served: str) -> None:
        command = [str(inspector), "--cli", served, "--transport", "http", "--method", "tools/list"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode != 0
