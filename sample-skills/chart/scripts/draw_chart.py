# /// script
# requires-python = ">=3.11"
# dependencies = ["matplotlib"]
# ///
"""Draw the chart that drafts/chart.json describes; references/spec.md explains each key.

Text is drawn only with fonts that have its glyphs. Where no font of this machine has them, the
replacement named under "plain" is drawn; without one the script fails instead of drawing boxes.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib import dates, font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

SPEC = Path("drafts/chart.json")
KINDS = ("line", "bar", "barh", "stacked", "scatter")
COLOURS = ("#0B5FA5", "#D1495B", "#2E8B57", "#E09F3E", "#6C4AB6", "#5C6B73")
INK, GREY, GRID = "#1F2933", "#5C6B73", "#E4E7EB"
DPI = 160
TIME_FORMS: dict[str, Any] = {
    "formats": ["%Y", "%Y-%m", "%m-%d", "%H:%M", "%H:%M", "%S.%f"],
    "zero_formats": ["", "%Y", "%m-%d", "%m-%d", "%H:%M", "%H:%M"],
    "offset_formats": ["", "", "%Y", "%Y-%m-%d", "%Y-%m-%d", "%Y-%m-%d %H:%M"],
}
FONTS = (
    *("Noto Sans CJK SC", "Source Han Sans SC", "Source Han Sans CN", "PingFang SC"),
    *("Microsoft YaHei", "Hiragino Sans GB", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei"),
    *("SimHei", "Noto Sans CJK JP", "Noto Sans CJK TC", "Droid Sans Fallback", "Arial Unicode MS"),
    *("Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari", "Noto Sans Thai"),
)


def choose_fonts(text: str) -> None:
    """Set the fonts in the order in which glyphs are looked for; one wide font first if needed."""
    there = {font.name for font in font_manager.fontManager.ttflist}
    wide_fonts = [name for name in FONTS if name in there]
    is_wide = any(ord(letter) > 0x2E7F for letter in text)
    families = [*wide_fonts, "DejaVu Sans"] if is_wide else ["DejaVu Sans", *wide_fonts]
    plt.rcParams["font.family"] = families
    plt.rcParams["axes.unicode_minus"] = True


def drawable(text: str) -> bool:
    """Say whether the chosen fonts have every glyph of a text."""
    figure = plt.figure()
    figure.text(0, 0, text, parse_math=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.canvas.draw()
    plt.close(figure)
    return not any("missing from" in str(warning.message) for warning in caught)


def legible(spec: Any, plain: dict[str, str]) -> Any:
    """Return the spec with each text that cannot be drawn replaced by its plain form."""
    if isinstance(spec, dict):
        return {key: legible(value, plain) for key, value in spec.items() if key != "plain"}
    if isinstance(spec, list):
        return [legible(value, plain) for value in spec]
    if not isinstance(spec, str) or spec.isascii() or drawable(spec):
        return spec
    if spec in plain:
        return plain[spec]
    raise ValueError(
        f"no font here has the glyphs of {spec!r}: install one (Debian: fonts-noto-cjk), "
        'or name a replacement under "plain"'
    )


def check(spec: dict[str, Any]) -> None:
    """Refuse a spec that would draw something else than it says."""
    if spec.get("kind") not in KINDS:
        raise ValueError(f"kind is {spec.get('kind')!r}; it must be one of {', '.join(KINDS)}")
    for key in ("path", "title", "x", "series"):
        if not spec.get(key):
            raise ValueError(f"{key!r} is missing or empty")
    for one in spec["series"]:
        if len(one["values"]) != len(spec["x"]):
            raise ValueError(
                f"series {one['name']!r} has {len(one['values'])} values for {len(spec['x'])} x"
            )
        if not any(value is not None for value in one["values"]):
            raise ValueError(f"series {one['name']!r} has no value at all")
        if not all(value is None or math.isfinite(value) for value in one["values"]):
            raise ValueError(f"series {one['name']!r} holds NaN or infinity; use null for a gap")
    if spec["kind"] == "stacked" and any(
        value is None or value < 0 for one in spec["series"] for value in one["values"]
    ):
        raise ValueError("parts of a stack are numbers from 0 on; draw lines or bars instead")


def places(spec: dict[str, Any]) -> tuple[list[Any], str]:
    """Return the x values and what they are: dates, numbers or categories."""
    x = spec["x"]
    if spec["kind"] in ("line", "scatter"):
        if all(isinstance(value, int | float) for value in x):
            return list(x), "numbers"
        try:
            return [datetime.fromisoformat(value) for value in x], "dates"
        except (TypeError, ValueError):
            pass
    return list(range(len(x))), "categories"


def values(one: dict[str, Any]) -> list[float]:
    """Return the values of a series, a gap as NaN, which breaks a line instead of bridging it."""
    return [math.nan if value is None else float(value) for value in one["values"]]


def colour(spec: dict[str, Any], number: int) -> str:
    """Return a series' colour; with a highlight, the others step back."""
    wanted = spec.get("highlight")
    if wanted and len(spec["series"]) > 1:
        return COLOURS[1] if spec["series"][number]["name"] == wanted else "#9AA5B1"
    return COLOURS[number % len(COLOURS)]


def draw_lines(axes: Axes, spec: dict[str, Any], x: list[Any]) -> None:
    """Draw lines or points; each line carries its name at its end."""
    ends = []
    for number, one in enumerate(spec["series"]):
        y = values(one)
        if spec["kind"] == "scatter":
            axes.scatter(x, y, s=34, color=colour(spec, number), label=one["name"], alpha=0.8)
        else:
            axes.plot(x, y, color=colour(spec, number), linewidth=2.2, solid_capstyle="round")
            lone = [i for i in range(len(y)) if is_alone(y, i)]
            axes.scatter(
                [x[i] for i in lone], [y[i] for i in lone], s=26, color=colour(spec, number)
            )
            last = max(i for i, value in enumerate(y) if not math.isnan(value))
            ends.append((y[last], one["name"], colour(spec, number)))
    if ends and len(spec["series"]) > 1:
        name_ends(axes, ends)
    elif spec["kind"] == "scatter" and len(spec["series"]) > 1:
        legend(axes)


def is_alone(y: list[float], i: int) -> bool:
    """Say whether a value stands between gaps, where no line would show it."""
    beside = [y[k] for k in (i - 1, i + 1) if 0 <= k < len(y)]
    return not math.isnan(y[i]) and all(math.isnan(value) for value in beside)


def name_ends(axes: Axes, ends: list[tuple[float, str, str]]) -> None:
    """Write names right of the lines, pushed apart where they would overlap."""
    low, high = axes.get_ylim()
    step = (high - low) * 0.055
    at: float | None = None
    for y, name, ink in sorted(ends):
        at = y if at is None else max(y, at + step)
        axes.annotate(
            name,
            xy=(1.01, at),
            xycoords=("axes fraction", "data"),
            color=ink,
            fontweight="bold",
            va="center",
            annotation_clip=False,
        )


def draw_bars(axes: Axes, spec: dict[str, Any], x: list[Any]) -> None:
    """Draw bars beside or upon each other, with their values where there is room for them."""
    count = len(spec["series"])
    stacked = spec["kind"] == "stacked"
    flat = spec["kind"] == "barh"
    width = 0.72 if stacked or count == 1 else 0.8 / count
    below = [0.0] * len(x)
    for number, one in enumerate(spec["series"]):
        y = values(one)
        shift = 0.0 if stacked or count == 1 else (number - (count - 1) / 2) * width
        at = [value + shift for value in x]
        if flat:
            bars = axes.barh(at, y, width, color=colour(spec, number), label=one["name"])
        else:
            bottom = below if stacked else None
            bars = axes.bar(
                at, y, width, bottom=bottom, color=colour(spec, number), label=one["name"]
            )
        if stacked:
            below = [a + b for a, b in zip(below, y, strict=True)]
        elif len(x) * count <= 16:
            axes.bar_label(bars, labels=[shown(v) for v in y], padding=4, fontsize=10, color=INK)
    if count > 1:
        legend(axes)


def shown(value: float) -> str:
    """Return a number as people read it."""
    if math.isnan(value):
        return ""
    text = f"{value:,.1f}" if abs(value) < 100 and value != int(value) else f"{value:,.0f}"
    return text.replace("-", "\u2212")


def tick(value: float, all_ticks: Sequence[float]) -> str:
    """Return a tick's number with as many decimals as tell the ticks of its axis apart."""
    digits = next(
        (d for d in range(9) if all(abs(round(one, d) - one) < 1e-9 for one in all_ticks)), 9
    )
    return f"{value:,.{digits}f}".replace("-", "\u2212")


def legend(axes: Axes) -> None:
    """Put the legend above the plot, where it covers nothing."""
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1.0), ncols=4, frameon=False, borderaxespad=0.2
    )


def label_axis(axes: Axes, spec: dict[str, Any], x: list[Any], what: str) -> None:
    """Write ticks that can be read without turning the head."""
    if what == "dates":
        locator = dates.AutoDateLocator(minticks=4, maxticks=9)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, **TIME_FORMS))
    elif what == "categories" and spec["kind"] == "barh":
        axes.set_yticks(x, spec["x"])
        axes.invert_yaxis()
    elif what == "categories":
        names = [str(name) for name in spec["x"]]
        crowded = sum(map(len, names)) > 90
        every = max(1, math.ceil(len(names) / 14))
        axes.set_xticks(
            x[::every],
            names[::every],
            rotation=35 if crowded else 0,
            ha="right" if crowded else "center",
            rotation_mode="anchor" if crowded else "default",
        )
    axis = axes.xaxis if spec["kind"] == "barh" else axes.yaxis
    axis.set_major_locator(MaxNLocator(6))
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value, axis.get_majorticklocs())))
    axes.grid(axis="x" if spec["kind"] == "barh" else "y", color=GRID, linewidth=1)
    axes.set_axisbelow(True)


def make_room(axes: Axes, spec: dict[str, Any]) -> None:
    """Leave room beyond the data for labels and limits; bars still begin at zero."""
    if spec["kind"] == "barh":
        axes.margins(x=0.12)
        if all(
            value >= 0 for one in spec["series"] for value in one["values"] if value is not None
        ):
            axes.set_xlim(left=0)
        return
    limits = [limit["value"] for limit in spec.get("limits", ())]
    low, high = axes.get_ylim()
    low, high = min([low, *limits]), max([high, *limits])
    bottom = 0 if low == 0 and spec["kind"] != "line" else low - 0.04 * (high - low)
    axes.set_ylim(bottom, high + 0.08 * (high - low))


def draw_limits(axes: Axes, spec: dict[str, Any]) -> None:
    """Draw lines that must not be crossed, each with its name above it."""
    for limit in spec.get("limits", ()):
        axes.axhline(limit["value"], color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.annotate(
            limit["label"],
            xy=(0.005, limit["value"]),
            xycoords=("axes fraction", "data"),
            xytext=(0, 4),
            textcoords="offset points",
            color=INK,
            fontsize=10,
        )


def furnish(figure: Figure, axes: Axes, spec: dict[str, Any]) -> None:
    """Write title, subtitle, unit and source in places that nothing else uses."""
    figure.text(0.03, 0.955, spec["title"], fontsize=18, fontweight="bold", color=INK, va="top")
    if spec.get("subtitle"):
        figure.text(0.03, 0.885, spec["subtitle"], fontsize=12, color=GREY, va="top")
    if spec.get("source"):
        figure.text(0.03, 0.025, spec["source"], fontsize=9, color=GREY, va="bottom")
    if spec["kind"] == "barh":
        axes.set_xlabel(spec.get("unit", ""), color=GREY)
    else:
        axes.set_ylabel(spec.get("unit", ""), color=GREY)
        axes.set_xlabel(spec.get("x_label", ""), color=GREY)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#9AA5B1")
    axes.tick_params(colors=GREY, length=0, labelsize=11)


def draw(spec: dict[str, Any]) -> Path:
    """Draw the chart and return its path."""
    width, height = spec.get("width", 1600), spec.get("height", 900)
    figure, axes = plt.subplots(figsize=(width / DPI, height / DPI), dpi=DPI)
    x, what = places(spec)
    (draw_lines if spec["kind"] in ("line", "scatter") else draw_bars)(axes, spec, x)
    make_room(axes, spec)
    label_axis(axes, spec, x, what)
    draw_limits(axes, spec)
    furnish(figure, axes, spec)
    figure.tight_layout(rect=(0.02, 0.06, 0.97, 0.85 if spec.get("subtitle") else 0.89))
    path = Path(spec["path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI, facecolor="white")
    plt.close(figure)
    return path


text = SPEC.read_text(encoding="utf-8")
spec = json.loads(text)
choose_fonts(text)
check(spec)
path = draw(legible(spec, spec.get("plain", {})))
print(f"{path}: {spec['kind']}, {len(spec['series'])} series, {len(spec['x'])} places")
