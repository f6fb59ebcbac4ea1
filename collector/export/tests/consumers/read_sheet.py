"""Reads a CSV table as programs do that hand cells to a spreadsheet: FILE."""

import csv
import json
import sys

with open(sys.argv[1], newline="", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
for row in rows:
    assert None not in row and None not in row.values(), "as many cells as columns"
    for cell in row.values():
        assert cell.isprintable(), cell
        assert cell.lstrip()[:1] not in ("=", "+", "-", "@", "＝", "＋", "－", "＠"), cell
print(json.dumps({"bytes": sum(int(row["bytes"]) for row in rows), "rows": len(rows)}))
