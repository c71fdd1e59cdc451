"""Draws a table of months as bars; needs pandas and matplotlib."""

import sys

import matplotlib

matplotlib.use("Agg")  # there is no screen

import matplotlib.pyplot as plt
import pandas as pd

table = pd.read_csv(sys.argv[1])
axes = table.plot.bar(x="month", y="mm", legend=False, xlabel="", ylabel="mm")
axes.set_title("Rain by month")
plt.tight_layout()
plt.savefig(sys.argv[2], metadata={"Software": None})  # the same bytes from the same table
