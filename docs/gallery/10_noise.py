"""
Noise that is added to noise
============================

Gaussian noise on top of the randomness of the data. The dotted curves are what the same noise
would give by itself, as differential privacy counts.
"""

import matplotlib.pyplot as plt
import numpy as np

import edp_bayes as edp

rng = np.random.default_rng(9)
contribution = np.clip(rng.gamma(2.0, 0.3, 50), None, 1.5)
response = rng.normal(10.0, 1.0, 50) + contribution
epsilon = np.linspace(0.02, 1.0, 30)

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for color, scale in enumerate((0.0, 1.0, 3.0)):
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
    label = f"noise of scale {scale:g}" if scale else "no noise"
    axes.fill_between(epsilon, band["lower"], band["upper"], color=f"C{color}", alpha=0.25)
    axes.plot(epsilon, band["median"], color=f"C{color}", label=label)
    if scale:
        p, q = (edp.Mixture(1.0, x, scale) for x in (0.0, responses.largest_contribution.max()))
        axes.plot(epsilon, edp.hockey_stick(p, q, epsilon=epsilon), ":", color=f"C{color}")
axes.set(xlabel="epsilon", ylabel="delta", xlim=(0, 1), ylim=(0, None))
_ = axes.legend(frameon=False)
