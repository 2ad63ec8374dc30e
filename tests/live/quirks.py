"""The table of known quirks: how a case is played, and what each of its outcomes means."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_runtime import (
    Budget,
    Conversation,
    Limits,
    Message,
    Reply,
    Round,
    Tool,
    Usage,
    run_agent,
)
from reread.models import Settings, shorten
from reread.models.chat import ChatModel
from tests.live.rules import violations
from tests.live.stand_in import Answer, Asked, as_events, as_json, chunk, completion, stand_in

DATA = Path(__file__).parents[1] / "data" / "provider-quirks.json"
CASES: list[dict[str, Any]] = json.loads(DATA.read_text("utf-8"))["cases"]
KEY = "sk-test-0123456789abcdefghij"
ATTEMPTS = 2

# What a request carries beyond the default, when a case is about it.
OFFERED: dict[str, Any] = {
    "max_tokens": 100_000,
    "max_completion_tokens": 100_000,
    "temperature": 0,
    "top_p": 0.5,
    "tool_choice": "required",
    "parallel_tool_calls": True,
    "strict": True,
    "seed": 7,
    "stop": ["END"],
    "n": 1,
    "frequency_penalty": 0.1,
    "presence_penalty": 0.1,
    "reasoning_effort": "low",
    "logprobs": False,
    "user": "someone",
}


@dataclass(slots=True)
class Seen:
    """What one case led to."""

    round: Round
    ran: list[tuple[str, dict[str, Any]]]
    asked: list[Asked]
    messages: list[Message]
    told: list[tuple[str, Mapping[str, Any]]]
    replies: list[Reply] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)

    def answers(self) -> list[dict[str, Any]]:
        """What the model was told of its calls."""
        return [json.loads(m["content"]) for m in self.messages if m["role"] == "tool"]


def answer_of(case: Mapping[str, Any]) -> Answer:
    response = case["response"]
    cut = response.get("transport", {}).get("reset_after_bytes")
    if "sse" in response:
        headers = {"content-type": "text/event-stream", **response.get("headers", {})}
        return Answer(response["status"], headers, response["sse"].encode(), cut_after=cut)
    if "json" in response:
        made = as_json(response["json"], response["status"], response.get("headers"))
        return Answer(made.status, made.headers, made.body, cut_after=cut)
    headers = {"content-type": "text/plain", **response.get("headers", {})}
    return Answer(response["status"], headers, response["raw"].encode(), cut_after=cut)


def good(asked: Asked) -> Answer:
    """What a service says when all is well."""
    if asked.body.get("stream"):
        return as_events(chunk({"role": "assistant", "content": "done"}), chunk({}, "stop"))
    return as_json(completion("done"))


def options_of(case: Mapping[str, Any]) -> dict[str, Any]:
    """Send what the case needs to be about something: what its error names."""
    options = dict(case.get("request") or {})
    if case["expect"]["outcome"] == "adjust":
        text = json.dumps(case["response"])
        named = [name for name in OFFERED if re.search(rf"\b{name}\b", text)]
        changed = " ".join(case["expect"]["changed"])
        renamed = re.search(r"(\w+) -> (\w+)", changed)
        if renamed and renamed[2] in OFFERED:
            named = [renamed[1]]
        options.update({name: OFFERED[name] for name in named})
        if case["id"].startswith("param-strict") or "strict" in changed:
            options["strict"] = True
    return options


def history_of(case: Mapping[str, Any]) -> list[Message]:
    """The history at which a case begins: what its error complains about is in it."""
    messages: list[Message] = [
        {"role": "system", "content": "You run Python."},
        {"role": "user", "content": "Compute 6*7."},
    ]
    text = json.dumps(case)
    if case["expect"]["outcome"] not in ("adjust", "compact"):
        return messages
    call = {
        "id": "call_a1",
        "type": "function",
        "function": {"name": "list_files", "arguments": "{}"},
    }
    messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    if case["expect"]["outcome"] == "compact":
        messages.append({"role": "tool", "tool_call_id": "call_a1", "content": "x" * 40_000})
        return messages
    if "did not have response messages" in text:
        return messages
    content: Any = '{"ok": true}'
    if "image" in text:
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        content = [{"type": "text", "text": "a plot"}, image]
    messages.append({"role": "tool", "tool_call_id": "call_a1", "content": content})
    return messages


def tools(ran: list[tuple[str, dict[str, Any]]], *, changes: bool = False) -> list[Tool]:
    def tool(name: str, properties: dict[str, Any], required: Sequence[str]) -> Tool:
        async def handler(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
            ran.append((name, dict(arguments)))
            return {"done": True}

        schema = {
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        }
        return Tool(name, f"{name} of the test", schema, handler, changes=changes)

    text = {"type": "string"}
    return [
        tool("run_python", {"code": text, "timeout": {"type": ["number", "null"]}}, ["code"]),
        tool("list_files", {}, []),
        tool("read_file", {"path": text}, ["path"]),
    ]


async def play(
    case: Mapping[str, Any], *, bad: int | None = 1, changes: bool = False, turns: int = 8
) -> Seen:
    """Run the loop against a service that answers like the case, `bad` times or for ever."""

    def answering(asked: Asked, number: int) -> Answer:
        return answer_of(case) if bad is None or number < bad else good(asked)

    ran: list[tuple[str, dict[str, Any]]] = []
    told: list[tuple[str, Mapping[str, Any]]] = []
    async with stand_in(answering) as service:
        settings = Settings(
            KEY,
            "quirk-1",
            service.base_url,
            options_of(case),
            stream=case["stream"],
            timeout=5,
            attempts=ATTEMPTS,
        )
        model = ChatModel(settings, backoff=0.01, tell=lambda kind, data: told.append((kind, data)))
        conversation = Conversation(history_of(case), Budget(Limits(turns=turns, timeout=20)))
        try:
            ended = await run_agent(
                model, conversation, tools(ran, changes=changes), shorten=shorten
            )
        finally:
            await model.aclose()
    return Seen(
        ended, ran, service.asked, conversation.messages, told, usage=conversation.budget.usage
    )


# -- what each outcome means


def check_calls(expect: Mapping[str, Any], seen: Seen) -> Iterator[str]:
    wanted = [(call["name"], call["arguments"]) for call in expect["calls"]]
    if seen.ran != wanted:
        yield f"ran {seen.ran} and not {wanted}"
    if seen.round.status != "complete":
        yield f"ended {seen.round}"
    if len(seen.asked) != 2:
        yield f"{len(seen.asked)} requests"
        return
    message = next((m for m in seen.asked[1].body["messages"] if m.get("tool_calls")), None)
    if message is None:
        yield "no call is in the history"
        return
    call = message["tool_calls"][0]
    if (
        "history_arguments" in expect
        and call["function"]["arguments"] != expect["history_arguments"]
    ):
        yield f"the history says {call['function']['arguments']!r}"
    for key, value in expect.get("echo", {}).items():
        if message.get(key) != value:
            yield f"{key} was not sent back: {message}"
    for key, value in expect.get("echo_call", {}).items():
        if call.get(key) != value:
            yield f"{key} of the call was not sent back: {call}"


def check_call_error(expect: Mapping[str, Any], seen: Seen) -> Iterator[str]:
    kinds = {"json": "tool_arguments_invalid", "schema": "tool_arguments_invalid"}
    code = {**kinds, "unknown_tool": "tool_unknown"}[expect["error_kind"]]
    answers = seen.answers()
    if seen.ran:
        yield f"ran {seen.ran}"
    if [answer["code"] for answer in answers] != [code]:
        yield f"answered {answers}"
    elif expect.get("lists_tools") and "run_python" not in answers[0]["remedy"]:
        yield f"the real tools are not named: {answers[0]}"
    if seen.round.status != "complete" or len(seen.asked) != 2:
        yield f"the loop did not go on: {seen.round}"


def check_truncated(expect: Mapping[str, Any], seen: Seen) -> Iterator[str]:
    if seen.ran:
        yield f"ran {seen.ran}"
    text = json.dumps(seen.asked[1:2] and seen.asked[1].body["messages"][-1])
    if "model_output_cut" not in text and "cut off" not in text:
        yield f"the model was not told: {text}"
    if len(seen.asked) != 2:
        yield f"{len(seen.asked)} requests"


def check_final(expect: Mapping[str, Any], seen: Seen) -> Iterator[str]:
    if seen.round.status != "complete" or len(seen.asked) != 1:
        yield f"{len(seen.asked)} requests, ended {seen.round}"
    if "text" in expect and seen.round.text != expect["text"]:
        yield f"said {seen.round.text!r}"
    said = expect.get("usage")
    counted = (seen.usage.input_tokens, seen.usage.output_tokens)
    if said and counted != (said["prompt_tokens"], said["completion_tokens"]):
        yield f"counted {seen.usage}"
    if seen.usage.tokens == 0:
        yield "counted nothing"


def check_nudge(expect: Mapping[str, Any], seen: Seen) -> Iterator[str]:
    if seen.ran:
        yield f"ran {seen.ran}"
    if len(seen.asked) != 2 or seen.asked[1].body["messages"][-1]["role"] != "user":
        yield f"{len(seen.asked)} requests, no nudge"
    if seen.round.text != "done":
        yield f"ended {seen.round}"


def check_retry(expect: Mapping[str, Any], seen: Seen) -> Iterator[str]:
    if seen.ran or seen.round.text != "done" or len(seen.asked) != 2:
        yield f"ran {seen.ran}, {len(seen.asked)} requests, ended {seen.round}"
        return
    if seen.asked[0].body != seen.asked[1].body:
        yield "the second request is another one"
    least, most = expect.get("wait_s", (0, 10))
    waited = seen.asked[1].at - seen.asked[0].at
    if not least - 0.05 <= waited <= most:
        yield f"waited {waited:.2f} s"


def check_compact(expect: Mapping[str, Any], seen: Seen) -> Iterator[str]:
    if seen.round.text != "done" or len(seen.asked) != 2:
        yield f"{len(seen.asked)} requests, ended {seen.round}"
        return
    sizes = [len(json.dumps(asked.body)) for asked in seen.asked]
    if sizes[1] > sizes[0] * 0.6:
        yield f"not smaller: {sizes}"
    if [m["role"] for m in seen.asked[1].body["messages"]] != [
        m["role"] for m in seen.asked[0].body["messages"]
    ]:
        yield "messages are missing"


def check_fail(expect: Mapping[str, Any], seen: Seen) -> Iterator[str]:
    failure = seen.round.failure
    if failure is None or failure.details.get("kind") != expect["kind"]:
        yield f"ended {seen.round} {failure and failure.details}"
        return
    if len(seen.asked) != 1:
        yield f"{len(seen.asked)} requests"
    said = str(failure)
    if expect.get("mentions", "") not in said:
        yield f"says {said}"
    if "<html" in said or "sk-ab" in said or KEY in said:
        yield f"shows too much: {said}"


def check_adjust(expect: Mapping[str, Any], seen: Seen) -> Iterator[str]:
    if seen.round.text != "done":
        yield f"{len(seen.asked)} requests, ended {seen.round} {seen.round.failure}"
        return
    first, last = seen.asked[0].body, seen.asked[-1].body
    for change in expect["changed"]:
        if not _changed(change, first, last):
            yield f"not done: {change}; {first} → {last}"
    if expect.get("not") == "compact" and len(json.dumps(last)) < len(json.dumps(first)) - 100:
        yield "the history was made shorter"


def _changed(change: str, first: Mapping[str, Any], last: Mapping[str, Any]) -> bool:
    """Say whether a request was changed as the case asks, in the words that cases use."""
    if match := re.fullmatch(r"drop (\w+)", change):
        name = match[1]
        if name == "image":
            return "image_url" not in json.dumps(last)
        return f'"{name}"' in json.dumps(first) and f'"{name}"' not in json.dumps(last)
    if match := re.fullmatch(r"(\w+) -> (\w+)", change):
        if match[2] in OFFERED:
            return bool(match[1] in first and match[1] not in last and match[2] in last)
        return bool(match[1] in first and last.get(match[1], match[2]) == match[2])
    if match := re.fullmatch(r"add (reasoning\w*)", change):
        return all(match[1] in m for m in last["messages"] if m.get("tool_calls"))
    if "image" in change:
        return "image_url" in json.dumps([m for m in last["messages"] if m["role"] == "user"])
    if "tool results" in change:
        return not list(violations(last))
    if change == "fix schema":
        return bool(first["tools"] != last["tools"])
    if change == "stream off":
        return bool(first.get("stream")) and not last.get("stream")
    return bool(change in first and first[change] != last.get(change))


CHECKS = {
    "calls": check_calls,
    "call_error": check_call_error,
    "truncated": check_truncated,
    "final": check_final,
    "nudge": check_nudge,
    "retry": check_retry,
    "compact": check_compact,
    "fail": check_fail,
    "adjust": check_adjust,
}


def wrong(case: Mapping[str, Any], seen: Seen) -> list[str]:
    """Return what does not hold; a case may name a second outcome that is right as well."""
    expects = [case["expect"], *filter(None, [case["expect"].get("or")])]
    found = [list(CHECKS[e["outcome"]]({**case["expect"], **e}, seen)) for e in expects]
    return [] if [] in found else found[0]


def case_named(name: str) -> dict[str, Any]:
    return next(case for case in CASES if case["id"] == name)


def of(*outcomes: str) -> list[str]:
    return [case["id"] for case in CASES if case["expect"]["outcome"] in outcomes]
