"""mcp: serve the gate and the runner to other agents."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
from pathlib import Path

from reread import extras, models
from reread.values import Permissions

HELP = (
    "Serve check_file, run_python, run_task, verify_extension, list_skills and activate_skill over "
    "the Model Context Protocol: stdio by default, or streamable HTTP on loopback with a token."
)
SAMPLES = Path(__file__).resolve().parents[2]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "--workspace", type=Path, default=Path(), metavar="DIR", help="default: this folder"
    )
    parser.add_argument(
        "--live", action="store_true", help="run_task asks OPENAI_MODEL; costs money"
    )
    parser.add_argument("--http", type=int, metavar="PORT", help="listen on 127.0.0.1:PORT/mcp")
    parser.add_argument(
        "--token", default="", help="the token of HTTP requests (default: a new one, shown once)"
    )
    parser.add_argument("--allow-network", action="store_true", help="scripts may use the network")
    parser.add_argument(
        "--allow-version-specifiers", action="store_true", help="scripts may ask for versions"
    )
    parser.add_argument(
        "--unsandboxed", action="store_true", help="scripts may run without any sandbox"
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until the client is gone or the process is ended."""
    extras.need("mcp")
    from reread.mcp import server
    from reread.mcp.service import Service

    service = Service(
        root=arguments.workspace.resolve(),
        samples=SAMPLES,
        settings=models.settings_from_environment() if arguments.live else None,
        permissions=Permissions(
            network=arguments.allow_network,
            version_specifiers=arguments.allow_version_specifiers,
            unsandboxed=arguments.unsandboxed,
        ),
    )
    if arguments.http is None:
        server.build(service).run("stdio")
        return 0
    token = arguments.token or secrets.token_urlsafe(24)
    print(f"http://127.0.0.1:{arguments.http}/mcp  token: {token}", file=sys.stderr, flush=True)
    asyncio.run(server.serve_http(service, port=arguments.http, token=token))
    return 0
