"""openai-agents. Finished: the runner returned a final output. Check: an output guardrail."""
# mypy: ignore-errors - it runs where the peer is installed, and nothing of the peer is here

from agents import (
    Agent,
    GuardrailFunctionOutput,
    OpenAIChatCompletionsModel,
    Runner,
    function_tool,
    output_guardrail,
    set_tracing_disabled,
)
from openai import AsyncOpenAI


def build(url, tools, check, root):
    """Return an agent that is asked."""
    set_tracing_disabled(True)

    @output_guardrail
    async def held(context, agent, output):
        wrong = check()
        return GuardrailFunctionOutput(output_info=wrong, tripwire_triggered=bool(wrong))

    client = AsyncOpenAI(base_url=url, api_key="none")
    agent = Agent(
        name="worker",
        instructions="You do what is asked.",
        model=OpenAIChatCompletionsModel("stub", openai_client=client),
        tools=[function_tool(tool) for tool in tools],
        output_guardrails=[held] if check else [],
    )
    return lambda task: bool(Runner.run_sync(agent, task, max_turns=400).final_output)
