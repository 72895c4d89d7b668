"""
A black box against the truth
=============================

The published estimator of the largest log ratio of a mechanism's output, fed with samples alone,
beside the epsilon that is known (Askin, Kutta and Dette 2022).
"""

import matplotlib.pyplot as plt

from edp_bayes.mechanisms import RandomizedResponse
from edp_bayes.plots import style
from edp_bayes.plugin.local_privacy import mpl

truth = [0.25, 0.5, 1.0, 1.5, 2.0]
found = []
for epsilon in truth:
    mechanism = RandomizedResponse(epsilon)
    found.append(mpl(mechanism, [mechanism.pair], second_size=20_000, random_seed=1))

blue, vermilion = style.COLOURS[:2]
with style.context():
    figure, axes = plt.subplots(figsize=(5, 4.4), layout="constrained")
    axes.plot(truth, truth, "k:", label="truth")
    axes.plot(truth, [estimate.epsilon for estimate in found], "o", color=blue, label="estimate")
    lower = [estimate.lower for estimate in found]
    axes.plot(truth, lower, "_", color=vermilion, ms=14, mew=2, label="95% lower bound")
    axes.set(xlabel="epsilon of the mechanism", ylabel="epsilon found from samples")
    axes.set(title="Randomised response")
    _ = figure.legend(loc="outside lower center", ncols=3)
