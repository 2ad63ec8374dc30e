# /// script
# requires-python = ">=3.11"
# dependencies = ["reportlab", "fonttools", "pillow"]
# ///
"""Set the report that drafts/report.json describes as a PDF; references/spec.md explains each key.

The glyphs that the text needs are embedded, from a font of this machine. Fonts with PostScript
outlines, which reportlab does not take, are cut down to those glyphs and converted. Without any
such font Chinese is set in one that the reader's program must bring, and the script says so.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from fontTools.pens.cu2quPen import Cu2QuPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTCollection, TTFont, TTLibError, newTable
from PIL import Image as Picture
from reportlab.lib import colors
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.pagesizes import A4, LETTER
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont as Embedded
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    CondPageBreak,
    Flowable,
    Frame,
    Image,
    KeepTogether,
    PageTemplate,
    Paragraph,
    Spacer,
    Table,
    TableStyle,
)

SPEC = Path("drafts/report.json")
INK, GREY, ACCENT = (
    colors.HexColor("#1F2933"),
    colors.HexColor("#5C6B73"),
    colors.HexColor("#0B5FA5"),
)
PALE, RULE = colors.HexColor("#F2F5F8"), colors.HexColor("#CBD2D9")
MARGIN = 22 * mm
WHOLE = 20
"""Rows of a table up to which it is not broken between pages."""
LENT = "STSong-Light"
SIMPLER = {"\u2212": "-", "\u2010": "-", "\u2011": "-", "\u202f": " ", "\u2007": " "}
"""Signs that can be written simpler where no font has them."""
UNUSED = """maxTwilightPoints maxStorage maxFunctionDefs maxInstructionDefs maxStackElements
maxSizeOfInstructions maxComponentElements maxPoints maxContours maxCompositePoints
maxCompositeContours maxComponentDepth"""
"""Fields of a font's head that its hints would need; the library counts the others itself."""
WIDE = 0x2E7F
"""Letters above this code point are as wide as high: Chinese, Japanese, Korean."""
FOLDERS = (
    *("/usr/share/fonts", "/usr/local/share/fonts", "~/.fonts", "~/.local/share/fonts"),
    *("/System/Library/Fonts", "/Library/Fonts", "~/Library/Fonts", "C:/Windows/Fonts"),
)
REGULAR = (
    *("NotoSansCJK-Regular", "NotoSansSC-Regular", "SourceHanSansSC-Regular", "msyh", "PingFang"),
    *("Hiragino Sans GB", "wqy-microhei", "wqy-zenhei", "simhei", "DroidSansFallbackFull"),
    *("NotoSans-Regular", "DejaVuSans", "LiberationSans-Regular", "arial", "Arial Unicode"),
)
BOLD = {
    "NotoSansCJK-Regular": "NotoSansCJK-Bold",
    "NotoSansSC-Regular": "NotoSansSC-Bold",
    "SourceHanSansSC-Regular": "SourceHanSansSC-Bold",
    "msyh": "msyhbd",
    "NotoSans-Regular": "NotoSans-Bold",
    "DejaVuSans": "DejaVuSans-Bold",
    "LiberationSans-Regular": "LiberationSans-Bold",
    "arial": "arialbd",
}


def texts(value: Any) -> Iterator[str]:
    """Yield every text of a spec."""
    if isinstance(value, dict):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, str):
        yield value


def installed() -> dict[str, Path]:
    """Return the font files of this machine by their stem."""
    found: dict[str, Path] = {}
    for folder in FOLDERS:
        for place, _, names in os.walk(Path(folder).expanduser()):
            for name in names:
                if name.lower().endswith((".ttf", ".otf", ".ttc")):
                    found.setdefault(Path(name).stem, Path(place, name))
    return found


def face(path: Path) -> TTFont:
    """Open a font; of a collection the face for simplified Chinese, else the first."""
    if path.suffix.lower() != ".ttc":
        return TTFont(path, lazy=True)
    faces = TTCollection(path, lazy=True).fonts
    return next((f for f in faces if str(f["name"].getDebugName(1)).endswith(" SC")), faces[0])


def cut_down(font: TTFont, letters: str) -> Path:
    """Write a font with these letters only, its outlines in TrueType's form."""
    options = Options(layout_features=[], hinting=False, notdef_outline=True, glyph_names=False)
    options.drop_tables += ["FFTM"]
    cutter = Subsetter(options)
    cutter.populate(text=letters)
    cutter.subset(font)
    if "glyf" not in font:
        to_truetype(font)
    handle, name = tempfile.mkstemp(suffix=".ttf")
    os.close(handle)
    font.save(name)
    return Path(name)


def to_truetype(font: TTFont) -> None:
    """Replace cubic outlines by quadratic ones, within half a unit of the em."""
    order, shapes = font.getGlyphOrder(), font.getGlyphSet()
    table = newTable("glyf")
    table.glyphOrder, table.glyphs = order, {}
    for name in order:
        pen = TTGlyphPen(None)
        shapes[name].draw(Cu2QuPen(pen, 0.5, reverse_direction=True))
        table.glyphs[name] = pen.glyph()
    font["loca"], font["glyf"] = newTable("loca"), table
    most = font["maxp"]
    most.tableVersion = 0x00010000
    for key in UNUSED.split():
        setattr(most, key, 0)
    most.maxZones = 1
    font["head"].glyphDataFormat = 0
    font["post"].formatType = 3.0
    for tag in ("CFF ", "VORG"):
        if tag in font:
            del font[tag]
    font.sfntVersion = "\x00\x01\x00\x00"


class Fonts:
    """The fonts of a report: each letter is set in the first one that has it."""

    def __init__(self, letters: str) -> None:
        """Register fonts, in their order, until every letter has one."""
        self.names: dict[str, tuple[str, str]] = {}
        self.simpler: dict[str, str] = {}
        left = "".join(letter for letter in letters if not is_western(letter))
        if not left:
            self._take(letters, "Helvetica", "Helvetica-Bold")
            return
        left = letters
        files = installed()
        for stem in REGULAR:
            if left and stem in files:
                left = self._embed(files, stem, left)
        if left:
            self._lend(left)

    def _take(self, letters: str, regular: str, bold: str) -> None:
        self.names |= dict.fromkeys(letters, (regular, bold))

    def _embed(self, files: dict[str, Path], stem: str, letters: str) -> str:
        """Embed what a font has of these letters, and return the others."""
        bold = files.get(BOLD.get(stem, ""), files[stem])
        there = "".join(sorted(set(letters) & known(files[stem]) & known(bold)))
        if not there:
            return letters
        name = f"Text{len(set(self.names.values())) or ''}"
        register(name, files[stem], there)
        register(f"{name}-Bold", bold, there)
        self._take(there, name, f"{name}-Bold")
        return "".join(letter for letter in letters if letter not in there)

    def _lend(self, letters: str) -> None:
        """Name a font that the reader's program must bring, for letters that no font here has."""
        self.simpler = {letter: SIMPLER[letter] for letter in letters if letter in SIMPLER}
        letters = "".join({self.simpler.get(letter, letter) for letter in letters})
        western = "".join(filter(is_western, letters))
        self._take(western, "Helvetica", "Helvetica-Bold")
        others = "".join(letter for letter in letters if letter not in western)
        if not others:
            return
        try:
            others.encode("gbk")
        except UnicodeEncodeError as error:
            raise ValueError(f"no font of this machine has {others!r}: install one") from error
        pdfmetrics.registerFont(UnicodeCIDFont(LENT))
        self._take(others, LENT, LENT)
        print(f"No font here has {others!r}; the reader's program must.", file=sys.stderr)

    def runs(self, text: str, *, bold: bool = False) -> Iterator[tuple[str, str]]:
        """Yield the parts of a text with the name of the font that has them."""
        text = "".join(self.simpler.get(letter, letter) for letter in text)
        for name, letters in groupby(text, lambda letter: self.names.get(letter, ("", ""))[bold]):
            yield name, "".join(letters)

    @property
    def main(self) -> tuple[str, str]:
        """Return the regular and bold font of most letters, of those that are there."""
        counted = Counter(pair for pair in self.names.values() if LENT not in pair)
        return counted.most_common(1)[0][0] if counted else (LENT, LENT)


def is_western(letter: str) -> bool:
    """Say whether the fonts that every reader has can set a letter."""
    try:
        letter.encode("cp1252")
    except UnicodeEncodeError:
        return False
    return True


@cache
def known(path: Path) -> frozenset[str]:
    """Return the letters of a font; none for a file that cannot be read."""
    try:
        return frozenset(map(chr, face(path).getBestCmap()))
    except (OSError, TTLibError, TypeError):
        return frozenset()


def register(name: str, path: Path, letters: str) -> None:
    """Make a font known to reportlab, cut down to these letters."""
    small = cut_down(face(path), letters)
    pdfmetrics.registerFont(Embedded(name, str(small)))


class Styles:
    """The few styles of a report; Chinese breaks between any two letters, Latin between words."""

    def __init__(self, fonts: Fonts, *, is_wide: bool) -> None:
        regular, bold = fonts.main
        wrap = "CJK" if is_wide else None
        leading = 1.7 if is_wide else 1.42

        def style(font: str, size: float, **more: Any) -> ParagraphStyle:
            return ParagraphStyle(
                f"{font}{size}{sorted(more)}",
                **{
                    "fontName": font,
                    "fontSize": size,
                    "leading": size * leading,
                    "wordWrap": wrap,
                    "textColor": INK,
                    **more,
                },
            )

        self.fonts, self.bold = fonts, bold
        self.title = style(bold, 22, leading=28)
        self.subtitle = style(regular, 11, textColor=GREY)
        self.heading = style(bold, 13.5, textColor=ACCENT, spaceBefore=9, leading=18)
        self.text = style(regular, 10.2)
        self.lead = style(regular, 11.2)
        self.item = style(regular, 10.2, leftIndent=12, bulletIndent=1)
        self.caption = style(regular, 8.6, textColor=GREY)
        self.cell = style(regular, 9.2, leading=12.5)
        self.number = style(regular, 9.2, leading=12.5, alignment=TA_RIGHT)
        self.head = style(bold, 9.2, leading=12.5, textColor=colors.white)
        self.head_number = style(
            bold, 9.2, leading=12.5, textColor=colors.white, alignment=TA_RIGHT
        )
        self.figure = style(bold, 20, leading=25, textColor=ACCENT)
        self.label = style(regular, 9, leading=12.5)

    def paragraph(self, text: str, style: ParagraphStyle, bullet: str | None = None) -> Paragraph:
        """Return a paragraph in which nothing of the text is markup."""
        marked = "".join(
            f'<font name="{name}">{escape(part)}</font>' if name else escape(part)
            for name, part in self.fonts.runs(
                " ".join(text.split()), bold=style.fontName == self.bold
            )
        )
        return Paragraph(marked, style, bulletText=bullet)


def is_number(text: str) -> bool:
    """Say whether a cell holds a number, which stands at the right."""
    plain = text.strip().replace(",", "").replace("\u2212", "-").rstrip("%").strip("€$¥£ ")
    try:
        float(plain)
    except ValueError:
        return False
    return True


def table(spec: dict[str, Any], styles: Styles, width: float) -> Flowable:
    """Return a table whose header is repeated on each page."""
    columns, rows = spec["columns"], spec["rows"]
    for number, row in enumerate(rows, 1):
        if len(row) != len(columns):
            raise ValueError(f"row {number} has {len(row)} cells for {len(columns)} columns")
    cells = [[str(value) for value in row] for row in rows]
    right = [all(is_number(row[i]) or not row[i] for row in cells) for i in range(len(columns))]
    header = [
        styles.paragraph(name, styles.head_number if right[i] else styles.head)
        for i, name in enumerate(columns)
    ]
    body = [
        [
            styles.paragraph(text, styles.number if right[i] else styles.cell)
            for i, text in enumerate(row)
        ]
        for row in cells
    ]
    longest = [
        max(min(breadth(text), 40) for text in (columns[i], *(row[i] for row in cells))) + 3
        for i in range(len(columns))
    ]
    shares = [width * part / sum(longest) for part in longest]
    made = Table([header, *body], colWidths=shares, repeatRows=1, hAlign="LEFT")
    made.setStyle(
        TableStyle(
            [
                ("BACKGROUND", (0, 0), (-1, 0), ACCENT),
                ("ROWBACKGROUNDS", (0, 1), (-1, -1), [colors.white, PALE]),
                ("LINEBELOW", (0, 1), (-1, -1), 0.4, RULE),
                ("VALIGN", (0, 0), (-1, -1), "MIDDLE"),
                ("TOPPADDING", (0, 0), (-1, -1), 4),
                ("BOTTOMPADDING", (0, 0), (-1, -1), 4),
            ]
        )
    )
    return made


def breadth(text: str) -> float:
    """Return how many Latin letters wide a text is, about."""
    return sum(1.9 if ord(letter) > WIDE else 1 for letter in text)


def figures(spec: list[dict[str, str]], styles: Styles, width: float) -> Flowable:
    """Return the two to four numbers that matter, as tiles."""
    cells = [
        [
            styles.paragraph(one["value"], styles.figure),
            styles.paragraph(one["label"], styles.label),
            styles.paragraph(one.get("note", ""), styles.caption),
        ]
        for one in spec
    ]
    made = Table([cells], colWidths=[width / len(cells)] * len(cells), hAlign="LEFT")
    made.setStyle(
        TableStyle(
            [
                ("BACKGROUND", (0, 0), (-1, -1), PALE),
                ("LINEBEFORE", (1, 0), (-1, -1), 6, colors.white),
                ("LEFTPADDING", (0, 0), (-1, -1), 12),
                ("TOPPADDING", (0, 0), (-1, -1), 8),
                ("BOTTOMPADDING", (0, 0), (-1, -1), 9),
                ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ]
        )
    )
    return made


def image(spec: dict[str, Any], styles: Styles, width: float) -> list[Flowable]:
    """Return a picture in the width of the text, and its caption."""
    with Picture.open(spec["image"]) as picture:
        height = width * picture.height / picture.width
    shown = Image(spec["image"], width=width, height=height)
    return [
        shown,
        *([styles.paragraph(spec["caption"], styles.caption)] if "caption" in spec else []),
    ]


def parts(block: dict[str, Any], styles: Styles, width: float, *, first: bool) -> list[Flowable]:
    """Return what a block sets."""
    if "text" in block:
        return [styles.paragraph(block["text"], styles.lead if first else styles.text)]
    if "figures" in block:
        return [figures(block["figures"], styles, width)]
    if "table" in block:
        return [table(block["table"], styles, width)]
    if "image" in block:
        return image(block, styles, width)
    if "list" in block:
        return [styles.paragraph(text, styles.item, "\u2022") for text in block["list"]]
    raise ValueError(f"a block is heading, text, figures, table, image or list: {list(block)}")


def blocks(spec: dict[str, Any], styles: Styles, width: float) -> Iterator[Flowable]:
    """Yield the parts of the report in order; a heading stays with what follows it."""
    held: list[Flowable] = []
    for number, block in enumerate(spec["blocks"]):
        if "heading" in block:
            held = [styles.paragraph(block["heading"], styles.heading), Spacer(0, 4)]
            continue
        made = [*held, *parts(block, styles, width, first=number == 0)]
        if number:
            yield Spacer(0, 9)
        if len(block.get("table", {}).get("rows", ())) > WHOLE:
            yield from (CondPageBreak(40 * mm), *made)  # longer than a page, perhaps: begin here
        else:
            yield KeepTogether(made)
        held = []
    if held:
        raise ValueError(f"nothing follows the heading {spec['blocks'][-1]['heading']!r}")


def build(spec: dict[str, Any]) -> Path:
    """Set the report and return its path."""
    size = LETTER if spec.get("page") == "letter" else A4
    page = "第 {} 页" if spec.get("language") == "zh" else "page {}"
    letters = "".join(sorted({*"".join(texts(spec)), *page, *"0123456789\u2022 "} - {"\n", "\t"}))
    is_wide = any(ord(letter) > WIDE for letter in letters)
    styles = Styles(Fonts(letters), is_wide=is_wide)
    path = Path(spec["path"])
    path.parent.mkdir(parents=True, exist_ok=True)

    def foot(canvas: Canvas, document: BaseDocTemplate) -> None:
        canvas.setFillColor(GREY)
        for text, right in (
            (f"{spec['title']}  {spec.get('source', '')}", False),
            (page.format(document.page), True),
        ):
            parts = list(styles.fonts.runs(text))
            full = sum(pdfmetrics.stringWidth(part, name, 8.4) for name, part in parts)
            at = size[0] - MARGIN - full if right else MARGIN
            for name, part in parts:
                canvas.setFont(name, 8.4)
                canvas.drawString(at, 12 * mm, part)
                at += pdfmetrics.stringWidth(part, name, 8.4)

    document = BaseDocTemplate(
        str(path),
        pagesize=size,
        title=spec["title"],
        author=spec.get("author", ""),
        lang=spec.get("language", "en"),
    )
    width = size[0] - 2 * MARGIN
    frame = Frame(MARGIN, 20 * mm, width, size[1] - 40 * mm, 0, 0, 0, 0)
    document.addPageTemplates(PageTemplate(frames=[frame], onPage=foot))
    head: list[Flowable] = [styles.paragraph(spec["title"], styles.title)]
    if spec.get("subtitle"):
        head += [styles.paragraph(spec["subtitle"], styles.subtitle)]
    document.build([*head, Spacer(0, 10), *blocks(spec, styles, width)])
    print(
        f"{path}: {document.page} pages, {path.stat().st_size} bytes, font {styles.fonts.main[0]}"
    )
    return path


spec = json.loads(SPEC.read_text(encoding="utf-8"))
for key in ("path", "title", "blocks"):
    if not spec.get(key):
        raise ValueError(f"{key!r} is missing or empty in {SPEC}")
build(spec)
