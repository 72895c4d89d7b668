"""The hockey-stick integral of one pair of mixtures, or of arrays of pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.divergence.any_pair import curves as any_pair
from edp_bayes.divergence.any_pair.components import (
    GAUSSIAN,
    LAPLACE,
    LAPLACE_LAPLACE,
    NORMAL_LAPLACE,
    rows,
)
from edp_bayes.divergence.one_scale import curves as one_scale
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils.arrays import Array

__all__ = ["hockey_stick"]


def hockey_stick(p: Mixture, q: Mixture, *, epsilon: ArrayLike) -> Array | float:
    """Return H_eps(p || q), the integral of (p - exp(eps) q) where it is positive.

    It is the largest P(A) - exp(eps) Q(A) over all events A: the delta that epsilon needs in
    one direction. Laplace mixtures of one common scale are integrated in closed form between
    knots, everything else between all sign changes: Gaussian mixtures by distribution functions
    wherever these do not cancel, all others by quadrature (Burchard, Daoud and Dotterrer 2020,
    Definition 2).

    Parameters
    ----------
    p, q : Mixture
        Densities or draws of them; leading axes broadcast. When both have the same number of
        components, these are taken as pairs in their order, which keeps the relative precision
        however close p and q are. Kernels and noise may differ.
    epsilon : array_like
        Non-negative, any shape; infinity is allowed and gives 0, since q is positive everywhere.
        Large values are as good as small ones: integrals are then formed in logarithms.

    Returns
    -------
    ndarray or float
        Shape (leading axes of p and q) + (shape of epsilon); a float for one pair and a scalar
        epsilon. Values lie in [0, 1].

    Raises
    ------
    InputTypeError
        If p or q is not a Mixture or epsilon is not numeric.
    InvalidInputError
        If epsilon is negative or NaN, or the leading axes do not broadcast; or if epsilon is so
        large (from about 1e6 on) that the rounding of a log ratio alone decides the result.

    See Also
    --------
    Mixture : a mixture density
    edp_bayes.statistical_privacy.delta : delta of a property query

    Examples
    --------
    >>> from edp_bayes import Mixture
    >>> p, q = Mixture(1.0, 0.0, 1.0, kernel="laplace"), Mixture(1.0, 1.0, 1.0, kernel="laplace")
    >>> round(hockey_stick(p, q, epsilon=0.5), 6)
    0.221199
    """
    for mixture, name in ((p, "p"), (q, "q")):
        if not isinstance(mixture, Mixture):
            raise InputTypeError(f"{name} must be a Mixture, found {type(mixture).__name__}")
    levels, positions, shape = _levels(epsilon)
    try:
        lead = np.broadcast_shapes(p.weights.shape[:-1], q.weights.shape[:-1])
    except ValueError:
        raise InvalidInputError(
            f"leading axes of p and q must broadcast, found {p.weights.shape[:-1]} "
            f"and {q.weights.shape[:-1]}"
        ) from None
    result = np.zeros((int(np.prod(lead)), levels.size + 1))
    if levels.size and result.size:
        result[:, :-1] = _curves(_rows(p, lead), _rows(q, lead), levels)
    curves = result[:, positions].reshape(lead + shape)
    return float(curves) if curves.ndim == 0 else curves


def _levels(epsilon: ArrayLike) -> tuple[Array, NDArray[np.intp], tuple[int, ...]]:
    """Return the finite values in order, where each epsilon stands among them, and its shape.

    Infinity stands one past the end.
    """
    try:
        values = np.asarray(epsilon)
        if values.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError):
        raise InputTypeError("epsilon must be numeric") from None
    values = values.astype(np.float64)
    if np.isnan(values).any() or (values < 0).any():
        bad = values[np.isnan(values) | (values < 0)].flat[0]
        raise InvalidInputError(f"epsilon must not be negative or NaN, found {bad}")
    levels = np.unique(values[np.isfinite(values)])
    return levels, np.searchsorted(levels, values.ravel()), values.shape


def component_rows(
    weights: Array,
    locations: Array,
    scales: Array,
    kernel: str,
    noise: GaussianNoise | LaplaceNoise | None,
) -> Array:
    """Return the rows (..., component, 5) that the integrals take, known noise included."""
    if noise is None:
        return rows(GAUSSIAN if kernel == "gaussian" else LAPLACE, weights, locations, scales)
    extra = np.asarray(noise.scale)
    if isinstance(noise, GaussianNoise):
        if kernel == "gaussian":
            return rows(GAUSSIAN, weights, locations, np.hypot(scales, extra))
        return rows(NORMAL_LAPLACE, weights, locations, extra, scales)
    family = NORMAL_LAPLACE if kernel == "gaussian" else LAPLACE_LAPLACE
    return rows(family, weights, locations, scales, extra)


def _rows(mixture: Mixture, lead: tuple[int, ...]) -> Array:
    """Return the components (pair, component, 5), broadcast to the leading axes."""
    stacked = component_rows(
        mixture.weights, mixture.locations, mixture.scales, mixture.kernel, mixture.noise
    )
    shape = stacked.shape[-2:]
    return np.broadcast_to(stacked, lead + shape).reshape(-1, *shape)


def _curves(p: Array, q: Array, levels: Array) -> Array:
    q = q[:, None]
    if (p[..., 4] == LAPLACE).all() and (q[..., 4] == LAPLACE).all():
        return one_scale.curves(
            p[..., 0], p[..., 1], p[..., 2], q[..., 0], q[..., 1], q[..., 2], levels,
            direction=any_pair.FORWARD,
        )[:, 0]  # fmt: skip
    return any_pair.curves(p, q, levels, direction=any_pair.FORWARD)[:, 0]
