"""Tables in old encodings, and tables of nothing but blanks with a name."""

from __future__ import annotations

import random

import pytest

from tests.formats.judging import verdict


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "nom,ville\nRené,Besançon\n"),
        ("shift_jis", "品名,数量\nねじ,12\nナット,30\n"),
        ("gb18030", "名称,数量\n螺丝,12\n螺母,30\n"),
        ("euc_kr", "이름,수량\n나사,12\n너트,30\n"),
    ],
)
def test_a_table_in_an_old_encoding_is_one(encoding: str, text: str) -> None:
    assert verdict("csv", text.encode(encoding)) == "ok"


@pytest.mark.parametrize("seed", range(8))
def test_random_bytes_are_none(seed: int) -> None:
    data = random.Random(seed).randbytes(3000).replace(b"\0", b"\1")
    assert verdict("csv", data) != "ok"


def test_a_table_in_which_every_value_is_absent_has_no_content() -> None:
    assert verdict("csv", b"a,b\nN/A,N/A\nn/a,-\n") == "artifact_placeholder_output/no_content"


def test_a_table_with_some_absent_values_has() -> None:
    assert verdict("csv", b"depot,count\nnorth,N/A\nsouth,4\n") == "ok"
