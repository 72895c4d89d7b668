"""Algorithms 1 and 2 of Burchard, Daoud and Dotterrer: plug-in individual and total risk."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.exceptions import EdpBayesWarning
from edp_bayes.plugin.integrals import individual_blocks, kernel_risks
from edp_bayes.plugin.quotient import hockey_stick, step_density
from edp_bayes.plugin.selection import QUOTIENT, Candidate, Sample, candidates, sample_of
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from edp_bayes.responses.responses import Responses

__all__ = ["EmpiricalPrivacy", "empirical_privacy"]


@dataclass(frozen=True, eq=False, repr=False)
class EmpiricalPrivacy:
    """Point estimates of every individual's risk and of the whole query's.

    Parameters
    ----------
    epsilon : ndarray
        Shape (E,).
    individual : ndarray
        Names, shape (m,).
    individual_delta : ndarray
        delta_i(epsilon), shape (m, E).
    delta : ndarray
        max_i delta_i, shape (E,).
    total_risk : ndarray
        delta* = 1 - prod_i (1 - delta_i), shape (E,).
    density : {"difference_quotient", "fixed", "variable"}
        The density estimate used.
    kernel : {"gaussian", "laplace"} or None
        Its kernel; the difference quotient has none.
    bandwidth : float
        Common bandwidth in the units of the response (standard deviation of a Gaussian, b of a
        Laplace kernel); responses per cell of a difference quotient.
    bandwidths : ndarray
        Bandwidth of every row, shape (n * samples,); empty for a difference quotient.
    log_likelihood : mapping
        Out-of-sample log likelihood of every candidate by name, summed over rows, each scored
        without its own database. Minus infinity says that a row fell where a density is zero.

    See Also
    --------
    empirical_privacy : the published point estimates
    BootstrapBand : the percentile bands
    edp_bayes.Audit : the posterior of a query

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> y = np.random.default_rng(1).normal(size=40)
    >>> responses = edp.Responses.from_arrays(y, response_without=y - 0.3)
    >>> found = edp.plugin.empirical_privacy(responses, epsilon=[0.1, 0.5])
    >>> found.individual_delta.shape
    (1, 2)
    """

    epsilon: Array
    individual: NDArray[Any]
    individual_delta: Array
    delta: Array
    total_risk: Array
    density: str
    kernel: str | None
    bandwidth: float
    bandwidths: Array
    log_likelihood: Mapping[str, float]

    def __repr__(self) -> str:
        """Return the sizes and the density estimate."""
        density = " ".join(filter(None, (self.density, self.kernel)))
        return (
            f"EmpiricalPrivacy({self.individual.size} individuals, {self.epsilon.size} epsilon, "
            f"density {density}, bandwidth {self.bandwidth:.4g})"
        )


def empirical_privacy(
    responses: Responses,
    *,
    epsilon: ArrayLike,
    density: str = "auto",
    kernel: str = "auto",
    bandwidth: float | None = None,
    neighbours: int | None = None,
) -> EmpiricalPrivacy:
    """Return the published point estimates of empirical privacy.

    The density p of the responses is estimated; p_i is the same estimate, with the same
    bandwidths, made from the responses without individual i. Algorithm 1 takes the larger of
    the two hockey-stick integrals as delta_i, Algorithm 2 combines them into the risk of all.

    Parameters
    ----------
    responses : Responses
        Leave-one-out responses. Known Gaussian noise widens Gaussian kernels; the other
        estimates cannot hold noise.
    epsilon : array_like
        Increasing, not negative, shape (E,).
    density : {"auto", "difference_quotient", "fixed", "variable"}
        Difference quotient of the empirical distribution over cells of about the root of n
        responses, or a kernel estimate with a fixed bandwidth or with bandwidths proportional
        to each response's distance to its neighbours. "auto" takes the largest out-of-sample
        log likelihood. The difference quotient is zero outside the responses it is made from,
        so an extreme response left out has likelihood zero and "auto" all but never takes it.
    kernel : {"auto", "gaussian", "laplace"}
        Kernel; "auto" chooses by the same criterion.
    bandwidth : float, optional
        Needs `density`. By default a kernel's bandwidth maximises the out-of-sample log
        likelihood, and a difference quotient has about the root of n responses per cell.
    neighbours : int, optional
        Neighbour that sets a variable bandwidth, by default about the root of n.

    Returns
    -------
    EmpiricalPrivacy
        The estimates, and how they were made.

    Raises
    ------
    InvalidInputError
        If an argument is out of range, or the responses carry noise no estimate can hold.

    Warns
    -----
    EdpBayesWarning
        If the likelihood is best at the smallest or largest bandwidth tried: ties do that.

    See Also
    --------
    EmpiricalPrivacy : the point estimates
    bootstrap : percentile bands for the estimates
    edp_bayes.audit : audit a query
    edp_bayes.noise.FixedBandwidth : the published kernel estimate as a model

    References
    ----------
    Burchard, Daoud, Dotterrer (2020), arXiv:1910.12820, Algorithms 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from edp_bayes.plugin import empirical_privacy
    >>> from edp_bayes.responses.responses import Responses
    >>> y = np.random.default_rng(1).normal(size=41)
    >>> responses = Responses.from_arrays(y, response_without=y - 0.05)
    >>> options = {"density": "fixed", "kernel": "laplace"}
    >>> empirical_privacy(responses, epsilon=[0.0, 0.05], **options).delta.round(4)
    array([0.0212, 0.0057])
    """
    grid = validate.epsilon_grid(epsilon)
    responses = responses.on_scale
    sample = sample_of(responses)
    found = candidates(
        sample, density=density, kernel=kernel, bandwidth=bandwidth, neighbours=neighbours
    )
    chosen = found[0]
    warn_at_edge(chosen)
    risks = _individual_risks(sample, responses.contribution, chosen, grid)
    return EmpiricalPrivacy(
        epsilon=grid,
        individual=np.asarray(responses.individual),
        individual_delta=risks,
        delta=risks.max(axis=0, initial=0.0),
        total_risk=total_risk(log_safe(risks).sum(axis=0)),
        density=chosen.density,
        kernel=chosen.kernel,
        bandwidth=chosen.bandwidth,
        bandwidths=chosen.bandwidth * chosen.ratios,
        log_likelihood=MappingProxyType({each.name: each.log_likelihood for each in found}),
    )


def quotient_risks(
    contribution: csc_array[np.float64],
    response: Array,
    counts: NDArray[np.int64],
    points: int,
    epsilon: Array,
) -> Array:
    """Return risks of the difference quotient, each row repeated as counted, shape (m, E)."""
    risks = np.zeros((int(contribution.shape[1]), epsilon.size))
    p = step_density(np.repeat(response, counts), points)
    for i in np.flatnonzero(np.diff(contribution.indptr)):
        entries = slice(contribution.indptr[i], contribution.indptr[i + 1])
        moved = response.copy()
        moved[contribution.indices[entries]] -= contribution.data[entries]
        risks[i] = hockey_stick(p, step_density(np.repeat(moved, counts), points), epsilon=epsilon)
    return risks


def log_safe(risks: Array) -> Array:
    """Return log(1 - risk), minus infinity where the risk is one."""
    with np.errstate(divide="ignore"):
        return np.log1p(-risks)


def total_risk(log_safe_sum: Array) -> Array:
    """Return 1 - prod_i (1 - delta_i) from the sum of logarithms; sums of tiny risks survive."""
    return 0.0 - np.expm1(log_safe_sum)


def warn_at_edge(chosen: Candidate) -> None:
    """Warn if the bandwidth is the first or last that was tried."""
    if chosen.at_edge:
        warnings.warn(
            f"the out-of-sample likelihood of the {chosen.name} density is best at the edge of "
            f"the bandwidths tried ({chosen.bandwidth:.3g}): heavy ties or far outliers in the "
            "responses do that, and the estimate means little",
            EdpBayesWarning,
            stacklevel=3,
        )


def _individual_risks(
    sample: Sample, contribution: csc_array[np.float64], chosen: Candidate, epsilon: Array
) -> Array:
    rows = sample.response.size
    if chosen.density == QUOTIENT:
        once = np.ones(rows, dtype=np.int64)
        points = int(chosen.bandwidth)
        return quotient_risks(contribution, sample.response, once, points, epsilon)
    weights = np.full((1, rows), 1.0 / rows)
    scales = chosen.scales(np.array([chosen.bandwidth]), sample.noise)
    risks = np.empty((int(contribution.shape[1]), epsilon.size))
    for block in individual_blocks(contribution, rows + epsilon.size):
        risks[block] = kernel_risks(
            contribution[:, block], weights, sample.response, scales, str(chosen.kernel), epsilon
        )[0]
    return risks
