"""Text formats: the traps that are known, each as bytes with the verdict that they deserve."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from reread.examine import examine
from reread.values import Code, Evidence

INVALID, HOLLOW = Code.artifact_format_invalid, Code.artifact_placeholder_output
UNSAFE, UNMET = Code.artifact_unsafe, Code.artifact_contract_unmet

PROSE = (
    "# Stock in April\n\nThe depot moved 412 pallets in April, nine more than in March. Most of\n"
    "them went north by rail, since the road over the pass was closed for two weeks.\n"
)
PAGE = "<!DOCTYPE html><title>Not found</title><h1>404</h1><p>The page is not here.</p>"
NOTEBOOK: dict[str, Any] = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {},
    "cells": [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["# Totals\n"]},
        {
            "cell_type": "code",
            "id": "b",
            "metadata": {},
            "source": "print(1 + 1)",
            "outputs": [],
            "execution_count": None,
        },
    ],
}


class Trap(NamedTuple):
    """Bytes of a format, and the code and reason they are refused with; None: they are right."""

    about: str
    format: str
    data: str | bytes
    code: Code | None = None
    reason: str = ""
    contract: Mapping[str, Any] = {}
    name: str = ""


def judged(trap: Trap) -> Evidence:
    data = trap.data.encode() if isinstance(trap.data, str) else trap.data
    name = trap.name or f"file.{trap.format}"
    return examine(io.BytesIO(data), name=name, format=trap.format, contract=trap.contract)


def svg(inner: str) -> str:
    return f"<svg xmlns='http://www.w3.org/2000/svg' width='9'>{inner}</svg>"


def notebook(**changes: Any) -> str:
    return json.dumps({**NOTEBOOK, **changes})


def cells(*sources: str) -> list[dict[str, Any]]:
    return [{"cell_type": "markdown", "metadata": {}, "source": text} for text in sources]


JSON = [
    Trap("a byte order mark", "json", b'\xef\xbb\xbf{"a": 1}'),
    Trap("one number is a value", "json", "42"),
    Trap("false is a value", "json", '{"found": false}'),
    Trap("zero is a value", "json", '{"errors": 0}'),
    Trap("big integers", "json", '{"n": 123456789012345678901234567890}'),
    Trap("UTF-16 with its mark", "json", '{"a": "ä"}'.encode("utf-16")),
    Trap("fences inside a value", "json", json.dumps({"readme": "```py\nx\n```", "n": 1})),
    Trap("a URL among the data", "json", '{"site": "https://example.com", "visits": 12}'),
    Trap("nothing was found, asked for", "json", "{}", None, "", {"allow_empty": True}),
    Trap("no bytes", "json", "", INVALID, "empty"),
    Trap("blanks only", "json", " \n\n ", INVALID, "empty"),
    Trap("NULs only", "json", b"\x00" * 64, INVALID, "empty"),
    Trap("NaN", "json", '{"a": NaN}', INVALID, "json_nonfinite"),
    Trap("minus Infinity", "json", "[-Infinity]", INVALID, "json_nonfinite"),
    Trap("a number that overflows", "json", "[1e1111]", INVALID, "json_nonfinite"),
    Trap("a trailing comma", "json", '{"a": 1,}', INVALID, "json_syntax"),
    Trap("a comment", "json", '{"a": 1} // one', INVALID, "json_syntax"),
    Trap("single quotes", "json", "{'a': 1}", INVALID, "json_syntax"),
    Trap("two values", "json", '{"a": 1}\n{"a": 2}', INVALID, "json_syntax"),
    Trap("cut in the middle", "json", '{"rows": [{"a": 1}, {"a"', INVALID, "truncated"),
    Trap("in a fence", "json", '```json\n{"a": 1}\n```\n', INVALID, "in_a_fence"),
    Trap("prose before it", "json", 'Here it is:\n{"a": 1}', INVALID, "json_syntax"),
    Trap("an error page", "json", PAGE, INVALID, "is_html"),
    Trap("Latin-1 bytes", "json", '{"a": "ä"}'.encode("latin-1"), INVALID, "not_text"),
    Trap("an empty list", "json", "[]", HOLLOW, "no_content"),
    Trap("empty values only", "json", '{"a": "", "b": [], "c": null}', HOLLOW, "no_content"),
    Trap("null", "json", "null", HOLLOW, "no_content"),
    Trap("types for values", "json", '{"name": "string", "age": "int"}', HOLLOW, "filler_values"),
    Trap("promises for values", "json", '{"summary": "TODO"}', HOLLOW, "filler_values"),
    Trap("Chinese promises", "json", '{"摘要": "待补充"}', HOLLOW, "filler_values"),
    Trap("nested too deeply", "json", "[" * 100_000 + "]" * 100_000, UNSAFE, "too_deep"),
    Trap(
        "a pointer", "json", "version https://git-lfs.github.com/spec/v1\n", HOLLOW, "lfs_pointer"
    ),
]
JSONL = [
    Trap("no line end at the end", "jsonl", '{"a": 1}\n{"a": 2}'),
    Trap("a byte order mark", "jsonl", b'\xef\xbb\xbf{"a": 1}\n'),
    Trap("CRLF", "jsonl", '{"a": 1}\r\n{"a": 2}\r\n'),
    Trap("separators of lines inside a text", "jsonl", '{"a": "x\u2028y\u0085z"}\n'),
    Trap("no bytes", "jsonl", "", INVALID, "empty"),
    Trap("one pretty object", "jsonl", '{\n  "a": 1\n}\n', INVALID, "json_syntax"),
    Trap("one array", "jsonl", '[\n{"a": 1},\n{"a": 2}\n]', INVALID, "json_syntax"),
    Trap("a line cut off", "jsonl", '{"a": 1}\n{"a": ', INVALID, "truncated"),
    Trap("NaN", "jsonl", '{"a": NaN}\n', INVALID, "json_nonfinite"),
    Trap("empty objects", "jsonl", "{}\n{}\n", HOLLOW, "no_content"),
    Trap("promises for values", "jsonl", '{"a": "TODO"}\n{"a": "TBD"}\n', HOLLOW, "filler_values"),
]
CSV = [
    Trap("line ends in quotes", "csv", 'a,b\r\n"x\r\ny",2\r\n'),
    Trap("one column", "csv", "name\nAnna\nBert\n"),
    Trap("UTF-16 big-endian", "csv", "\ufeffa\tb\n1\t2\n".encode("utf-16-be")),
    Trap("Windows-1252", "csv", "stadt;preis\nKöln;1,50\n".encode("cp1252")),
    Trap("pipes", "csv", "a|b\n1|2\n"),
    Trap("a blank line at the end", "csv", "a,b\n1,2\n\n"),
    Trap("a quote doubled", "csv", 'a,b\n"say ""hi""",2\n'),
    Trap("empty cells", "csv", "a,b\n1,\n,2\n"),
    Trap("old line ends", "csv", "a,b\r1,2\r3,4\r"),
    Trap("commas in quotes", "csv", 'a,b\n"1,5","2,5"\n"3,5","4,5"\n'),
    Trap("a header alone, asked for", "csv", "a,b\n", None, "", {"allow_empty": True}),
    Trap("tabs", "csv", "a\tb\n1\t2\n", name="file.tsv"),
    Trap("prose with commas in a cell", "csv", 'id,text\n1,"One, two, and three"\n2,"Four"\n'),
    Trap("no bytes", "csv", "", INVALID, "empty"),
    Trap("ragged rows", "csv", "a,b,c\n1,2,3\n4,5\n", INVALID, "ragged_rows"),
    Trap("an unquoted comma", "csv", "a,b\n1,2\n3,4,5\n6,7\n", INVALID, "ragged_rows"),
    Trap("a quote never closed", "csv", 'a,b\n"1,2\n3,4\n', INVALID, "unclosed_quote"),
    Trap("an error page", "csv", PAGE, INVALID, "is_html"),
    Trap("binary bytes", "csv", b"a,b\n\x00\x01,\x02\n", INVALID, "not_text"),
    Trap("JSON", "csv", '[{"a": 1, "b": 2}, {"a": 3, "b": 4}]', INVALID, "format_mismatch"),
    Trap("a header alone", "csv", "a,b\n", HOLLOW, "no_rows"),
    Trap("rows of nothing", "csv", "a,b\n,\n,\n", HOLLOW, "no_content"),
    Trap("promises", "csv", "a,b\nTODO,TBD\n", HOLLOW, "filler_values"),
    Trap("a table of Markdown", "csv", "| a | b |\n|---|---|\n| 1 | 2 |\n", INVALID, "is_markdown"),
    Trap("in a fence", "csv", "```csv\na,b\n1,2\n```\n", INVALID, "in_a_fence"),
]
MARKDOWN = [
    Trap("prose", "md", PROSE),
    Trap("one line", "md", "The total of all invoices of April is 412.50 EUR.\n"),
    Trap("Chinese prose", "md", "# 库存\n\n四月共入库四百一十二托，比三月多九托。\n"),
    Trap("TOML front matter", "md", "+++\ntitle = 'A'\n+++\n" + PROSE),
    Trap("front matter only", "md", "---\ntitle: A\n---\n"),
    Trap("a rule at the top", "md", "---\n\n" + PROSE + "\n---\n"),
    Trap("fences inside fences", "md", PROSE + "\n````md\n```py\nx\n```\n````\n"),
    Trap("tildes", "md", PROSE + "\n~~~\n```\n~~~\n"),
    Trap("about placeholders", "md", PROSE + '\nWe search for `TODO` and "lorem ipsum".\n'),
    Trap("one TODO beside substance", "md", PROSE * 4 + "\n- TODO: the map of the north\n"),
    Trap("a table", "md", "| a | b |\n|---|---|\n| 1 | 2 |\n"),
    Trap("a task list", "md", "# To do\n\n- [ ] Call the depot about pallets\n- [x] Pay rail\n"),
    Trap("blanks only", "md", "  \n\n", INVALID, "empty"),
    Trap("a fence never closed", "md", PROSE + "\n```py\nprint(1)\n", INVALID, "unclosed_fence"),
    Trap("wrong front matter", "md", "---\na: [1\n---\n" + PROSE, INVALID, "front_matter"),
    Trap("front matter never closed", "md", "---\ntitle: A\n" + PROSE, INVALID, "front_matter"),
    Trap("the call's own tag", "md", PROSE + "</content>\n", INVALID, "tool_tags"),
    Trap("a zip", "md", b"PK\x03\x04" + bytes(range(256)), INVALID, "not_text"),
    Trap("all in one fence", "md", f"```markdown\n{PROSE}```\n", INVALID, "in_a_fence"),
    Trap("headings only", "md", "# One\n\n## Two\n\n## Three\n", HOLLOW, "headings_only"),
    Trap("a promise", "md", "# Report\n\nTODO: write this.\n", HOLLOW, "filler_text"),
    Trap("a Chinese promise", "md", "# 报告\n\n内容待补充。\n", HOLLOW, "filler_text"),
    Trap(
        "to be converted", "md", "# Deck\n\nThis file is to be converted.\n", HOLLOW, "filler_text"
    ),
    Trap("Latin", "md", "# T\n\nLorem ipsum dolor sit amet, consectetur.\n", HOLLOW, "filler_text"),
    Trap("a part left out", "md", PROSE + "\n[... 80 more lines]\n", HOLLOW, "elided"),
    Trap("input trimmed", "md", "[Trimmed input: ~15476 chars]\n", HOLLOW, "elided"),
    Trap(
        "bracketed",
        "md",
        "# Score\n\n[To be filled in]\n\n[Insert name here]\n",
        HOLLOW,
        "filler_text",
    ),
]
MARKUP = [
    Trap("a fragment", "html", "<table><tr><td>Pallets<td>412</table>"),
    Trap("optional tags left out", "html", "<!doctype html><title>A</title><p>Pallets: 412"),
    Trap("a chart of a script", "html", "<div id=c></div><canvas></canvas><script>draw()</script>"),
    Trap("prose", "html", PROSE, INVALID, "no_tags"),
    Trap("JSON", "html", '{"a": 1}', INVALID, "format_mismatch"),
    Trap("cut in a script", "html", "<p>Hello you</p><script>let a = ", INVALID, "truncated"),
    Trap("cut in a tag", "html", "<p>Hello you</p><a href='x", INVALID, "truncated"),
    Trap("cut in a comment", "html", "<p>Hello</p><!-- and", INVALID, "truncated"),
    Trap("nothing visible", "html", "<html><body></body></html>", HOLLOW, "no_content"),
    Trap("a title only", "html", "<title>Report</title><body></body>", HOLLOW, "no_content"),
    Trap("in a fence", "html", f"```html\n{PAGE}\n```\n", INVALID, "in_a_fence"),
    Trap("attributes are content", "xml", "<r><row id='1' n='412'/></r>"),
    Trap(
        "an encoding declared",
        "xml",
        "<?xml version='1.0' encoding='iso-8859-1'?><a>ä</a>".encode("latin-1"),
    ),
    Trap("UTF-16", "xml", "<?xml version='1.0' encoding='utf-16'?><a>x</a>".encode("utf-16")),
    Trap("an entity of its own", "xml", "<!DOCTYPE a [<!ENTITY c 'Co.'>]><a>A &c; B</a>"),
    Trap("no root content", "xml", "<root/>", HOLLOW, "no_content"),
    Trap("not closed", "xml", "<a><b>x</b>", INVALID, "truncated"),
    Trap("tags crossed", "xml", "<a><b>x</a></b>", INVALID, "xml_not_well_formed"),
    Trap("an ampersand", "xml", "<a>Q & A</a>", INVALID, "xml_not_well_formed"),
    Trap("a form feed", "xml", "<a>\x0crac</a>", INVALID, "xml_not_well_formed"),
    Trap("text", "xml", PROSE, INVALID, "not_xml"),
    Trap(
        "another file named",
        "xml",
        "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>",
        UNSAFE,
        "external_entity",
    ),
    Trap(
        "a parameter entity",
        "xml",
        "<!DOCTYPE a [<!ENTITY % p SYSTEM 'http://localhost/x'> %p;]><a>x</a>",
        UNSAFE,
        "external_entity",
    ),
    Trap(
        "entities in UTF-16",
        "xml",
        "<!DOCTYPE a [<!ENTITY e SYSTEM 'x'>]><a>&e;</a>".encode("utf-16"),
        UNSAFE,
        "external_entity",
    ),
    Trap(
        "one entity used often",
        "xml",
        f"<!DOCTYPE a [<!ENTITY e '{'x' * 50_000}'>]><a>{'&e;' * 50_000}</a>",
        UNSAFE,
        "entity_expansion",
    ),
    Trap("only text", "svg", svg("<text>412 pallets</text>")),
    Trap("something used", "svg", svg("<defs><path id='p' d='M0 0L9 9'/></defs><use href='#p'/>")),
    Trap(
        "an icon of one rectangle",
        "svg",
        svg("<rect width='9' height='9'/>"),
        None,
        "",
        {"purpose": "icon"},
    ),
    Trap("nothing drawn", "svg", svg(""), HOLLOW, "no_content"),
    Trap("one rectangle", "svg", svg("<rect width='9' height='9'/>"), HOLLOW, "flat"),
    Trap("a page", "svg", PAGE, INVALID, "is_html"),
    Trap("a picture", "svg", b"\x89PNG\r\n\x1a\n" + bytes(64), INVALID, "format_mismatch"),
    Trap(
        "another drawing language",
        "svg",
        "<drawing><path d='M0 0'/></drawing>",
        INVALID,
        "format_mismatch",
    ),
]
CONFIG = [
    Trap("two documents", "yaml", "a: 1\n---\nb: 2\n"),
    Trap("a tag of someone", "yaml", "plugin: !!python/name:os.system\nn: 1\n"),
    Trap("a CloudFormation tag", "yaml", "a: !Ref B\nc: !Sub [x, y]\n"),
    Trap("dates", "yaml", "day: 2026-04-30\nat: 2026-04-30T10:00:00Z\n"),
    Trap("a byte order mark", "yaml", b"\xef\xbb\xbfa: 1\n"),
    Trap("a tab", "yaml", "a:\n\tb: 1\n", INVALID, "yaml_syntax"),
    Trap("a bracket open", "yaml", "a: [1, 2\n", INVALID, "yaml_syntax"),
    Trap("prose", "yaml", "The depot moved pallets.\n", INVALID, "only_text"),
    Trap("an impossible date", "yaml", "day: 2026-13-45\n", INVALID, "yaml_value"),
    Trap("in a fence", "yaml", "```yaml\na: 1\n```\n", INVALID, "in_a_fence"),
    Trap("comments only", "yaml", "# nothing yet\n", HOLLOW, "no_content"),
    Trap("promises", "yaml", "a: TODO\nb: TBD\n", HOLLOW, "filler_values"),
    Trap("nested too deeply", "yaml", "[" * 50_000 + "]" * 50_000, UNSAFE, "too_deep"),
    Trap("tables", "toml", "[a]\nb = 1\n[[c]]\nd = 'x'\n"),
    Trap("many dots in a text", "toml", "a = '" + "." * 500 + "'\n"),
    Trap("a number of many digits", "toml", "a = 1.5\nb = 2026-04-30\n"),
    Trap("the same key twice", "toml", "a = 1\na = 2\n", INVALID, "toml_syntax"),
    Trap("no value", "toml", "a =\n", INVALID, "toml_syntax"),
    Trap("YAML", "toml", "a: 1\n", INVALID, "toml_syntax"),
    Trap("a table of nothing", "toml", "[a]\n", HOLLOW, "no_content"),
    Trap("a path of many dots", "toml", ".".join("a" * 5000) + " = 1\n", UNSAFE, "too_deep"),
    Trap("nested too deeply", "toml", "a = " + "[" * 50_000 + "]" * 50_000, UNSAFE, "too_deep"),
    Trap(
        "a header of many dots",
        "toml",
        "[" + ".".join("a" * 5000) + "]\nb = 1\n",
        UNSAFE,
        "too_deep",
    ),
]
CODE = [
    Trap("a script", "py", "print(1)\n"),
    Trap("an encoding named", "py", "# -*- coding: latin-1 -*-\nprint('ä')\n".encode("latin-1")),
    Trap("a PEP 723 block", "py", "# /// script\n# dependencies = []\n# ///\nprint(1)\n"),
    Trap("an empty package", "py", "", name="__init__.py"),
    Trap("constants", "py", "LIMIT = 5\n"),
    Trap(
        "a dataclass", "py", "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\n"
    ),
    Trap(
        "a protocol beside work",
        "py",
        "class P:\n    def f(self) -> int: ...\ndef g() -> int:\n    return 4\n",
    ),
    Trap("re-exports", "py", "from os import path\n__all__ = ['path']\n"),
    Trap("a byte order mark", "py", b"\xef\xbb\xbfprint(1)\n"),
    Trap(
        "TODO in a comment", "py", "def f(x):\n    # TODO: faster\n    return x * 2\nprint(f(2))\n"
    ),
    Trap("Python 2", "py", "print 'hello'\n", INVALID, "python_syntax"),
    Trap("cut", "py", "def f(x):\n    return (x +\n", INVALID, "python_syntax"),
    Trap("prose", "py", PROSE.replace("# ", ""), INVALID, "python_syntax"),
    Trap("in a fence", "py", "```python\nprint(1)\n```\n", INVALID, "in_a_fence"),
    Trap(
        "the block of PEP 723 broken",
        "py",
        "# /// script\n# dependencies = [\n# ///\nprint(1)\n",
        INVALID,
        "script_block",
    ),
    Trap("comments only", "py", "# the totals\n", HOLLOW, "no_content"),
    Trap("a docstring only", "py", '"""The totals."""\n', HOLLOW, "no_content"),
    Trap("pass", "py", "def f():\n    pass\n", HOLLOW, "stub_only"),
    Trap(
        "not implemented",
        "py",
        "def f():\n    raise NotImplementedError\nf()\n",
        HOLLOW,
        "stub_only",
    ),
    Trap(
        "the rest left out",
        "py",
        "x = 1\nprint(x)\n# ... rest of the code unchanged\n",
        HOLLOW,
        "elided",
    ),
    Trap("minus signs without end", "py", "x = " + "-" * 200_000 + "1\n", UNSAFE, "too_deep"),
    Trap("a notebook", "ipynb", notebook()),
    Trap(
        "one of version 4.4, without ids",
        "ipynb",
        notebook(nbformat_minor=4, cells=cells("# A\n\nSome words.")),
    ),
    Trap("no format", "ipynb", '{"cells": []}', INVALID, "schema"),
    Trap("version 3", "ipynb", notebook(nbformat=3), INVALID, "schema"),
    Trap(
        "two cells of one id",
        "ipynb",
        notebook(cells=[NOTEBOOK["cells"][0]] * 2),
        INVALID,
        "duplicate_ids",
    ),
    Trap("no cells", "ipynb", notebook(cells=[]), HOLLOW, "no_content"),
    Trap("empty cells", "ipynb", notebook(cells=cells("", " \n")), HOLLOW, "no_content"),
    Trap("a promise", "ipynb", notebook(cells=cells("# Report", "TODO")), HOLLOW, "filler_text"),
    Trap("a script", "ipynb", "print(1)\n", INVALID, "json_syntax"),
    Trap("words", "txt", "412 pallets\n"),
    Trap("a number", "txt", "412\n"),
    Trap(
        "a pointer",
        "txt",
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
        HOLLOW,
        "lfs_pointer",
    ),
    Trap("dashes", "txt", "-----\n", HOLLOW, "no_content"),
    Trap("a promise", "txt", "To be written later.\n", HOLLOW, "filler_text"),
    Trap("a page", "txt", PAGE, INVALID, "is_html"),
]
TRAPS = [*JSON, *JSONL, *CSV, *MARKDOWN, *MARKUP, *CONFIG, *CODE]


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: f"{trap.format}-{trap.about}")
def test_a_trap_gets_the_verdict_it_deserves(trap: Trap) -> None:
    evidence = judged(trap)
    told = [(problem.code, problem.reason, problem.cause) for problem in evidence.problems]
    if trap.code is None:
        assert evidence.ok, told
    else:
        assert (trap.code, trap.reason) in [(code, reason) for code, reason, _ in told], told
        assert not evidence.ok


class TestWarnings:
    def test_a_duplicate_key_is_seen_and_passes(self) -> None:
        evidence = judged(Trap("", "json", '{"a": 1, "a": 2}'))
        assert evidence.ok
        assert "duplicate_keys" in {c.problem.reason for c in evidence.checks if c.problem}

    def test_words_alone_are_a_warning_beside_substance(self) -> None:
        evidence = judged(Trap("", "md", PROSE * 4 + "\n- TODO: the map of the north\n"))
        assert [c.state for c in evidence.checks if c.name == "md.no_filler"] == ["warned"]
