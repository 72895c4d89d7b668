"""
A share of one large database
=============================

How far the randomness of 1,000 entries alone hides each of them (Breutigam and Reischuk,
"Statistical Privacy"), with and without Gaussian noise.
"""

import matplotlib.pyplot as plt

from edp_bayes.plots import statistical_privacy

pair, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
statistical_privacy.curves_by_probability(ax=axes[0])
_ = statistical_privacy.gaussian_noise(ax=axes[1])
