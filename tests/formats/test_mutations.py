"""Whatever is done to a file, the gate answers, and answers the same again."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

from reread.examine import examine, format_of
from tests.formats.judging import DATA

CASES = Path(__file__).resolve().parent.parent / "data" / "gate"
SEEDS = [
    *sorted(DATA.glob("libreoffice-*.[dpx]*")),
    *(CASES / name for name in ("c029/anim.png", "c045/bundle.zip", "c049/beep.wav")),
    *(CASES / name for name in ("c043/moves.parquet", "c013/report.pdf")),
]
ROUNDS = 25


def mutated(data: bytes, random: random.Random) -> bytes:
    """Cut, flip, blank, double or swap a piece."""
    at, length = random.randrange(len(data)), random.randrange(1, 200)
    piece = data[at : at + length]
    change = random.randrange(6)
    if change == 0:
        return data[:at]
    if change == 1:
        return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]
    if change == 2:
        return data[:at] + b"\0" * len(piece) + data[at + length :]
    if change == 3:
        return data[:at] + piece * 3 + data[at + length :]
    if change == 4:
        return data[:at] + random.randbytes(len(piece)) + data[at + length :]
    return data[at:]


@pytest.mark.parametrize("seed", SEEDS, ids=lambda path: path.name)
class TestAMutatedFile:
    def test_gets_an_answer_and_the_same_one_again(self, seed: Path) -> None:
        source = random.Random(seed.name)
        format = format_of(seed.name)
        for _ in range(ROUNDS):
            data = mutated(seed.read_bytes(), source)
            first, second = (
                examine(io.BytesIO(data), name=seed.name, format=format, contract={})
                for _ in range(2)
            )
            assert first == second
            assert first.checks
            reasons = {problem.reason for problem in first.problems}
            assert "parser_failed" not in reasons, first.problems
