"""pydantic-ai. Finished: the run returned a result. Check: an output validator that asks again."""
# mypy: ignore-errors - it runs where the peer is installed, and nothing of the peer is here

from pydantic_ai import Agent, ModelRetry, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


def build(url, tools, check, root):
    """Return an agent that is asked."""
    provider = OpenAIProvider(base_url=url, api_key="none")
    agent = Agent(OpenAIChatModel("stub", provider=provider), tools=tools, retries=2)
    if check:

        @agent.output_validator
        def held(output: str) -> str:
            wrong = check()
            if wrong:
                raise ModelRetry(wrong)
            return output

    limits = UsageLimits(request_limit=None)
    return lambda task: bool(agent.run_sync(task, usage_limits=limits).output)
