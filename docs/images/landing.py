"""Draw landing.png from the saved audit of the demo.

Run `uv run edp-bayes demo`, then `uv run python docs/images/landing.py edp-bayes-demo/audit.nc`.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import edp_bayes as edp
from edp_bayes.data import load_cdnow_weeks

audit = edp.load_audit(sys.argv[1])
databases = edp.Databases.from_table(load_cdnow_weeks(), database="week", individual="customer")
revenue = databases.respond(edp.queries.Sum("dollars"))
riskiest = audit.individual_delta.isel(epsilon=0).mean(("chain", "draw")).idxmax().item()
spent = revenue.contribution[:, [revenue.index_of(riskiest)]].toarray().ravel() / 1000
rest = revenue.response / 1000 - spent

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
week = np.arange(1, rest.size + 1)
left.bar(week, rest, width=1.0, color="0.8", label="all others")
left.bar(week, spent, width=1.0, bottom=rest, color="C3", label="the customer at the highest risk")
left.set(xlabel="week", ylabel="revenue in thousand dollars", xlim=(0, rest.size + 1))
left.set(ylim=(0, 1.3 * revenue.response.max() / 1000))
left.legend(frameon=False, loc="upper right")
band = audit.band("delta", prob=0.95)
epsilon = band["epsilon"]
right.fill_between(epsilon, band["lower"], band["upper"], alpha=0.3, label="95% credible band")
right.plot(epsilon, band["median"], label="posterior median")
right.set(xlabel="epsilon", ylabel="delta, the largest risk of anyone", ylim=(0, None))
right.set(xlim=(float(epsilon[0]), float(epsilon[-1])))
right.legend(frameon=False)
figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)
