"""Mutated valid files of each format: no exception leaves the gate, and the verdict stays."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reread import examine
from reread.values import Evidence

CASES = Path(__file__).parent / "data" / "gate"
TABLE: list[dict[str, Any]] = json.loads((CASES / "manifest.json").read_text("utf-8"))["cases"]
MORE = {
    "toml": b"[depot]\nname = 'north'\npallets = 412\n",
    "xml": b"<?xml version='1.0'?><!DOCTYPE r [<!ENTITY c 'x'>]><r><row id='1'>&c; one</row></r>",
    "txt": "412 托盘\n".encode(),
    "ipynb": b'{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[{"cell_type":"markdown",'
    b'"id":"a","metadata":{},"source":"Some words"}]}',
}
EXAMPLES = 60
"""Files of each format, the same ones each time."""
INSERTS = (b"\x00", b"\xff", b"<!--", b"```", b'"', b"[", b"\r", b"&a;", b"---\n", b"\xef\xbb\xbf")


def seeds() -> dict[str, list[bytes]]:
    """Return a few small accepted files of each format that is here."""
    found: dict[str, list[bytes]] = {name: [data] for name, data in MORE.items()}
    for case in TABLE:
        name = case["format"]
        known = name in examine.all_formats() or name == "python"
        if case["verdict"] == "accept" and known and case["size"] < 40_000:
            data = (CASES / case["file"]).read_bytes()
            found.setdefault(examine.format_named(name), []).append(data)
    return found


SEEDS = seeds()


@st.composite
def mutated(draw: st.DrawFn, of: list[bytes]) -> bytes:
    """Return a file with a few of: bytes changed, cut off, doubled, inserted, taken out."""
    data = bytearray(draw(st.sampled_from(of)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        length = draw(st.integers(1, 64))
        how = draw(st.sampled_from(("flip", "cut", "double", "insert", "drop", "zero")))
        if how == "cut":
            del data[at:]
        elif how == "double":
            data[at:at] = data[at : at + length]
        elif how == "insert":
            data[at:at] = draw(st.sampled_from(INSERTS)) * length
        elif how == "drop":
            del data[at : at + length]
        elif how == "zero":
            data[at : at + length] = bytes(len(data[at : at + length]))
        elif data:
            data[at] ^= 1 << draw(st.integers(0, 7))
    return bytes(data)


def judged(data: bytes, format: str) -> Evidence:
    return examine.examine(io.BytesIO(data), name=f"file.{format}", format=format, contract={})


@pytest.mark.parametrize("format", sorted(SEEDS))
def test_no_mutation_breaks_the_gate(format: str) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(mutated(SEEDS[format]))
    def holds(data: bytes) -> None:
        evidence = judged(data, format)
        assert evidence.sha256 == hashlib.sha256(data).hexdigest()
        assert evidence.size == len(data)
        assert evidence.checks
        broken = [p.cause for p in evidence.problems if p.reason in ("parser_failed", "crash")]
        assert not broken, "a reader gave up in a way that its format's checks do not name"

    holds()


@pytest.mark.parametrize("format", sorted(SEEDS))
def test_a_verdict_is_the_same_each_time(format: str) -> None:
    data = SEEDS[format][0][:-7]
    assert judged(data, format) == judged(data, format)
