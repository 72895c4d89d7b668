"""Noise of a randomised query: laws, calibration, verification and release.

Every name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from edp_bayes.noise.laws import GaussianNoise, LaplaceNoise

if TYPE_CHECKING:
    from edp_bayes.noise.calibration import calibrate
    from edp_bayes.noise.choosing import Tradeoff, tradeoff
    from edp_bayes.noise.distribution import NoiseDistribution
    from edp_bayes.noise.lattice import LatticeNoise
    from edp_bayes.noise.laws import NoNoise
    from edp_bayes.noise.posterior import FixedBandwidth
    from edp_bayes.noise.releasing import release
    from edp_bayes.noise.verification import Verification, verify

_NAMES = {
    "FixedBandwidth": "posterior",
    "LatticeNoise": "lattice",
    "NoNoise": "laws",
    "NoiseDistribution": "distribution",
    "Tradeoff": "choosing",
    "Verification": "verification",
    "calibrate": "calibration",
    "release": "releasing",
    "tradeoff": "choosing",
    "verify": "verification",
}

__all__ = [
    "FixedBandwidth",
    "GaussianNoise",
    "LaplaceNoise",
    "LatticeNoise",
    "NoNoise",
    "NoiseDistribution",
    "Tradeoff",
    "Verification",
    "calibrate",
    "release",
    "tradeoff",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(import_module(f"edp_bayes.noise.{_NAMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'edp_bayes.noise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
