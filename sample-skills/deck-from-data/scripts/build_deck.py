# /// script
# requires-python = ">=3.11"
# dependencies = ["python-pptx"]
# ///
"""Make the deck that drafts/deck.json describes; references/spec.md explains each key.

Charts and tables are PowerPoint's own, so that a person can go on editing them. Every slide has a
real title, which outline and screen readers need, and its speaker notes.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.dml.color import RGBColor
from pptx.enum.chart import (
    XL_CHART_TYPE,
    XL_LABEL_POSITION,
    XL_LEGEND_POSITION,
    XL_MARKER_STYLE,
    XL_TICK_MARK,
)
from pptx.enum.shapes import MSO_SHAPE
from pptx.enum.text import MSO_ANCHOR, PP_ALIGN
from pptx.util import Emu, Inches, Pt

SPEC = Path("drafts/deck.json")
WIDTH, HEIGHT, MARGIN = 13.333, 7.5, 0.65
TOP, FOOT = 1.75, 6.95
INK, GREY = RGBColor(0x1F, 0x29, 0x33), RGBColor(0x5C, 0x6B, 0x73)
ACCENT, PALE = RGBColor(0x0B, 0x5F, 0xA5), RGBColor(0xF2, 0xF5, 0xF8)
STEPPED_BACK, RULE = RGBColor(0x9A, 0xA5, 0xB1), RGBColor(0xE4, 0xE7, 0xEB)
GREYS = (STEPPED_BACK, GREY, RGBColor(0xC5, 0xCD, 0xD5))
WHITE = RGBColor(0xFF, 0xFF, 0xFF)
SERIES = tuple(
    RGBColor.from_string(c) for c in ("0B5FA5", "D1495B", "2E8B57", "E09F3E", "6C4AB6", "5C6B73")
)
CHARTS = {
    "line": XL_CHART_TYPE.LINE,
    "column": XL_CHART_TYPE.COLUMN_CLUSTERED,
    "stacked": XL_CHART_TYPE.COLUMN_STACKED,
    "bar": XL_CHART_TYPE.BAR_CLUSTERED,
}
P_STYLE = "{http://schemas.openxmlformats.org/presentationml/2006/main}style"
CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
BODIES = ("chart", "figures", "table", "points")
MAX_POINTS, MAX_FIGURES, MAX_ROWS = 5, 4, 10


def wide(text: str) -> float:
    """Return how many Latin letters wide a text is, about; a Chinese letter counts double."""
    return sum(2 if ord(letter) > 0x2E7F else 1 for letter in text)


def check(spec: dict[str, Any]) -> None:
    """Refuse what would not fit on a slide or would be an empty one."""
    for key in ("path", "title", "slides"):
        if not spec.get(key):
            raise ValueError(f"{key!r} is missing or empty in {SPEC}")
    for number, slide in enumerate(spec["slides"], 2):
        where = f"slide {number}"
        if not slide.get("title"):
            raise ValueError(f"{where} has no title")
        if wide(slide["title"]) > 110:
            raise ValueError(f"{where}: the title has more than two lines; say it shorter")
        if not any(slide.get(body) for body in BODIES):
            raise ValueError(f"{where} has none of {', '.join(BODIES)}")
        for key, most in (("points", MAX_POINTS), ("figures", MAX_FIGURES)):
            if len(slide.get(key, ())) > most:
                raise ValueError(f"{where} has more than {most} {key}; make two slides of it")
        if len(slide.get("table", {}).get("rows", ())) > MAX_ROWS:
            raise ValueError(f"{where}: more than {MAX_ROWS} rows; the rest belongs in a workbook")
        if "chart" in slide:
            check_chart(slide["chart"], where)


def check_chart(chart: dict[str, Any], where: str) -> None:
    """Refuse a chart whose series and categories do not fit together."""
    if chart.get("kind") not in CHARTS:
        raise ValueError(f"{where}: the chart's kind is one of {', '.join(CHARTS)}")
    for one in chart["series"]:
        if len(one["values"]) != len(chart["categories"]):
            raise ValueError(f"{where}: {one['name']!r} has not one value for each category")
        if any(value is not None and not math.isfinite(value) for value in one["values"]):
            raise ValueError(f"{where}: {one['name']!r} holds NaN or infinity; use null for a gap")


def widescreen(deck: Any) -> None:
    """Make the built-in template 16:9, its layouts too, for slides that are added by hand later."""
    factor = Inches(WIDTH) / deck.slide_width
    deck.slide_width, deck.slide_height = Inches(WIDTH), Inches(HEIGHT)
    for place in (deck.slide_master, *deck.slide_layouts):
        for shape in place.shapes:
            if shape.width:
                shape.left = Emu(int(shape.left * factor))
                shape.width = Emu(int(shape.width * factor))


def block(slide: Any, ink: RGBColor, left: float, top: float, width: float, height: float) -> Any:
    """Return a plain rectangle; without the theme's style it has neither line nor shadow."""
    shape = slide.shapes.add_shape(MSO_SHAPE.RECTANGLE, *map(Inches, (left, top, width, height)))
    shape.fill.solid()
    shape.fill.fore_color.rgb = ink
    shape.line.fill.background()
    shape._element.remove(shape._element.find(P_STYLE))
    return shape


def write(frame: Any, text: str, size: float, **more: Any) -> Any:
    """Write one paragraph; the first that a frame holds, else a further one."""
    frame.word_wrap = True
    paragraph = frame.paragraphs[0] if not frame.text else frame.add_paragraph()
    paragraph.alignment = more.get("align", PP_ALIGN.LEFT)
    paragraph.line_spacing = more.get("spacing", 1.08)
    paragraph.space_after = Pt(more.get("after", 0))
    run = paragraph.add_run()
    run.text = text
    run.font.size, run.font.bold = Pt(size), more.get("bold", False)
    run.font.color.rgb = more.get("ink", INK)
    return paragraph


def box(slide: Any, left: float, top: float, width: float, height: float) -> Any:
    """Return the frame of a new text box without inner margins."""
    frame = slide.shapes.add_textbox(*map(Inches, (left, top, width, height))).text_frame
    frame.margin_left = frame.margin_right = frame.margin_top = frame.margin_bottom = 0
    return frame


def add_slide(deck: Any, title: str, notes: str) -> Any:
    """Add a slide with its title in the title's own placeholder."""
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    shape = slide.shapes.title
    shape.left, shape.top = Inches(MARGIN), Inches(0.45)
    shape.width, shape.height = Inches(WIDTH - 2 * MARGIN), Inches(1.1)
    frame = shape.text_frame
    frame.margin_left = frame.margin_right = 0
    frame.vertical_anchor = MSO_ANCHOR.TOP
    write(frame, title, 28 if wide(title) <= 62 else 24, bold=True, spacing=1.0)
    if notes:
        slide.notes_slide.notes_text_frame.text = notes
    return slide


def cover(deck: Any, spec: dict[str, Any]) -> None:
    """Add the first slide."""
    slide = add_slide(deck, spec["title"], spec.get("notes", ""))
    block(slide, ACCENT, 0, 0, 0.35, HEIGHT)
    title = slide.shapes.title
    title.left, title.top = Inches(1.1), Inches(2.1)
    title.width, title.height = Inches(11), Inches(1.7)
    title.text_frame.vertical_anchor = MSO_ANCHOR.BOTTOM
    title.text_frame.paragraphs[0].runs[0].font.size = Pt(40 if wide(spec["title"]) <= 44 else 32)
    below = box(slide, 1.1, 4.0, 11, 1.5)
    for text, size, ink in ((spec.get("subtitle"), 20, INK), (spec.get("byline"), 14, GREY)):
        if text:
            write(below, text, size, ink=ink, after=8)


def footer(slide: Any, number: int, source: str) -> None:
    """Write source and slide number."""
    write(box(slide, MARGIN, FOOT, 10.5, 0.3), source or " ", 10.5, ink=GREY)
    right = box(slide, WIDTH - MARGIN - 1, FOOT, 1, 0.3)
    write(right, str(number), 10.5, ink=GREY, align=PP_ALIGN.RIGHT)


def points(slide: Any, texts: list[str], left: float, top: float, width: float) -> None:
    """Write short statements with room between them and a mark before each."""
    size = 18 if width > 6 else 16
    per_line = width * 72 / (size * 0.52)
    at = top
    for text in texts:
        lines = math.ceil(wide(text) / per_line)
        height = lines * size * 1.25 / 72
        block(slide, ACCENT, left, at + 0.04, 0.06, height - 0.04)
        write(box(slide, left + 0.2, at, width - 0.2, height), text, size)
        at += height + 0.32


def figures(slide: Any, tiles: list[dict[str, str]], top: float) -> float:
    """Draw the numbers that matter and return where the next thing may stand."""
    gap = 0.25
    width = (WIDTH - 2 * MARGIN - gap * (len(tiles) - 1)) / len(tiles)
    for number, tile in enumerate(tiles):
        left = MARGIN + number * (width + gap)
        shape = block(slide, PALE, left, top, width, 1.95)
        frame = shape.text_frame
        frame.vertical_anchor = MSO_ANCHOR.MIDDLE
        frame.margin_left = Inches(0.22)
        write(frame, tile["value"], 36, bold=True, ink=ACCENT, spacing=1.0)
        write(frame, tile["label"], 15)
        if tile.get("note"):
            write(frame, tile["note"], 12, ink=GREY)
    return top + 1.95 + 0.45


def chart(slide: Any, spec: dict[str, Any], width: float) -> None:
    """Draw PowerPoint's own chart, quiet but for the data."""
    data = CategoryChartData(number_format=spec.get("number_format", "General"))
    data.categories = spec["categories"]
    for one in spec["series"]:
        data.add_series(one["name"], one["values"])
    top = TOP
    if spec.get("unit"):
        write(box(slide, MARGIN, top, width, 0.3), spec["unit"], 12, ink=GREY)
        top += 0.3
    place = map(Inches, (MARGIN - 0.1, top, width, FOOT - 0.15 - top))
    frame = slide.shapes.add_chart(CHARTS[spec["kind"]], *place, data)
    frame.name = "Chart"
    frame._element.nvGraphicFramePr.cNvPr.set("descr", slide.shapes.title.text_frame.text)
    drawn = frame.chart
    drawn.font.size, drawn.font.color.rgb = Pt(12), GREY
    drawn.has_title = False
    drawn.has_legend = len(spec["series"]) > 1
    if drawn.has_legend:
        drawn.legend.position = XL_LEGEND_POSITION.TOP
        drawn.legend.include_in_layout = False
        drawn.legend.font.size = Pt(12)
    axes(drawn, spec)
    paint(drawn, spec)


def axes(drawn: Any, spec: dict[str, Any]) -> None:
    """Quieten axes; leave out labels of categories where they would not fit."""
    value, category = drawn.value_axis, drawn.category_axis
    value.major_gridlines.format.line.color.rgb = RULE
    value.format.line.fill.background()
    value.tick_labels.number_format = spec.get("number_format", "General")
    value.tick_labels.number_format_is_linked = False
    value.major_tick_mark = category.major_tick_mark = XL_TICK_MARK.NONE
    category.format.line.color.rgb = STEPPED_BACK
    if spec.get("from_zero", spec["kind"] != "line"):
        value.minimum_scale = 0
    if spec["kind"] == "bar":
        category.reverse_order = True
        value.visible = False
        value.has_major_gridlines = False
    elif len(spec["categories"]) > 9:
        every = math.ceil(len(spec["categories"]) / 7)
        last = category._element.find(CHART + "noMultiLvlLbl")
        for tag in ("tickLblSkip", "tickMarkSkip"):
            last.addprevious(last.makeelement(CHART + tag, {"val": str(every)}))


def paint(drawn: Any, spec: dict[str, Any]) -> None:
    """Colour the series; with a highlight the others step back."""
    plot, wanted, is_stack = drawn.plots[0], spec.get("highlight"), spec["kind"] == "stacked"
    if spec["kind"] != "line":
        plot.gap_width = 60
        plot.overlap = 100 if is_stack else -5
    for number, series in enumerate(plot.series):
        ink = SERIES[number % len(SERIES)]
        if wanted and len(spec["series"]) > 1:
            ink = SERIES[1] if series.name == wanted else GREYS[number % len(GREYS)]
        if spec["kind"] == "line":
            series.smooth = False
            series.format.line.width, series.format.line.color.rgb = Pt(2.5), ink
            series.marker.style = XL_MARKER_STYLE.NONE
            continue
        series.format.fill.solid()
        series.format.fill.fore_color.rgb = ink
        if wanted in spec["categories"]:
            for place, name in enumerate(spec["categories"]):
                fill = series.points[place].format.fill
                fill.solid()
                fill.fore_color.rgb = SERIES[1] if name == wanted else STEPPED_BACK
    if spec["kind"] != "line" and len(spec["series"]) * len(spec["categories"]) <= 12:
        plot.has_data_labels = True
        labels = plot.data_labels
        labels.font.size, labels.font.color.rgb = Pt(12), WHITE if is_stack else INK
        labels.number_format = spec.get("number_format", "General")
        labels.number_format_is_linked = False
        if not is_stack:
            labels.position = XL_LABEL_POSITION.OUTSIDE_END


def table(slide: Any, spec: dict[str, Any], top: float) -> float:
    """Draw a table, numbers at the right, and return where the next thing may stand."""
    columns, rows = spec["columns"], [[str(cell) for cell in row] for row in spec["rows"]]
    for number, row in enumerate(rows, 1):
        if len(row) != len(columns):
            raise ValueError(f"row {number} has {len(row)} cells for {len(columns)} columns")
    height = min(0.56, (FOOT - 0.2 - top) / (len(rows) + 1))
    full = WIDTH - 2 * MARGIN
    made = slide.shapes.add_table(
        len(rows) + 1, len(columns), *map(Inches, (MARGIN, top, full, height * (len(rows) + 1)))
    ).table
    widest = [
        max(min(wide(text), 44) for text in (columns[i], *(row[i] for row in rows))) + 4
        for i in range(len(columns))
    ]
    for i, name in enumerate(columns):
        made.columns[i].width = Inches(full * widest[i] / sum(widest))
        right = all(is_number(row[i]) for row in rows)
        for place, text in enumerate([name, *(row[i] for row in rows)]):
            cell = made.cell(place, i)
            cell.vertical_anchor = MSO_ANCHOR.MIDDLE
            cell.fill.solid()
            cell.fill.fore_color.rgb = ACCENT if not place else PALE if place % 2 == 0 else WHITE
            write(
                cell.text_frame,
                text,
                16 if len(rows) < 7 and len(columns) < 6 else 14,
                bold=not place,
                ink=INK if place else WHITE,
                align=PP_ALIGN.RIGHT if right else PP_ALIGN.LEFT,
            )
    for row in made.rows:
        row.height = Inches(height)
    return top + height * (len(rows) + 1) + 0.45


def is_number(text: str) -> bool:
    """Say whether a cell holds a number; such columns stand at the right."""
    try:
        float(text.replace(",", "").replace("\u2212", "-").rstrip("% h").strip("€$¥£+ ") or "0")
    except ValueError:
        return False
    return True


def build(spec: dict[str, Any]) -> Path:
    """Make the deck and return its path."""
    deck = Presentation()
    widescreen(deck)
    deck.core_properties.title = spec["title"]
    deck.core_properties.author = spec.get("author", "")
    cover(deck, spec)
    for number, part in enumerate(spec["slides"], 2):
        slide = add_slide(deck, part["title"], part.get("notes", ""))
        top, left, width = TOP, MARGIN, WIDTH - 2 * MARGIN
        if part.get("figures"):
            top = figures(slide, part["figures"], top)
        if part.get("chart"):
            has_points = bool(part.get("points"))
            chart(slide, part["chart"], 8.2 if has_points else width)
            left, width = MARGIN + 8.45, width - 8.45
            top += 0.3
        elif part.get("table"):
            top = table(slide, part["table"], top)
        if part.get("points"):
            points(slide, part["points"], left, top, width)
        footer(slide, number, part.get("source", spec.get("source", "")))
    path = Path(spec["path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    deck.save(str(path))
    return path


spec = json.loads(SPEC.read_text(encoding="utf-8"))
check(spec)
made = build(spec)
print(f"{made}: {len(spec['slides']) + 1} slides, {made.stat().st_size} bytes")
