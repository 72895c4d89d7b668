"""
The rarer, the riskier
======================

A share of 1,000 people is published. How far it gives each of them away depends on how many have
the property, and a count of few says little about its probability: the bands are wide where it
matters.
"""

import matplotlib.pyplot as plt
import numpy as np

import edp_bayes as edp

counts = [1, 2, 5, 10, 20, 50, 100, 200, 500]
found = []
for count in counts:
    audit = edp.audit_property(count, 1000, epsilon=[0.1, 0.5], random_seed=1, progressbar=False)
    found.append(audit.delta.stack(draw_=("chain", "draw")).to_numpy())

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for k, (epsilon, color) in enumerate(((0.1, "C0"), (0.5, "C1"))):
    low, middle, high = np.quantile([draws[k] for draws in found], [0.05, 0.5, 0.95], axis=1)
    axes.fill_between(counts, low, high, color=color, alpha=0.3, label=f"{epsilon}: 90% band")
    axes.plot(counts, middle, "o-", color=color, ms=4, label=f"{epsilon}: median")
axes.set(xscale="log", yscale="log", xlabel="people with the property", ylabel="delta")
axes.set(ylim=(1e-8, 2))
_ = axes.legend(frameon=False, title="epsilon")
