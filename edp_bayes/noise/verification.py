"""`edp.noise.verify`: the posterior of the privacy of a noisy query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.noise.certificates.noisy import NoisyCoupling
from edp_bayes.noise.certificates.ratios import certified_log_ratios
from edp_bayes.noise.distribution import NoiseDistribution, as_distribution
from edp_bayes.noise.posterior import Posterior, posterior_of
from edp_bayes.utils import labels, validate

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

    from edp_bayes.distributions.noise import Noise
    from edp_bayes.models.base import FittedModel
    from edp_bayes.records.responses import Responses
    from edp_bayes.results.query import Audit

__all__ = ["Verification", "verify"]

Array = NDArray[np.float64]

SMALLEST = 1e-6  # epsilon that log ratios are sharpened for at epsilon = 0


@dataclass(frozen=True, eq=False)
class Verification:
    """What a query is worth in privacy once noise is added.

    Attributes
    ----------
    noise : NoiseDistribution
        The noise.
    epsilon : ndarray
        Shape (epsilon,): the grid.
    delta, total_risk, total_risk_bound : ndarray
        Shape (draw, epsilon): max_i delta_i, 1 - prod_i (1 - delta_i), min(1, sum_i delta_i).
    mean, sd : ndarray
        Shape (individual, epsilon): posterior mean and standard deviation of delta_i.
    individual : ndarray
        Labels.
    log_ratio : ndarray
        Shape (draw,): certified upper bound on the largest log ratio of any individual, which is
        the epsilon at which delta is 0. It is sharp near the values of the grid for one
        distribution of noise, with or without a share of no noise; otherwise coarse, often
        infinite.
    error : ndarray
        Shape (epsilon,): bound on the error of any delta_i, 1e-12 for exact integrals. Of m
        individuals that of delta* is at most m times as large.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> contribution = rng.gamma(2.0, 0.1, (30, 4))
    >>> response = rng.normal(10.0, 1.0, 30) + contribution.sum(axis=1)
    >>> data = edp.Responses.from_arrays(response, contribution=contribution)
    >>> model = edp.noise.FixedBandwidth(0.6)
    >>> found = edp.noise.verify(data, edp.LaplaceNoise(1.0), epsilon=[0.1, 0.5], model=model)
    >>> found.delta.shape[1], found.mean.shape
    (2, (4, 2))
    """

    noise: NoiseDistribution
    epsilon: Array
    delta: Array
    total_risk: Array
    total_risk_bound: Array
    mean: Array
    sd: Array
    individual: NDArray[Any]
    log_ratio: Array
    error: Array

    def probability(self, epsilon: float, delta: float = 0.0) -> float:
        """Return P((epsilon, delta) holds for every individual | data).

        Parameters
        ----------
        epsilon : float
            For delta = 0 any value, best one of the grid; otherwise one of the grid.
        delta : float
            From 0, included, to below 1.

        Raises
        ------
        InvalidInputError
            If delta is not in [0, 1), or not 0 while epsilon is not of the grid, or if epsilon is
            negative.

        Notes
        -----
        Errors of integrals and log ratios count against the noise, so that the share is rather
        too small than too large. A draw whose log ratio is at most epsilon has delta = 0.
        """
        level = float(validate.finite_array(epsilon, "epsilon", ndim=0))
        allowed = float(validate.finite_array(delta, "delta", ndim=0))
        if level < 0.0:
            raise InvalidInputError(f"epsilon must not be negative, found {level:g}")
        if not 0.0 <= allowed < 1.0:
            raise InvalidInputError(f"delta must lie in [0, 1), found {allowed:g}")
        if allowed == 0.0:
            return float((self.log_ratio <= level).mean())
        found = np.flatnonzero(np.isclose(self.epsilon, level, rtol=1e-9, atol=0.0))
        if found.size == 0:
            raise InvalidInputError(
                f"epsilon must be one of {self.epsilon.tolist()} where delta is not 0, "
                f"found {level:g}"
            )
        column = int(found[0])
        within = self.delta[:, column] + self.error[column] <= allowed
        return float((within | (self.log_ratio <= level)).mean())

    def __repr__(self) -> str:
        """Return what holds at every epsilon of the grid."""
        held = ", ".join(f"{e:g}: {self.probability(float(e)):.3g}" for e in self.epsilon)
        return (
            f"Verification({self.noise!r}, {len(self.delta)} draws, {self.individual.size} "
            f"individuals, P((epsilon, 0) holds | data) for epsilon {held})"
        )

    def riskiest(self, count: int = 5) -> list[Any]:
        """Return the labels of the individuals of largest mean risk over the grid."""
        order = np.argsort(-self.mean.sum(axis=1), kind="stable")[:count]
        return [labels.show(self.individual[k]) for k in order]

    def summary(self, *, prob: float = 0.95) -> list[dict[str, float]]:
        """Return a row for each epsilon, with medians and equal-tailed intervals.

        Parameters
        ----------
        prob : float
            Probability of the intervals.

        Returns
        -------
        list of dict
            epsilon, the median and both ends for delta and delta*, P(delta = 0 | data) and the
            bound on the error of the integrals.
        """
        tail = 0.5 * (1.0 - validate.probability(prob, "prob"))
        rows = []
        for column, epsilon in enumerate(self.epsilon):
            row = {"epsilon": float(epsilon)}
            for name in ("delta", "total_risk"):
                ends = np.quantile(getattr(self, name)[:, column], [0.5, tail, 1.0 - tail])
                keys = (name, f"{name}_lower", f"{name}_upper")
                row |= dict(zip(keys, map(float, ends), strict=True))
            row["probability_pure"] = float((self.log_ratio <= epsilon).mean())
            row["error"] = float(self.error[column])
            rows.append(row)
        return rows

    def plot(self, **options: Any) -> PlotCollection:
        """Plot delta(epsilon) of the noisy query; see `edp_bayes.plots.noise.plot_verification`."""
        from edp_bayes.plots.noise import plot_verification

        return plot_verification(self, **options)


def verify(
    source: Responses | Audit | FittedModel | Posterior,
    noise: NoiseDistribution | Noise,
    *,
    epsilon: ArrayLike,
    responses: Responses | None = None,
    **fit_options: Any,
) -> Verification:
    """Return the posterior of delta_i, delta and delta* of a query with noise added.

    Parameters
    ----------
    source : Responses, Audit or FittedModel
        As for `calibrate`.
    noise : NoiseDistribution, LaplaceNoise, GaussianNoise or LatticeNoise
        The noise.
    epsilon : array_like
        Shape (epsilon,): increasing, not negative.
    responses : Responses, optional
        The data of an audit or a fitted model.
    **fit_options
        model, draws, tune, chains, random_seed, progressbar, ... of `edp_bayes.audit`.

    Returns
    -------
    Verification
        Draws of delta, delta* and its bound, and a summary of every delta_i, on the grid.

    Raises
    ------
    InvalidInputError, InputTypeError
        If an argument cannot be used.

    Notes
    -----
    Laplace and Gaussian noise, and mixtures of these with no noise, are integrated exactly on
    Gaussian and Laplace mixtures; lattice noise by quadrature with a bound on its error.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> contribution = rng.gamma(2.0, 0.1, (30, 4))
    >>> response = rng.normal(10.0, 1.0, 30) + contribution.sum(axis=1)
    >>> data = edp.Responses.from_arrays(response, contribution=contribution)
    >>> model = edp.noise.FixedBandwidth(0.6)
    >>> edp.noise.verify(data, edp.LaplaceNoise(5.0), epsilon=[0.5], model=model).probability(0.5)
    1.0
    """
    from edp_bayes.auditing.evaluation import evaluate

    distribution = as_distribution(noise)
    grid = validate.epsilon_grid(epsilon)
    show = bool(fit_options.get("progressbar", True))
    posterior = posterior_of(source, responses=responses, **fit_options)
    coupling = NoisyCoupling(posterior, distribution)
    risks = evaluate(coupling, grid, progressbar=show and posterior.n_draws > 1)
    bounds = [
        certified_log_ratios(posterior, distribution, max(float(e), SMALLEST)).largest for e in grid
    ]
    return Verification(
        noise=distribution,
        epsilon=grid,
        delta=risks.delta,
        total_risk=risks.total_risk,
        total_risk_bound=risks.total_risk_bound,
        mean=risks.mean,
        sd=risks.deviation,
        individual=posterior.individual,
        log_ratio=np.min(bounds, axis=0),
        error=np.array([coupling.error(float(e)) for e in grid]),
    )
