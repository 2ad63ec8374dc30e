"""mini-swe-agent. Finished: the exit status is 'Submitted'. It has no check to switch on.

It has one tool, the shell. Where only reading is asked, that is answered without starting one.
"""
# mypy: ignore-errors - it runs where the peer is installed, and nothing of the peer is here

import os
import sys

os.environ["MSWEA_SILENT_STARTUP"] = "1"
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel


class _Answering(LocalEnvironment):
    """Answers a command with a file's text, so that no shell is measured."""

    def execute(self, action, cwd="", *, timeout=None):
        command = action.get("command", "")
        if not command.startswith("echo"):
            command = "note"
            with open("inputs/note.txt", encoding="utf-8") as note:  # noqa: PTH123
                output = note.read()
        else:
            output = command.removeprefix("echo ")
        result = {"output": output, "returncode": 0, "exception_info": ""}
        self._check_finished(result)
        return result


def build(url, tools, check, root):
    """Return an agent that is asked."""
    measured = tools[0].__name__ == "read_file"
    bins = os.path.dirname(sys.executable)  # noqa: PTH120
    environment = (_Answering if measured else LocalEnvironment)(
        cwd=str(root), env={"PATH": f"{bins}:{os.environ['PATH']}"}
    )
    model = LitellmModel(
        model_name="openai/stub",
        model_kwargs={"api_base": url, "api_key": "none"},
        cost_tracking="ignore_errors",
    )
    agent = DefaultAgent(
        model,
        environment,
        system_template="You use the shell.",
        instance_template="{{task}}",
        step_limit=0,
        cost_limit=0,
    )
    return lambda task: agent.run(task).get("exit_status") == "Submitted"
