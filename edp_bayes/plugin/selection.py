"""Choice of density and bandwidth by out-of-sample log likelihood, one database left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edp_bayes.distributions.neighbours import neighbour_distances
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.plugin.quotient import cell_points, step_density
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from edp_bayes.responses.responses import Responses


DENSITIES = ("difference_quotient", "fixed", "variable")
QUOTIENT = "difference_quotient"
KERNEL_ESTIMATES = "kernel"
GRID_SIZE = 48
CELLS_AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False)
class Sample:
    """Responses and the database of each, without the contributions."""

    response: Array
    database: NDArray[np.int64]
    databases: int
    noise: GaussianNoise | LaplaceNoise | None = None


@dataclass(frozen=True, eq=False)
class Candidate:
    """A density estimate: how it is made, its bandwidth and its out-of-sample score.

    `ratios` holds each row's bandwidth over the common one: ones for a fixed bandwidth,
    Breiman's normalised neighbour distances for a variable one, empty for the difference
    quotient, whose bandwidth counts responses per cell.
    """

    density: str
    kernel: str | None
    bandwidth: float
    ratios: Array
    log_likelihood: float
    at_edge: bool = False

    @property
    def name(self) -> str:
        """Density, and kernel if there is one."""
        return self.density if self.kernel is None else f"{self.density} {self.kernel}"

    def scales(self, bandwidth: Array, noise: GaussianNoise | LaplaceNoise | None) -> Array:
        """Return kernel scales for bandwidths (S,), known noise included, shape (S, row)."""
        scales = bandwidth[:, None] * self.ratios
        return scales if noise is None else np.hypot(scales, noise.scale)


def sample_of(responses: Responses) -> Sample:
    """Return the rows an estimate is made from."""
    return Sample(responses.response, responses.cluster, responses.n_databases, responses.noise)


def candidates(
    sample: Sample,
    *,
    density: str = "auto",
    kernel: str = "auto",
    bandwidth: float | None = None,
    neighbours: int | None = None,
) -> list[Candidate]:
    """Return every admitted density estimate with its best bandwidth, best first.

    Parameters
    ----------
    sample : Sample
        The responses.
    density : {"auto", "difference_quotient", "fixed", "variable"}
        "auto" admits all three.
    kernel : {"auto", "gaussian", "laplace"}
        "auto" admits both; the difference quotient has none.
    bandwidth : float, optional
        Bandwidth, or responses per cell of a difference quotient; chosen if left out.
    neighbours : int, optional
        Neighbour whose distance sets a variable bandwidth, default the root of the rows.

    Raises
    ------
    InvalidInputError
        If an option is unknown or out of range, a bandwidth is given without a density, or a
        kernel or neighbours with a density that has none.
    """
    validate.choice(density, ("auto", *DENSITIES), "density")
    validate.choice(kernel, ("auto", *validate.KERNELS), "kernel")
    if bandwidth is not None and density == "auto":
        raise InvalidInputError(
            "a bandwidth means different things to different densities: give density= with it"
        )
    if density == QUOTIENT and kernel != "auto":
        raise InvalidInputError(f"a difference quotient has no kernel, found kernel={kernel!r}")
    if neighbours is not None and density in (QUOTIENT, "fixed"):
        raise InvalidInputError(
            f"only bandwidths that vary have neighbours, found neighbours={neighbours!r} with "
            f"density={density!r}"
        )
    if sample.noise is not None:
        density, kernel = _with_noise(sample.noise, density, kernel)
    kernels = validate.KERNELS if kernel == "auto" else (kernel,)
    found = [
        _kernel_candidate(sample, kind, each, bandwidth, neighbours)
        for kind in ("fixed", "variable")
        if density in ("auto", KERNEL_ESTIMATES, kind)
        for each in kernels
    ]
    if density in ("auto", QUOTIENT):
        found.append(_quotient_candidate(sample, bandwidth))
    return sorted(found, key=lambda each: -each.log_likelihood)


def _with_noise(noise: GaussianNoise | LaplaceNoise, density: str, kernel: str) -> tuple[str, str]:
    """Return the choice that can hold the noise: a Gaussian kernel widened by Gaussian noise."""
    if isinstance(noise, LaplaceNoise) or density == QUOTIENT or kernel == "laplace":
        raise InvalidInputError(
            "the published estimates hold known noise only as Gaussian noise on a Gaussian "
            f"kernel, found {noise} with density {density!r} and kernel {kernel!r}; add the "
            "noise to the responses instead"
        )
    return (KERNEL_ESTIMATES if density == "auto" else density), "gaussian"


def neighbour_count(sample: Sample, neighbours: int | None) -> int:
    """Return the number of neighbours, by default the root of the number of rows."""
    # One database fewer is there when it is left out, and a row is no neighbour of itself.
    most = sample.response.size - int(np.bincount(sample.database).max()) - 1
    if neighbours is None:
        return min(cell_points(sample.response.size), most)
    count = validate.positive_integer(neighbours, "neighbours")
    if count > most:
        raise InvalidInputError(f"neighbours must be at most {most} here, found {count}")
    return count


def variable_ratios(response: Array, neighbours: int) -> Array:
    """Return Breiman's relative bandwidths: neighbour distances over their geometric mean.

    Rows whose neighbours are all tied with them get the smallest distance that is not zero.

    References
    ----------
    Breiman, Meisel, Purcell (1977), Variable kernel estimates of multivariate densities,
    Technometrics 19, 135-144.
    """
    distance = neighbour_distances(response, neighbours)
    positive = distance[distance > 0]
    if positive.size == 0:
        return np.ones_like(response)
    distance = np.maximum(distance, positive.min())
    return np.asarray(distance / np.exp(np.log(distance).mean()))


def held_out_ratios(sample: Sample, density: str, neighbours: int) -> Array:
    """Return relative bandwidths made without each database, shape (databases or 1, row)."""
    ones = np.ones(sample.response.size)
    if density == "fixed":
        return ones[None]
    ratios = np.tile(ones, (sample.databases, 1))
    for left_out in range(sample.databases):
        kept = sample.database != left_out
        ratios[left_out, kept] = variable_ratios(sample.response[kept], neighbours)
    return ratios


def bandwidth_grid(response: Array) -> Array:
    """Return bandwidths from far too small to far too large, evenly spaced in their logarithm."""
    spread = float(response.std())
    quartiles = np.quantile(response, [0.25, 0.75])
    narrow = min(spread, float(quartiles[1] - quartiles[0]) / 1.34) or spread
    # The largest spans the range in 30 steps at least, so that a kernel there cannot underflow.
    largest = max(3 * spread, float(np.ptp(response)) / 30)
    return np.geomspace(0.05 * narrow * response.size**-0.2, largest, GRID_SIZE)


def held_out_scores(
    sample: Sample, counts: Array, grid: Array, kernel: str, ratios: Array
) -> Array:
    """Return the out-of-sample log likelihood of each resample at each bandwidth.

    Every row is scored by the estimate made from the other databases alone; a database drawn
    twice is left out with its copy, else its twin would reward a bandwidth of zero.

    Parameters
    ----------
    sample : Sample
        The rows.
    counts : ndarray
        How often each resample holds each database, shape (S, databases).
    grid : ndarray
        Bandwidths, shape (G,).
    kernel : {"gaussian", "laplace"}
        The kernel.
    ratios : ndarray
        Relative bandwidths without each database, shape (databases or 1, row).

    Returns
    -------
    ndarray
        Shape (S, G); minus infinity where a row has no density, or no other database is there.
    """
    weights = counts[:, sample.database]
    scores = np.zeros((counts.shape[0], grid.size))
    for rows in _row_blocks(sample.response.size):
        distance = np.abs(sample.response[rows, None] - sample.response)
        own = sample.database[rows, None] == sample.database
        relative = ratios[sample.database[rows]] if ratios.shape[0] > 1 else ratios
        others = weights @ (~own).T.astype(np.float64)
        for g, bandwidth in enumerate(grid):
            scale = bandwidth * relative
            kernels = np.where(own, 0.0, _kernel_values(distance / scale, kernel) / scale)
            scores[:, g] += _log_score(weights @ kernels.T, others, weights[:, rows])
    return scores


def best_bandwidth(grid: Array, scores: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return the bandwidth of the highest score, polished, and whether it lies at an edge.

    Parameters
    ----------
    grid : ndarray
        Shape (G,), evenly spaced in the logarithm.
    scores : ndarray
        Shape (S, G).

    Returns
    -------
    bandwidth : ndarray
        Shape (S,): the vertex of the parabola through the best three points, in log bandwidth.
    at_edge : ndarray of bool
        Shape (S,): the best point is the first or last of the grid.
    """
    best = scores.argmax(axis=1)
    at_edge = (best == 0) | (best == grid.size - 1)
    middle = np.clip(best, 1, grid.size - 2)
    left, top, right = (
        np.take_along_axis(scores, (middle + side)[:, None], axis=1)[:, 0] for side in (-1, 0, 1)
    )
    usable = ~at_edge & np.isfinite(left) & np.isfinite(right)
    with np.errstate(invalid="ignore"):
        curvature = np.where(usable, left - 2 * top + right, -1.0)
        lean = np.where(usable, left - right, 0.0)
    # A flat top has no curvature: stay in its middle.
    shift = np.divide(0.5 * lean, curvature, out=np.zeros_like(lean), where=curvature < 0)
    return grid[best] * np.exp(shift * np.log(grid[1] / grid[0])), at_edge


def _kernel_candidate(
    sample: Sample, density: str, kernel: str, bandwidth: float | None, neighbours: int | None
) -> Candidate:
    count = neighbour_count(sample, neighbours)
    ratios = held_out_ratios(sample, density, count)
    once = np.ones((1, sample.databases))
    at_edge = False
    if bandwidth is None:
        grid = bandwidth_grid(sample.response)
        chosen, edges = best_bandwidth(grid, held_out_scores(sample, once, grid, kernel, ratios))
        bandwidth, at_edge = float(chosen[0]), bool(edges[0])
    else:
        bandwidth = validate.positive_number(bandwidth, "bandwidth")
    score = held_out_scores(sample, once, np.array([bandwidth]), kernel, ratios)
    fixed = density == "fixed"
    used = np.ones(sample.response.size) if fixed else variable_ratios(sample.response, count)
    return Candidate(density, kernel, bandwidth, used, float(score[0, 0]), at_edge)


def _quotient_candidate(sample: Sample, bandwidth: float | None) -> Candidate:
    size = sample.response.size
    points = cell_points(size) if bandwidth is None else _points(bandwidth, size)
    total = 0.0
    for left_out in range(sample.databases):
        out = sample.database == left_out
        density = step_density(sample.response[~out], points)
        with np.errstate(divide="ignore"):
            total += float(np.log(density.pdf(sample.response[out])).sum())
    # A point mass outside one fold and nothing in another would be inf - inf: it is no density.
    score = total if total < np.inf else -np.inf
    return Candidate(QUOTIENT, None, float(points), np.empty(0), score)


def _points(bandwidth: float, size: int) -> int:
    points = validate.positive_number(bandwidth, "bandwidth")
    if points != int(points) or points >= size:
        raise InvalidInputError(
            "the bandwidth of a difference quotient is a whole number of responses per cell, "
            f"below the {size} there are, found {bandwidth}"
        )
    return int(points)


def _row_blocks(size: int) -> Iterator[slice]:
    step = max(1, CELLS_AT_ONCE // size)
    for start in range(0, size, step):
        yield slice(start, start + step)


def _kernel_values(u: Array, kernel: str) -> Array:
    if kernel == "laplace":
        return np.asarray(0.5 * np.exp(-u))
    return np.asarray(np.exp(-0.5 * u * u) / np.sqrt(2 * np.pi))


def _log_score(density: Array, others: Array, weights: Array) -> Array:
    """Return sum over rows of weight times log(density / others), shape (S,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scored = weights * np.where(others > 0, np.log(density) - np.log(others), -np.inf)
    # Databases a resample lacks are not scored.
    return np.where(weights > 0, scored, 0.0).sum(axis=1)
