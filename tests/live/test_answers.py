"""What services send, in the shapes that are known: arguments, streams, calls in text, errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from agent_runtime import Failure, Reply, Tool, Usage
from reread.models._arguments import decode
from reread.models._errors import Trouble, from_body, from_response
from reread.models._profile import Profile, adjusted
from reread.models._replies import CUT_NUDGE, EMPTY_NUDGE, SHOWN_NUDGE, Raw, to_reply
from reread.models._stream import BrokenEvent, Events, Pieces
from tests.live.stand_in import chunk

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


class TestArguments:
    @pytest.mark.parametrize(
        "raw",
        [
            TEXT,
            CODE,
            f" \n{TEXT}\n ",
            f"\ufeff{TEXT}",
            '{"code": "print(6\\u002a7)"}',
            f"{TEXT}\x00",
        ],
    )
    def test_are_read_as_they_are(self, raw: Any) -> None:
        assert (decode(raw).value, decode(raw).repaired, decode(raw).fault) == (CODE, False, "")

    @pytest.mark.parametrize("raw", ["", " ", "\n", None, {}, "{}", "\ufeff"])
    def test_that_are_missing_are_an_empty_object(self, raw: Any) -> None:
        assert (decode(raw).value, decode(raw).fault) == ({}, "")

    @pytest.mark.parametrize(
        "raw",
        [
            '{"code": "print(6*7)",}',
            '{"code": "print(6*7)" , }',
            f"```json\n{TEXT}\n```",
            f"```\n{TEXT}```",
            f"{TEXT}{TEXT}",
            f"{TEXT}\n{TEXT}",
            '{"code": "print(6*7)"',
            "{'code': 'print(6*7)'}",
            json.dumps(TEXT),
        ],
    )
    def test_that_need_a_repair_say_so(self, raw: Any) -> None:
        assert (decode(raw).value, decode(raw).repaired) == (CODE, True)

    def test_keep_raw_line_breaks_and_tabs_inside_of_text(self) -> None:
        assert decode('{"code": "if x:\n\tpass"}').value == {"code": "if x:\n\tpass"}

    def test_keep_commas_and_brackets_inside_of_text(self) -> None:
        assert decode('{"code": "a = [1,]\\nb = {2,}",}').value == {"code": "a = [1,]\nb = {2,}"}

    def test_of_python_keep_its_constants(self) -> None:
        found = decode("{'a': True, 'b': None, 'c': [1, 2.5, 'x']}")
        assert found.value == {"a": True, "b": None, "c": [1, 2.5, "x"]}

    @pytest.mark.parametrize(
        "raw",
        [
            '{"code": "print("hi")"}',
            '{"code": "print(""hi"")"}',
            "{'code': 'print('hi')'}",
            '{"code": "a"} and some words',
            'run this: {"code": "a"}',
            '{"code": "a"}{"code": "b"}',
            '{"code": "a", "code": "b"}',
            "{'code': 'a', 'code': 'b'}",
            '{"timeout": NaN}',
            '{"timeout": Infinity}',
            '{"timeout": 1' + "0" * 5000 + "}",
            "[" * 100_000,
            '{"a":' * 50_000,
            "{'a': (1, 2)}",
            "{'a': b'x'}",
            "{'a': {1, 2}}",
            "{1: 'a'}",
            "__import__('os')",
            '{"code": "a" "b"}',
            "{'code': 'a' 'b'}",
        ],
    )
    def test_that_are_in_doubt_are_refused(self, raw: str) -> None:
        found = decode(raw)
        assert found.fault in ("json", "cut")
        assert found.value == {}

    @pytest.mark.parametrize("raw", ["null", "5", "[]", '"text"', "true", 5, [CODE], '["a"]'])
    def test_that_are_no_object_are_refused(self, raw: Any) -> None:
        assert decode(raw).fault == "schema"

    @pytest.mark.parametrize(
        "raw", ['{"code": "print(', '{"code": "a\\"', '{"timeout": 1', '{"code":', '{"code": "x", ']
    )
    def test_that_end_in_the_middle_are_cut(self, raw: str) -> None:
        assert decode(raw).fault == "cut"

    def test_with_half_a_character_are_repaired(self) -> None:
        found = decode('{"code": "\\ud83d"}')
        assert (found.value, found.repaired) == ({"code": "\ufffd"}, True)

    def test_with_a_pair_of_halves_are_whole(self) -> None:
        assert decode('{"code": "\\ud83d\\ude00"}').value == {"code": "😀"}


def call_delta(index: int | None = 0, **fields: Any) -> dict[str, Any]:
    call: dict[str, Any] = {} if index is None else {"index": index}
    if "id" in fields:
        call["id"] = fields.pop("id")
    return {"tool_calls": [{**call, "function": fields}]}


def heard(*deltas: dict[str, Any]) -> list[tuple[str, Any]]:
    pieces = Pieces()
    for delta in deltas:
        pieces.add(chunk(delta))
    calls = pieces.message().get("tool_calls", ())
    return [(call["function"]["name"], call["function"]["arguments"]) for call in calls]


ONE, TWO = '{"code": "1"}', '{"code": "2"}'


class TestStreamedCalls:
    def test_in_pieces_are_put_together(self) -> None:
        found = heard(
            call_delta(id="a", name="run_python", arguments=""),
            call_delta(arguments='{"code": '),
            call_delta(arguments='"1"}'),
        )
        assert found == [("run_python", ONE)]

    @pytest.mark.parametrize("index", [0, None])
    def test_with_ids_of_their_own_are_two(self, index: int | None) -> None:
        found = heard(
            call_delta(index, id="a", name="run_python", arguments=ONE),
            call_delta(index, id="b", name="run_python", arguments=TWO),
        )
        assert found == [("run_python", ONE), ("run_python", TWO)]

    @pytest.mark.parametrize("index", [0, None])
    def test_without_ids_that_start_anew_are_two(self, index: int | None) -> None:
        found = heard(
            call_delta(index, name="run_python", arguments=ONE),
            call_delta(index, name="run_python", arguments=TWO),
        )
        assert found == [("run_python", ONE), ("run_python", TWO)]

    def test_without_index_go_on_with_the_last_one(self) -> None:
        found = heard(
            call_delta(None, id="a", name="run_python", arguments='{"code":'),
            call_delta(None, arguments=' "1"}'),
        )
        assert found == [("run_python", '{"code": "1"}')]

    def test_at_two_indexes_with_one_id_are_one(self) -> None:
        found = heard(
            call_delta(0, id="a", name="run_python", arguments='{"code": '),
            call_delta(1, id="a", arguments='"1"}'),
        )
        assert found == [("run_python", ONE)]

    def test_whose_name_and_id_come_again_are_one(self) -> None:
        found = heard(
            call_delta(id="a", name="run_python", arguments='{"code": '),
            call_delta(id="", name="", arguments='"1"'),
            call_delta(id="a", name="run_python", arguments="}"),
        )
        assert found == [("run_python", ONE)]

    def test_whose_id_comes_late_are_one(self) -> None:
        found = heard(
            call_delta(name="run_python", arguments='{"code": '),
            call_delta(id="a", arguments='"1"}'),
        )
        assert found == [("run_python", ONE)]

    def test_whose_name_and_id_come_apart_are_one(self) -> None:
        found = heard(call_delta(id="a"), call_delta(name="list_files"), call_delta(arguments="{}"))
        assert found == [("list_files", "{}")]

    def test_with_an_object_for_arguments_keep_it(self) -> None:
        assert heard(call_delta(id="a", name="run_python", arguments=CODE)) == [
            ("run_python", CODE)
        ]

    def test_that_come_in_the_old_form_as_well_are_one(self) -> None:
        new = call_delta(id="a", name="run_python", arguments=ONE)
        old = {"function_call": {"name": "run_python", "arguments": ONE}}
        assert heard({**new, **old}) == [("run_python", ONE)]

    def test_in_the_old_form_alone_are_kept(self) -> None:
        pieces = Pieces()
        pieces.add(chunk({"function_call": {"name": "run_python", "arguments": '{"code": '}}))
        pieces.add(chunk({"function_call": {"arguments": '"1"}'}}))
        reply = reply_to(pieces.message())
        assert [(c.name, c.arguments) for c in reply.calls] == [("run_python", {"code": "1"})]

    def test_of_other_choices_are_left_out(self) -> None:
        pieces = Pieces()
        other = {"index": 1, "delta": {"content": "no"}, "finish_reason": None}
        pieces.add({"choices": [other]})
        assert pieces.message()["content"] is None


class TestEvents:
    def whole(self, *pieces: bytes) -> list[dict[str, Any]]:
        events = Events()
        found = [event for piece in pieces for event in events.feed(piece)]
        return found + list(events.end())

    @pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
    def test_end_with_any_line_break(self, end: bytes) -> None:
        data = b'data: {"a": 1}\n\ndata: {"a": 2}\n\n'.replace(b"\n", end)
        assert self.whole(data) == [{"a": 1}, {"a": 2}]

    @pytest.mark.parametrize("step", [1, 2, 3, 7])
    def test_may_be_cut_anywhere_on_the_way(self, step: int) -> None:
        data = 'data: {"a": "é😀"}\r\n\r\n: hi\r\n\r\ndata: {"a": 2}\r\n\r\n'.encode()
        pieces = [data[at : at + step] for at in range(0, len(data), step)]
        assert self.whole(*pieces) == [{"a": "é😀"}, {"a": 2}]

    @pytest.mark.parametrize(
        "data",
        [
            b'data:{"a": 1}\n\n',
            b'event: message\nid: 7\ndata: {"a": 1}\n\n',
            b'retry: 100\n\ndata: {"a": 1}\n\n',
            b': x\n\ndata: {"a":\ndata: 1}\n\n',
            b'data: {"a": 1}',
            b'data: {"a": 1}\ndata: [DONE]\n\n',
            b'data: {"a": 1}\n\ndata: [DONE]\n\ndata: {"a": 2}\n\n',
            b'\n\n\ndata: {"a": 1}\n\ndata: \n\n',
            b'data: null\n\ndata: {"a": 1}\n\n',
        ],
    )
    def test_carry_their_data_however_they_are_framed(self, data: bytes) -> None:
        assert self.whole(data) == [{"a": 1}]

    def test_without_a_blank_line_between_are_two(self) -> None:
        assert self.whole(b'data: {"a": 1}\ndata: {"a": 2}\n\n') == [{"a": 1}, {"a": 2}]

    def test_that_are_broken_are_told(self) -> None:
        with pytest.raises(BrokenEvent):
            self.whole(b'data: {"a": \n\n')


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


def trouble(status: int, body: Any, **headers: str) -> Trouble:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return from_response(status, named, data)


def said(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


class TestErrors:
    @pytest.mark.parametrize(
        "text",
        [
            "This model's maximum context length is 8192 tokens. However, you requested 9001",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "the request exceeds the available context size, try increasing it",
            "Requested tokens (5000) exceed context window of 4096",
            "Input length 5000 exceeds the maximum context length",
            "The input token count (1100000) exceeds the maximum number of tokens allowed",
            "Your input exceeds the context window of this model.",
            "Please reduce the length of the messages or completion.",
            "input is too long for requested model",
            "Prompt contains 40000 tokens; too large for model with 32768 maximum context length",
        ],
    )
    def test_an_overflow_is_known_by_its_many_wordings(self, text: str) -> None:
        assert trouble(400, said(text)).action == "compact"

    def test_an_overflow_tells_the_window(self) -> None:
        text = "This model's maximum context length is 8192 tokens. You sent 9001."
        assert trouble(400, said(text)).window == 8192

    @pytest.mark.parametrize("status", [429, 503, 529])
    def test_a_throttle_is_asked_again(self, status: int) -> None:
        assert (
            trouble(status, said("Rate limit reached: too many tokens per min")).action == "retry"
        )

    @pytest.mark.parametrize(
        ("text", "wait"),
        [
            ("Please try again in 20s.", 20),
            ("Please try again in 1m0.5s.", 60.5),
            ("try again in 250ms", 0.25),
            ("Please retry after 3 seconds", 3),
            ("Retry in 2 minutes", 120),
        ],
    )
    def test_a_wait_may_stand_in_the_text(self, text: str, wait: float) -> None:
        assert trouble(429, said(f"Rate limit. {text}")).wait == pytest.approx(wait)

    def test_a_wait_that_is_too_long_ends_the_run(self) -> None:
        found = trouble(429, said("Slow down."), retry_after="3600")
        assert (found.action, found.kind) == ("fail", "rate_limit")

    @pytest.mark.parametrize(
        "body",
        [
            said("You exceeded your current quota", code="insufficient_quota"),
            said("Insufficient Balance", code="invalid_request_error"),
            said("Your credit is used up; billing"),
        ],
    )
    def test_a_used_up_quota_is_not_asked_again(self, body: Any) -> None:
        assert (trouble(429, body).action, trouble(429, body).kind) == ("fail", "quota")

    @pytest.mark.parametrize(
        ("status", "body", "kind"),
        [
            (401, said("Incorrect API key provided: sk-ab***yz"), "auth"),
            (403, {"detail": "Not authorized"}, "auth"),
            (404, said("The model `x` does not exist"), "config"),
            (404, {"detail": "Not Found"}, "config"),
            (400, said("content_policy_violation: blocked by content filter"), "refused"),
            (400, said("registry.local/x does not support tools"), "config"),
            (405, b"", "config"),
        ],
    )
    def test_what_will_not_clear_stops_with_its_kind(
        self, status: int, body: Any, kind: str
    ) -> None:
        assert (trouble(status, body).action, trouble(status, body).kind) == ("fail", kind)

    @pytest.mark.parametrize(
        "body",
        [
            said("boom"),
            {"error": "boom"},
            {"object": "error", "message": "boom", "code": 400},
            [said("boom")],
            {"detail": "boom"},
            {"detail": [{"loc": ["body", "x"], "msg": "boom"}]},
            {"message": "boom"},
            b"boom",
        ],
    )
    def test_a_message_is_found_in_every_wrapping(self, body: Any) -> None:
        assert "boom" in trouble(400, body).text

    @pytest.mark.parametrize("code", [429, "429", 502, 503])
    def test_an_error_inside_of_a_200_counts_by_its_own_code(self, code: Any) -> None:
        assert from_body({"code": code, "message": "upstream"}, status=200).action == "retry"

    @pytest.mark.parametrize(
        "text", ["sk-proj-abcdefgh12345", "Bearer abcdef", "sk-ab***yz", "key gsk-12345678"]
    )
    def test_keys_are_not_shown(self, text: str) -> None:
        shown = trouble(401, said(f"Wrong: {text} is no key")).text
        assert "abcdef" not in shown
        assert "***" not in shown
        assert "12345" not in shown

    def test_pages_are_told_by_their_title_alone(self) -> None:
        page = b"<html><head><title>502 Bad\nGateway</title></head><body>long</body></html>"
        found = trouble(502, page, content_type="text/html")
        assert found.action == "retry"
        assert "502 Bad Gateway" in found.text
        assert "<" not in found.text


class TestAdjusting:
    def after(
        self, text: str, profile: Profile | None = None, *, sent: Mapping[str, Any] | None = None
    ) -> Profile | None:
        found = trouble(400, said(text))
        assert found.action == "adjust"
        asked = {"model": "m", "stream": True, "tools": [], **(sent or {})}
        return adjusted(profile or Profile(), found, asked)

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("Unsupported value: 'temperature' does not support 0", "temperature"),
            ("Unrecognized request argument supplied: stream_options", "stream_options"),
            ("`parallel_tool_calls` is not supported by this model", "parallel_tool_calls"),
            ("body.top_p: Extra inputs are not permitted", "top_p"),
            ("property 'seed' is unsupported", "seed"),
            ("Unknown field: reasoning_effort", "reasoning_effort"),
        ],
    )
    def test_a_parameter_that_is_named_is_left_out(self, text: str, name: str) -> None:
        profile = self.after(text, sent={name: 1})
        assert profile is not None
        assert profile.parameters({name: 1, "other": 2}) == {"other": 2}

    @pytest.mark.parametrize(
        ("text", "sent", "takes"),
        [
            (
                "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
                {"max_tokens": 9000},
                {"max_completion_tokens": 9000},
            ),
            (
                "max_completion_tokens: Extra inputs are not permitted; did you mean max_tokens",
                {"max_completion_tokens": 9000},
                {"max_tokens": 9000},
            ),
            (
                "max_tokens must be less than or equal to 4096",
                {"max_tokens": 9000},
                {"max_tokens": 4096},
            ),
            (
                "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
                {"max_tokens": 9000},
                {"max_tokens": 8192},
            ),
            ("max_tokens is too large: 9000", {"max_tokens": 9000}, {}),
        ],
    )
    def test_a_cap_is_renamed_or_lowered(
        self, text: str, sent: dict[str, Any], takes: dict[str, Any]
    ) -> None:
        profile = self.after(text, sent=sent)
        assert profile is not None
        assert profile.parameters(sent) == takes

    def test_a_forced_choice_is_let_go(self) -> None:
        text = "tool_choice does not support being set to required or object in thinking mode"
        profile = self.after(text, sent={"tool_choice": "required"})
        assert profile is not None
        assert profile.parameters({"tool_choice": "required"}) == {"tool_choice": "auto"}

    @pytest.mark.parametrize(
        ("text", "field", "value"),
        [
            ("messages.2.content: Input should be a valid string", "empty_content", ""),
            ("Invalid value for 'content': expected a string, got null.", "empty_content", ""),
            ("Expected last role User or Tool; roles must alternate user/assistant", "merge", True),
            ("Unexpected role 'user' after role 'tool'", "fold_users", True),
            (
                "Tool call id was call_123 but must be a-z, A-Z, 0-9, with a length of 9",
                "short_ids",
                True,
            ),
            ("messages.1.assistant.foo: Extra inputs are not permitted", "unknown_fields", False),
            ("property 'messages.1.reasoning_content' is unsupported", "unknown_fields", False),
            (
                "The reasoning_content in the thinking mode must be passed back",
                "fill",
                {"reasoning_content": ""},
            ),
            ("System role not supported", "no_system", True),
            ("this model does not support streaming with tools: stream", "stream", False),
        ],
    )
    def test_a_history_is_told_as_the_host_takes_it(
        self, text: str, field: str, value: Any
    ) -> None:
        profile = self.after(text)
        assert profile is not None
        assert getattr(profile, field) == value

    def test_a_word_of_the_schema_is_taken_out(self) -> None:
        text = 'Unknown name "additionalProperties" at tools[0].function_declarations'
        profile = self.after(text)
        assert profile is not None
        assert profile.schema_words == {"additionalProperties"}

    def test_nothing_is_changed_twice(self) -> None:
        text = "Unsupported value: 'temperature'"
        profile = self.after(text, sent={"temperature": 1})
        assert self.after(text, profile, sent={"temperature": 1}) is None
