"""A location and a unit common to all components, which integrals need not carry along."""

from __future__ import annotations

import numpy as np

from edp_bayes.utils.arrays import Array

__all__ = ["common_location", "in_common_units"]

# Exponents of scales between which densities and their squares stay in the range of doubles.
ORDINARY = 100


def common_location(locations: Array) -> Array:
    """Return for each row what can be subtracted from all its locations without rounding.

    Nodes and moves of large locations are rounded to the digits that these have. It is the
    location nearest to zero, rounded towards zero to digits that all locations have; zero where
    they are not of one sign. NaN stands for what does not count.

    Examples
    --------
    >>> common_location(np.array([[1e9 + 1.0, 1e9 + 1.25], [-1.0, 1.0]]))
    array([1.e+09, 0.e+00])
    """
    low, high = np.nanmin(locations, axis=-1), np.nanmax(locations, axis=-1)
    nearest = np.where(np.abs(low) < np.abs(high), low, high)
    digits = np.spacing(np.maximum(np.abs(low), np.abs(high)))
    return np.where(low * high > 0.0, np.trunc(nearest / digits) * digits, 0.0)


def in_common_units(p: Array, q: Array) -> tuple[Array, Array]:
    """Return mixtures in a unit in which their densities are in the range of doubles.

    Integrals do not depend on the unit. It is a power of two, so that no digit is lost, and stays
    as it is where scales are ordinary.

    Parameters
    ----------
    p, q : ndarray
        Components, see `edp_bayes.divergence.any_pair.components.rows`.

    Examples
    --------
    >>> tiny = np.array([[[1.0, 0.0, 2.0**-600, 0.0, 0.0]]])
    >>> in_common_units(tiny, tiny)[0][0, 0]
    array([1., 0., 1., 0., 0.])
    """
    scales = [mixture[..., 2:4][mixture[..., 2:4] > 0.0] for mixture in (p, q)]
    if not all(part.size for part in scales):
        return p, q
    least = min(float(part.min()) for part in scales)
    most = max(float(part.max()) for part in scales)
    low, high = np.frexp([least, most])[1] - 1
    if low >= -ORDINARY and high <= ORDINARY:
        return p, q
    moved = []
    for mixture in (p, q):
        mixture = mixture.copy()
        with np.errstate(over="ignore"):
            mixture[..., 1:4] = np.ldexp(mixture[..., 1:4], -int(low + high) // 2)
        moved.append(mixture)
    if all(np.isfinite(mixture).all() for mixture in moved):
        return moved[0], moved[1]
    return p, q
