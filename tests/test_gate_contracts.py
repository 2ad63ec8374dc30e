"""Contracts: each word holds or is refused, and no contract gets weaker."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_runtime import Failure
from reread import contracts
from reread.api import check_file
from reread.examine import examine
from reread.values import Code, Evidence

ROOT = Path(__file__).resolve().parent.parent
BLOG = ROOT / "sample-skills" / "write-blog" / "gate.yaml"
TABLE = "id,depot,pallets,day\n1,north,412,2026-04-30\n2,south,,2026-05-01\n"
REPORT = {"total": 412, "rows": [{"id": 1}, {"id": 2}], "source": "ledger"}
ARTICLE = """+++
title = "并发"
description = "任务与事件循环"
draft = true
tags = ["python"]
+++

# asyncio 入门

## 先给结论

异步任务由事件循环调度，本文解释 Ａsyncio 的并发。

## 示例

```python
import asyncio

asyncio.run(asyncio.sleep(0))
```

## 参考资料

- [文档](https://docs.python.org/3/library/asyncio.html)
"""


def judged(text: str | bytes, format: str, contract: Mapping[str, Any]) -> Evidence:
    contracts.validate(contract, "test")
    data = text.encode() if isinstance(text, str) else text
    return examine(io.BytesIO(data), name=f"file.{format}", format=format, contract=contract)


def reasons(evidence: Evidence) -> set[str]:
    assert {problem.code for problem in evidence.problems} <= {Code.artifact_contract_unmet}
    return {problem.reason for problem in evidence.problems}


def fields(*asked: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"table": {"fields": list(asked), **more}}


def schema(**properties: Any) -> dict[str, Any]:
    return {"schema": {"type": "object", "properties": properties}}


HOLDS: list[tuple[str, str, dict[str, Any]]] = [
    ("csv", TABLE, {"min_rows": 2, "max_rows": 2, "min_columns": 4}),
    ("csv", TABLE, fields({"name": "id", "type": "integer", "constraints": {"unique": True}})),
    ("csv", TABLE, fields({"name": "pallets", "type": "number"})),
    ("csv", TABLE, fields({"name": "day", "type": "date"}, primaryKey=["id"])),
    ("csv", TABLE, {"contains": ["ＮＯＲＴＨ"], "matches": [r"^1 "], "forbids": ["west"]}),
    ("json", json.dumps(REPORT), {"required_keys": ["total", "rows.1.id"], "min_items": 3}),
    ("json", json.dumps(REPORT), schema(total={"type": "integer", "minimum": 1})),
    ("jsonl", '{"id": 1}\n{"id": 2}\n', {"required_keys": ["id"], "min_rows": 2}),
    ("yaml", "a: {b: [1]}\n", {"required_keys": ["a.b.0"]}),
    ("toml", "a = 1\n", schema(a={"const": 1})),
    ("md", ARTICLE, {"front_matter_keys": ["title"], "sections": ["示例"], "min_words": 10}),
    ("md", ARTICLE, {"code_blocks": {"language": "python", "parses": True}}),
    ("md", ARTICLE, {"topic": "asyncio"}),
    ("svg", '<svg xmlns="http://www.w3.org/2000/svg" width="9"><text>a</text></svg>', {"width": 9}),
]
REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("csv", TABLE, {"min_rows": 3}, "too_few"),
    ("csv", TABLE, {"max_rows": 1}, "too_many"),
    ("csv", TABLE, fields({"name": "weight"}), "missing_columns"),
    ("csv", TABLE, fields({"name": "depot", "type": "integer"}), "wrong_value"),
    ("csv", TABLE, fields({"name": "pallets", "constraints": {"required": True}}), "missing_value"),
    ("csv", TABLE, fields({"name": "id", "constraints": {"maximum": 1}}), "wrong_value"),
    ("csv", TABLE, fields({"name": "depot", "constraints": {"enum": ["north"]}}), "wrong_value"),
    ("csv", "a\n1\n1\n", fields({"name": "a"}, primaryKey=["a"]), "duplicate_key"),
    ("csv", TABLE, {"contains": ["west"]}, "missing_text"),
    ("csv", TABLE, {"matches": [r"^\d{9}"]}, "no_match"),
    ("csv", TABLE, {"forbids": ["north"]}, "forbidden_text"),
    ("json", json.dumps(REPORT), {"required_keys": ["rows.2.id"]}, "missing_keys"),
    ("json", json.dumps(REPORT), schema(total={"type": "string"}), "schema"),
    ("jsonl", '{"id": 1}\n{"no": 2}\n', {"required_keys": ["id"]}, "missing_keys"),
    ("md", ARTICLE, {"sections": ["结尾"]}, "missing_sections"),
    ("md", ARTICLE, {"front_matter_keys": ["author"]}, "missing_keys"),
    ("md", ARTICLE, {"front_matter": {"format": "yaml"}}, "front_matter_format"),
    ("md", "no front matter here\n", {"front_matter": {}}, "no_front_matter"),
    ("md", ARTICLE, {"code_blocks": {"language": "json"}}, "too_few"),
    ("md", ARTICLE, {"links": {"min": 2}}, "too_few"),
    ("md", ARTICLE, {"topic": "quantum"}, "topic_missing"),
]


@pytest.mark.parametrize(("format", "text", "contract"), HOLDS)
def test_a_word_that_holds(format: str, text: str, contract: dict[str, Any]) -> None:
    evidence = judged(text, format, contract)
    assert evidence.ok, evidence.problems
    asked = [check for check in evidence.checks if check.depth == "contract"]
    assert asked
    assert all(check.state == "passed" for check in asked)


@pytest.mark.parametrize(("format", "text", "contract", "reason"), REFUSED)
def test_a_word_that_does_not(
    format: str, text: str, contract: dict[str, Any], reason: str
) -> None:
    evidence = judged(text, format, contract)
    assert reason in reasons(evidence)
    assert not evidence.ok


class TestAWordThatCannotBeAnswered:
    def test_it_is_not_run_and_never_passed(self) -> None:
        evidence = judged("some words", "txt", {"min_slides": 1})
        states = [c.state for c in evidence.checks if c.name == "contract.min_slides"]
        assert states == ["not_run"]


class TestTheContractItself:
    def test_an_unknown_word_is_refused_with_the_nearest(self) -> None:
        with pytest.raises(Failure) as caught:
            contracts.validate({"min_row": 1}, "task.yaml")
        assert caught.value.code == Code.contract_invalid
        assert "min_rows" in f"{caught.value.cause} {caught.value.remedy}"

    @pytest.mark.parametrize(
        "wrong",
        [
            {"min_rows": -1},
            {"min_rows": "two"},
            {"required_keys": "title"},
            {"matches": ["("]},
            {"table": {"fields": [{"type": "integer"}]}},
            {"table": {"fields": [{"name": "a", "type": "complex"}]}},
            {"schema": {"type": "objekt"}},
            {"table": {"fields": [{"name": "a", "constraints": {"pattern": "["}}]}},
        ],
    )
    def test_a_wrong_value_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(Failure) as caught:
            contracts.validate(wrong, "task.yaml")
        assert caught.value.code == Code.contract_invalid

    def test_a_broken_file_is_refused(self) -> None:
        with pytest.raises(Failure) as caught:
            contracts.read("min_rows: [\n", "gate.yaml")
        assert caught.value.code == Code.contract_invalid


class TestMerging:
    @pytest.mark.parametrize(
        ("first", "second", "both"),
        [
            ({"min_rows": 2}, {"min_rows": 5}, {"min_rows": 5}),
            ({"min_rows": 5}, {"min_rows": 2}, {"min_rows": 5}),
            ({"max_pages": 9}, {"max_pages": 3}, {"max_pages": 3}),
            ({"required_keys": ["a"]}, {"required_keys": ["b"]}, {"required_keys": ["a", "b"]}),
            ({}, {"allow_empty": True}, {}),
            ({"allow_empty": True}, {"allow_empty": False}, {"allow_empty": False}),
            (
                {"local_links_exist": False},
                {"local_links_exist": True},
                {"local_links_exist": True},
            ),
            ({"links": {"min": 1}}, {"links": {"min": 4}}, {"links": {"min": 4}}),
            (
                {"code_blocks": {"language": "python", "min": 1}},
                {"code_blocks": {"language": "python", "parses": True}},
                {"code_blocks": {"language": "python", "min": 1, "parses": True}},
            ),
        ],
    )
    def test_both_are_asked(
        self, first: dict[str, Any], second: dict[str, Any], both: dict[str, Any]
    ) -> None:
        assert contracts.merge(first, second) == both

    def test_two_tables_ask_for_the_fields_of_both(self) -> None:
        one = fields({"name": "a", "type": "integer"})
        other = fields({"name": "a", "constraints": {"required": True}}, {"name": "b"})
        merged = contracts.merge(one, other)
        contracts.validate(merged, "merged")
        assert not judged("a,b\n1,2\n,3\n", "csv", merged).ok
        assert not judged("a,b\nx,2\n", "csv", merged).ok
        assert not judged("a\n1\n", "csv", merged).ok
        assert judged("a,b\n1,2\n", "csv", merged).ok

    def test_two_front_matters_ask_for_both(self) -> None:
        one = {"front_matter": {"schema": {"required": ["title"]}}}
        other = {"front_matter": {"format": "toml", "schema": {"required": ["author"]}}}
        merged = contracts.merge(one, other)
        assert not judged(ARTICLE, "md", merged).ok

    def test_a_contradiction_is_refused(self) -> None:
        with pytest.raises(Failure) as caught:
            contracts.merge({"width": 10}, {"width": 20})
        assert caught.value.code == Code.contract_invalid


class TestTheArticle:
    def contract(self, topic: str = "asyncio") -> dict[str, Any]:
        return contracts.bind(contracts.read(BLOG.read_text("utf-8"), str(BLOG)), topic=topic)

    def test_a_good_one_holds(self) -> None:
        assert judged(ARTICLE, "md", self.contract()).ok

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('title = "并发"\n', ""),
            ('description = "任务与事件循环"', 'description = " "'),
            ("draft = true", "draft = false"),
            ("draft = true", 'draft = "true"'),
            ('tags = ["python"]', "tags = []"),
            ('tags = ["python"]', "tags = [1]"),
            ('tags = ["python"]', 'tags = "python"'),
            ("+++", "---"),
            ("## 先给结论", "## 结论"),
            ("## 示例", "## 例子"),
            ("- [文档](https://docs.python.org/3/library/asyncio.html)\n", ""),
            ("[文档](https://docs.python.org/3/library/asyncio.html)", "见官方文档"),
            ("https://docs.python.org/3/library/asyncio.html", "https:///library"),
            ("import asyncio\n\nasyncio.run(asyncio.sleep(0))\n", ""),
            ("import asyncio\n\nasyncio.run(asyncio.sleep(0))\n", "# nothing\n"),
            ("asyncio.run(asyncio.sleep(0))", "asyncio.run("),
            ("```python", "```text"),
            ("\n```\n", "\n"),
            ("异步任务由事件循环调度，本文解释 Ａsyncio 的并发。\n\n## 示例", "\n## 示例"),
        ],
    )
    def test_each_thing_that_it_asks_can_fail(self, old: str, new: str) -> None:
        assert old in ARTICLE
        assert not judged(ARTICLE.replace(old, new), "md", self.contract()).ok

    def test_the_topic_inside_code_alone_does_not_count(self) -> None:
        text = ARTICLE.replace("# asyncio 入门", "# 入门").replace("Ａsyncio ", "")
        text = text.replace("asyncio.html", "index.html")
        assert not judged(text, "md", self.contract()).ok

    def test_a_local_link_reaches_a_regular_file_and_no_symlink(self, tmp_path: Path) -> None:
        page = tmp_path / "a.md"
        page.write_text(ARTICLE + "- [数据](data.csv)\n", "utf-8")
        ask = self.contract()
        assert not check_file(page, format="md", contract=ask).ok
        (tmp_path / "data.csv").write_text("a\n1\n")
        assert check_file(page, format="md", contract=ask).ok
        (tmp_path / "data.csv").rename(tmp_path / "real.csv")
        (tmp_path / "data.csv").symlink_to("real.csv")
        assert not check_file(page, format="md", contract=ask).ok
