"""
What more databases buy
=======================

The width of the band of delta(0.1) as databases are added to the 40 seen, in simulated futures.
"""

import matplotlib.pyplot as plt
import numpy as np

import edp_bayes as edp
from edp_bayes.plots import style

rng = np.random.default_rng(3)
contribution = rng.normal(0.6, 0.2, (40, 2))
response = rng.normal(10.0, 1.0, 40) + contribution.sum(axis=1)
found = edp.plan(
    edp.Responses.from_arrays(response, contribution=contribution),
    width=0.15,
    epsilon=0.1,
    prob=0.9,
    repetitions=8,
    draws=50,
    random_seed=1,
    progressbar=False,
)
print(found)

blue, vermilion = style.COLOURS[:2]
with style.context():
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(found.sizes, found.widths, ".", color=blue, alpha=0.4)
    axes.plot(found.sizes, found.widths.mean(axis=1), color=blue, label="average width")
    axes.axhline(found.width, color="k", ls=":", label=f"asked for: {found.width:g}")
    axes.axvline(found.databases, color=vermilion, ls="--", label=f"{found.databases} databases")
    axes.set(xlabel="number of databases", ylabel="width of the 90% band of delta", ylim=(0, None))
    axes.set(title="Simulated futures: a point each")
    _ = figure.legend(loc="outside lower center", ncols=3)
