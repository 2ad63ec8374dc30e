"""The loop that one writes oneself over the client, as its documentation shows it.

Finished: the model answered without a call. Its strongest check is what one puts after the loop.
"""
# mypy: ignore-errors - it runs where the peer is installed, and nothing of the peer is here

import inspect
import json

from openai import OpenAI

TURNS = 400


def build(url, tools, check, root):
    """Return the loop."""
    client = OpenAI(base_url=url, api_key="none")
    known = {tool.__name__: tool for tool in tools}
    described = [_described(tool) for tool in tools]

    def ask(task):
        messages = [{"role": "user", "content": task}]
        for _ in range(TURNS):
            answer = client.chat.completions.create(
                model="stub", messages=messages, tools=described
            )
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return not (check and check())
            for call in message.tool_calls:
                said = known[call.function.name](**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": said})
        return False

    return ask


def _described(tool):
    names = list(inspect.signature(tool).parameters)
    parameters = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": names,
    }
    function = {
        "name": tool.__name__,
        "description": inspect.getdoc(tool),
        "parameters": parameters,
    }
    return {"type": "function", "function": function}
