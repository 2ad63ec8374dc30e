# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
# ruff: noqa: RUF001
"""Clean the cold-store log and describe a chart and a report of it, for the builders to draw."""

import csv
import json
from collections import defaultdict
from datetime import date, datetime, timedelta
from pathlib import Path
from statistics import mean

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


def degrees(value: float) -> str:
    return f"{value:.1f}".replace("-", "−")


def line(store: str) -> list[str]:
    values = list(readings[store].values())
    return [
        store,
        f"{len(values)}",
        degrees(mean(values)),
        degrees(max(values)),
        f"{LIMITS[store]:.0f}".replace("-", "−"),
        f"{len(above[store])}",
    ]


def longest_gap(store: str) -> tuple[datetime, int]:
    best, run = (times[0], 0), 0
    for value in times:
        run = 0 if value in readings[store] else run + 1
        if run > best[1]:
            best = (value - timedelta(hours=2 * (run - 1)), run)
    return best


gap_store = max(LIMITS, key=lambda store: longest_gap(store)[1])
gap_at, gap = longest_gap(gap_store)
by_day: dict[date, list[float]] = defaultdict(list)
for value, celsius in readings[worst].items():
    by_day[value.date()].append(celsius)
report = {
    "path": "outputs/cold-store.pdf",
    "title": "冷库温度双周报",
    "subtitle": period,
    "language": "zh",
    "source": "数据：inputs/cold-store.csv",
    "blocks": [
        {
            "text": f"{worst}在 {when(first)} 至 {when(last)} 之间高于 −18 °C，最高 {peak_text}"
            f"（{when(peak_at)}）。其余时间各处都在上限以内。"
            f"请检查 {when(first)} 前后的开门与除霜记录。"
        },
        {
            "figures": [
                {"value": peak_text, "label": f"{worst}最高温度", "note": when(peak_at)},
                {
                    "value": f"{len(above[worst])} 次",
                    "label": "超过上限的读数",
                    "note": "每两小时一次",
                },
                {
                    "value": f"{valid / len(seen):.1%}",
                    "label": "有效读数",
                    "note": f"{valid} / {len(seen)}",
                },
            ]
        },
        {"heading": "温度走势"},
        {"image": "outputs/cold-store.png", "caption": "灰线为一号冷库；断线处记录仪没有读数。"},
        {"heading": "各处汇总"},
        {
            "table": {
                "columns": ["地点", "有效读数", "平均 °C", "最高 °C", "上限 °C", "超限次数"],
                "rows": [line(store) for store in LIMITS],
            }
        },
        {"heading": f"{worst}逐日温度"},
        {
            "table": {
                "columns": ["日期", "读数", "平均 °C", "最高 °C"],
                "rows": [
                    [f"{day:%Y-%m-%d}", f"{len(v)}", degrees(mean(v)), degrees(max(v))]
                    for day, v in sorted(by_day.items())
                ],
            }
        },
        {"heading": "数据说明"},
        {
            "list": [
                f"文件共 {len(rows)} 行，其中重复 {rejected['duplicate']} 行，"
                f"没有数值 {rejected['missing']} 行，"
                f"传感器断线（−127.0）{rejected['no_sensor']} 行。",
                f"最长的空缺在{gap_store}：自 {when(gap_at)} 起连续 {gap} 次没有读数；"
                "空缺没有补值，也不计入平均。",
                "时间有三种写法，小数点有时写作逗号；都已统一。",
            ]
        },
    ],
}
for name, value in (("chart", chart), ("report", report)):
    Path(f"drafts/{name}.json").write_text(
        json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8"
    )
print(f"{len(rows)} rows, {valid} readings, rejected {rejected}")
print(f"{worst}: {peak} at {peak_at}, {len(above[worst])} readings above the limit")
