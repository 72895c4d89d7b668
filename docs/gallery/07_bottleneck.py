"""
Where the Hausdorff distance fails
==================================

Two samples of four points, each within 0.2 of the other. The log ratio of their kernel estimates
leaves the bound that was published and keeps to the one by sorted points.
"""

import matplotlib.pyplot as plt
import numpy as np

import edp_bayes as edp

first, second = [0.0, 10.0, 10.1, 10.2], [0.0, 0.1, 0.2, 10.0]
p, q = (edp.Mixture([0.25] * 4, points, 1.0, kernel="laplace") for points in (first, second))
x = np.linspace(-5.0, 15.0, 500)

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.plot(x, p.logpdf(x) - q.logpdf(x), label="log p / q")
axes.plot(first, np.zeros(4), "|", ms=14, color="C0")
axes.plot(second, np.zeros(4), "|", ms=14, color="C3")
bounds = {
    "Hausdorff, as published": edp.plugin.hausdorff_epsilon(first, second, 1.0),
    "bottleneck": edp.plugin.bottleneck_epsilon(first, second, 1.0),
}
for color, (name, bound) in zip(("C1", "C2"), bounds.items(), strict=True):
    axes.plot(x, np.full_like(x, bound), "--", color=color, label=f"{name}: {bound:.1f}")
    axes.plot(x, np.full_like(x, -bound), "--", color=color)
axes.set(xlabel="response", ylabel="log ratio", yscale="symlog", ylim=(-20, 40))
_ = axes.legend(frameon=False, ncols=3, loc="upper center")
