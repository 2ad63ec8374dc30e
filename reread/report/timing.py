"""Where the time of a run went, as one inline SVG without text in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from reread.report.shown import visible
from reread.report.story import Span, totals

LANES = ("model", "tools", "environment", "script", "gate")
WIDTH, LANE_HEIGHT, BAR_HEIGHT = 1000.0, 14, 10
LEAST = 1.5
"""The least width of a bar, so that what is short can still be seen."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart and what it says in words.

    Attributes:
        lanes: (name, seconds) of the lanes that have something in them.
        ticks: labels of the axis, evenly spaced.
    """

    svg: Markup
    lanes: tuple[tuple[str, str], ...]
    ticks: tuple[str, ...]


def chart(spans: Sequence[Span], seconds: float) -> Chart:
    """Draw the spans, one lane for each kind of work."""
    sums = totals(spans, LANES)
    lanes = [lane for lane in LANES if any(span.lane == lane for span in spans)]
    whole = max(seconds, 0.001)
    bars = "".join(_bar(span, lanes.index(span.lane), whole) for span in spans)
    height = max(len(lanes), 1) * LANE_HEIGHT
    # Labels come from the record; they are escaped in _bar, and the numbers are ours.
    svg = Markup(
        f'<svg class="chart" viewBox="0 0 {WIDTH:g} {height}" preserveAspectRatio="none" '
        f'role="img" aria-label="Time by kind of work; the table says the same">{bars}</svg>'
    )
    return Chart(svg, tuple((lane, duration(sums[lane])) for lane in lanes), _ticks(whole))


def _bar(span: Span, lane: int, whole: float) -> str:
    x = span.start / whole * WIDTH
    width = max((span.end - span.start) / whole * WIDTH, LEAST)
    x = min(x, WIDTH - width)
    y = lane * LANE_HEIGHT + (LANE_HEIGHT - BAR_HEIGHT) / 2
    title = escape(visible(f"{span.label}: {duration(span.end - span.start)}"))
    return (
        f'<rect class="lane-{span.lane}" x="{x:.2f}" y="{y:g}" width="{width:.2f}" '
        f'height="{BAR_HEIGHT}"><title>{title}</title></rect>'
    )


def _ticks(whole: float) -> tuple[str, ...]:
    return tuple(duration(whole * part / 4) for part in range(5))


def duration(seconds: float) -> str:
    """Return a length of time as people say it."""
    if seconds < 0.0005:
        return "0 s"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
