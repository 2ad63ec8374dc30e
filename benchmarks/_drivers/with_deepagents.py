"""deepagents. Finished: the graph came to its end. Check: a middleware after the agent."""
# mypy: ignore-errors - it runs where the peer is installed, and nothing of the peer is here

from deepagents import create_deep_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_openai import ChatOpenAI


def build(url, tools, check, root):
    """Return an agent that is asked."""

    class Held(AgentMiddleware):
        def after_agent(self, state, runtime):
            wrong = check()
            if wrong:
                raise ValueError(wrong)

    agent = create_deep_agent(
        model=ChatOpenAI(model="stub", base_url=url, api_key="none"),
        tools=tools,
        middleware=[Held()] if check else [],
    )

    def ask(task):
        asked = {"messages": [{"role": "user", "content": task}]}
        return bool(agent.invoke(asked, config={"recursion_limit": 10_000})["messages"])

    return ask
