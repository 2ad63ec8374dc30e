"""Names of confined files: what holds for any text at all."""

from __future__ import annotations

import unicodedata

import pytest

pytest.importorskip("hypothesis", reason="it is one of the packages for developers")

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_runtime import Failure
from reread.files import ConfinedFolder, check_name
from reread.files.names import PATH_BYTES, folded
from reread.values import Code


class TestAnyText:
    @given(st.text(st.characters(exclude_categories=()), max_size=40))
    def test_it_is_refused_with_the_code_or_taken_apart_without_loss(self, text: str) -> None:
        try:
            parts = check_name(text)
        except Failure as failure:
            assert failure.code == Code.path_not_allowed
            failure.cause.encode("utf-8")
            return
        assert "/".join(parts) == text
        assert not {"", ".", ".."} & set(parts)
        assert len(text.encode()) <= PATH_BYTES
        assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in text)

    @given(st.text("a.. /\\:\0~é\u0301\u202eCONnul12", max_size=12))
    @settings(max_examples=150)
    def test_what_is_taken_stays_below_the_root(
        self, tmp_path_factory: pytest.TempPathFactory, text: str
    ) -> None:
        root = tmp_path_factory.mktemp("root")
        try:
            ConfinedFolder(root / "inner").root.mkdir()
            ConfinedFolder(root / "inner").write(text, b"x")
        except Failure:
            assert list((root / "inner").rglob("*")) == []
            return
        assert (root / "inner" / text).read_bytes() == b"x"
        assert [entry.name for entry in root.iterdir()] == ["inner"]

    @given(st.text(max_size=20))
    def test_folding_does_not_depend_on_case_or_composition(self, text: str) -> None:
        assert folded(unicodedata.normalize("NFC", text)) == folded(
            unicodedata.normalize("NFD", text)
        )
        assert folded(folded(text)) == folded(text)
