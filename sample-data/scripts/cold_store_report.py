# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Clean the cold-store log and describe a chart and a report of it, for the builders to draw."""

import csv
import json
from collections import defaultdict
from datetime import date, datetime, timedelta
from pathlib import Path
from statistics import mean

FORMS = ("%Y-%m-%d %H:%M", "%Y/%m/%d %H:%M", "%d.%m.%Y %H:%M")
LIMITS = {"一号冷库": -18.0, "二号冷库": -18.0, "装卸平台": 7.0}
NAMES = {"一号冷库": "Cold store 1", "二号冷库": "Cold store 2", "装卸平台": "Loading dock"}
NO_SENSOR = -100.0


def moment(text: str) -> datetime:
    for form in FORMS:
        try:
            return datetime.strptime(text.strip(), form)
        except ValueError:
            continue
    raise ValueError(f"no known form of time: {text!r}")


with Path("inputs/cold-store.csv").open(encoding="utf-8", newline="") as stream:
    rows = list(csv.DictReader(stream))

rejected = {"duplicate": 0, "missing": 0, "no_sensor": 0}
seen: set[tuple[datetime, str]] = set()
readings: dict[str, dict[datetime, float]] = defaultdict(dict)
for row in rows:
    key = (moment(row["time"]), row["store"])
    if key in seen:
        rejected["duplicate"] += 1
        continue
    seen.add(key)
    text = row["celsius"].strip().replace(",", ".")
    if text in ("", "n/a"):
        rejected["missing"] += 1
    elif float(text) < NO_SENSOR:
        rejected["no_sensor"] += 1
    else:
        readings[row["store"]][key[0]] = float(text)

times = sorted({when for when, _ in seen})
valid = sum(len(values) for values in readings.values())
above = {
    store: [when for when, value in sorted(values.items()) if value > LIMITS[store]]
    for store, values in readings.items()
}
worst, (peak_at, peak) = max(
    ((store, max(readings[store].items(), key=lambda item: item[1])) for store in LIMITS),
    key=lambda item: item[1][1] - LIMITS[item[0]],
)
first, last = above[worst][0], above[worst][-1]


def when(value: datetime) -> str:
    return f"{value.month} 月 {value.day} 日 {value:%H:%M}"


def name(store: str) -> str:
    return NAMES[store]


def moment_text(value: datetime) -> str:
    return f"{value.day} {value:%B}, {value:%H:%M}"


def degrees(value: float) -> str:
    return f"{value:.1f}".replace("-", "\u2212")


def gap(store: str) -> tuple[int, datetime]:
    """Return the longest run of missing readings: its length and its first time."""
    best, run = (0, times[0]), 0
    for value in times:
        run = 0 if value in readings[store] else run + 1
        if run > best[0]:
            best = (run, value - timedelta(hours=2 * (run - 1)))
    return best


def line(store: str) -> list[str]:
    values = list(readings[store].values())
    return [
        name(store),
        f"{len(values)}",
        degrees(mean(values)),
        degrees(max(values)),
        degrees(LIMITS[store]),
        f"{len(above[store])}",
    ]


period = f"{times[0]:%Y-%m-%d} to {times[-1]:%Y-%m-%d}"
others = [store for store in LIMITS if store != worst and above[store]]
if others:
    raise ValueError(f"the report speaks of one store above its limit, and there are {others} too")
gap_store = max(LIMITS, key=lambda store: gap(store)[0])
missed, gap_at = gap(gap_store)
by_day: dict[date, list[float]] = defaultdict(list)
for value, celsius in readings[worst].items():
    by_day[value.date()].append(celsius)

source = "Data: inputs/cold-store.csv"
chart = {
    "path": "outputs/cold-store.png",
    "kind": "line",
    "title": f"{name(worst)} rose to {degrees(peak)} °C in the night to {peak_at.day} {peak_at:%B}",
    "subtitle": f"both cold stores, one reading every two hours, {period}",
    "unit": "°C",
    "x": [value.isoformat(timespec="minutes") for value in times],
    "series": [
        {"name": name(store), "values": [readings[store].get(value) for value in times]}
        for store, limit in LIMITS.items()
        if limit < 0
    ],
    "highlight": name(worst),
    "limits": [{"value": -18, "label": "limit \u221218 °C"}],
    "source": f"{source}; where a line breaks there is no reading",
}
report = {
    "path": "outputs/cold-store.pdf",
    "title": "Temperatures of the cold stores",
    "subtitle": period,
    "source": source,
    "blocks": [
        {
            "text": f"{name(worst)} was above its limit from {moment_text(first)} to "
            f"{moment_text(last)}, at most at {degrees(peak)} °C ({moment_text(peak_at)}). "
            "All other readings stayed within their limits. Look into the log of doors and of "
            f"defrosting around {moment_text(first)}."
        },
        {
            "figures": [
                {
                    "value": f"{degrees(peak)} °C",
                    "label": f"highest in {name(worst)}",
                    "note": moment_text(peak_at),
                },
                {
                    "value": f"{len(above[worst])}",
                    "label": "readings above the limit",
                    "note": "one every two hours",
                },
                {
                    "value": f"{valid / len(seen):.1%}",
                    "label": "of the readings are there",
                    "note": f"{valid} of {len(seen)}",
                },
            ]
        },
        {"heading": "Course"},
        {"image": "outputs/cold-store.png"},
        {"heading": "By place"},
        {
            "table": {
                "columns": ["place", "readings", "mean °C", "highest °C", "limit °C", "above it"],
                "rows": [line(store) for store in LIMITS],
            }
        },
        {"heading": f"{name(worst)}, day by day"},
        {
            "table": {
                "columns": ["day", "readings", "mean °C", "highest °C"],
                "rows": [
                    [f"{day:%Y-%m-%d}", f"{len(v)}", degrees(mean(v)), degrees(max(v))]
                    for day, v in sorted(by_day.items())
                ],
            }
        },
        {"heading": "Where the numbers come from"},
        {
            "list": [
                f"Rows read: {len(rows)}. Of these {rejected['duplicate']} stand there twice, "
                f"{rejected['missing']} have no value, {rejected['no_sensor']} without a sensor "
                "on the line (\u2212127.0).",
                f"The longest gap is in {name(gap_store)}: {missed} readings from "
                f"{moment_text(gap_at)} on. Gaps are left open and count in no mean.",
                "Times came in three forms and some numbers with a comma; all are read alike.",
            ]
        },
    ],
}
for name_of_file, spec in (("chart", chart), ("report", report)):
    Path(f"drafts/{name_of_file}.json").write_text(
        json.dumps(spec, ensure_ascii=False, indent=1), encoding="utf-8"
    )
print(f"{len(rows)} rows, {valid} readings, rejected {rejected}")
print(f"{name(worst)}: {peak} at {peak_at}, {len(above[worst])} readings above the limit")
