"""Noise of a randomised query: distributions, calibration, verification and release.

Every name is imported when it is first used.
"""

import lazy_loader as lazy

from edp_bayes.distributions.lattice import LatticeNoise
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise, NoNoise

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
__all__ += ["GaussianNoise", "LaplaceNoise", "LatticeNoise", "NoNoise"]
