# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Clean the order extract and leave outputs/summary.json and outputs/report.md."""

import csv
import json
from collections import defaultdict
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

FORMS = ("%Y-%m-%d", "%d.%m.%Y", "%b %d, %Y", "%Y/%m/%d")
REGIONS = {"north": "North", "south": "South", "east": "East", "west": "West"}


def day(text: str) -> date | None:
    for form in FORMS:
        try:
            return datetime.strptime(text.strip(), form).date()
        except ValueError:
            continue
    return None


with Path("inputs/orders.csv").open(encoding="utf-8", newline="") as stream:
    rows = list(csv.DictReader(stream))

seen = set()
counted = []
rejected = {"duplicate": 0, "no_quantity": 0, "no_date": 0}
for row in rows:
    key = tuple(row.values())
    if key in seen:
        rejected["duplicate"] += 1
        continue
    seen.add(key)
    if not row["quantity"].strip().isdigit():
        rejected["no_quantity"] += 1
        continue
    when = day(row["order_date"])
    if when is None:
        rejected["no_date"] += 1
        continue
    price = Decimal(row["unit_price"].replace("€", "").strip())
    region = REGIONS.get(row["region"].strip().lower(), "Unknown")
    counted.append((when, region, row["customer"], row["product"], int(row["quantity"]) * price))

by_month: dict[str, Decimal] = defaultdict(Decimal)
by_region: dict[str, Decimal] = defaultdict(Decimal)
by_customer: dict[str, Decimal] = defaultdict(Decimal)
for when, region, customer, _, revenue in counted:
    by_month[f"{when:%Y-%m}"] += revenue
    by_region[region] += revenue
    by_customer[customer] += revenue
total = sum((revenue for *_, revenue in counted), Decimal())

summary = {
    "source": "inputs/orders.csv",
    "rows_read": len(rows),
    "orders_counted": len(counted),
    "rows_rejected": sum(rejected.values()),
    "rejected_by_reason": rejected,
    "revenue_total": float(total),
    "revenue_by_month": {month: float(by_month[month]) for month in sorted(by_month)},
    "revenue_by_region": {region: float(by_region[region]) for region in sorted(by_region)},
    "top_customers": [
        {"customer": name, "revenue": float(value)}
        for name, value in sorted(by_customer.items(), key=lambda item: (-item[1], item[0]))[:3]
    ],
}
Path("outputs/summary.json").write_text(
    json.dumps(summary, ensure_ascii=False, indent=2) + "\n", encoding="utf-8"
)


def table(title: str, values: dict[str, float]) -> list[str]:
    lines = [f"| {title} | revenue (EUR) | share |", "|---|---:|---:|"]
    for name, value in values.items():
        lines.append(f"| {name} | {value:,.2f} | {value / float(total):.1%} |")
    return lines


report = [
    "# Orders, second quarter of 2026",
    "",
    f"Total revenue: {float(total):,.2f} EUR from {len(counted)} orders.",
    "",
    "## By month",
    "",
    *table("month", summary["revenue_by_month"]),
    "",
    "## By region",
    "",
    *table("region", summary["revenue_by_region"]),
    "",
    "## Largest customers",
    "",
    *(
        f"{n}. {c['customer']}: {c['revenue']:,.2f} EUR"
        for n, c in enumerate(summary["top_customers"], 1)
    ),
    "",
    "## What was left out",
    "",
    f"{summary['rows_rejected']} of {len(rows)} rows are not counted:",
    f"{rejected['duplicate']} are exported twice, {rejected['no_quantity']} have no quantity,",
    f"{rejected['no_date']} have no date.",
    "Orders without a region are counted as Unknown.",
    "",
]
Path("outputs/report.md").write_text("\n".join(report), encoding="utf-8")
print(f"{len(counted)} orders, {float(total):,.2f} EUR")
