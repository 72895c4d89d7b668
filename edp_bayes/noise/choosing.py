"""`edp.noise.tradeoff`: how much error buys how much privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.noise.calibration import METHODS, calibrate, default_draws
from edp_bayes.noise.certificates.ratios import certified_log_ratios
from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.noise.posterior import Posterior, posterior_of
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import NOISE_METHOD, PROB, default_probability
from edp_bayes.utils.formatting import enough

if TYPE_CHECKING:
    import xarray as xr
    from arviz_plots import PlotCollection

    from edp_bayes.models.base import FittedModel
    from edp_bayes.responses.responses import Responses
    from edp_bayes.results.query import Audit

__all__ = ["Tradeoff", "tradeoff"]


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """Noise for each of several targets, what it costs and what it gives.

    Attributes
    ----------
    method : str
        Of the calibration.
    epsilon : ndarray
        Shape (target,): the targets, increasing.
    delta : float
        Common to all.
    error : ndarray
        Shape (target,): expected absolute noise.
    reached : ndarray
        Shape (draw, target): the epsilon that holds in each draw, certified, where delta = 0;
        empty otherwise.
    noises : tuple of NoiseDistribution
        One for each target; the record of each says against whom it is.

    See Also
    --------
    tradeoff : the noise for each of several targets
    calibrate : the least noise for a target

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> contribution = rng.gamma(2.0, 0.1, (30, 4))
    >>> response = rng.normal(10.0, 1.0, 30) + contribution.sum(axis=1)
    >>> data = edp.Responses.from_arrays(response, contribution=contribution)
    >>> curve = edp.noise.tradeoff(data, epsilon=[0.2, 0.4], model=edp.noise.FixedBandwidth(0.6))
    >>> bool(curve.best_privacy(curve.error[1]).mean_absolute == curve.error[1])
    True
    """

    method: str
    epsilon: Array
    delta: float
    error: Array
    reached: Array
    noises: tuple[NoiseDistribution, ...]

    @property
    def against(self) -> str:
        """Against whom, in words; empty where no adversary was given."""
        return str(self.noises[0].record.get("against", ""))

    def least_noise(self, *, epsilon: float) -> NoiseDistribution:
        """Return the noise of the largest target that is at most epsilon.

        Raises
        ------
        InvalidInputError
            If every target is above epsilon.
        """
        return self.noises[self._last(self.epsilon <= epsilon, f"epsilon = {epsilon:g}")]

    def best_privacy(self, error: float) -> NoiseDistribution:
        """Return the noise of the smallest target whose expected absolute noise is tolerated.

        Raises
        ------
        InvalidInputError
            If every noise is larger.
        """
        error = validate.number(error, "error")
        good = np.flatnonzero(self.error <= error)
        if good.size == 0:
            raise InvalidInputError(
                f"no target has an expected absolute noise of at most {error:g}; the least is "
                f"{enough(float(self.error.min()))}"
            )
        return self.noises[int(good[0])]

    def band(self, *, prob: float | None = None) -> xr.Dataset:
        """Return the pointwise band of the epsilon reached, for each target.

        Parameters
        ----------
        prob : float, optional
            ArviZ's ``stats.ci_prob`` if not given.

        Returns
        -------
        Dataset
            lower, median and upper, dims epsilon: the targets.

        Raises
        ------
        InvalidInputError
            If delta is not 0.
        """
        import xarray as xr

        if self.reached.size == 0:
            raise InvalidInputError("bands of epsilon are there for delta = 0 only")
        tail = 0.5 * (1.0 - default_probability(prob))
        ends = np.quantile(self.reached, [tail, 0.5, 1.0 - tail], axis=0, method="inverted_cdf")
        named = zip(("lower", "median", "upper"), ends, strict=True)
        return xr.Dataset(
            {name: ("epsilon", values) for name, values in named}, {"epsilon": self.epsilon}
        )

    def plot(self, **options: Any) -> PlotCollection:
        """Plot epsilon against expected error; see `edp_bayes.plots.noise.plot_tradeoff`."""
        from edp_bayes.plots.noise import plot_tradeoff

        return plot_tradeoff(self, **options)

    def __repr__(self) -> str:
        """Return each target with its noise."""
        points = ", ".join(
            f"{e:g}: {size:.4g}" for e, size in zip(self.epsilon, self.error, strict=True)
        )
        return (
            f"Tradeoff({self.method}, delta={self.delta:g}, "
            f"{f'against {self.against}, ' if self.against else ''}expected absolute noise for "
            f"epsilon {points})"
        )

    def _last(self, good: NDArray[np.bool_], what: str) -> int:
        if not good.any():
            raise InvalidInputError(
                f"no target is at most {what}; the least is "
                f"{enough(float(self.epsilon[0]))}: give tradeoff a "
                "smaller one"
            )
        return int(np.flatnonzero(good)[-1])


def tradeoff(
    source: Responses | Audit | FittedModel | Posterior,
    *,
    epsilon: ArrayLike,
    delta: float = 0.0,
    method: str = NOISE_METHOD,
    prob: float = PROB,
    responses: Responses | None = None,
    **fit_options: Any,
) -> Tradeoff:
    """Return the noise for each of several epsilons, to pick a point by its error.

    Parameters
    ----------
    source : Responses, Audit or FittedModel
        As for `calibrate`; it is fitted once.
    epsilon : array_like
        Shape (target,): increasing, above zero.
    delta, method, prob
        As for `calibrate`.
    responses, **fit_options
        As for `calibrate`.

    Returns
    -------
    Tradeoff

    Raises
    ------
    InvalidInputError
        If a target is out of range or cannot be reached by the method.

    See Also
    --------
    Tradeoff : the noises and what they cost
    calibrate : the least noise for a target
    verify : audit a query with noise added

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> contribution = rng.gamma(2.0, 0.1, (30, 4))
    >>> response = rng.normal(10.0, 1.0, 30) + contribution.sum(axis=1)
    >>> data = edp.Responses.from_arrays(response, contribution=contribution)
    >>> curve = edp.noise.tradeoff(data, epsilon=[0.2, 0.4], model=edp.noise.FixedBandwidth(0.6))
    >>> bool(curve.error[0] > curve.error[1])
    True
    """
    grid = validate.epsilon_grid(epsilon)
    validate.positive_number(grid[0], "epsilon")
    validate.choice(method, METHODS, "method")
    options: dict[str, Any] = {
        name: fit_options.pop(name)
        for name in ("objective", "symmetric", "spacing", "time_limit")
        if name in fit_options
    }
    options["progressbar"] = fit_options.get("progressbar", True)
    fitting = default_draws(source, method, fit_options)
    posterior = posterior_of(source, responses=responses, **fitting)
    noises = tuple(
        calibrate(posterior, epsilon=float(e), delta=delta, method=method, prob=prob, **options)
        for e in grid
    )
    reached = np.empty((posterior.n_draws, 0))
    if delta == 0.0:
        columns = [
            certified_log_ratios(posterior, noise, float(e)).largest
            for noise, e in zip(noises, grid, strict=True)
        ]
        reached = np.stack(columns, axis=1)
    return Tradeoff(
        method=method,
        epsilon=grid,
        delta=float(delta),
        error=np.array([noise.mean_absolute for noise in noises]),
        reached=reached,
        noises=noises,
    )
