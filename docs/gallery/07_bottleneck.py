"""
Where the Hausdorff distance fails
==================================

Two samples of four points, each within 0.2 of the other. The log ratio of their kernel estimates
leaves the bound that was published and keeps to the one by sorted points.
"""

import matplotlib.pyplot as plt
import numpy as np

import edp_bayes as edp
from edp_bayes.plots import style

first, second = [0.0, 10.0, 10.1, 10.2], [0.0, 0.1, 0.2, 10.0]
p, q = (edp.Mixture([0.25] * 4, points, 1.0, kernel="laplace") for points in (first, second))
x = np.linspace(-5.0, 15.0, 500)

bounds = {
    "Hausdorff, as published": edp.plugin.hausdorff_epsilon(first, second, 1.0),
    "bottleneck": edp.plugin.bottleneck_epsilon(first, second, 1.0),
}

with style.context():
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(x, p.logpdf(x) - q.logpdf(x), label="log p / q")
    for color, line, (name, bound) in zip(
        style.COLOURS[1:3], ("--", "-."), bounds.items(), strict=True
    ):
        axes.plot(x, np.full_like(x, bound), line, color=color, label=f"{name}: {bound:.1f}")
        axes.plot(x, np.full_like(x, -bound), line, color=color)
    axes.plot(first, np.full(4, 0.5), "k|", ms=12)
    axes.plot(second, np.full(4, -0.5), "k|", ms=12)
    axes.set(xlabel="response, in its unit", ylabel="log ratio of the densities")
    axes.set(yscale="symlog", ylim=(-20, 20), xlim=(x[0], x[-1]))
    axes.set(title="Two samples, above and below zero, and the log ratio")
    style.label_lines(axes)
