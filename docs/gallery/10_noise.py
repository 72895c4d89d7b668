"""
Noise that is added to noise
============================

Gaussian noise on top of the randomness of the data. The dotted curves are what the same noise
would give by itself, as differential privacy counts.
"""

import matplotlib.pyplot as plt
import numpy as np

import edp_bayes as edp
from edp_bayes.plots import style

rng = np.random.default_rng(9)
contribution = np.clip(rng.gamma(2.0, 0.3, 50), None, 1.5)
response = rng.normal(10.0, 1.0, 50) + contribution
epsilon = np.linspace(0.02, 1.0, 30)

with style.context():
    figure, axes = plt.subplots(figsize=(7, 4.4), layout="constrained")
for k, scale in enumerate((0.0, 1.0, 3.0)):
    color = style.COLOURS[k]
    responses = edp.Responses.from_arrays(
        response, contribution=contribution, noise=edp.GaussianNoise(scale) if scale else None
    )
    audit = edp.audit(
        responses,
        epsilon=epsilon,
        draws=100,
        chains=2,
        random_seed=1,
        progressbar=False,
    )
    band = audit.band("delta", prob=0.9)
    with style.context():
        axes.fill_between(epsilon, band["lower"], band["upper"], color=color, alpha=0.25)
        label = f"noise of scale {scale:g}" if scale else "no noise"
        axes.plot(epsilon, band["median"], ls=style.LINES[k], color=color, label=label)
        if scale:
            p, q = (edp.Mixture(1.0, x, scale) for x in (0.0, responses.largest_contribution.max()))
            alone = edp.hockey_stick(p, q, epsilon=epsilon)
            label = f"noise of scale {scale:g} alone"
            axes.plot(epsilon, alone, ls=style.DOTS[k], color=color, label=label)
axes.set(xlabel="epsilon", ylabel="delta: largest risk of an individual", yscale="log")
axes.set(xlim=(0, 1), ylim=(1e-4, 1), title="Noise on top of randomness, with 90% bands")
_ = figure.legend(loc="outside lower center", ncols=2, frameon=False)
