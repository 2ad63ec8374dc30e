# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Sum the orders, in the belief that every quantity is a number."""

import csv
from pathlib import Path

with Path("inputs/orders.csv").open(encoding="utf-8", newline="") as stream:
    total = sum(int(row["quantity"]) for row in csv.DictReader(stream))
print(total)
