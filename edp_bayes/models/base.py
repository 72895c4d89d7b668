"""What every density model gives back, and the one place where PyMC samples."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from edp_bayes import validate
from edp_bayes.exceptions import InputTypeError, InvalidInputError, SamplingError
from edp_bayes.mixtures import Mixture

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.coupling import Coupling
    from edp_bayes.responses import Responses

__all__ = ["DensityModel", "FittedModel", "SamplerSettings"]

SAMPLERS = ("nutpie", "pymc")
# What may be passed on to pymc.sample. Models that do without it would not notice a wrong name.
SAMPLE_OPTIONS = frozenset(
    {
        "backend",
        "blas_cores",
        "callback",
        "compile_kwargs",
        "init",
        "initvals",
        "jitter_max_retries",
        "keep_warning_stat",
        "max_treedepth",
        "mp_ctx",
        "n_init",
        "nuts",
        "nuts_sampler_kwargs",
        "progressbar_theme",
        "step",
        "step_scale",
        "target_accept",
    }
)

ROUNDING = 1e-6  # of a model's weights


@dataclass(frozen=True)
class SamplerSettings:
    """How to draw from a posterior; the names are those of ``pymc.sample``.

    Parameters
    ----------
    draws, tune, chains : int
        Kept draws and warm-up draws of each chain, and the number of chains.
    random_seed : int, optional
        Seed of every stage; None takes one from the operating system and records it.
    progressbar : bool
        Show progress of what takes longer than a moment.
    sampler : {"nutpie", "pymc"}
        Implementation of NUTS for the models that need one.
    cores : int, optional
        Chains sampled at the same time.
    sample_kwargs : mapping
        Further arguments of ``pymc.sample``, ``target_accept`` for one.

    Raises
    ------
    InvalidInputError, InputTypeError
        If a count is below 1, the seed is negative, or the sampler or an option unknown.

    Examples
    --------
    >>> settings = SamplerSettings(draws=200, random_seed=1)
    >>> settings.chains, settings.generator("weights", 0).integers(10) == settings.generator(
    ...     "weights", 0
    ... ).integers(10)
    (4, np.True_)
    """

    draws: int = 1000
    tune: int = 1000
    chains: int = 4
    random_seed: int | None = None
    progressbar: bool = True
    sampler: str = "nutpie"
    cores: int | None = None
    sample_kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        optional = () if self.cores is None else ("cores",)
        for name in ("draws", "tune", "chains", *optional):
            count = validate.positive_integer(getattr(self, name), name)
            object.__setattr__(self, name, count)
        validate.choice(self.sampler, SAMPLERS, "sampler")
        unknown = [name for name in self.sample_kwargs if name not in SAMPLE_OPTIONS]
        if unknown:
            raise InputTypeError(
                f"there is no option {unknown[0]!r}, neither here nor of pymc.sample, which knows "
                f"{', '.join(sorted(SAMPLE_OPTIONS))}"
            )
        seed = validate.seed(self.random_seed)
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        object.__setattr__(self, "random_seed", seed)

    def generator(self, stage: str, *key: int) -> np.random.Generator:
        """Return a generator of its own for a named stage."""
        assert self.random_seed is not None
        name = int.from_bytes(stage.encode()[:8].ljust(8, b"\0"), "little")
        return np.random.default_rng([self.random_seed, name, *key])


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Posterior draws of the law of the response, coupled to the law without each individual.

    Parameters
    ----------
    mixture : Mixture
        Shape (chain, draw, component): the law of the response, without known noise.
    coupling : Coupling
        The law without any individual, from the same draws.
    log_likelihood : ndarray
        Shape (chain, draw, database): log density of each database's responses.
    predictive : ndarray, optional
        Shape (database,): log predictive density of each database left out, where the model has
        a better one than PSIS makes of log_likelihood.
    sample_stats : xarray.Dataset, optional
        What the sampler says of itself.
    log_prior : xarray.Dataset, optional
        Log prior density of each parameter, dims (chain, draw); see `edp_bayes.models.log_prior`.
    warnings : tuple of str
        What is doubtful about the fit, in plain words.
    attributes : mapping
        Settings to record: model, sampler, truncation bound, ...

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
    warnings: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def divergences(self) -> int:
        """Number of divergent transitions after warm-up."""
        if self.sample_stats is None or "diverging" not in self.sample_stats:
            return 0
        return int(self.sample_stats["diverging"].sum())


@runtime_checkable
class DensityModel(Protocol):
    """A model of the law of the response.

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


def checked_model(value: object, name: str = "model") -> DensityModel:
    """Return a density model; raise InputTypeError for anything else, such as a class of them."""
    if isinstance(value, type) or not isinstance(value, DensityModel):
        raise InputTypeError(
            f"{name} must be a density model such as SmoothedBootstrap(), found {value!r}"
        )
    return value


def fit_as_asked(
    model: DensityModel, responses: Responses, settings: SamplerSettings
) -> FittedModel:
    """Fit a model; raise InvalidInputError if it returns other chains or draws."""
    fitted = model.fit(responses, settings)
    found, asked = fitted.mixture.weights.shape[:-1], (settings.chains, settings.draws)
    if found != asked:
        raise InvalidInputError(
            f"a model must return the chains and draws asked for, {asked[0]} of {asked[1]}; found "
            f"shape {found} from {model!r}"
        )
    return fitted


def sample_nuts(model: Any, settings: SamplerSettings) -> xr.DataTree:
    """Run NUTS on a PyMC model; raise where a chain was interrupted or is not finite."""
    import pymc as pm
    import pytensor

    options: dict[str, Any] = dict(settings.sample_kwargs)
    options.setdefault("target_accept", 0.95)
    # Fast mathematics rounds otherwise in code fresh from the compiler than in code from its
    # cache: the same seed would give other draws in the first run than in all later ones.
    exact = pytensor.config.change_flags(numba__fastmath=False)
    with exact, model, warnings.catch_warnings():
        # Convergence is judged later, on privacy quantities and not on labels that switch.
        warnings.filterwarnings("ignore", category=UserWarning, module=r"pymc|pytensor|nutpie")
        try:
            tree = pm.sample(
                draws=settings.draws,
                tune=settings.tune,
                chains=settings.chains,
                cores=settings.cores,
                random_seed=settings.random_seed,
                progressbar=settings.progressbar,
                nuts_sampler=settings.sampler,
                compute_convergence_checks=False,
                quiet=not settings.progressbar,
                **options,
            )
        except (ValueError, RuntimeError, pm.exceptions.SamplingError) as error:
            raise SamplingError(
                "PyMC could not sample the model, which must have free variables, none of them "
                "discrete, and a finite log density where sampling starts: "
                f"{str(error).strip().partition('\n')[0]}"
            ) from error
    return refuse_incomplete(tree, settings)


def refuse_incomplete(tree: xr.DataTree, settings: SamplerSettings) -> xr.DataTree:
    """Raise SamplingError where draws are missing or not finite, naming the chain."""
    posterior = tree["posterior"].to_dataset()
    found = (posterior.sizes["chain"], posterior.sizes["draw"])
    if found != (settings.chains, settings.draws):
        raise SamplingError(
            f"sampling stopped early: found {found[0]} chains of {found[1]} draws, "
            f"{settings.chains} of {settings.draws} were asked for"
        )
    for name, values in posterior.items():
        draws = values.transpose("chain", "draw", ...).to_numpy().reshape(*found, -1)
        share = (~np.isfinite(draws)).any(axis=-1).mean(axis=-1)
        if (share > 0).any():
            chain = int(share.argmax())
            raise SamplingError(
                f"chain {chain} was interrupted or failed: {name!r} is not finite in "
                f"{share[chain]:.0%} of its draws"
            )
    return tree


def mixture_from(tree: xr.DataTree, kernel: str, names: tuple[str, str, str]) -> Mixture:
    """Collect the mixture draws of a posterior."""
    posterior = tree["posterior"].to_dataset()
    missing = [name for name in names if name not in posterior]
    if missing:
        raise InvalidInputError(
            f"the model must have variables named {', '.join(names)}; {', '.join(missing)} "
            f"not found among {', '.join(map(str, posterior.data_vars))}"
        )
    arrays = [posterior[name].transpose("chain", "draw", ...).to_numpy() for name in names]
    shapes = {name: array.shape[2:] for name, array in zip(names, arrays, strict=True)}
    if len(set(shapes.values())) > 1 or len(shapes[names[0]]) != 1:
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise InvalidInputError(
            f"the model's {', '.join(names)} must hold one value for each component, found the "
            f"shapes {found}"
        )
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

    The samples of a randomised query are a cluster: one component generates a database, and its
    samples share the weight of one observation.
    """
    y = responses.response.reshape(responses.n_databases, responses.samples)
    kernel = log_kernel(mixture.kernel)
    total = np.full((*mixture.weights.shape[:-1], y.shape[0]), -np.inf)
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
