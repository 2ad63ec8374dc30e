"""PDF: opened and drawn as viewers do."""

from __future__ import annotations

import io
import zlib

import pytest

from tests.formats.judging import DATA, examined, verdict, warnings

canvas = pytest.importorskip("reportlab.pdfgen.canvas", reason="pip install reportlab makes PDFs")

INVALID, HOLLOW = "artifact_format_invalid", "artifact_placeholder_output"
PROSE = "The northern depot moved 4,182 pallets in April, more than in March."
CHINESE = ["北方仓库四月吞吐量报告", "本月共处理托盘四千一百八十二个", "同比增长百分之十一"]


def written(
    lines: list[str], *, font: str = "Helvetica", pages: int = 1, **options: object
) -> bytes:
    stream = io.BytesIO()
    page = canvas.Canvas(stream, **options)
    for _ in range(pages):
        page.setFont(font, 12)
        for number, line in enumerate(lines):
            page.drawString(72, 720 - 20 * number, line)
        page.showPage()
    page.save()
    return stream.getvalue()


def assembled(*objects: bytes) -> bytes:
    """Return a PDF of these objects, numbered from 1; the first is the catalog."""
    out, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj" % number + content + b"endobj\n"
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count = len(objects) + 1
    return out + (
        b"xref\n0 %d\n0000000000 65535 f \n" % count
        + table
        + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (count, len(out))
    )


def drawing(content: bytes, filters: bytes) -> bytes:
    return assembled(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 100 100]/Contents 4 0 R>>",
        b"<</Length %d/Filter[%s]>>stream\n" % (len(content), filters) + content + b"\nendstream",
    )


class TestAPdf:
    def test_holds_and_has_its_pages_and_words(self) -> None:
        evidence = examined("pdf", written([PROSE], pages=3))
        assert evidence.ok
        assert evidence.facts["pages"] == 3

    def test_holds_when_libreoffice_made_it(self) -> None:
        data = (DATA / "libreoffice-report.pdf").read_bytes()
        assert verdict("pdf", data, contains=["4,182 pallets"], min_pages=1) == "ok"

    def test_may_have_bytes_before_its_header(self) -> None:
        assert verdict("pdf", b"HTTP noise\n" * 40 + written([PROSE])) == "ok"

    def test_may_have_bytes_behind_its_end(self) -> None:
        assert verdict("pdf", written([PROSE]) + b"\n<!-- tail -->" * 30) == "ok"

    def test_is_none_when_it_is_only_a_header(self) -> None:
        assert verdict("pdf", b"%PDF-1.7\n") == f"{INVALID}/no_objects"
        assert verdict("pdf", b"%PDF-1.7\nA report.\n%%EOF\n") == f"{INVALID}/no_objects"

    def test_is_none_when_its_header_comes_too_late(self) -> None:
        assert verdict("pdf", b"x" * 2000 + written([PROSE])) == f"{INVALID}/no_header"

    def test_is_none_when_it_is_a_page_of_an_error(self) -> None:
        page = b"<!DOCTYPE html><html><body>Just a moment...</body></html>"
        assert verdict("pdf", page) == f"{INVALID}/is_html"

    @pytest.mark.parametrize("share", [20, 50, 90])
    def test_is_cut_wherever_it_is_cut(self, share: int) -> None:
        data = written([PROSE] * 10, pages=20)
        assert verdict("pdf", data[: len(data) * share // 100]) == f"{INVALID}/truncated"

    def test_has_no_pages_and_says_so(self) -> None:
        data = assembled(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[]/Count 0>>")
        assert verdict("pdf", data) == f"{INVALID}/no_pages"

    def test_is_unreadable_with_a_password(self) -> None:
        from reportlab.lib.pdfencrypt import StandardEncryption

        data = written([PROSE], encrypt=StandardEncryption("secret"))
        assert verdict("pdf", data) == "artifact_unreadable/encrypted"

    def test_opens_when_only_its_owner_has_a_password(self) -> None:
        from reportlab.lib.pdfencrypt import StandardEncryption

        assert verdict("pdf", written([PROSE], encrypt=StandardEncryption("", "owner"))) == "ok"

    def test_asks_for_the_pages_of_the_contract(self) -> None:
        assert verdict("pdf", written([PROSE]), min_pages=2).startswith("artifact_contract_unmet")


class TestWhatIsToBeSeen:
    def test_is_hollow_with_nothing_on_its_pages(self) -> None:
        assert verdict("pdf", written([], pages=2)) == f"{HOLLOW}/blank"

    def test_is_hollow_with_a_promise_only(self) -> None:
        assert verdict("pdf", written(["Report", "TODO"])) == f"{HOLLOW}/filler_text"

    def test_holds_with_a_picture_and_no_text(self) -> None:
        stream = io.BytesIO()
        page = canvas.Canvas(stream)
        page.rect(100, 100, 200, 200, fill=1)
        page.save()
        assert verdict("pdf", stream.getvalue()) == "ok"

    def test_is_hollow_when_squares_stand_for_letters(self) -> None:
        assert verdict("pdf", written(CHINESE)) == f"{HOLLOW}/no_glyphs"

    def test_is_hollow_when_the_font_has_no_shape_for_them(self) -> None:
        assert verdict("pdf", written(CHINESE, font=_font("DejaVuSans.ttf"))) == (
            f"{HOLLOW}/no_glyphs"
        )

    def test_holds_when_the_font_has(self) -> None:
        from reportlab.pdfbase import pdfmetrics
        from reportlab.pdfbase.cidfonts import UnicodeCIDFont

        pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
        assert verdict("pdf", written(CHINESE, font="STSong-Light")) == "ok"

    def test_holds_with_letters_of_another_script_that_it_has(self) -> None:
        line = "Отчёт о пропускной способности северного склада"
        assert verdict("pdf", written([line], font=_font("DejaVuSans.ttf"))) == "ok"

    def test_only_warns_of_one_missing_letter(self) -> None:
        data = written([PROSE, PROSE, "Depot \u25a0"], font=_font("DejaVuSans.ttf"))
        assert warnings("pdf", data) == {"no_glyphs"}


class TestABomb:
    @pytest.mark.parametrize("stages", [1, 2, 3])
    def test_is_found_before_it_is_drawn(self, stages: int) -> None:
        pack = zlib.compressobj(9)
        content = b"".join(pack.compress(b"\0" * (1 << 20)) for _ in range(300)) + pack.flush()
        for _ in range(stages - 1):
            content = zlib.compress(content, 9)
        data = drawing(content, b"/FlateDecode " * stages)
        assert verdict("pdf", data) == "artifact_unsafe/decompression_bomb"

    def test_is_found_in_a_picture_of_more_pixels_than_bytes_can_hold(self) -> None:
        picture = (
            b"<</Subtype/Image/Width 60000/Height 60000/Length 9>>stream\n123456789\nendstream"
        )
        data = written([PROSE]).replace(b"%%EOF", b"99 0 obj" + picture + b"endobj\n%%EOF")
        assert verdict("pdf", data) == "artifact_unsafe/decompression_bomb"

    def test_is_none_when_it_is_an_ordinary_stream(self) -> None:
        data = drawing(zlib.compress(b"10 10 50 50 re f "), b"/FlateDecode")
        assert verdict("pdf", data) == "ok"


class TestAnEdit:
    def test_that_drops_a_page_says_so(self) -> None:
        lost = examined("pdf", written([PROSE]), baseline=written([PROSE], pages=2)).problems
        assert [p.reason for p in lost] == ["lost_pages"]


def _font(name: str) -> str:
    from pathlib import Path

    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont

    found = next(Path("/usr/share/fonts").rglob(name), None)
    if found is None:
        pytest.skip(f"apt-get install fonts-dejavu-core: {name} is not here")
    pdfmetrics.registerFont(TTFont(name, str(found)))
    return name
