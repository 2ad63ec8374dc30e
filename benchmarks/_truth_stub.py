"""The scripted agents of the truth benchmark, as a Chat Completions service on loopback.

Each run has an address of its own, so a harness that folds or renames messages gets the same steps
in the same order as all others. A step `host` happens before the next answer is given, which is
when the harness is waiting and its tools are idle.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks._truth_cases import Case, Step

DONE = "Done: the file is in its place, and I have checked it."


@dataclass(slots=True)
class Scripted:
    """One agent in one harness.

    Attributes:
        speech: how this harness wants calls: `ours`, `tools`, `smolagents` or `shell`.
        root: below here lies whatever folder the harness works in.
    """

    case: Case
    speech: str
    root: Path
    steps: list[Step] = field(default_factory=list)
    asked: int = 0

    def __post_init__(self) -> None:
        self.steps = list(self.case.steps)

    def answer(self) -> dict[str, Any]:
        """Return the next message; after the last step, always that it is done."""
        self.asked += 1
        while self.steps and self.steps[0].kind == "host":
            change(self.root, self.case.asked.path, self.steps.pop(0))
        if self.steps:
            name, arguments = _call(self.speech, self.steps.pop(0))
        elif self.speech == "smolagents":
            name, arguments = "final_answer", {"answer": DONE}
        elif self.speech == "shell":
            name, arguments = "bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}
        else:
            return {"role": "assistant", "content": DONE}
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"call_{self.asked}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}


def _call(speech: str, step: Step) -> tuple[str, dict[str, str]]:
    if speech == "shell":
        if step.kind == "run":
            return "bash", {"command": f"python - <<'END_OF_SCRIPT'\n{step.what}\nEND_OF_SCRIPT"}
        text = f"cat > {step.what} <<'END_OF_TEXT'\n{step.text.rstrip()}\nEND_OF_TEXT"
        return "bash", {"command": text}
    if step.kind == "run":
        return "run_python", {"code": step.what}
    name = "write_file" if speech == "ours" else "save_text"
    return name, {"path": step.what, "content": step.text}


def change(root: Path, path: str, step: Step) -> int:
    """Change the file wherever the harness keeps it, and return in how many places."""
    found = [file for file in root.rglob(Path(path).name) if str(file).endswith(path)]
    for file in found:
        if step.what == "append":
            with file.open("a", encoding="utf-8") as stream:
                stream.write(step.text)
        elif step.what == "replace":
            file.write_text(step.text, encoding="utf-8")
        else:
            other = root.parent / f"{root.name}-other{file.suffix}"
            other.write_text(step.text, encoding="utf-8")
            file.unlink()
            file.symlink_to(other)
    return len(found)


class Service:
    """Answers for all agents that were added.

    Attributes:
        url: its address.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.agents: dict[str, Scripted] = {}

    def add(self, name: str, agent: Scripted) -> str:
        """Add an agent and return the address of its API."""
        self.agents[name] = agent
        return f"{self.url}/{name}/v1"


@contextmanager
def serving() -> Iterator[Service]:
    """Run the service in a thread."""
    service = Service("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            message = service.agents[self.path.split("/")[1]].answer()
            finish = "tool_calls" if "tool_calls" in message else "stop"
            choice = {"index": 0, "message": message, "finish_reason": finish}
            usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
            kind = {"id": "cmpl-1", "object": "chat.completion", "created": 1790000000}
            said = {**kind, "model": "stub", "choices": [choice], "usage": usage}
            body = json.dumps(said).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
