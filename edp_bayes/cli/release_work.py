"""The work of `edp-bayes release`, apart from that of `edp-bayes noise`: it needs few imports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.noise.releasing import release

__all__ = ["release_from_file"]


def release_from_file(noise_file: str | Path, value: float, **options: Any) -> float:
    """Return one noisy answer, with noise that `noise_for_audit` saved.

    Parameters
    ----------
    noise_file : str or Path
        A file that `NoiseDistribution.save` wrote.
    value : float
        The true answer.
    **options
        grid and sampler of `release`.
    """
    return release(value, NoiseDistribution.load(noise_file), **options)
