"""langgraph's own agent. Finished: the graph came to its end. Check: a hook behind the model."""
# mypy: ignore-errors - it runs where the peer is installed, and nothing of the peer is here

from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent


def build(url, tools, check, root):
    """Return an agent that is asked."""

    def held(state):
        ends = not getattr(state["messages"][-1], "tool_calls", None)
        wrong = check() if ends else ""
        if wrong:
            raise ValueError(wrong)
        return {}

    agent = create_react_agent(
        ChatOpenAI(model="stub", base_url=url, api_key="none"),
        tools,
        post_model_hook=held if check else None,
    )

    def ask(task):
        asked = {"messages": [{"role": "user", "content": task}]}
        return bool(agent.invoke(asked, config={"recursion_limit": 10_000})["messages"])

    return ask
