# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Sum the service desk's quarter and describe a deck of it, for the builder to make."""

import csv
import json
from collections import defaultdict
from datetime import date
from pathlib import Path

with Path("inputs/service-desk.csv").open(encoding="utf-8", newline="") as stream:
    rows = list(csv.DictReader(stream))

weeks = sorted({row["week_start"] for row in rows})
channels = list(dict.fromkeys(row["channel"] for row in rows))
opened: dict[str, dict[str, int]] = defaultdict(dict)
hours: dict[str, dict[str, float]] = defaultdict(dict)
satisfied: dict[str, list[float]] = defaultdict(list)
closed_in: dict[str, int] = defaultdict(int)
for row in rows:
    week, channel = row["week_start"], row["channel"]
    opened[channel][week] = int(row["opened"])
    hours[channel][week] = float(row["median_hours"])
    closed_in[week] += int(row["closed"])
    if row["satisfaction"]:
        satisfied[channel].append(float(row["satisfaction"]))

opened_in = {week: sum(opened[channel][week] for channel in channels) for week in weeks}
backlog, waiting = [], 0
for week in weeks:
    waiting += opened_in[week] - closed_in[week]
    backlog.append(waiting)
total, done = sum(opened_in.values()), sum(closed_in.values())
peak = max(backlog)
peak_week = weeks[backlog.index(peak)]
first_phone, last_phone = opened["Phone"][weeks[0]], opened["Phone"][weeks[-1]]
own = ("Chat", "Self-service")
share = [sum(opened[c][week] for c in own) / opened_in[week] for week in (weeks[0], weeks[-1])]
low = min(backlog[backlog.index(peak) :])
low_week = weeks[backlog.index(low)]
first, last = weeks[0], weeks[-1]
chat_growth = opened["Chat"][last] / opened["Chat"][first]
faster = sum(hours[channel][last] < hours[channel][first] for channel in channels)
slower = hours["E-mail"][last] / hours["Phone"][last]
label = [f"{date.fromisoformat(week):%d %b}" for week in weeks]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


rates = {channel: mean(satisfied[channel]) for channel in channels}
best = max(rates, key=lambda channel: rates[channel])
table = [
    [
        channel,
        f"{sum(opened[channel].values()):,}",
        f"{opened[channel][weeks[-1]] / opened[channel][weeks[0]] - 1:+.0%}".replace("-", "\u2212"),
        f"{hours[channel][weeks[0]]:.1f}",
        f"{hours[channel][weeks[-1]]:.1f}",
        f"{rates[channel]:.2f}",
    ]
    for channel in channels
]
unrated = sum(1 for row in rows if not row["satisfaction"])
deck = {
    "path": "outputs/service-desk.pptx",
    "title": "Chat and self-service carry the growth",
    "subtitle": "Service desk, second quarter of 2026",
    "byline": f"{len(weeks)} weeks from {weeks[0]}, {len(channels)} channels",
    "source": "Source: inputs/service-desk.csv",
    "notes": "Three messages: where requests come from, what the May release cost, what to decide.",
    "slides": [
        {
            "title": f"Opened: {total:,} requests; {done / total:.1%} of them are closed",
            "figures": [
                {"value": f"{total:,}", "label": "requests opened", "note": f"{len(weeks)} weeks"},
                {"value": f"{total - done:,}", "label": "more open than at the start"},
                {
                    "value": f"{share[1]:.0%}",
                    "label": "by chat or self-service",
                    "note": f"{share[0]:.0%} in the first week",
                },
                {
                    "value": f"{rates[best]:.2f}",
                    "label": f"best satisfaction: {best}",
                    "note": "mean of the weeks, of 5",
                },
            ],
            "points": [
                "Volume moves away from the phone without a loss of satisfaction.",
                f"The backlog rose to {peak} in May; {backlog[-1]} are still open.",
                "E-mail answers still take longest, though they improve.",
            ],
            "notes": "Start with the share of chat and self-service; the rest follows from it.",
        },
        {
            "title": f"Phone requests fell from {first_phone} to {last_phone} a week, chat grew "
            f"{chat_growth:.1f} times",
            "chart": {
                "kind": "line",
                "unit": "requests opened per week",
                "categories": label,
                "from_zero": True,
                "series": [
                    {"name": channel, "values": [opened[channel][week] for week in weeks]}
                    for channel in channels
                ],
            },
            "points": [
                f"Phone: {last_phone / first_phone - 1:+.0%}".replace("-", "\u2212")
                + " from first to last week",
                "The weeks from 11 May carry the release",
                "E-mail stays level",
            ],
            "notes": "The bump in the middle is the release; self-service does not show it.",
        },
        {
            "title": f"The May release left {peak} requests waiting, and {backlog[-1]} still are",
            "chart": {
                "kind": "column",
                "unit": "requests waiting at the end of the week, beyond those at the start",
                "categories": label,
                "series": [{"name": "waiting", "values": backlog}],
                "highlight": label[weeks.index(peak_week)],
            },
            "points": [
                f"Peak in the week of {date.fromisoformat(peak_week):%d %B}",
                f"Down to {low} by {date.fromisoformat(low_week):%d %B}, then up again",
                f"{backlog[-1]} left at the end of the quarter",
            ],
            "notes": "Opened less closed since the first week; what was open before is not known.",
        },
        {
            "title": f"{faster} of {len(channels)} channels answer faster than in the first week",
            "table": {
                "columns": [
                    "Channel",
                    "Requests",
                    "First to last week",
                    "Hours, first week",
                    "Hours, last week",
                    "Satisfaction",
                ],
                "rows": table,
            },
            "points": [
                "E-mail gained most, and is still the slowest.",
                f"Satisfaction: mean of the weeks that have a rating; {unrated} have none.",
            ],
            "source": "Source: inputs/service-desk.csv; hours are weekly medians to an answer",
            "notes": "Hours are medians per week, so they must not be averaged over channels.",
        },
        {
            "title": "To decide today",
            "points": [
                "Move one phone shift to chat from July on.",
                "Plan extra hands for the two weeks after each release.",
                f"Ask why e-mail takes {slower:.0f} times as long as the phone.",
            ],
            "notes": "One owner and one date for each point.",
        },
    ],
}
Path("drafts/deck.json").write_text(
    json.dumps(deck, ensure_ascii=False, indent=1), encoding="utf-8"
)
print(f"{len(rows)} rows, {total} opened, {done} closed, peak {peak} in {peak_week}, {backlog}")
