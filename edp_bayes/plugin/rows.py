"""Privacy loss at one place of outputs of several columns, by kernel densities.

Both sides are smoothed by the same kernel. Smoothed outputs are outputs plus independent noise, so
their densities differ by no more than those of the outputs: smoothing and the floor can lower a
loss, never raise it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.arrays import Array

__all__ = ["MOST_COLUMNS", "Place", "measure", "search"]

MOST_COLUMNS = 5
# Epanechnikov kernel: its largest value, and the integral of its square.
TOP, ROUGHNESS = 0.75, 0.6
QUARTILES = 1.349
# Outputs that a density at the floor is worth: fewer, and its logarithm is not near normal.
LEAST = 30
# Standard errors that an estimate is lowered by where places are compared.
CAUTION = 3.0
# Columns are cut off so many quartile distances beyond the quartiles when they are correlated.
REACH = 3.0
SINGULAR = 1e-10


@dataclass(frozen=True, eq=False)
class Place:
    """Where the second stage measures the loss, and with which kernel.

    Attributes
    ----------
    estimate : float
        Largest floored abs(log f - log f') over all places tried.
    promise : float
        What a bound at this place is likely to reach: its estimate less three standard errors.
    location : tuple of float
        The output t*.
    tau : float
        The floor, relative to the largest density found.
    raised : bool
        Whether that is more than was asked for.
    floor : float
        The floor as a density of mapped outputs.
    unmix : ndarray
        Shape (column, column): maps outputs to columns that are uncorrelated on each side and of
        unit spread.
    bandwidth : float
        Of the second stage, for mapped outputs.
    """

    estimate: float
    promise: float
    location: tuple[float, ...]
    tau: float
    raised: bool
    floor: float
    unmix: Array
    bandwidth: float


def search(a: Array, b: Array, *, tau: float, points: int, second: int, smoothness: float) -> Place:
    """Return the place that promises the largest bound, of `points` outputs of both sides.

    Parameters
    ----------
    a, b : ndarray
        Shape (size, column): outputs for two databases.
    tau : float
        Floor of the densities, relative to the largest one.
    points : int
        Number of outputs tried.
    second : int
        Size of the second stage.
    smoothness : float
        Of the densities, as `bandwidth` takes it.

    Raises
    ------
    InvalidInputError
        If outputs have no density in so many columns, or `second` is too small to see one.
    """
    unmix = _unmix(a, b)
    first, columns = a.shape
    half = min(max(1, points // 2), first)
    outputs = np.concatenate([a[:half], b[:half]])
    centre = np.median(a, axis=0)
    width, narrow = (bandwidth(columns, size, smoothness) for size in (first, second))
    tried = (outputs - centre) @ unmix
    f, g = (_densities((side - centre) @ unmix, tried, width)[0] for side in (a, b))
    own = (TOP / width) ** columns
    f[:half] = (first * f[:half] - own) / (first - 1)
    g[half:] = (first * g[half:] - own) / (first - 1)
    peak = max(f.max(), g.max())
    # A density f has relative variance noise / f, that of a Poisson count f / noise.
    noise, later = (
        ROUGHNESS**columns / (size * h**columns) for size, h in ((first, width), (second, narrow))
    )
    floor = max(tau * peak, LEAST * later)
    if floor >= peak:
        raise InvalidInputError(
            f"second_size must be large enough for densities of {columns} columns, found {second}, "
            f"of which the densest place sees {peak / later:.0f}; {LEAST} are needed"
        )
    f, g = np.maximum(f, floor), np.maximum(g, floor)
    loss = np.abs(np.log(f / g))
    promise = loss - CAUTION * np.sqrt((noise + later) * (1.0 / f + 1.0 / g))
    at = int(np.argmax(promise))
    return Place(
        estimate=float(loss.max()),
        promise=float(promise[at]),
        location=tuple(outputs[at].tolist()),
        tau=float(floor / peak),
        raised=bool(floor > tau * peak),
        floor=float(floor),
        unmix=unmix,
        bandwidth=narrow,
    )


def measure(a: Array, b: Array, place: Place) -> tuple[float, float]:
    """Return abs(log f - log f') at the place, and its standard error, from fresh outputs."""
    origin, at = np.array(place.location), np.zeros((1, len(place.location)))
    logs, variance = [], 0.0
    for side in (a, b):
        mean, square = _densities((side - origin) @ place.unmix, at, place.bandwidth)
        density = max(float(mean[0]), place.floor)
        logs.append(math.log(density))
        variance += float(square[0] - mean[0] ** 2) / (len(side) * density**2)
    return abs(logs[0] - logs[1]), math.sqrt(variance)


def bandwidth(columns: int, size: int, smoothness: float) -> float:
    """Return the bandwidth of unit columns: of order size^(-1 / (2 smoothness + columns)).

    At smoothness 2 it has the least integrated squared error for independent normal columns.
    """
    constant = 100.0 * (1.2 * math.sqrt(math.pi)) ** columns / (columns + 2)
    return float(constant ** (1.0 / (columns + 4)) * size ** (-1.0 / (2.0 * smoothness + columns)))


def _unmix(a: Array, b: Array) -> Array:
    """Return the map to columns that are uncorrelated on each side and of unit spread."""
    covariance = 0.5 * (_covariance(a) + _covariance(b))
    spread = np.sqrt(np.diag(covariance))
    if not spread.all():
        raise InvalidInputError(
            f"column {int(np.argmin(spread))} of the outputs is constant, so they have no density; "
            "leave it out, or pass kind='discrete' if outputs are outcomes"
        )
    correlation = covariance / np.outer(spread, spread)
    if np.linalg.eigvalsh(correlation)[0] < SINGULAR:
        raise InvalidInputError(
            "columns of the outputs follow from each other by a linear equation, so they have no "
            "density; leave out a column that follows from the others"
        )
    unmix = np.linalg.inv(np.linalg.cholesky(correlation)).T / spread[:, None]
    return np.asarray(unmix / np.minimum(*(_spreads(side @ unmix) for side in (a, b))))


def _covariance(side: Array) -> Array:
    """Return the covariance of columns whose outermost values are cut off."""
    low, high = np.quantile(side, [0.25, 0.75], axis=0)
    reach = np.where(high > low, REACH * (high - low), np.inf)
    return np.cov(np.clip(side, low - reach, high + reach), rowvar=False)


def _spreads(side: Array) -> Array:
    low, high = np.quantile(side, [0.25, 0.75], axis=0)
    spread = side.std(axis=0)
    return np.where(high > low, np.minimum(spread, (high - low) / QUARTILES), spread)


def _densities(sample: Array, points: Array, width: float) -> tuple[Array, Array]:
    """Return the means of the product kernel and of its square at points, each shape (point,)."""
    size, columns = sample.shape
    ordered = sample[np.argsort(sample[:, 0])]
    low = np.searchsorted(ordered[:, 0], points[:, 0] - width)
    high = np.searchsorted(ordered[:, 0], points[:, 0] + width)
    mean, square = np.empty((2, len(points)))
    for k, (i, j) in enumerate(zip(low, high, strict=True)):
        u = (ordered[i:j] - points[k]) / width
        kernel = np.maximum(TOP * (1.0 - u * u), 0.0).prod(axis=1) / width**columns
        mean[k], square[k] = kernel.sum() / size, kernel @ kernel / size
    return mean, square
