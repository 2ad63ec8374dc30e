"""Answers of a model: calls in text, odd messages, names and ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from agent_runtime import Failure, Reply, Tool, Usage
from reread.models._replies import CUT_NUDGE, EMPTY_NUDGE, SHOWN_NUDGE, Raw, to_reply

CODE = {"code": "print(6*7)"}
TEXT = json.dumps(CODE)


async def _never(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return {}


def tool(name: str, **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return Tool(name, name, schema, _never)


TOOLS = (
    tool("run_python", code={"type": "string"}, timeout={"type": "number"}),
    tool("list_files"),
    tool("read_file", path={"type": "string"}),
)


def reply_to(message: Mapping[str, Any], finish: str = "stop", **more: Any) -> Reply:
    return to_reply(Raw(message, finish, Usage(9, 9), **more), TOOLS, set(), nudged=False)


class TestCallsInText:
    @pytest.mark.parametrize(
        "text",
        [
            '<tool_call>\n{"name": "run_python", "arguments": @ARGS@}\n</tool_call>',
            '<tool_call>{"name": "run_python", "arguments": @TEXT@}</tool_call>',
            '<think>well</think><tool_call>{"name":"run_python","arguments":@ARGS@}</tool_call>',
            'so I think\n</think>\n<tool_call>{"name":"run_python","arguments":@ARGS@}</tool_call>',
            '{"name": "run_python", "parameters": @ARGS@}',
            '```json\n{"name": "run_python", "arguments": @ARGS@}\n```',
            '<|python_tag|>{"name": "run_python", "parameters": @ARGS@}',
            '[TOOL_CALLS][{"name": "run_python", "arguments": @ARGS@}]',
            "[TOOL_CALLS]run_python[ARGS]@ARGS@",
            "<function=run_python><parameter=code>\nprint(6*7)\n</parameter></function>",
            "<tool_call>\n<function=run_python>\n<parameter=code>\nprint(6*7)\n</parameter>\n"
            "</function>\n</tool_call>",
            '<minimax:tool_call><invoke name="run_python"><parameter name="code">print(6*7)'
            "</parameter></invoke></minimax:tool_call>",
            '<function_calls><invoke name="run_python"><parameter name="code">print(6*7)'
            "</parameter></invoke></function_calls>",
            "<|channel|>commentary to=functions.run_python <|constrain|>json"
            "<|message|>@ARGS@<|call|>",
            "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>function"
            "<\uff5ctool\u2581sep\uff5c>run_python\n```json\n@ARGS@\n```<\uff5ctool\u2581call\u2581end"
            "\uff5c><\uff5ctool\u2581calls\u2581end\uff5c>",
        ],
    )
    def test_that_are_all_there_is_are_calls(self, text: str) -> None:
        text = text.replace("@ARGS@", TEXT).replace("@TEXT@", json.dumps(TEXT))
        reply = reply_to({"content": text})
        assert [(c.name, c.arguments, c.fault) for c in reply.calls] == [("run_python", CODE, None)]

    def test_may_be_several(self) -> None:
        one = '<tool_call>{"name": "list_files", "arguments": {}}</tool_call>'
        assert [c.name for c in reply_to({"content": f"{one}\n{one}"}).calls] == ["list_files"] * 2

    @pytest.mark.parametrize(
        "text",
        [
            'I will run this:\n<tool_call>{"name": "run_python", "arguments": {}}</tool_call>',
            'First:\n```json\n{"name": "run_python", "arguments": {"code": "1"}}\n```\nThen more.',
            '<tool_call>{"name": "run_python", "arguments": {"code": "1',
            "<tool_response>\n10\n</tool_response>",
            '<tool_call>{"name": "rm_rf", "arguments": {}}</tool_call>',
            'Let me see. <tool_call>{"name": "run_python", "argum',
        ],
    )
    def test_that_are_only_shown_are_nudged(self, text: str) -> None:
        reply = reply_to({"content": text})
        assert (reply.calls, reply.nudge) == ((), SHOWN_NUDGE)

    @pytest.mark.parametrize(
        "text",
        [
            "Models write <tool_call>{...}</tool_call> at times.",
            "Use [TOOL_CALLS] with care.",
            '```json\n{"name": "Anna", "age": 7}\n```',
            '{"name": "Anna", "arguments": "loud"}',
            "The function <function=x> is no tool of mine.",
            "It is 42.",
        ],
    )
    def test_that_are_prose_stay_prose(self, text: str) -> None:
        reply = reply_to({"content": text})
        assert (reply.calls, reply.text) == ((), text)

    def test_thoughts_are_not_the_answer(self) -> None:
        assert reply_to({"content": "<think>hm</think>\n42"}).text == "42"


class TestReplies:
    def test_cut_off_run_nothing_even_where_the_call_is_whole(self) -> None:
        call = {"id": "a", "function": {"name": "run_python", "arguments": TEXT}}
        (made,) = reply_to({"content": None, "tool_calls": [call]}, "length").calls
        assert made.fault is not None
        assert made.fault.code == "model_output_cut"

    def test_cut_off_in_text_are_nudged_once_and_then_fail(self) -> None:
        assert reply_to({"content": "The"}, "length").nudge == CUT_NUDGE
        raw = Raw({"content": "The"}, "length", Usage())
        with pytest.raises(Failure) as caught:
            to_reply(raw, TOOLS, set(), nudged=True)
        assert caught.value.code == "model_output_cut"

    @pytest.mark.parametrize("message", [{"content": ""}, {"content": None}, {}, {"content": " "}])
    def test_that_are_empty_are_nudged(self, message: Mapping[str, Any]) -> None:
        assert reply_to(message).nudge == EMPTY_NUDGE

    @pytest.mark.parametrize("finish", ["content_filter", "SAFETY", "refusal"])
    def test_that_are_filtered_are_refusals(self, finish: str) -> None:
        with pytest.raises(Failure) as caught:
            reply_to({"content": "x"}, finish)
        assert caught.value.code == "model_refused"

    def test_that_refuse_in_their_own_field_are_refusals(self) -> None:
        with pytest.raises(Failure) as caught:
            reply_to({"content": None, "refusal": "I will not."})
        assert caught.value.code == "model_refused"

    @pytest.mark.parametrize(
        "name", ["run_python<|channel|>json", "functions.run_python", " run_python ", "run_python"]
    )
    def test_names_lose_what_templates_leak_into_them(self, name: str) -> None:
        call = {"id": "a", "function": {"name": name, "arguments": TEXT}}
        assert [c.name for c in reply_to({"tool_calls": [call]}).calls] == ["run_python"]

    @pytest.mark.parametrize("name", ["Run_Python", "multi_tool_use.parallel", "", "a b", "x" * 99])
    def test_names_that_are_unknown_stay_unknown(self, name: str) -> None:
        call = {"id": "a", "function": {"name": name, "arguments": "{}"}}
        assert [c.name for c in reply_to({"tool_calls": [call]}).calls] == [name]

    @pytest.mark.parametrize(
        "ids", [[None, None], ["", ""], ["a", "a"], [7, 8], ["a\n", "a"], ["known", "x"]]
    )
    def test_ids_are_made_unique(self, ids: list[Any]) -> None:
        function = {"name": "list_files", "arguments": "{}"}
        calls = [{"id": name, "function": function} for name in ids]
        raw = Raw({"tool_calls": calls}, "tool_calls", Usage())
        reply = to_reply(raw, TOOLS, {"known"}, nudged=False)
        made = [call.id for call in reply.calls]
        assert len({*made, "known"}) == 3
        assert [entry["id"] for entry in reply.message["tool_calls"]] == made

    @pytest.mark.parametrize(
        "calls",
        [[None, {"function": {"name": "list_files"}}], {"function": {"name": "list_files"}}],
    )
    def test_calls_in_odd_wrappings_are_found(self, calls: Any) -> None:
        assert [c.name for c in reply_to({"tool_calls": calls}).calls] == ["list_files"]

    def test_content_in_parts_is_text(self) -> None:
        parts = [{"type": "text", "text": "4"}, {"type": "text", "text": "2"}]
        assert reply_to({"content": parts}).text == "42"

    def test_fields_that_only_the_service_knows_go_back(self) -> None:
        message = {"content": "x", "reasoning_content": "", "reasoning_details": [{"a": 1}]}
        made = reply_to(message).message
        assert (made["reasoning_content"], made["reasoning_details"]) == ("", [{"a": 1}])
