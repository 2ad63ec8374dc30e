"""The server: six tools over stdio or streamable HTTP, with the official package.

HTTP listens on loopback and wants the token that was printed at the start, in every request.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from functools import partial
from typing import Any

from mcp.server.mcpserver import Context, MCPServer

from reread.mcp.service import Service, answered

INSTRUCTIONS = (
    "Judge files from their bytes (check_file), run Python in a sandbox (run_python), and do whole "
    "tasks whose result is proven from disk (run_task). Paths are relative to one workspace."
)


def build(service: Service) -> Any:
    """Return the MCP server of a service."""
    server = MCPServer("reread", instructions=INSTRUCTIONS, log_level="ERROR")

    @server.tool()
    async def check_file(
        path: str, format: str = "", contract: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Judge a file of the workspace: is it of its format, whole, with content, as asked?"""
        return await answered(partial(service.check_file, path, format, contract))

    @server.tool()
    async def run_python(code: str, ctx: Context) -> dict[str, Any]:
        """Run a Python script with a PEP 723 block; it writes outputs/ and drafts/."""
        return await _with_progress(ctx, lambda tell: service.run_python(code, tell))

    @server.tool()
    async def run_task(task: str, ctx: Context, fixture: str = "") -> dict[str, Any]:
        """Do a task (the text of a task file) and return the verdict that was read from disk."""
        return await _with_progress(ctx, lambda tell: service.run_task(task, fixture, tell))

    @server.tool()
    async def verify_extension(path: str, ctx: Context) -> dict[str, Any]:
        """Verify an extension package of the workspace in three layers."""
        return await _with_progress(ctx, lambda tell: service.verify_extension(path))

    @server.tool()
    async def list_skills() -> dict[str, Any]:
        """List the skills of the workspace."""
        return await answered(service.list_skills)

    @server.tool()
    async def activate_skill(name: str) -> dict[str, Any]:
        """Read the instructions of a skill."""
        return await answered(partial(service.activate_skill, name))

    return server


async def _with_progress(ctx: Any, start: Any) -> dict[str, Any]:
    """Run long work and report each event of it that a person would want to see."""
    from reread.view import doing_of, line_of

    events: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def tell(kind: str, data: Mapping[str, Any]) -> None:
        text = line_of(kind, data) or doing_of(kind, data)
        if text:
            loop.call_soon_threadsafe(events.put_nowait, text)

    async def report() -> None:
        number = 0
        while True:
            number += 1
            await ctx.report_progress(number, message=await events.get())

    reporter = asyncio.create_task(report())
    try:
        return await answered(start(tell))
    finally:
        reporter.cancel()


async def serve_http(service: Service, *, port: int, token: str) -> None:
    """Serve on loopback until cancelled; every request needs the token."""
    import uvicorn

    app = _Guarded(build(service).streamable_http_app(host="127.0.0.1"), token)
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error")
    await uvicorn.Server(config).serve()


class _Guarded:
    """Lets requests pass that carry the token; the others are answered with 401."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"authorization", b"")
        if hmac.compare_digest(given, self._wanted):
            await self._app(scope, receive, send)
            return
        headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": b"The token is missing or wrong.\n"})
