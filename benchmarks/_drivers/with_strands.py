"""strands-agents. Finished: it stopped at the end of a turn. Check: a hook after the invocation."""
# mypy: ignore-errors - it runs where the peer is installed, and nothing of the peer is here

from strands import Agent, tool
from strands.hooks import AfterInvocationEvent
from strands.models.openai import OpenAIModel


def build(url, tools, check, root):
    """Return an agent that is asked."""

    def held(event):
        wrong = check()
        if wrong:
            raise ValueError(wrong)

    def ask(task):
        agent = Agent(
            model=OpenAIModel(client_args={"base_url": url, "api_key": "none"}, model_id="stub"),
            tools=[tool(one) for one in tools],
            callback_handler=None,
        )
        if check:
            agent.hooks.add_callback(AfterInvocationEvent, held)
        return agent(task).stop_reason == "end_turn"

    return ask
