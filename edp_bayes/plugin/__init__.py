"""The published point estimates of empirical differential privacy, for comparison.

Algorithms 1 and 2 of Burchard, Daoud and Dotterrer, "Empirical Differential Privacy" (2020,
arXiv:1910.12820): estimate the density p of the responses, make the same estimate p_i of the
responses without individual i, and compare the two. There is no posterior here and hence no
statement of how far a number can be trusted; `bootstrap` is what a careful user would add today.
"""

from edp_bayes.plugin import local_privacy
from edp_bayes.plugin.distances import bottleneck_epsilon, hausdorff_epsilon
from edp_bayes.plugin.estimate import EmpiricalPrivacy, empirical_privacy
from edp_bayes.plugin.resampling import BootstrapBand, bootstrap

__all__ = [
    "BootstrapBand",
    "EmpiricalPrivacy",
    "bootstrap",
    "bottleneck_epsilon",
    "empirical_privacy",
    "hausdorff_epsilon",
    "local_privacy",
]
