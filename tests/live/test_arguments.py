"""The arguments of calls: read as they are, repaired, or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reread.models._arguments import decode

CODE = {"code": "print(6*7)"}
TEXT = json.dumps(CODE)


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
