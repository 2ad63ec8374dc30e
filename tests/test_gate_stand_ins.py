"""Texts that say something, and nothing of what they should hold; and texts that do hold it."""

from __future__ import annotations

import base64
import io

import pytest

from reread.examine import examine
from reread.values import Evidence

STAND_INS = (
    *("{{ content }}", "{content}", "%CONTENT%", "undefined", "null", "[object Object]"),
    *("This is a stub.", "To be continued", "Work in progress", "Sample text"),
    *("I'm sorry, but I can't help with that.", "As an AI language model I have no files."),
    *("Report saved successfully to outputs/report.md", "The file has been written."),
    *("I have created the file as requested.", "Here is the report you asked for:"),
    'Traceback (most recent call last):\n  File "x.py", line 1\nValueError: x',
    *("此处省略若干字", "（略）", "(内容生成中)", "以下为示例内容", "暂无数据", "见附件"),
    *("报告已生成。", "文件已保存到输出目录", "抱歉，我无法完成该请求。", "正文将在此处显示"),
)
REAL = (
    "The report was generated from 295 orders of twelve shops. The north leads with 41 per cent.",
    "None of the shops was closed. Sales rose in every month of the year but two, by six per cent.",
    "This is a draft of the law on harbour dues. Article 1: every ship pays by its gross tonnage.",
    "本月订单共二百九十五笔，总额二十六万六千元。详细数据见附件，其余内容从略。",
)


def judged(text: str, format: str) -> Evidence:
    return examine(io.BytesIO(text.encode()), name=f"a.{format}", format=format, contract={})


class TestStandIns:
    @pytest.mark.parametrize("text", STAND_INS)
    def test_below_a_title_it_is_no_content(self, text: str) -> None:
        assert not judged(f"# Report\n\n{text}\n", "md").ok

    @pytest.mark.parametrize("text", REAL)
    @pytest.mark.parametrize("format", ["md", "txt"])
    def test_the_same_words_in_a_real_text_do_no_harm(self, text: str, format: str) -> None:
        assert judged(text, format).ok

    @pytest.mark.parametrize("prefix", ["", "data:image/png;base64,"])
    @pytest.mark.parametrize("format", ["md", "txt"])
    def test_encoded_bytes_are_no_text(self, prefix: str, format: str) -> None:
        text = prefix + base64.b64encode(bytes(range(256)) * 3).decode()
        assert not judged(text, format).ok
