"""
The hockey-stick integral
=========================

The area in which one density exceeds exp(epsilon) times the other.
"""

import matplotlib.pyplot as plt
import numpy as np

import edp_bayes as edp
from edp_bayes.plots import style

p = edp.Mixture([0.7, 0.3], [0.0, 3.0], [1.0, 0.6])
q = edp.Mixture([0.7, 0.3], [-0.5, 2.3], [1.0, 0.6])
epsilon = 0.3
x = np.linspace(-4.0, 6.0, 600)
above, scaled = p.pdf(x), np.exp(epsilon) * q.pdf(x)

area = edp.hockey_stick(p, q, epsilon=epsilon)

with style.context():
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(x, above, label="p, with the individual")
    axes.plot(x, q.pdf(x), "--", label="q, without")
    axes.plot(x, scaled, ":", color=style.COLOURS[1], label=f"exp({epsilon}) q")
    axes.fill_between(x, scaled, above, where=above > scaled, alpha=0.4, label=f"area {area:.3f}")
    axes.set(xlabel="response, in its unit", ylabel="density per unit", ylim=(0, None))
    axes.set(title="What exceeds exp(epsilon) times the other density")
    _ = figure.legend(loc="outside lower center", ncols=4)
