"""Jupyter notebooks, format 4: the structure that every reader relies on, and cells with content.

Source: nbformat.readthedocs.io, "The notebook file format".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from reread.formats import Format, Source
from reread.formats._bytes import posing
from reread.formats._checks import Fact, Item, hollow, invalid, passed
from reread.formats._placeholder import judge, prose, word_count
from reread.formats._text import Text, read_text
from reread.formats.json import loads

FORMAT = Format("ipynb", (".ipynb",), "Jupyter notebook", "application/x-ipynb+json")
PRELOAD = ("jsonschema",)
GROWTH = 12
MAX_ERRORS = 20

TEXTS = {"type": ["string", "array"], "items": {"type": "string"}}
SCHEMA = {
    "type": "object",
    "required": ["metadata", "nbformat", "nbformat_minor", "cells"],
    "properties": {
        "metadata": {"type": "object"},
        "nbformat": {"const": 4},
        "nbformat_minor": {"type": "integer", "minimum": 0},
        "cells": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["cell_type", "metadata", "source"],
                "properties": {
                    "cell_type": {"enum": ["code", "markdown", "raw"]},
                    "metadata": {"type": "object"},
                    "source": TEXTS,
                    "id": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"},
                },
                "if": {"properties": {"cell_type": {"const": "code"}}},
                "then": {
                    "required": ["outputs", "execution_count"],
                    "properties": {
                        "execution_count": {"type": ["integer", "null"]},
                        "outputs": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "required": ["output_type"],
                                "properties": {
                                    "output_type": {
                                        "enum": [
                                            "execute_result",
                                            "display_data",
                                            "stream",
                                            "error",
                                        ]
                                    }
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a notebook."""
    text = None
    for item in read_text(source, "ipynb"):
        if isinstance(item, Text):
            text = item.text
        else:
            yield item
    if text is None:
        return
    try:
        value = loads(text, [])
    except ValueError as error:
        yield from posing(source.data(), "ipynb")
        yield invalid("ipynb.parses", "json_syntax", f"It is not JSON: {error}", depth="identity")
        return
    wrong = _wrong(value)
    if wrong:
        cause = f"It is no notebook of format 4: {wrong}"
        yield invalid("ipynb.structure", "schema", cause, depth="identity")
        return
    yield passed("ipynb.structure", "identity", f"{len(value['cells'])} cells")
    yield from _ids(value)
    yield from _substance(value, contract)


def _wrong(value: Any) -> str:
    from jsonschema import Draft202012Validator

    found = islice(Draft202012Validator(SCHEMA).iter_errors(value), MAX_ERRORS)
    errors = sorted(found, key=lambda error: error.json_path)
    return f"{errors[0].json_path}: {errors[0].message[:160]}" if errors else ""


def _ids(value: Mapping[str, Any]) -> Iterator[Item]:
    ids = [cell["id"] for cell in value["cells"] if "id" in cell]
    doubles = [name for name, count in Counter(ids).items() if count > 1]
    if doubles:
        cause = f"Two cells have the id '{min(doubles)}'."
        yield invalid("ipynb.cell_ids", "duplicate_ids", cause)


def _substance(value: Mapping[str, Any], contract: Mapping[str, Any]) -> Iterator[Item]:
    cells = [(cell["cell_type"], _joined(cell["source"])) for cell in value["cells"]]
    text = "\n".join(source for _, source in cells)
    shown = prose("\n".join(source for kind, source in cells if kind == "markdown"))
    outputs = sum(len(cell.get("outputs", ())) for cell in value["cells"])
    yield Fact("items", len(cells))
    yield Fact("words", word_count(shown))
    yield Fact("outputs", outputs)
    yield Fact("_text", text)
    if not text.strip():
        if contract.get("allow_empty"):
            yield passed("ipynb.has_content", "substance", "empty, which the contract allows")
        else:
            yield hollow("ipynb.has_content", "no_content", "No cell holds anything.")
        return
    yield passed("ipynb.has_content", "substance", f"{len(cells)} cells, {outputs} outputs")
    code = any(kind == "code" and source.strip() for kind, source in cells)
    yield from judge(shown, "ipynb", allow_empty=code)


def _joined(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)
