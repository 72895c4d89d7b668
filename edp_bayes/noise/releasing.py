"""`edp.noise.release`: one noisy answer that betrays nothing through its last bits."""

from __future__ import annotations

import math
import secrets
import warnings
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module

from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise, Noise
from edp_bayes.exceptions import EdpBayesError, EdpBayesWarning, InvalidInputError
from edp_bayes.noise.distribution import NoiseDistribution, as_distribution
from edp_bayes.utils import validate

__all__ = ["MissingSamplerError", "grid_of", "release"]

SAMPLERS = ("auto", "opendp", "exact")
FINENESS = 16
FINEST = 40  # OpenDP rounds a value before it adds noise: to 2^-40 of the noise's size


class MissingSamplerError(EdpBayesError, ImportError):
    """The optional library that a sampler needs is not installed."""


def release(
    value: float,
    noise: NoiseDistribution | Noise,
    *,
    grid: float | None = None,
    sampler: str = "auto",
    random_bits: Callable[[int], int] = secrets.randbits,
) -> float:
    """Return one noisy answer, with randomness from the operating system.

    The sum of the value and the noise is rounded to a grid that depends on the noise alone: all
    answers lie on the same grid whatever the value, and rounding a sum takes nothing from the
    guarantee. Adding floating-point noise would (Mironov 2012). The exact sampler forms the sum
    without rounding; OpenDP rounds the value to 2^-40 of the noise's scale before, which is as if
    contributions were larger by that much.

    Parameters
    ----------
    value : float
        The true answer.
    noise : NoiseDistribution, LaplaceNoise, GaussianNoise or LatticeNoise
        The noise. Pure Laplace or Gaussian noise is drawn by OpenDP, anything else by the exact
        sampler of this library.
    grid : float, optional
        Distance of neighbouring answers, rounded down to a power of two; by default about
        2^-16 of the expected absolute noise.
    sampler : {"auto", "opendp", "exact"}
        "exact" draws every distribution by this library; "opendp" refuses those that OpenDP has
        not.
    random_bits : callable
        Source of randomness of the exact sampler: takes a number of bits, returns an integer.
        Anything but the default is for tests.

    Returns
    -------
    float
        A multiple of the grid; the value itself where the noise is none at all.

    Raises
    ------
    InvalidInputError
        If the value is not finite, or "opendp" is asked for a distribution it has not.
    MissingSamplerError
        If OpenDP is needed and not installed.

    Warns
    -----
    EdpBayesWarning
        If the noise is none at all.

    See Also
    --------
    calibrate : the least noise for a target
    verify : audit a query with noise added
    NoiseDistribution : noise that a calibration found

    References
    ----------
    Mironov (2012), On significance of the least significant bits for differential privacy,
    CCS 2012.

    Examples
    --------
    >>> from edp_bayes.noise import LaplaceNoise, release
    >>> answer = release(10.0, LaplaceNoise(2.0), grid=0.25, sampler="exact")
    >>> (4 * answer).is_integer()
    True
    """
    number = validate.number(value, "value")
    distribution = as_distribution(noise)
    validate.choice(sampler, SAMPLERS, "sampler")
    if distribution.atom == 1.0:
        warnings.warn(
            "this noise is none at all: the answer is the true value itself",
            EdpBayesWarning,
            stacklevel=2,
        )
        return number
    exponent = (
        grid_of(distribution) if grid is None else _exponent(validate.positive_number(grid, "grid"))
    )
    single = distribution.components[0] if len(distribution.components) == 1 else None
    known = isinstance(single, LaplaceNoise | GaussianNoise)
    if sampler == "opendp" and not known:
        raise InvalidInputError(
            "OpenDP draws Laplace and Gaussian noise only; use sampler='auto' or 'exact' for "
            f"{distribution!r}"
        )
    if known and sampler != "exact":
        assert isinstance(single, LaplaceNoise | GaussianNoise)
        return _by_opendp(number, single, exponent)
    return _exactly(number, distribution, exponent, random_bits)


def grid_of(noise: NoiseDistribution) -> int:
    """Return the power of two that is the default grid, from the noise alone.

    Examples
    --------
    >>> grid_of(NoiseDistribution((LaplaceNoise(1.0),)))
    -16
    """
    return _exponent(noise.mean_absolute) - FINENESS


def _exponent(size: float) -> int:
    return math.frexp(size)[1] - 1


def _exactly(
    value: float, noise: NoiseDistribution, exponent: int, bits: Callable[[int], int]
) -> float:
    from edp_bayes.noise.exact_sampling import choose, draw_noise

    distribution = noise.components[choose(noise.weights.tolist(), bits)]
    total = Fraction(value) + draw_noise(distribution, bits)
    return _rounded(total, exponent)


def _rounded(total: Fraction, exponent: int) -> float:
    step = Fraction(2) ** exponent
    return float(math.floor(total / step + Fraction(1, 2)) * step)


def _by_opendp(value: float, distribution: LaplaceNoise | GaussianNoise, exponent: int) -> float:
    try:
        # One by one: opendp.prelude imports polars too, which takes longer than all the rest.
        domains, measurements, metrics, mod = (
            import_module(f"opendp.{part}")
            for part in ("domains", "measurements", "metrics", "mod")
        )
    except ImportError:
        raise MissingSamplerError(
            "Laplace and Gaussian noise is drawn by OpenDP, which is not installed: install "
            "edp-bayes[release], or give sampler='exact' for the sampler of this library"
        ) from None
    mod.enable_features("contrib")
    domain, metric = domains.atom_domain(T=float, nan=False), metrics.absolute_distance(T=float)
    laplace = isinstance(distribution, LaplaceNoise)
    make = measurements.make_laplace if laplace else measurements.make_gaussian
    fine = min(exponent, _exponent(distribution.scale) - FINEST)
    mechanism = make(domain, metric, scale=distribution.scale, k=fine)
    return _rounded(Fraction(mechanism(value)), exponent)
