"""Bootstrap percentile band for the plug-in estimates: what a careful user does today."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.plugin.estimate import log_safe, quotient_risks, total_risk, warn_at_edge
from edp_bayes.plugin.integrals import individual_blocks, kernel_risks
from edp_bayes.plugin.selection import (
    QUOTIENT,
    Candidate,
    Sample,
    bandwidth_grid,
    best_bandwidth,
    candidates,
    held_out_ratios,
    held_out_scores,
    neighbour_count,
    sample_of,
)
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import PROB
from edp_bayes.utils.reprs import by_shapes

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from edp_bayes.responses.responses import Responses

__all__ = ["BootstrapBand", "bootstrap"]


@dataclass(frozen=True, eq=False)
class BootstrapBand:
    """Pointwise percentile bands of the plug-in estimates; last axis lower, upper.

    Parameters
    ----------
    epsilon : ndarray
        Shape (E,).
    individual : ndarray
        Names, shape (m,).
    individual_delta : ndarray
        Band of delta_i, shape (m, E, 2).
    delta : ndarray
        Band of max_i delta_i, shape (E, 2).
    total_risk : ndarray
        Band of delta*, shape (E, 2).
    bandwidth : ndarray
        Bandwidth of each resample, shape (resamples,).
    density, kernel : str, str or None
        The estimate, chosen once on all databases.
    prob : float
        Nominal probability of the band at each epsilon.

    See Also
    --------
    bootstrap : percentile bands for the estimates
    EmpiricalPrivacy : the point estimates

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> y = np.random.default_rng(1).normal(size=40)
    >>> responses = edp.Responses.from_arrays(y, response_without=y - 0.3)
    >>> bootstrap(responses, epsilon=[0.1, 0.5], resamples=20, random_seed=1).delta.shape
    (2, 2)
    """

    epsilon: Array
    individual: NDArray[Any]
    individual_delta: Array
    delta: Array
    total_risk: Array
    bandwidth: Array
    density: str
    kernel: str | None
    prob: float

    __repr__ = by_shapes


def bootstrap(
    responses: Responses,
    *,
    epsilon: ArrayLike,
    density: str = "fixed",
    kernel: str = "auto",
    bandwidth: float | None = None,
    neighbours: int | None = None,
    rechoose: bool = True,
    resamples: int = 1000,
    prob: float = PROB,
    random_seed: int | np.random.SeedSequence | np.random.Generator | None = None,
) -> BootstrapBand:
    """Return bootstrap percentile bands for `empirical_privacy`.

    Databases are drawn with replacement, whole: a row y_j keeps its y_ij. The density and the
    kernel are chosen once; the bandwidth is chosen again in every resample, where a database
    drawn twice is left out together with its copy. Relative bandwidths of a variable estimate
    stay those of the full sample, and a difference quotient keeps its responses per cell.

    Parameters
    ----------
    responses : Responses
        Leave-one-out responses.
    epsilon : array_like
        Increasing, not negative, shape (E,).
    density, kernel, bandwidth, neighbours
        As in `empirical_privacy`. A bandwidth given here is kept in every resample.
    rechoose : bool
        Choose the bandwidth again in every resample, or keep that of the full sample.
    resamples : int
        Number of bootstrap samples.
    prob : float
        Probability between the two percentiles.
    random_seed : int, SeedSequence or Generator, optional
        Seed; the same one gives the same band.

    Returns
    -------
    BootstrapBand
        Bands of every individual, of delta and of the total risk.

    Raises
    ------
    InvalidInputError
        As `empirical_privacy`, or if resamples or prob are out of range.

    See Also
    --------
    BootstrapBand : the percentile bands
    empirical_privacy : the published point estimates
    edp_bayes.audit : audit a query

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> y = np.random.default_rng(1).normal(size=40)
    >>> responses = edp.Responses.from_arrays(y, response_without=y - 0.3)
    >>> low, high = bootstrap(responses, epsilon=0.1, resamples=20, random_seed=1).delta[0]
    >>> bool(low < high)
    True
    """
    grid = validate.epsilon_grid(epsilon)
    draws = validate.positive_integer(resamples, "resamples")
    tail = 0.5 * (1.0 - validate.probability(prob, "prob"))
    responses = responses.on_scale
    sample = sample_of(responses)
    chosen = candidates(
        sample, density=density, kernel=kernel, bandwidth=bandwidth, neighbours=neighbours
    )[0]
    warn_at_edge(chosen)
    n = sample.databases
    counts = validate.generator(random_seed).multinomial(n, np.full(n, 1.0 / n), size=draws)
    again = rechoose and bandwidth is None and chosen.density != QUOTIENT
    bandwidths = (
        _rechosen(sample, chosen, counts, neighbours) if again else np.full(draws, chosen.bandwidth)
    )
    levels = np.array([tail, 1.0 - tail])
    individual, delta, total = _bands(
        sample, responses.contribution, chosen, counts, bandwidths, grid, levels
    )
    return BootstrapBand(
        epsilon=grid,
        individual=np.asarray(responses.individual),
        individual_delta=individual,
        delta=delta,
        total_risk=total,
        bandwidth=bandwidths,
        density=chosen.density,
        kernel=chosen.kernel,
        prob=float(prob),
    )


def _rechosen(
    sample: Sample, chosen: Candidate, counts: NDArray[np.int64], neighbours: int | None
) -> Array:
    grid = bandwidth_grid(sample.response)
    ratios = held_out_ratios(sample, chosen.density, neighbour_count(sample, neighbours))
    scores = held_out_scores(sample, counts.astype(np.float64), grid, str(chosen.kernel), ratios)
    bandwidths, _ = best_bandwidth(grid, scores)
    # A resample of one database over and over has no out-of-sample score.
    return np.where(scores.max(axis=1) > -np.inf, bandwidths, chosen.bandwidth)


def _bands(
    sample: Sample,
    contribution: csc_array[np.float64],
    chosen: Candidate,
    counts: NDArray[np.int64],
    bandwidths: Array,
    epsilon: Array,
    levels: Array,
) -> tuple[Array, Array, Array]:
    """Return bands of delta_i, delta and delta*; only the last two need all resamples at once."""
    draws, rows = counts.shape[0], sample.response.size
    individual = np.empty((int(contribution.shape[1]), epsilon.size, 2))
    delta = np.zeros((draws, epsilon.size))
    safe = np.zeros((draws, epsilon.size))
    for block in individual_blocks(contribution, draws * (rows + epsilon.size)):
        risks = _resampled_risks(
            sample, contribution[:, block], chosen, counts, bandwidths, epsilon
        )
        individual[block] = np.moveaxis(np.quantile(risks, levels, axis=0), 0, -1)
        np.maximum(delta, risks.max(axis=1), out=delta)
        safe += log_safe(risks).sum(axis=1)
    return (
        individual,
        np.quantile(delta, levels, axis=0).T,
        np.quantile(total_risk(safe), levels, axis=0).T,
    )


def _resampled_risks(
    sample: Sample,
    contribution: csc_array[np.float64],
    chosen: Candidate,
    counts: NDArray[np.int64],
    bandwidths: Array,
    epsilon: Array,
) -> Array:
    """Return the risks of a block of individuals in every resample, shape (S, B, E)."""
    repeats = counts[:, sample.database]
    if chosen.density == QUOTIENT:
        points = int(chosen.bandwidth)
        return np.stack(
            [
                quotient_risks(contribution, sample.response, each, points, epsilon)
                for each in repeats
            ]
        )
    weights = repeats / repeats.sum(axis=1, keepdims=True)
    scales = chosen.scales(bandwidths, sample.noise)
    return kernel_risks(contribution, weights, sample.response, scales, str(chosen.kernel), epsilon)
