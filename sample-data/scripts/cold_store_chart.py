# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
# ruff: noqa: RUF001
"""Clean the cold-store log and describe a chart of it, for the builder to draw."""

import csv
import json
from collections import defaultdict
from datetime import datetime
from pathlib import Path

FORMS = ("%Y-%m-%d %H:%M", "%Y/%m/%d %H:%M", "%d.%m.%Y %H:%M")
LIMITS = {"一号冷库": -18.0, "二号冷库": -18.0, "装卸平台": 7.0}
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
worst, (peak_at, peak) = max(
    ((store, max(readings[store].items(), key=lambda item: item[1])) for store in LIMITS),
    key=lambda item: item[1][1] - LIMITS[item[0]],
)
peak_text = f"{peak:.1f} °C".replace("-", "−")
headline = f"{worst}在 {peak_at.month} 月 {peak_at.day} 日夜间升到 {peak_text}"
period = f"{times[0]:%Y-%m-%d} 至 {times[-1]:%Y-%m-%d}"
frozen = [store for store, limit in LIMITS.items() if limit < 0]
chart = {
    "path": "outputs/cold-store.png",
    "kind": "line",
    "title": headline,
    "subtitle": f"两座冷库的温度，每两小时一次，{period}",
    "unit": "°C",
    "x": [value.isoformat(timespec="minutes") for value in times],
    "series": [
        {"name": store, "values": [readings[store].get(value) for value in times]}
        for store in frozen
    ],
    "highlight": worst,
    "limits": [{"value": -18, "label": "上限 −18 °C"}],
    "source": "数据：inputs/cold-store.csv；断线处没有读数",
    "plain": {
        headline: f"Cold store 2 rose to {peak_text}",
        f"两座冷库的温度，每两小时一次，{period}": "Temperature every two hours",
        "一号冷库": "Cold store 1",
        "二号冷库": "Cold store 2",
        "上限 −18 °C": "limit -18 °C",
        "数据：inputs/cold-store.csv；断线处没有读数": "Data: inputs/cold-store.csv",
    },
}
Path("drafts/chart.json").write_text(
    json.dumps(chart, ensure_ascii=False, indent=1), encoding="utf-8"
)
print(f"{len(rows)} rows, {valid} readings, rejected {rejected}")
print(f"{worst}: {peak} at {peak_at}")
