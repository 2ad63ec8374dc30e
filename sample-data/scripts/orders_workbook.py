# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Clean the order extract and describe a workbook of it: counted, left out, and by month."""

import csv
import json
from collections import defaultdict
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

FORMS = ("%Y-%m-%d", "%d.%m.%Y", "%b %d, %Y", "%Y/%m/%d")
REGIONS = ("North", "South", "East", "West", "Unknown")


def day(text: str) -> date | None:
    for form in FORMS:
        try:
            return datetime.strptime(text.strip(), form).date()
        except ValueError:
            continue
    return None


with Path("inputs/orders.csv").open(encoding="utf-8", newline="") as stream:
    rows = list(csv.DictReader(stream))

seen: set[tuple[str, ...]] = set()
orders: list[list[object]] = []
left_out: list[list[object]] = []
sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
for line, row in enumerate(rows, 2):
    key = tuple(row.values())
    when = day(row["order_date"])
    quantity = row["quantity"].strip()
    reason = ""
    if key in seen:
        reason = "exported twice"
    elif not quantity.isdigit():
        reason = "no quantity"
    elif when is None:
        reason = "no date"
    seen.add(key)
    if reason or when is None:
        left_out.append([line, *row.values(), reason])
        continue
    price = Decimal(row["unit_price"].replace("€", "").strip())
    region = row["region"].strip().title() or "Unknown"
    sums[f"{when:%Y-%m}", region] += int(quantity) * price
    at = len(orders) + 2
    revenue = {"formula": f"=F{at}*G{at}", "value": float(int(quantity) * price)}
    orders.append(
        [
            row["order_id"],
            when.isoformat(),
            region,
            row["customer"],
            row["product"],
            int(quantity),
            float(price),
            revenue,
        ]
    )

months = sorted({month for month, _ in sums})
last = len(orders) + 1
by_month = []
for number, month in enumerate(months, 2):
    start = f'DATEVALUE(A{number}&"-01")'
    cells = [
        {
            "formula": f"=SUMIFS(Orders!$H$2:$H${last},Orders!$C$2:$C${last},{letter}$1,"
            f'Orders!$B$2:$B${last},">="&{start},Orders!$B$2:$B${last},"<"&EDATE({start},1))',
            "value": float(sums[month, region]),
        }
        for letter, region in zip("BCDEF", REGIONS, strict=True)
    ]
    total = float(sum(sums[month, region] for region in REGIONS))
    by_month.append([month, *cells, {"formula": f"=SUM(B{number}:F{number})", "value": total}])


def columns(*names: tuple[str, str, bool]) -> list[dict[str, object]]:
    return [{"name": name, "type": kind, "total": total} for name, kind, total in names]


workbook = {
    "path": "outputs/orders.xlsx",
    "title": "Orders, second quarter of 2026",
    "sheets": [
        {
            "name": "Orders",
            "columns": columns(
                ("order_id", "text", False),
                ("order_date", "date", False),
                ("region", "text", False),
                ("customer", "text", False),
                ("product", "text", False),
                ("quantity", "integer", False),
                ("unit_price", "money", False),
                ("revenue", "money", False),
            ),
            "rows": orders,
        },
        {
            "name": "By month",
            "columns": columns(
                ("month", "text", False),
                *((region, "money", True) for region in REGIONS),
                ("all", "money", True),
            ),
            "rows": by_month,
            "bars": "all",
        },
        {
            "name": "Left out",
            "columns": columns(
                ("line", "integer", False),
                *((name, "text", False) for name in rows[0]),
                ("reason", "text", False),
            ),
            "rows": left_out,
        },
    ],
}
with Path("outputs/left-out.csv").open("w", encoding="utf-8", newline="") as stream:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["line", *rows[0], "reason"])
    writer.writerows(left_out)
Path("drafts/workbook.json").write_text(
    json.dumps(workbook, ensure_ascii=False, indent=1), encoding="utf-8"
)
print(f"{len(rows)} rows: {len(orders)} orders, {len(left_out)} left out")
print(f"revenue {sum(sums.values()):,.2f} EUR")
