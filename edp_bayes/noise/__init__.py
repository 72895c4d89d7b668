"""Noise laws of a randomised query."""

from edp_bayes.noise.laws import GaussianNoise, LaplaceNoise

__all__ = ["GaussianNoise", "LaplaceNoise"]
