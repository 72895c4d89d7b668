"""
What more databases buy
=======================

The width of the band of delta(0.1) as databases are added to the 40 at hand, in simulated futures.
"""

import matplotlib.pyplot as plt
import numpy as np

import edp_bayes as edp

rng = np.random.default_rng(3)
contribution = rng.normal(0.6, 0.2, (40, 2))
response = rng.normal(10.0, 1.0, 40) + contribution.sum(axis=1)
found = edp.plan(
    edp.Responses.from_arrays(response, contribution=contribution),
    width=0.1,
    epsilon=0.1,
    prob=0.9,
    repetitions=8,
    draws=100,
    random_seed=1,
    progressbar=False,
)
print(found)

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.plot(found.sizes, found.widths, ".", color="C0", alpha=0.4)
axes.plot(found.sizes, found.widths.mean(axis=1), color="C0", label="average width")
axes.axhline(found.width, color="k", ls=":", label="asked for")
axes.axvline(found.databases, color="C1", label=f"{found.databases} databases")
axes.set(xlabel="databases", ylabel="width of the 90% band", ylim=(0, None))
_ = axes.legend(frameon=False)
