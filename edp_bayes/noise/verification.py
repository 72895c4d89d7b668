"""`edp.noise.verify`: the posterior of the privacy of a noisy query."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from edp_bayes.diagnostics.convergence import convergence
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.noise.certificates.noisy import NoisyCoupling
from edp_bayes.noise.certificates.ratios import certified_log_ratios
from edp_bayes.noise.distribution import NoiseDistribution, as_distribution
from edp_bayes.noise.posterior import Posterior, posterior_of
from edp_bayes.results.base import IndividualCurves
from edp_bayes.results.recording import recorded
from edp_bayes.utils import labels, validate
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

    from edp_bayes.distributions.noise import Noise
    from edp_bayes.models.base import FittedModel
    from edp_bayes.responses.responses import Responses
    from edp_bayes.results.query import Audit

__all__ = ["Verification", "verify"]

SMALLEST = 1e-6  # epsilon that log ratios are sharpened for at epsilon = 0


@dataclass(frozen=True, eq=False, repr=False)
class Verification(IndividualCurves):
    """Posterior draws of the privacy of a query once noise is added.

    Made by `verify` and `edp_bayes.load`.

    Parameters
    ----------
    tree : xarray.DataTree
        Groups posterior (delta, total_risk, total_risk_bound over epsilon, and log_ratio) and
        individuals (posterior mean and standard deviation of every delta_i, and the bound on the
        error of the integrals); the noise stands in the attributes.

    See Also
    --------
    verify : audit a query with noise added
    edp_bayes.load : load a saved result
    edp_bayes.Audit : the posterior of a query

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
    >>> found.delta.dims, found.individuals["mean"].shape
    (('chain', 'draw', 'epsilon'), (4, 2))
    """

    risk: ClassVar[str] = "largest risk of an individual, with the noise"

    @property
    def noise(self) -> NoiseDistribution:
        """The noise."""
        return NoiseDistribution.from_json(self.tree.attrs["noise"])

    @property
    def subject(self) -> tuple[str, str]:
        """What is audited, and on how much data, in words."""
        query, size = super().subject
        return f"{query} with noise of expected size {self.noise.mean_absolute:.4g}", size

    @property
    def against(self) -> str:
        """Against whom, in words; empty where no adversary was given."""
        return str(self.settings.get("against", ""))

    @property
    def log_ratio(self) -> xr.DataArray:
        """Certified upper bound on the largest log ratio of any individual, dims (chain, draw).

        It is the epsilon at which delta is 0, sharp near the values of the grid for one
        distribution of noise, with or without a share of no noise; otherwise coarse, often
        infinite.
        """
        return self._posterior["log_ratio"]

    @property
    def individuals(self) -> xr.Dataset:
        """Posterior mean and sd of delta_i of every individual, dims (individual, epsilon)."""
        return self.tree["individuals"].to_dataset()[["mean", "sd"]]

    @property
    def error(self) -> xr.DataArray:
        """Bound on the error of any delta_i, dims epsilon: 1e-12 for exact integrals.

        Of m individuals that of delta* is at most m times as large.
        """
        return self.tree["individuals"].to_dataset()["error"]

    def _end(self) -> Array:
        return self.log_ratio.transpose("chain", "draw").to_numpy().ravel()

    def probability(self, *, epsilon: float, delta: float = 0.0) -> float:
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

        See Also
        --------
        verdict : whether a target is met
        calibrate : the least noise for a target

        Notes
        -----
        Errors of integrals and log ratios count against the noise, so that the share is rather
        too small than too large. A draw whose log ratio is at most epsilon has delta = 0.
        """
        level = validate.number(epsilon, "epsilon")
        allowed = validate.number(delta, "delta")
        if level < 0.0:
            raise InvalidInputError(f"epsilon must not be negative, found {level:g}")
        if not 0.0 <= allowed < 1.0:
            raise InvalidInputError(f"delta must lie in [0, 1), found {allowed:g}")
        pure = self.log_ratio <= level
        if allowed == 0.0:
            return float(pure.mean())
        grid = self.epsilon.to_numpy()
        found = np.flatnonzero(np.isclose(grid, level, rtol=1e-9, atol=0.0))
        if found.size == 0:
            raise InvalidInputError(
                f"epsilon must be one of {grid.tolist()} where delta is not 0, found {level:g}"
            )
        at = {"epsilon": int(found[0])}
        within = self.delta.isel(at) + self.error.isel(at) <= allowed
        return float((within | pure).mean())

    def __repr__(self) -> str:
        """Return what holds at every epsilon of the grid."""
        held = ", ".join(
            f"{e:g}: {self.probability(epsilon=e):.3g}" for e in self.epsilon.to_numpy()
        )
        sizes = self.individuals.sizes
        against = f"against {self.against}, " if self.against else ""
        return (
            f"Verification({self.noise!r}, {self.log_ratio.size} draws, {sizes['individual']} "
            f"individuals, {against}P((epsilon, 0) holds | data) for epsilon {held})"
        )

    def riskiest(self, count: int = 5) -> list[Any]:
        """Return the labels of the individuals of largest mean risk over the grid."""
        order = np.argsort(-self.individuals["mean"].sum("epsilon").to_numpy(), kind="stable")
        return list(self.individuals["individual"].to_numpy()[order[:count]].tolist())

    def plot(self, **options: Any) -> PlotCollection:
        """Plot delta(epsilon) of the noisy query; see `edp_bayes.plots.plot_delta`."""
        return self.plot_delta(**options)


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

    See Also
    --------
    Verification : the posterior with noise added
    calibrate : the least noise for a target
    release : one noisy answer

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
    >>> found = edp.noise.verify(data, edp.LaplaceNoise(5.0), epsilon=[0.5], model=model)
    >>> found.probability(epsilon=0.5)
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
    chains = posterior.coupling.mixture.weights.shape[0]
    lead = ("chain", "draw")

    def curves(values: Array) -> tuple[tuple[str, ...], Array]:
        return (*lead, "epsilon"), values.reshape(chains, -1, grid.size)

    draws = {
        "delta": curves(risks.delta),
        "total_risk": curves(risks.total_risk),
        "total_risk_bound": curves(risks.total_risk_bound),
        "log_ratio": (lead, np.min(bounds, axis=0).reshape(chains, -1)),
    }
    everybody = {
        "mean": (("individual", "epsilon"), risks.mean),
        "sd": (("individual", "epsilon"), risks.deviation),
        "error": ("epsilon", [coupling.error(float(e)) for e in grid]),
    }
    names = labels.as_coordinate(posterior.individual)
    coords = {"chain": np.arange(chains), "draw": np.arange(posterior.n_draws // chains)}
    found = xr.Dataset(draws, {**coords, "epsilon": grid})
    groups = {
        "posterior": found,
        "individuals": xr.Dataset(everybody, {"individual": names, "epsilon": grid}),
    }
    exact = posterior.record.get("sampler") == "exact"
    checks, failed = convergence(found[["delta", "total_risk"]], independent=exact)
    data = posterior.responses
    settings = {
        "query": "a query" if data is None else data.query,
        "databases": 0 if data is None else data.n_databases,
        "individuals": posterior.n_individuals,
        "fingerprint": posterior.fingerprint,
        **posterior.record,
        "draws": coords["draw"].size,
        "chains": chains,
    }
    tree = recorded(
        groups,
        settings=settings,
        checks=checks,
        warnings=[*(() if data is None else data.warnings), *failed],
        noise=json.loads(distribution.to_json()),
    )
    return Verification(tree)
