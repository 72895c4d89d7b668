"""
One posterior, not two
======================

An individual who contributes nothing has no risk. Two posteriors fitted separately to the same
responses find one all the same, of 0.45 over the root of the number of databases.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtr

from edp_bayes.plots import style

n = np.geomspace(10, 1000, 50)
rng = np.random.default_rng(1)
draws = np.abs(rng.normal(0.0, np.sqrt(2.0 / n), (4000, 50)))
unpaired = 2 * ndtr(draws / 2) - 1
low, high = np.quantile(unpaired, [0.05, 0.95], axis=0)

one, separate = style.COLOURS[:2]
with style.context():
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.fill_between(
        n, low, high, color=separate, alpha=0.25, label="separate posteriors, 90% band"
    )
    axes.plot(n, unpaired.mean(axis=0), color=separate, label="separate posteriors, mean")
    axes.plot(n, 2 / np.pi * np.arctan(1 / np.sqrt(2 * n)), "k:", label="exact mean")
    axes.plot(n, np.zeros_like(n), "--", color=one, label="one posterior, and the truth")
    axes.set(xlabel="number of databases", ylabel="delta at epsilon 0", xscale="log")
    axes.set(title="The risk found for someone who contributes nothing")
    _ = figure.legend(loc="outside lower center", ncols=2)
