"""Streams: events however they are framed, calls however they come in pieces."""

from __future__ import annotations

from typing import Any

import pytest

from reread.models._stream import BrokenEvent, Events, Pieces
from tests.live.stand_in import chunk

CODE = {"code": "print(6*7)"}


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
        assert pieces.message()["function_call"] == {"name": "run_python", "arguments": ONE}

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
