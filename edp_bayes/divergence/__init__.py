"""Hockey-stick integrals of mixture densities."""

from edp_bayes.divergence.integral import hockey_stick

__all__ = ["hockey_stick"]
