"""Word, PowerPoint and Excel: what holds, and how it breaks."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest

from tests.formats.judging import DATA, examined, repacked, verdict, warnings

docx = pytest.importorskip("docx", reason="pip install python-docx makes the documents to judge")
pptx = pytest.importorskip("pptx", reason="pip install python-pptx makes the decks to judge")
openpyxl = pytest.importorskip("openpyxl", reason="pip install openpyxl makes the workbooks")

PROSE = "The northern depot moved 4,182 pallets in April, eleven percent more than in March."
INVALID, HOLLOW = "artifact_format_invalid", "artifact_placeholder_output"
UNSAFE, UNREADABLE = "artifact_unsafe", "artifact_unreadable"
STRICT = {
    b"http://schemas.openxmlformats.org/wordprocessingml/2006/main": b"http://purl.oclc.org/ooxml/wordprocessingml/main",
    b"http://schemas.openxmlformats.org/spreadsheetml/2006/main": b"http://purl.oclc.org/ooxml/spreadsheetml/main",
    b"http://schemas.openxmlformats.org/officeDocument/2006/relationships": b"http://purl.oclc.org/ooxml/officeDocument/relationships",
}


def saved(document: Any) -> bytes:
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def letter(*paragraphs: str, title: str = "April") -> bytes:
    document = docx.Document()
    if title:
        document.add_heading(title, 0)
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    return saved(document)


def deck(*slides: tuple[str, str]) -> bytes:
    presentation = pptx.Presentation()
    for title, body in slides:
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = body
    return saved(presentation)


def workbook(*rows: list[Any], title: str = "Moves") -> bytes:
    book = openpyxl.Workbook()
    book.active.title = title
    for row in rows:
        book.active.append(row)
    return saved(book)


TABLE = (["depot", "pallets"], ["north", 4182], ["south", 3901])
GOOD = {
    "docx": letter(PROSE),
    "pptx": deck(("April", PROSE), ("May", "Plans for the southern depot")),
    "xlsx": workbook(*TABLE),
}
FORMATS = sorted(GOOD)


def main_part(format: str) -> str:
    return {"docx": "word/document.xml", "pptx": "ppt/presentation.xml", "xlsx": "xl/workbook.xml"}[
        format
    ]


@pytest.mark.parametrize("format", FORMATS)
class TestEveryPackage:
    def test_holds_when_a_library_made_it(self, format: str) -> None:
        assert verdict(format, GOOD[format]) == "ok"

    def test_holds_when_libreoffice_made_it(self, format: str) -> None:
        name = {"docx": "report", "pptx": "deck", "xlsx": "moves"}[format]
        assert verdict(format, (DATA / f"libreoffice-{name}.{format}").read_bytes()) == "ok"

    @pytest.mark.parametrize("kind", ["macroEnabled.main+xml", "template.main+xml"])
    def test_holds_as_macro_file_and_as_template(self, format: str, kind: str) -> None:
        word = {
            "docx": b"application/vnd.ms-word.document.",
            "xlsx": b"application/vnd.ms-excel.sheet.",
            "pptx": b"application/vnd.ms-powerpoint.presentation.",
        }[format]
        changed = re.sub(
            rb"application/vnd\.openxmlformats-officedocument\.\w+\.(document|sheet|presentation)"
            rb"\.main\+xml",
            word + kind.encode(),
            _types(GOOD[format]),
        )
        assert verdict(format, repacked(GOOD[format], {"[Content_Types].xml": changed})) == "ok"

    def test_is_cut_when_its_directory_is_gone(self, format: str) -> None:
        half = GOOD[format][: len(GOOD[format]) // 2]
        assert verdict(format, half) == f"{INVALID}/truncated"

    def test_is_damaged_when_one_byte_of_a_part_flips(self, format: str) -> None:
        data = bytearray(GOOD[format])
        at = GOOD[format].index(main_part(format).encode()) + 200
        data[at] ^= 0x10
        assert verdict(format, bytes(data)).startswith(INVALID)

    def test_is_refused_under_another_name(self, format: str) -> None:
        for other in FORMATS:
            if other != format:
                assert verdict(other, GOOD[format]) == f"{INVALID}/format_mismatch"

    def test_is_refused_with_a_form_feed_in_its_xml(self, format: str) -> None:
        data = repacked(
            GOOD[format], lambda n, c: c[:-20] + b"\x0c" + c[-20:] if n == main_part(format) else c
        )
        assert verdict(format, data) == f"{INVALID}/xml_not_well_formed"

    def test_is_unsafe_with_a_document_type(self, format: str) -> None:
        evil = b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
        data = repacked(
            GOOD[format],
            lambda n, c: (
                re.sub(rb"^(<\?xml.*?\?>)?", lambda m: m.group() + evil, c)
                if n == main_part(format)
                else c
            ),
        )
        assert verdict(format, data) == f"{UNSAFE}/doctype"

    def test_is_unsafe_when_a_part_inflates_without_end(self, format: str) -> None:
        bomb = b"<a>" + b" " * (60 << 20) + b"</a>"
        assert verdict(format, repacked(GOOD[format], {}, {"x/bomb.xml": bomb})) == (
            f"{UNSAFE}/decompression_bomb"
        )

    def test_is_hollow_without_its_main_part(self, format: str) -> None:
        assert verdict(format, repacked(GOOD[format], {main_part(format): None})) == (
            f"{INVALID}/no_main_part"
        )

    def test_is_no_package_when_it_is_text(self, format: str) -> None:
        assert verdict(format, b'{"title": "April"}') == f"{INVALID}/not_a_zip"
        assert verdict(format, b"<!DOCTYPE html><html></html>") == f"{INVALID}/is_html"
        assert verdict(format, b"# April\n\nMarkdown.\n") == f"{INVALID}/not_a_zip"

    def test_is_unreadable_when_it_is_encrypted(self, format: str) -> None:
        ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600
        locked = ole + "EncryptedPackage".encode("utf-16-le") + b"\0" * 600
        assert verdict(format, locked) == f"{UNREADABLE}/encrypted"
        assert verdict(format, ole) == f"{INVALID}/format_mismatch"

    def test_is_not_an_open_document(self, format: str) -> None:
        data = (DATA / "libreoffice-report.odt").read_bytes()
        assert verdict(format, data).startswith(INVALID)

    def test_may_have_been_packed_again_on_a_mac(self, format: str) -> None:
        stray = {"__MACOSX/._[Content_Types].xml": b"\0\5\x16\7\0\2\0\0Mac OS X"}
        assert verdict(format, repacked(GOOD[format], {}, stray)) == "ok"

    def test_may_not_have_one_part_twice(self, format: str) -> None:
        twice = {main_part(format).upper(): b"<x/>"}
        assert verdict(format, repacked(GOOD[format], {}, twice)) == f"{INVALID}/duplicate_part"


def _types(data: bytes) -> bytes:
    import zipfile

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read("[Content_Types].xml")


class TestWord:
    def test_counts_words_tables_and_sections(self) -> None:
        document = docx.Document()
        document.add_heading("Results", 1)
        document.add_paragraph(PROSE)
        document.add_table(2, 2).cell(0, 0).text = "depot"
        facts = examined("docx", saved(document)).facts
        assert facts["tables"] == 1
        assert facts["words"] > 10

    def test_has_what_the_contract_wants_in_it(self) -> None:
        data = letter(PROSE)
        assert verdict("docx", data, contains=["4,182 PALLETS"], min_words=5) == "ok"
        assert verdict("docx", data, contains=["in May"]).startswith("artifact_contract_unmet")

    def test_is_read_in_its_strict_form(self) -> None:
        def strict(name: str, content: bytes) -> bytes:
            for old, new in STRICT.items():
                content = content.replace(old, new)
            return content

        assert verdict("docx", repacked(letter(PROSE), strict)) == "ok"

    def test_is_hollow_without_a_word(self) -> None:
        assert verdict("docx", letter(title="")) == f"{HOLLOW}/no_content"

    def test_is_hollow_with_headings_only(self) -> None:
        assert verdict("docx", letter()) == f"{HOLLOW}/title_only"

    def test_is_allowed_to_be_empty_where_the_contract_says_so(self) -> None:
        assert verdict("docx", letter(title=""), allow_empty=True) == "ok"

    @pytest.mark.parametrize(
        "promise", ["TODO", "Lorem ipsum dolor sit amet", "内容待补充", "To be converted later"]
    )
    def test_is_hollow_with_a_promise_only(self, promise: str) -> None:
        assert verdict("docx", letter(promise)) == f"{HOLLOW}/filler_text"

    def test_only_warns_of_a_promise_beside_real_text(self) -> None:
        data = letter(*[PROSE] * 6, "TODO: add the figures of May")
        assert verdict("docx", data) == "ok"
        assert "filler_text" in warnings("docx", data)

    def test_warns_of_a_single_word(self) -> None:
        assert warnings("docx", letter("Hello", title="")) == {"few_words"}

    def test_refuses_a_relationship_to_a_picture_that_is_not_there(self) -> None:
        relation = (
            b'<Relationship Id="rId99" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
            b'relationships/image" Target="media/gone.png"/></Relationships>'
        )
        data = repacked(
            letter(PROSE),
            lambda n, c: (
                c.replace(b"</Relationships>", relation)
                if n == "word/_rels/document.xml.rels"
                else c
            ),
        )
        assert verdict("docx", data) == f"{INVALID}/dangling_relationship"

    def test_takes_a_link_to_the_outside(self) -> None:
        relation = (
            b'<Relationship Id="rId99" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
            b'relationships/hyperlink" Target="https://example.com/" TargetMode="External"/>'
            b"</Relationships>"
        )
        data = repacked(
            letter(PROSE),
            lambda n, c: (
                c.replace(b"</Relationships>", relation)
                if n == "word/_rels/document.xml.rels"
                else c
            ),
        )
        assert verdict("docx", data) == "ok"


class TestPowerPoint:
    def test_counts_the_slides_that_a_reader_reaches(self) -> None:
        assert examined("pptx", GOOD["pptx"]).facts["slides"] == 2
        assert verdict("pptx", GOOD["pptx"], min_slides=2) == "ok"
        assert verdict("pptx", GOOD["pptx"], min_slides=3).startswith("artifact_contract_unmet")

    def test_is_no_deck_without_slides(self) -> None:
        assert verdict("pptx", saved(pptx.Presentation())) == f"{INVALID}/zero_slides"

    def test_is_hollow_when_only_the_layout_speaks(self) -> None:
        assert verdict("pptx", deck(("", ""), ("", ""))) == f"{HOLLOW}/no_content"

    def test_is_hollow_with_titles_only(self) -> None:
        assert verdict("pptx", deck(("April", ""), ("May", ""))) == f"{HOLLOW}/title_only"

    def test_holds_with_a_picture_and_no_text(self) -> None:
        presentation = pptx.Presentation()
        slide = presentation.slides.add_slide(presentation.slide_layouts[6])
        slide.shapes.add_picture(io.BytesIO(_picture()), 0, 0)
        assert verdict("pptx", saved(presentation)) == "ok"

    def test_refuses_a_slide_part_that_is_not_there(self) -> None:
        data = repacked(GOOD["pptx"], {"ppt/slides/slide2.xml": None})
        assert verdict("pptx", data) == f"{INVALID}/dangling_relationship"

    def test_refuses_a_slide_to_which_nothing_leads(self) -> None:
        data = repacked(
            GOOD["pptx"],
            lambda n, c: (
                re.sub(rb'<Relationship [^>]*slides/slide2.xml"[^>]*/>', b"", c)
                if n == "ppt/_rels/presentation.xml.rels"
                else c
            ),
        )
        assert verdict("pptx", data) == f"{INVALID}/dangling_relationship"

    def test_only_warns_of_one_empty_slide(self) -> None:
        data = deck(("April", PROSE), ("", ""))
        assert verdict("pptx", data) == "ok"
        assert "empty_slides" in warnings("pptx", data)

    def test_finds_text_in_a_table(self) -> None:
        presentation = pptx.Presentation()
        slide = presentation.slides.add_slide(presentation.slide_layouts[6])
        slide.shapes.add_table(1, 1, 0, 0, 99999, 99999).table.cell(0, 0).text = "4182 pallets"
        assert verdict("pptx", saved(presentation), contains=["4182"], min_tables=1) == "ok"


class TestExcel:
    def test_has_the_rows_and_columns_of_its_fullest_sheet(self) -> None:
        facts = examined("xlsx", GOOD["xlsx"]).facts
        assert (facts["rows"], facts["columns"], facts["sheet_names"]) == (2, 2, ["Moves"])

    def test_meets_words_about_sheets_and_columns(self) -> None:
        table = {"fields": [{"name": "pallets", "type": "integer"}]}
        asked = {"sheets": ["Moves"], "table": table, "min_rows": 2}
        assert verdict("xlsx", GOOD["xlsx"], **asked) == "ok"
        assert verdict("xlsx", GOOD["xlsx"], sheets=["Total"]).startswith("artifact_contract")

    def test_is_hollow_without_a_cell(self) -> None:
        assert verdict("xlsx", workbook()) == f"{HOLLOW}/no_content"

    def test_is_hollow_with_a_header_only(self) -> None:
        assert verdict("xlsx", workbook(["depot", "pallets"])) == f"{HOLLOW}/no_rows"

    def test_is_hollow_when_its_cells_only_promise(self) -> None:
        data = workbook(["depot", "pallets"], ["TBD", "TBD"], ["TODO", "to be filled in"])
        assert verdict("xlsx", data) == f"{HOLLOW}/filler_text"

    def test_warns_of_formulas_whose_value_was_never_computed(self) -> None:
        data = workbook(*TABLE, ["sum", "=SUM(B2:B3)"])
        assert verdict("xlsx", data) == "ok"
        assert warnings("xlsx", data) == {"formulas_without_values"}

    def test_takes_formulas_that_a_spreadsheet_has_computed(self) -> None:
        data = (DATA / "libreoffice-moves.xlsx").read_bytes()
        assert verdict("xlsx", data) == "ok"
        assert "formulas_without_values" not in warnings("xlsx", data)

    def test_warns_of_one_error_and_refuses_errors_only(self) -> None:
        error = b'<c r="B9" t="e"><f>A1/0</f><v>#DIV/0!</v></c>'
        one = repacked(
            GOOD["xlsx"],
            lambda n, c: (
                c.replace(b"</sheetData>", b'<row r="9">' + error + b"</row></sheetData>")
                if n.endswith("sheet1.xml")
                else c
            ),
        )
        assert warnings("xlsx", one) == {"error_values"}
        only = repacked(
            GOOD["xlsx"],
            lambda n, c: (
                re.sub(
                    rb"<sheetData>.*</sheetData>",
                    b'<sheetData><row r="9">' + error + b"</row></sheetData>",
                    c,
                )
                if n.endswith("sheet1.xml")
                else c
            ),
        )
        assert verdict("xlsx", only) == f"{HOLLOW}/error_values"

    def test_holds_with_a_chart_sheet_only(self) -> None:
        from openpyxl.chart import BarChart, Reference

        book = openpyxl.Workbook()
        book.active.append(["north", 4182])
        chart = BarChart()
        chart.add_data(Reference(book.active, min_col=2, min_row=1))
        book.create_chartsheet("Chart").add_chart(chart)
        assert verdict("xlsx", saved(book), min_charts=1) == "ok"

    def test_is_unsafe_when_two_cells_span_a_whole_sheet(self) -> None:
        book = openpyxl.Workbook()
        book.active["A1"], book.active["XFD1048576"] = 1, 2
        assert verdict("xlsx", saved(book)) == f"{UNSAFE}/sparse_sheet"

    def test_takes_one_cell_far_out(self) -> None:
        book = openpyxl.Workbook()
        book.active["XFD1048576"] = 2
        assert verdict("xlsx", saved(book)) == "ok"

    def test_refuses_a_sheet_part_that_is_not_there(self) -> None:
        data = repacked(GOOD["xlsx"], {"xl/worksheets/sheet1.xml": None})
        assert verdict("xlsx", data) == f"{INVALID}/dangling_relationship"

    def test_refuses_a_list_of_no_sheets(self) -> None:
        data = repacked(
            GOOD["xlsx"],
            lambda n, c: re.sub(rb"<sheet .*?/>", b"", c) if n == "xl/workbook.xml" else c,
        )
        assert verdict("xlsx", data) == f"{INVALID}/no_sheets"


class TestAnEdit:
    def test_that_keeps_everything_has_lost_nothing(self) -> None:
        assert examined("docx", letter(PROSE), baseline=letter(PROSE)).ok

    def test_that_drops_a_picture_says_so(self) -> None:
        document = docx.Document()
        document.add_paragraph(PROSE)
        document.add_picture(io.BytesIO(_picture()))
        lost = examined("docx", letter(PROSE), baseline=saved(document)).problems
        assert {p.code for p in lost} == {"artifact_content_lost"}
        assert "lost_drawings" in {p.reason for p in lost}

    def test_that_drops_a_sheet_or_a_name_says_which(self) -> None:
        book = openpyxl.Workbook()
        book.active.append(["depot", 1])
        book.create_sheet("Targets")["A1"] = 5
        book.defined_names["rate"] = openpyxl.workbook.defined_name.DefinedName(
            "rate", attr_text="Targets!$A$1"
        )
        lost = examined("xlsx", workbook(*TABLE), baseline=saved(book)).problems
        assert {p.reason for p in lost} >= {"lost_sheet", "lost_defined_name"}
        assert any("'rate'" in p.cause for p in lost)

    def test_that_drops_macros_says_so(self) -> None:
        types = _types(GOOD["docx"]).replace(
            b"</Types>",
            b'<Override PartName="/word/vbaProject.bin" '
            b'ContentType="application/vnd.ms-office.vbaProject"/></Types>',
        )
        old = repacked(
            GOOD["docx"], {"[Content_Types].xml": types}, {"word/vbaProject.bin": b"\0" * 64}
        )
        lost = examined("docx", GOOD["docx"], baseline=old).problems
        assert [p.reason for p in lost] == ["lost_macros"]

    def test_that_drops_a_slide_says_so(self) -> None:
        lost = examined("pptx", deck(("April", PROSE)), baseline=GOOD["pptx"]).problems
        assert "lost_slides" in {p.reason for p in lost}


def _picture() -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.linear_gradient("L").save(stream, "PNG")
    return stream.getvalue()
