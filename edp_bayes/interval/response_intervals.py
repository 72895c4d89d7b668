"""What the distribution of a query's response says about an interval around its median."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.distributions.noise import LaplaceNoise
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.interval.true_answers import answer_from_mixture
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.distributions.mixtures import Mixture
    from edp_bayes.responses.transforms import Transform

__all__ = ["WIDTHS", "interval_epsilon", "interval_level", "interval_quantities"]

# Widths in the summary of an audit.
WIDTHS = (0.05, 0.1, 0.2)
# Below this share of the response's spread an interval is taken as infinitely narrow.
NARROW = 1e-7
# Above this tails are kept as they are; below, where doubles underflow, by their asymptotes.
LEAST_TAIL = 1e-290


def interval_level(
    mixture: Mixture, width: ArrayLike, transform: Transform | None = None
) -> xr.DataArray:
    """Return draws of p_w, the probability of a response within the relative width.

    p_w = P(abs(f(X) - c) < w abs(c)), c the median of f(X) in the same draw.

    Parameters
    ----------
    mixture : Mixture
        Draws of the response, shape (chain, draw, component), with the noise that its query adds.
    width : array_like
        Half-widths of the interval relative to the median, above 0: a number, or a vector that
        becomes a dimension.
    transform : Transform, optional
        An increasing one: the mixture is that of the response on its scale.

    Returns
    -------
    DataArray
        Dims (chain, draw), and width for a vector.

    Raises
    ------
    InvalidInputError, InputTypeError
        If a width is not above 0 or widths repeat.
    """
    return interval_quantities(mixture, width, transform=transform)["interval_level"]


def interval_epsilon(
    mixture: Mixture,
    width: ArrayLike,
    level: float | None = None,
    sensitivity: float = 1.0,
    transform: Transform | None = None,
) -> xr.DataArray:
    """Return draws of the epsilon of the Laplace mechanism that leaves the same interval.

    It is -s log(1 - p_w) / (w abs(c)): the randomness of the data keeps the response within
    w abs(c) of the median with probability p_w, and so would Laplace noise of scale s / epsilon.
    As w abs(c) vanishes it tends to 2 s p(c), p the density of the response.

    Parameters
    ----------
    mixture, width, transform
        As for `interval_level`.
    level : float, optional
        Probability in place of p_w, strictly between 0 and 1; only c is then uncertain.
    sensitivity : float
        Largest effect s of one individual on the response: 1 for counts.

    Returns
    -------
    DataArray
        Dims (chain, draw), and width for a vector.

    Raises
    ------
    InvalidInputError, InputTypeError
        If an argument is out of its range, or a level is given while the median is 0 in a draw.

    References
    ----------
    Naldi and D'Acquisto (2015), equation 10.
    """
    if level is None:
        found = interval_quantities(mixture, width, sensitivity, transform)
        return found["interval_epsilon"]
    widths, scale = _widths(width), validate.positive_number(sensitivity, "sensitivity")
    centre, chosen = _median(mixture, transform), validate.probability(level, "level")
    zero = int((centre == 0).sum())
    if zero:
        raise InvalidInputError(
            f"the median response must not be 0, found {zero} of {centre.size} draws: an interval "
            "relative to 0 is empty"
        )
    rates: xr.DataArray = -scale * np.log1p(-chosen) / (abs(centre) * widths)
    return rates.rename("interval_epsilon")


def interval_quantities(
    mixture: Mixture,
    width: ArrayLike,
    sensitivity: float = 1.0,
    transform: Transform | None = None,
) -> xr.Dataset:
    """Return interval_level and, at that level, interval_epsilon.

    Parameters
    ----------
    mixture, width, sensitivity, transform
        As for `interval_epsilon`.

    Returns
    -------
    Dataset
        Dims (chain, draw), and width for a vector.

    Raises
    ------
    InvalidInputError, InputTypeError
        If width or sensitivity are out of their range.
    """
    import xarray as xr

    widths, scale = _widths(width), validate.positive_number(sensitivity, "sensitivity")
    centre = _median(mixture, transform)
    middle = centre.to_numpy()[..., None]
    away = np.abs(middle) * np.atleast_1d(widths.to_numpy())
    if transform is None:
        log_outside, density = _around(mixture, middle, away, away)
        nearest = away
    else:
        on_scale = answer_from_mixture(mixture).to_numpy()[..., None]
        below, above = (_distance(transform, middle, on_scale, sign * away) for sign in (-1.0, 1.0))
        log_outside, density = _around(mixture, on_scale, below, above)
        density = density * np.exp(transform.log_slope(middle))
        nearest = np.minimum(below, above)
    narrow = nearest < NARROW * np.sqrt(mixture.variance())[..., None]
    level = np.where(narrow, 2.0 * density * away, -np.expm1(log_outside))
    rate = -log_outside / np.where(narrow, 1.0, away)
    epsilon = scale * np.where(narrow, 2.0 * density, rate)
    dims = ("chain", "draw", "width")
    coords = {**centre.coords, "width": np.atleast_1d(widths)}
    found = xr.Dataset(
        {"interval_level": (dims, level), "interval_epsilon": (dims, epsilon)}, coords
    )
    return found if widths.ndim else found.isel(width=0)


def _median(mixture: Mixture, transform: Transform | None) -> xr.DataArray:
    """Return the median of the response in every draw."""
    centre = answer_from_mixture(mixture)
    return centre if transform is None else centre.copy(data=transform.inverse(centre.to_numpy()))


def _distance(transform: Transform, middle: Array, on_scale: Array, away: Array) -> Array:
    """Return how far from the median an end of the interval is on the scale, infinite beyond it."""
    end = middle + away
    inside = transform.inside(end)
    reached = transform.forward(np.where(inside, end, middle))
    return np.where(inside, np.abs(reached - on_scale), np.inf)


def _around(
    distribution: Mixture, centre: Array, below: Array, above: Array
) -> tuple[Array, Array]:
    """Return log P(X < centre - below or X > centre + above), and the density at the centre.

    The shapes are (chain, draw, width).

    Both tails are added up, which do not cancel however far out they are.
    """
    outside, density = np.full(below.shape, -np.inf), np.zeros(centre.shape)
    for k in range(distribution.weights.shape[-1]):
        w, mu, s = (
            part[..., k, None]
            for part in (distribution.weights, distribution.locations, distribution.scales)
        )
        density += w * np.exp(distribution._distribution(centre - mu, s)[0])
        with np.errstate(divide="ignore"):
            log_weight = np.log(w)
        for gap, away in ((centre - mu, below), (mu - centre, above)):
            np.logaddexp(
                outside, log_weight + _log_lower_tail(distribution, gap - away, s), out=outside
            )
    return np.minimum(outside, 0.0), density


def _log_lower_tail(distribution: Mixture, u: Array, scale: Array) -> Array:
    """Return log P(U <= u) of one component, centred; it stays finite where P underflows."""
    if distribution.kernel == "gaussian" and distribution.noise is None:
        from scipy.special import log_ndtr

        return np.asarray(log_ndtr(u / scale))
    log_density, tail = distribution._distribution(u, scale)
    # Far out every other distribution here decays like its Laplace part of largest scale.
    slowest = scale if distribution.kernel == "laplace" else np.zeros_like(scale)
    if isinstance(distribution.noise, LaplaceNoise):
        slowest = np.maximum(slowest, distribution.noise.scale)
    with np.errstate(divide="ignore"):
        near, far = np.log(tail), log_density + np.log(slowest)
    return np.asarray(np.where(tail > LEAST_TAIL, near, far))


def _widths(width: ArrayLike) -> xr.DataArray:
    """Return a number as a scalar coordinate, a vector as the dimension width."""
    import xarray as xr

    values = validate.finite_array(width, "width")
    if (values <= 0).any():
        raise InvalidInputError(f"width must be greater than 0, found {values.min()}")
    if values.ndim > 1 or values.size == 0 or np.unique(values).size < values.size:
        raise InvalidInputError(
            f"width must be a number or a vector of different numbers, found {values.tolist()}"
        )
    return xr.DataArray(values, {"width": values}, ("width",) if values.ndim else ())
