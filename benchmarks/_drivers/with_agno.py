"""agno. Finished: the status of the run is 'completed'. Check: a post hook."""
# mypy: ignore-errors - it runs where the peer is installed, and nothing of the peer is here

from agno.agent import Agent
from agno.exceptions import CheckTrigger, OutputCheckError
from agno.models.openai.like import OpenAILike
from agno.run.base import RunStatus


def build(url, tools, check, root):
    """Return an agent that is asked."""

    def held(run_output):
        wrong = check()
        if wrong:
            raise OutputCheckError(wrong, check_trigger=CheckTrigger.OUTPUT_NOT_ALLOWED)

    agent = Agent(
        model=OpenAILike(id="stub", base_url=url, api_key="none"),
        tools=tools,
        post_hooks=[held] if check else None,
        telemetry=False,
    )
    return lambda task: agent.run(task).status == RunStatus.completed
