"""smolagents. Finished: the state of the run is 'success'. Check: final_answer_checks."""
# mypy: ignore-errors - it runs where the peer is installed, and nothing of the peer is here

import inspect

from smolagents import OpenAIModel, Tool, ToolCallingAgent

TURNS = 12


def build(url, tools, check, root):
    """Return an agent that is asked."""
    model = OpenAIModel("stub", api_base=url, api_key="none")

    def held(answer, memory, agent=None):
        wrong = check()
        if wrong:
            raise ValueError(wrong)
        return True

    agent = ToolCallingAgent(
        tools=[_wrapped(tool) for tool in tools],
        model=model,
        max_steps=TURNS if tools[0].__name__ != "read_file" else 400,
        verbosity_level=-1,
        final_answer_checks=[held] if check else [],
        return_full_result=True,
    )
    return lambda task: agent.run(task).state == "success"


def _wrapped(function):
    names = list(inspect.signature(function).parameters)

    class Wrapped(Tool):
        name = function.__name__
        description = inspect.getdoc(function)
        inputs = {key: {"type": "string", "description": key} for key in names}  # noqa: RUF012
        output_type = "string"
        skip_forward_signature_validation = True

        def forward(self, **arguments):
            return function(**arguments)

    return Wrapped()
