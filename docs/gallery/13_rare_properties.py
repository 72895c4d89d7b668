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
from edp_bayes.plots import style

counts = [1, 2, 5, 10, 20, 50, 100, 200, 500]
found = []
for count in counts:
    audit = edp.audit_property(count, 1000, epsilon=[0.1, 0.5], random_seed=1, progressbar=False)
    found.append(audit.delta.stack(draw_=("chain", "draw")).to_numpy())

with style.context():
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for k, (epsilon, line) in enumerate(((0.1, "o-"), (0.5, "s--"))):
        low, middle, high = np.quantile([draws[k] for draws in found], [0.05, 0.5, 0.95], axis=1)
        label = f"at epsilon {epsilon}: 90% band"
        axes.fill_between(counts, low, high, color=style.COLOURS[k], alpha=0.3, label=label)
        axes.plot(
            counts,
            middle,
            line,
            color=style.COLOURS[k],
            ms=4,
            label=f"at epsilon {epsilon}: median",
        )
    axes.set(xscale="log", yscale="log", ylim=(1e-8, 2))
    axes.set(
        xlabel="people with the property, of 1,000", ylabel="delta: risk of the critical entry"
    )
    axes.set(title="The risk by how many have the property")
    _ = figure.legend(loc="outside lower center", ncols=2)
