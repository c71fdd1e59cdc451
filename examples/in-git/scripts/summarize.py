"""Sums up the rain of a station by month; needs Python alone."""

import csv
import sys

station = sys.argv[1]
months: dict[str, float] = {}
for row in csv.DictReader(sys.stdin):
    if row["station"] == station:
        month = row["day"][:7]
        months[month] = months.get(month, 0.0) + float(row["mm"])
if not months:
    sys.exit(f"there is no station {station}")

out = csv.writer(sys.stdout, lineterminator="\n")
out.writerow(["month", "mm"])
for month in sorted(months):
    out.writerow([month, f"{months[month]:.1f}"])
