"""Draw landing.png from the saved audit of the demo.

Run `uv run edp-bayes demo`, then `uv run python docs/images/landing.py edp-bayes-demo/audit.nc`.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.dates import AutoDateLocator

import edp_bayes as edp
from edp_bayes.data import load_cdnow_weeks
from edp_bayes.plots import style

audit = edp.load(sys.argv[1])
databases = edp.Databases.from_table(load_cdnow_weeks(), database="week", individual="customer")
revenue = databases.respond(edp.queries.Sum("dollars"))
riskiest = audit.individual_delta.isel(epsilon=0).mean(("chain", "draw")).idxmax().item()
spent = revenue.contribution[:, [revenue.index_of(riskiest)]].toarray().ravel() / 1000
rest = revenue.response / 1000 - spent

weeks = np.array(revenue.database, dtype="datetime64[D]")
blue, vermilion = style.COLOURS[:2]
with style.context():
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.bar(weeks, rest, width=7.0, color="0.8", label="all others")
    label = "the customer at the highest risk"
    left.bar(weeks, spent, width=7.0, bottom=rest, color=vermilion, label=label)
    left.set(xlabel="week from", ylabel="revenue in thousand dollars", title="What was released")
    left.set(ylim=(0, 1.35 * revenue.response.max() / 1000))
    left.xaxis.set_major_locator(AutoDateLocator(maxticks=6))
    left.legend(loc="upper right")
    band = audit.band("delta", prob=0.95)
    epsilon = band["epsilon"]
    label = "95% credible band"
    right.fill_between(epsilon, band["lower"], band["upper"], alpha=0.3, label=label)
    right.plot(epsilon, band["median"], label="posterior median")
    right.set(xlabel="epsilon", ylabel="delta, the largest risk of anyone", ylim=(0, None))
    right.set(xlim=(float(epsilon[0]), float(epsilon[-1])), title="What it gives away")
    right.legend(loc="upper right")
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)
