"""PyMC models of the probability of a property; each yields draws of pi."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.models.sampling import SamplerSettings, sample_nuts
from edp_bayes.property_audit import exact_draws
from edp_bayes.property_audit.counts import PropertyCounts
from edp_bayes.property_audit.likelihoods import beta_binomial_log_mass, binomial_log_mass
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "BetaBinomialModel",
    "BinomialModel",
    "ProbabilityDraws",
    "ProbabilityModel",
    "PyMCProbabilities",
]


@dataclass(frozen=True, eq=False)
class ProbabilityDraws:
    """Posterior draws of the probability of every property.

    Parameters
    ----------
    prob : ndarray
        Shape (chain, draw, property): pi, or the mean of its Beta distribution.
    concentration : ndarray, optional
        Shape (chain, draw, property): alpha + beta of that distribution; None for independent
        entries.
    log_likelihood : ndarray
        Shape (chain, draw, database, property).
    sample_stats : xarray.Dataset, optional
        What the sampler says of itself.
    attributes : mapping
        Settings to record.
    """

    prob: Array
    concentration: Array | None
    log_likelihood: Array
    sample_stats: xr.Dataset | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        counts: PropertyCounts,
        prob: Array,
        concentration: Array | None,
        **others: Any,
    ) -> ProbabilityDraws:
        """Return draws with their log likelihood."""
        count, n = counts.count.astype(np.float64), counts.n.astype(np.float64)[:, None]
        pi = prob[..., None, :]
        log_likelihood = (
            binomial_log_mass(count, n, pi)
            if concentration is None
            else beta_binomial_log_mass(count, n, pi, concentration[..., None, :])
        )
        return cls(prob, concentration, log_likelihood, **others)

    @property
    def divergences(self) -> int:
        """Number of divergent transitions after warm-up."""
        if self.sample_stats is None or "diverging" not in self.sample_stats:
            return 0
        return int(self.sample_stats["diverging"].sum())


@runtime_checkable
class ProbabilityModel(Protocol):
    """A model of the probabilities of properties."""

    @property
    def dependent(self) -> bool:
        """Whether the entries of a database depend on each other."""
        ...

    def fit(self, counts: PropertyCounts, settings: SamplerSettings) -> ProbabilityDraws:
        """Draw from the posterior; the same settings give the same draws."""
        ...


@dataclass(frozen=True)
class BinomialModel:
    """Entries have a property independently: count ~ Binomial(n, prob).

    One property has a Beta prior, whose posterior is drawn exactly. Several are partially
    pooled: their logits are normal with unknown mean and deviation, drawn by NUTS.

    Parameters
    ----------
    alpha, beta : float
        Beta prior of the probability of a single property; Jeffreys' by default.
    pooled_mean, pooled_deviation : float
        Of several properties: standard deviation of the normal prior of the mean logit, and mean
        of the Gamma(2) prior of the logits' deviation.

    Raises
    ------
    InvalidInputError
        If a parameter is not above zero.

    See Also
    --------
    BetaBinomialModel : entries that depend on each other
    PyMCProbabilities : a PyMC model of your own
    edp_bayes.audit_property : the probability of a property from data

    Examples
    --------
    >>> BinomialModel().dependent
    False
    """

    alpha: float = 0.5
    beta: float = 0.5
    pooled_mean: float = 4.0
    pooled_deviation: float = 3.0

    def __post_init__(self) -> None:
        for name in ("alpha", "beta", "pooled_mean", "pooled_deviation"):
            validate.positive_number(getattr(self, name), name)

    @property
    def dependent(self) -> bool:
        """Whether the entries of a database depend on each other."""
        return False

    def build(self, counts: PropertyCounts) -> Any:
        """Return the PyMC model, with variable prob of dims (property,)."""
        import pymc as pm

        with pm.Model(coords=_coords(counts)) as model:
            prob = self.prior(counts)
            pm.Binomial(
                "count",
                n=counts.n[:, None],
                p=prob,
                observed=counts.count,
                dims=("database", "property"),
            )
        return model

    def prior(self, counts: PropertyCounts) -> Any:
        """Add the prior of prob to the current PyMC model and return it."""
        import pymc as pm

        if counts.n_properties == 1:
            return pm.Beta("prob", self.alpha, self.beta, dims="property")
        mean = pm.Normal("mean_logit", 0.0, self.pooled_mean)
        deviation = pm.Gamma("deviation", 2.0, 2.0 / self.pooled_deviation)
        logit = pm.Normal("logit", mean, deviation, dims="property")
        return pm.Deterministic("prob", pm.math.invlogit(logit), dims="property")

    def fit(self, counts: PropertyCounts, settings: SamplerSettings) -> ProbabilityDraws:
        """Draw from the posterior: exactly for one property, by NUTS for several."""
        if counts.n_properties > 1:
            return PyMCProbabilities(self.build).fit(counts, settings, model=repr(self))
        prob = exact_draws.binomial_draws(
            *_vectors(counts),
            (self.alpha, self.beta),
            settings.generator("binomial"),
            settings.chains * settings.draws,
        )
        shape = (settings.chains, settings.draws, 1)
        attributes = {"model": repr(self), "sampler": "conjugate"}
        return ProbabilityDraws.of(counts, prob.reshape(shape), None, attributes=attributes)


@dataclass(frozen=True)
class BetaBinomialModel:
    """Entries are exchangeable but dependent: pi itself is drawn anew for every database.

    Its distribution is Beta with mean prob and concentration alpha + beta. The posterior of one
    property is drawn from a fine grid, that of several by NUTS.

    Parameters
    ----------
    mean : BinomialModel
        Prior of the mean, pooled over properties in the same way.
    scale : float, optional
        Prior median of the concentration: concentration / (concentration + scale) is uniform, so
        that independent entries, in the limit, are not excluded. The mean n if not given.

    Raises
    ------
    InvalidInputError
        If the scale is not above zero.

    See Also
    --------
    BinomialModel : independent entries
    PyMCProbabilities : a PyMC model of your own
    edp_bayes.statistical_privacy.beta_binomial_delta : delta where entries depend on each other

    Examples
    --------
    >>> BetaBinomialModel().dependent
    True
    """

    mean: BinomialModel = field(default_factory=BinomialModel)
    scale: float | None = None

    def __post_init__(self) -> None:
        if self.scale is not None:
            validate.positive_number(self.scale, "scale")

    @property
    def dependent(self) -> bool:
        """Whether the entries of a database depend on each other."""
        return True

    def build(self, counts: PropertyCounts) -> Any:
        """Return the PyMC model, with prob and concentration of dims (property,)."""
        import pymc as pm

        with pm.Model(coords=_coords(counts)) as model:
            prob = self.mean.prior(counts)
            share = pm.Uniform("share", 0.0, 1.0, dims="property")
            concentration = pm.Deterministic(
                "concentration", self._scale(counts) * share / (1.0 - share), dims="property"
            )
            pm.BetaBinomial(
                "count",
                n=counts.n[:, None],
                alpha=prob * concentration,
                beta=(1.0 - prob) * concentration,
                observed=counts.count,
                dims=("database", "property"),
            )
        return model

    def fit(self, counts: PropertyCounts, settings: SamplerSettings) -> ProbabilityDraws:
        """Draw from the posterior: on a grid for one property, by NUTS for several."""
        if counts.n_properties > 1:
            model = PyMCProbabilities(self.build, concentration="concentration")
            return model.fit(counts, settings, model=repr(self))
        draws = exact_draws.beta_binomial_draws(
            *_vectors(counts),
            (self.mean.alpha, self.mean.beta),
            self._scale(counts),
            settings.generator("beta-binomial"),
            settings.chains * settings.draws,
        )
        shape = (settings.chains, settings.draws, 1)
        prob, concentration = (part.reshape(shape) for part in draws)
        attributes = {"model": repr(self), "sampler": "grid"}
        return ProbabilityDraws.of(counts, prob, concentration, attributes=attributes)

    def _scale(self, counts: PropertyCounts) -> float:
        return float(counts.n.mean()) if self.scale is None else float(self.scale)


@dataclass(frozen=True)
class PyMCProbabilities:
    """Any PyMC model whose posterior holds the probability of every property.

    Parameters
    ----------
    build : callable
        Takes `PropertyCounts` and returns a PyMC model.
    prob : str
        Name of its variable of shape (property,), strictly between 0 and 1.
    concentration : str, optional
        Name of its variable of shape (property,), above 0, where entries are dependent.

    Raises
    ------
    InvalidInputError
        When fitted, if a name is no variable of the model or its shape or values do not fit.

    See Also
    --------
    BinomialModel : independent entries
    edp_bayes.models.PyMCMixture : a PyMC model of your own
    edp_bayes.audit_property : the probability of a property from data

    Examples
    --------
    >>> PyMCProbabilities(BinomialModel().build).prob
    'prob'
    """

    build: Callable[[PropertyCounts], Any]
    prob: str = "prob"
    concentration: str | None = None

    @property
    def dependent(self) -> bool:
        """Whether the entries of a database depend on each other."""
        return self.concentration is not None

    def fit(
        self, counts: PropertyCounts, settings: SamplerSettings, *, model: str | None = None
    ) -> ProbabilityDraws:
        """Draw from the posterior by NUTS."""
        tree = sample_nuts(self.build(counts), settings)
        posterior = tree["posterior"].to_dataset()
        prob = _variable(posterior, self.prob, counts)
        if (prob < 0).any() or (prob > 1).any():
            raise InvalidInputError(
                f"{self.prob} must lie strictly between 0 and 1, found draws from "
                f"{prob.min():g} to {prob.max():g}"
            )
        concentration = None
        if self.concentration is not None:
            concentration = _variable(posterior, self.concentration, counts)
            if (concentration <= 0).any():
                raise InvalidInputError(
                    f"{self.concentration} must be greater than 0, found {concentration.min():g}"
                )
        return ProbabilityDraws.of(
            counts,
            np.clip(prob, exact_draws.LEAST, exact_draws.MOST),
            concentration,
            sample_stats=tree["sample_stats"].to_dataset(),
            attributes={"model": model or repr(self), "sampler": settings.nuts},
        )


def _variable(posterior: xr.Dataset, name: str, counts: PropertyCounts) -> Array:
    """Return draws of shape (chain, draw, property)."""
    if name not in posterior:
        raise InvalidInputError(
            f"the model must have a variable named {name!r}; found "
            f"{', '.join(map(str, posterior.data_vars))}"
        )
    draws = posterior[name].transpose("chain", "draw", ...).to_numpy()
    if draws.ndim == 2:
        draws = draws[..., None]
    if draws.shape[2:] != (counts.n_properties,):
        raise InvalidInputError(
            f"{name} must have shape ({counts.n_properties},), one value a property, found "
            f"{draws.shape[2:]}"
        )
    return np.asarray(draws, dtype=np.float64)


def _coords(counts: PropertyCounts) -> dict[str, Any]:
    return {"database": np.arange(counts.n_databases), "property": list(counts.properties)}


def _vectors(counts: PropertyCounts) -> tuple[Array, Array]:
    """Return the counts of the one property and their n, as doubles."""
    return counts.count[:, 0].astype(np.float64), counts.n.astype(np.float64)
