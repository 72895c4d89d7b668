"""What every density model takes and gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from edp_bayes.diagnostics.convergence import DIVERGING
from edp_bayes.diagnostics.predictive import ADVICE
from edp_bayes.diagnostics.truncation import Truncation
from edp_bayes.distributions import kernels
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.models.sampling import SamplerSettings

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.coupling.base import Coupling
    from edp_bayes.models.coupled import CoupledMixture
    from edp_bayes.models.prior_draws import PriorDraws
    from edp_bayes.models.regression import InQuestion, Regression
    from edp_bayes.responses.responses import Responses

__all__ = ["DensityModel", "FittedModel"]


ROUNDING = 1e-6  # of a model's weights
NAMES = ("weights", "locations", "scales")  # of the variables of a mixture


class DefaultKernel(str):
    """A kernel that nobody asked for: models stacked together may be given another.

    Examples
    --------
    >>> import edp_bayes as edp
    >>> isinstance(edp.SmoothedBootstrap().kernel, DefaultKernel)
    True
    >>> isinstance(edp.SmoothedBootstrap(kernel="laplace").kernel, DefaultKernel)
    False
    """

    __slots__ = ()


GAUSSIAN, LAPLACE = DefaultKernel("gaussian"), DefaultKernel("laplace")


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Posterior draws of the response's distribution, coupled to those without each individual.

    Parameters
    ----------
    mixture : Mixture
        Shape (chain, draw, component): the distribution of the response, without known noise.
    coupling : Coupling
        The distribution without any individual, from the same draws.
    log_likelihood : ndarray
        Shape (chain, draw, database): log density of each database's responses.
    predictive : ndarray, optional
        Shape (database,): log predictive density of each database left out, where the model has
        a better one than PSIS makes of log_likelihood.
    sample_stats : xarray.Dataset, optional
        What the sampler says of itself.
    log_prior : xarray.Dataset, optional
        Log prior density of each parameter, dims (chain, draw); see `edp_bayes.models.log_prior`.
    parameters : xarray.Dataset, optional
        Draws of every named parameter, dims (chain, draw, ...); of Gibbs sampling those at the top,
        and of the components.
    prior : callable, optional
        Draws from the prior of those parameters, see `edp_bayes.models.prior_draws`.
    constant_data : xarray.Dataset, optional
        Data that the PyMC model holds beside the responses.
    predicted : callable, optional
        Takes how many numbers there may be, and returns replicates of what the PyMC model observes
        beside the response; None where there would be more.
    warnings : tuple of str
        What is doubtful about the fit, in plain words.
    attributes : mapping
        Settings to record: model, sampler, truncation bound, ... Draws of the sampler "exact" are
        independent.
    remedy : str
        What helps where the model does not fit the responses.
    diverging : str
        What helps against divergent transitions.
    in_question : InQuestion, optional
        The database in question of an adversary; mixture, coupling and log likelihood are given
        what they know.
    truncated : tuple of Truncation
        Dirichlet processes of which finitely many components are kept.

    See Also
    --------
    DensityModel : what every model of the response offers
    edp_bayes.audit : audit a query
    SamplerSettings : draws, chains and sampler

    Examples
    --------
    >>> import edp_bayes as edp
    >>> y = np.random.default_rng(1).normal(size=30)
    >>> responses = edp.Responses.from_arrays(y, contribution=0.1 * y)
    >>> settings = SamplerSettings(draws=50, random_seed=1, progressbar=False)
    >>> fitted = edp.SmoothedBootstrap().fit(responses, settings)
    >>> fitted.mixture.weights.shape, fitted.log_likelihood.shape
    ((4, 50, 30), (4, 50, 30))
    """

    mixture: Mixture
    coupling: Coupling
    log_likelihood: NDArray[np.float64]
    predictive: NDArray[np.float64] | None = None
    sample_stats: xr.Dataset | None = None
    log_prior: xr.Dataset | None = None
    parameters: xr.Dataset | None = None
    prior: Callable[[], PriorDraws | None] | None = None
    constant_data: xr.Dataset | None = None
    predicted: Callable[[int], xr.Dataset | None] | None = None
    warnings: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    remedy: str = ADVICE
    diverging: str = DIVERGING
    in_question: InQuestion | None = None
    truncated: tuple[Truncation, ...] = ()

    @property
    def independent(self) -> bool:
        """Whether every draw is exact and independent of all others."""
        members = self.attributes.get("members", [self.attributes])
        return all(member.get("sampler") == "exact" for member in members)

    def per_answer(self, log_slope: NDArray[np.float64]) -> FittedModel:
        """Return the same with log densities of the answers, where a transform is modelled.

        Parameters
        ----------
        log_slope : ndarray
            Shape (database,): see `Responses.log_slope`. Where one is infinite, as at the end of a
            root, answers have no finite log density, and those on the modelled scale are kept.
        """
        if not log_slope.any() or not np.isfinite(log_slope).all():
            return self
        predictive = None if self.predictive is None else self.predictive + log_slope
        return replace(self, log_likelihood=self.log_likelihood + log_slope, predictive=predictive)

    @property
    def divergences(self) -> int:
        """Number of divergent transitions after warm-up."""
        if self.sample_stats is None or "diverging" not in self.sample_stats:
            return 0
        return int(self.sample_stats["diverging"].sum())


@runtime_checkable
class DensityModel(Protocol):
    """A model of the distribution of the response.

    See Also
    --------
    FittedModel : the draws that a model returns
    PyMCMixture : a PyMC model of your own
    edp_bayes.compare : compare models by their predictions

    Examples
    --------
    >>> import edp_bayes as edp
    >>> isinstance(edp.SmoothedBootstrap(), DensityModel), isinstance("normal", DensityModel)
    (True, False)
    """

    @property
    def kernel(self) -> str:
        """Family of every component: gaussian or laplace."""
        ...

    def fit(self, responses: Responses, settings: SamplerSettings) -> FittedModel:
        """Draw from the posterior.

        The same settings give the same draws, whatever the number of cores.
        """
        ...


@runtime_checkable
class ConditionalModel(DensityModel, Protocol):
    """A density model that is drawn together with the regression on what an adversary knows.

    Examples
    --------
    >>> import edp_bayes as edp
    >>> isinstance(edp.DirichletProcessMixture(), ConditionalModel)
    True
    >>> isinstance(edp.SmoothedBootstrap(), ConditionalModel)
    False
    """

    def fit_given(self, regression: Regression, settings: SamplerSettings) -> FittedModel:
        """Draw from the posterior of density and regression."""
        ...


def checked_model(value: object, name: str = "model") -> DensityModel:
    """Return a density model; raise InputTypeError for anything else, such as a class of them."""
    if isinstance(value, type) or not isinstance(value, DensityModel):
        raise InputTypeError(
            f"{name} must be a density model such as SmoothedBootstrap(), found {value!r}"
        )
    return value


def models_rounding(model: DensityModel, responses: Responses) -> bool:
    """Return whether a model of these rounded responses is one of what was rounded.

    A model says so by a method ``models_rounding(responses)``; then its mixture is the distribution
    of values whose roundings the responses are, each within `Responses.half_step` of it.
    """
    says = getattr(model, "models_rounding", None)
    return bool(callable(says) and says(responses))


def fit_as_asked(
    model: DensityModel, data: Responses | Regression, settings: SamplerSettings
) -> FittedModel:
    """Fit a model; raise InvalidInputError if it returns other chains or draws."""
    from edp_bayes.models.atoms import OfAtoms
    from edp_bayes.models.regression import Regression

    if not isinstance(data, Regression):
        fitted = model.fit(data if isinstance(model, OfAtoms) else data.on_scale, settings)
    elif isinstance(model, ConditionalModel):
        fitted = model.fit_given(data, settings)
    else:
        fitted = data.fitted_to_residuals(model, settings)
    found, asked = fitted.mixture.weights.shape[:-1], (settings.chains, settings.draws)
    if found != asked:
        raise InvalidInputError(
            f"a model must return the chains and draws asked for, {asked[0]} of {asked[1]}; found "
            f"shape {found} from {model!r}"
        )
    return fitted


def require_variables(names: Iterable[str], found: Iterable[Any], of: str = "") -> None:
    """Refuse a model without some of the variables asked for."""
    names, found = list(names), list(map(str, found))
    if missing := [name for name in names if name not in found]:
        raise InvalidInputError(
            f"the model must have variables{of} named {', '.join(names)}; {', '.join(missing)} "
            f"not found among {', '.join(found)}"
        )


def refuse_unlike(shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse weights, locations and scales, by name, that have not one value for each component."""
    if len(set(shapes.values())) == 1 and len(next(iter(shapes.values()))) == 1:
        return
    found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    raise InvalidInputError(
        f"the model's {', '.join(shapes)} must hold one value for each component, found the "
        f"shapes {found}"
    )


def mixture_from(tree: xr.DataTree, kernel: str, names: tuple[str, str, str]) -> Mixture:
    """Collect the mixture draws of a posterior."""
    posterior = tree["posterior"].to_dataset()
    require_variables(names, posterior.data_vars)
    arrays = [posterior[name].transpose("chain", "draw", ...).to_numpy() for name in names]
    shapes = {name: array.shape[2:] for name, array in zip(names, arrays, strict=True)}
    refuse_unlike(shapes)
    least, sums = arrays[0].min(), arrays[0].sum(-1)
    if least < -ROUNDING or np.abs(sums - 1.0).max() > ROUNDING:
        raise InvalidInputError(
            f"{names[0]} must be at least 0 and sum to 1, found a least value of {least:g} and "
            f"sums from {sums.min():g} to {sums.max():g}"
        )
    weights = np.clip(arrays[0], 0.0, None)
    return Mixture(weights / weights.sum(-1, keepdims=True), *arrays[1:], kernel=kernel)


def database_log_likelihood(mixture: Mixture, responses: Responses) -> NDArray[np.float64]:
    """Log density of each database under each draw, shape (chain, draw, database).

    Of a rounded answer it is the log of its probability over the width of its bin.
    """
    if responses.half_step is None:
        return log_densities(mixture, responses.response_by_database)
    return log_bin_densities(mixture, responses.response, responses.half_step)


def log_bin_densities(
    mixture: Mixture, y: NDArray[np.float64], half: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Log of the probability of bins over their widths, shape (chain, draw, database).

    Parameters
    ----------
    mixture : Mixture
        Shape (chain, draw, component).
    y, half : ndarray
        Shape (database,), or (chain, draw, database): middles and half widths. Where a bin's
        probability is too small for a number the log density at its middle is taken.
    """
    mass = np.zeros((*mixture.weights.shape[:-1], y.shape[-1]))
    for k in range(mixture.weights.shape[-1]):
        low, high = component_tails(mixture, k, y, half)
        mass += mixture.weights[..., k, None] * (high - low)
    seen = mass > 0.0
    at = log_densities(mixture, y[..., None]) if not seen.all() else 0.0
    return np.where(seen, np.log(np.where(seen, mass, 1.0) / (2.0 * half)), at)


def component_tails(
    mixture: Mixture, k: int, y: NDArray[np.float64], half: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how far down one component both ends of bins are, seen from its nearer side.

    The difference is the probability of each bin, precise far out on either side.
    """
    mu, s = mixture.locations[..., k, None], mixture.scales[..., k, None]
    near = -np.abs(y - mu)
    if mixture.kernel == "gaussian":
        return kernels.gaussian_tail(near - half, s), kernels.gaussian_tail(near + half, s)
    return kernels.laplace(near - half, s)[1], kernels.laplace(near + half, s)[1]


def log_densities(mixture: Mixture, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log density of samples (database, sample) under each draw, shape (chain, draw, database).

    Every draw may have samples of its own. The samples of a randomised query are a cluster: one
    component generates a database, and its samples share the weight of one observation.
    """
    kernel = log_kernel(mixture.kernel)
    total = np.full((*mixture.weights.shape[:-1], y.shape[-2]), -np.inf)
    with np.errstate(divide="ignore"):
        log_weights = np.log(mixture.weights)
    for k in range(mixture.weights.shape[-1]):
        mu, s = mixture.locations[..., k, None, None], mixture.scales[..., k, None, None]
        component = kernel((y - mu) / s).mean(-1) - np.log(s[..., 0])
        np.logaddexp(total, log_weights[..., k, None] + component, out=total)
    return total


def log_kernel(kernel: str) -> Any:
    """Log density of a kernel of scale one."""
    if kernel == "gaussian":
        return lambda u: -0.5 * u * u - 0.5 * np.log(2.0 * np.pi)
    return lambda u: -np.abs(u) - np.log(2.0)


def fitted_mixture(
    drawn: CoupledMixture,
    settings: SamplerSettings,
    *,
    tree: xr.DataTree | None = None,
    parameters: xr.Dataset | None = None,
    prior: Callable[[], PriorDraws | None] | None = None,
    log_prior: xr.Dataset | None = None,
    attributes: Mapping[str, Any],
    remedy: str = ADVICE,
    diverging: str = DIVERGING,
    truncated: tuple[Truncation, ...] = (),
) -> FittedModel:
    """Return what was fitted, from the draws of a mixture and of those without each individual.

    Parameters are those of a tree that NUTS drew, if there is one.
    """
    from edp_bayes.coupling.contributions.drawn import DrawnContributions

    sampler = settings.nuts if tree is not None else "gibbs"
    in_question, contributions = drawn.in_question, getattr(drawn.coupling, "posterior", None)
    mass = {"truncation_mass": sum(p.mass for p in truncated)} if truncated else {}
    return FittedModel(
        mixture=drawn.mixture,
        coupling=drawn.coupling,
        log_likelihood=database_log_likelihood(drawn.mixture, drawn.responses)
        if in_question is None
        else in_question.log_likelihood,
        sample_stats=_group(tree, "sample_stats"),
        log_prior=log_prior,
        parameters=parameters if tree is None else tree["posterior"].to_dataset(),
        prior=prior,
        constant_data=_group(tree, "constant_data"),
        attributes={
            "sampler": sampler,
            "contributions": "drawn"
            if isinstance(contributions, DrawnContributions)
            else "empirical Bayes",
            **attributes,
            **mass,
        },
        remedy=remedy,
        diverging=diverging,
        in_question=in_question,
        truncated=truncated,
    )


def _group(tree: xr.DataTree | None, name: str) -> xr.Dataset | None:
    return tree[name].to_dataset() if tree is not None and name in tree.children else None


def parts_of(data: Responses | Regression) -> tuple[Responses, Regression | None]:
    """Return responses, and the regression that explains them if there is one."""
    from edp_bayes.models.regression import Regression

    return (data.known.responses, data) if isinstance(data, Regression) else (data, None)


def in_question_from(tree: xr.DataTree, kernel: str, regression: Regression) -> InQuestion:
    """Collect the draws of residuals and coefficients of a posterior."""
    from edp_bayes.models.regression import InQuestion

    u, posterior = mixture_from(tree, kernel, NAMES), tree["posterior"].to_dataset()
    return InQuestion.of(regression, u, *regression_draws(posterior, regression))


def regression_draws(
    posterior: xr.Dataset, regression: Regression
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the draws of the coefficients, and of the growth; refuse a posterior without them."""
    shape = posterior.sizes["chain"], posterior.sizes["draw"]

    def draws(name: str, there: bool, empty: tuple[int, ...]) -> NDArray[np.float64]:
        if not there:
            return np.zeros((*shape, *empty))
        require_variables([name], posterior.data_vars, " of the regression")
        return np.asarray(posterior[name].transpose("chain", "draw", ...).to_numpy())

    terms = len(regression.terms)
    coefficients = draws("coefficients", terms > 0, (0,))
    if coefficients.shape != (*shape, terms):
        raise InvalidInputError(
            f"coefficients must be {terms} in each draw, of {', '.join(regression.terms)}; found "
            f"the shape {coefficients.shape[2:]}: give the adversary of the draws"
        )
    return coefficients, draws("growth", regression.scaled, ())


def diverging_mixture(kernel: str) -> str:
    """Return what helps against divergent transitions of the library's own mixtures."""
    if kernel == "gaussian":
        return "Leave out sampler=: Gibbs sampling draws this model without divergences."
    return f"{DIVERGING[:-1]}, or take the Gaussian kernel, which Gibbs sampling draws."


class OfRounded:
    """Base of a model whose mixture is the distribution of what was rounded.

    Examples
    --------
    >>> import edp_bayes as edp
    >>> isinstance(edp.SmoothedBootstrap(), OfRounded)
    True
    """

    def models_rounding(self, responses: Responses) -> bool:
        """Return that rounding is modelled."""
        return True


class ShortRepr:
    """Base of a dataclass that shows the fields which differ from their defaults.

    Examples
    --------
    >>> import edp_bayes as edp
    >>> edp.DirichletProcessMixture(), edp.FiniteMixture(components=2)
    (DirichletProcessMixture(), FiniteMixture(components=2))
    """

    def __repr__(self) -> str:
        """Return the class and what was changed."""
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)  # type: ignore[arg-type]
            if getattr(self, field.name) != _default(field)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def _default(field: Any) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
