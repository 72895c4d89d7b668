"""How to draw from a posterior, and the one place where PyMC samples."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.exceptions import InputTypeError, InvalidInputError, SamplingError
from edp_bayes.utils import validate
from edp_bayes.utils.defaults import DRAWS, TUNE
from edp_bayes.utils.leftovers import Folder

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["SamplerSettings", "refuse_incomplete", "sample_nuts"]

NUTS = ("nutpie", "pymc", "numpyro", "blackjax")
JAX = ("numpyro", "blackjax")
# What brings a sampler that does not come with PyMC: the extras of this library. PyMC 6.4 cannot
# work with BlackJAX 1.6.
PACKAGES = {
    "nutpie": "pip install 'edp_bayes[nuts]'",
    "numpyro": "pip install 'edp_bayes[numpyro]'",
    "blackjax": "pip install 'edp_bayes[blackjax]'",
}
SAMPLERS = ("gibbs", *NUTS)
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


# Fields of the settings that are no options by these names.
OURS = ("sample_kwargs", "keep")
TARGET_ACCEPT = 0.95
# What PyMC and nutpie say where the log density is not finite at the start.
AT_THE_START = ("initial evaluation", "initialization points", "initial energy")
OF_NUTS = ("max_treedepth", "step_scale")


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
    sampler : {"gibbs", "nutpie", "pymc", "numpyro", "blackjax"}, optional
        Gibbs sampling, or NUTS by one of four libraries, of which PyMC's own is always there. By
        default Gibbs sampling where a model has it, and NUTS where it has not: by nutpie where that
        is installed, otherwise by PyMC, as for ``pymc.sample``.
    cores : int, optional
        Chains sampled at the same time.
    sample_kwargs : mapping
        Further arguments of ``pymc.sample``, such as ``target_accept``, ``initvals``, ``nuts``,
        ``backend`` and ``compile_kwargs``. ``nuts_sampler`` is another name of sampler.
    keep : callable, optional
        Takes a PyMC model and what draws from it by NUTS, and returns the draws, now or as they
        were kept; see `edp_bayes.auditing.store`.

    Raises
    ------
    InvalidInputError, InputTypeError
        If a count is below 1, the seed is negative, the sampler unknown or not installed, or an
        option unknown.

    See Also
    --------
    DensityModel : what every model of the response offers
    edp_bayes.audit : audit a query

    Examples
    --------
    >>> settings = SamplerSettings(draws=200, random_seed=1)
    >>> settings.chains, settings.generator("weights", 0).integers(10) == settings.generator(
    ...     "weights", 0
    ... ).integers(10)
    (4, np.True_)
    """

    draws: int = DRAWS
    tune: int = TUNE
    chains: int = 4
    random_seed: int | None = None
    progressbar: bool = True
    sampler: str | None = None
    cores: int | None = None
    sample_kwargs: Mapping[str, Any] = field(default_factory=dict)
    keep: Callable[[Any, Callable[[], xr.DataTree]], xr.DataTree] | None = field(
        default=None, repr=False
    )

    def __post_init__(self) -> None:
        optional = () if self.cores is None else ("cores",)
        for name in ("draws", "tune", "chains", *optional):
            count = validate.positive_integer(getattr(self, name), name)
            object.__setattr__(self, name, count)
        self._take_over("nuts_sampler")
        unknown = [name for name in self.sample_kwargs if name not in SAMPLE_OPTIONS]
        if unknown:
            own = [field.name for field in fields(self) if field.name not in OURS]
            near = get_close_matches(unknown[0], [*own, *SAMPLE_OPTIONS], 1)
            meant = f", {near[0]} may be meant" if near else ""
            raise InputTypeError(
                f"there is no option {unknown[0]!r}{meant}: "
                f"sampling takes {', '.join(own)}, and NUTS what pymc.sample does, such as "
                "target_accept"
            )
        if self.sampler is not None:
            validate.choice(self.sampler, SAMPLERS, "sampler")
            _require_installed(self.sampler)
        seed = validate.seed(self.random_seed)
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        object.__setattr__(self, "random_seed", seed)

    def _take_over(self, name: str) -> None:
        """Take the library of NUTS by the name that it has in PyMC, too."""
        options = dict(self.sample_kwargs)
        asked = options.pop(name, None)
        object.__setattr__(self, "sample_kwargs", options)
        if asked is None:
            return
        if self.sampler not in (None, asked):
            raise InvalidInputError(
                f"sampler and {name} are the same: give one of them, found {self.sampler!r} and "
                f"{asked!r}"
            )
        object.__setattr__(self, "sampler", validate.choice(asked, NUTS, name))

    def starting_without(self, names: Iterable[str] | None = None) -> SamplerSettings:
        """Return the settings without ``initvals`` of some variables; by default of all.

        They are for a model that is drawn after another one, and lacks these variables.
        """
        options = dict(self.sample_kwargs)
        starts = options.pop("initvals", None)
        if starts is not None and names is not None:
            left = set(names)
            options["initvals"] = (
                _others(starts, left)
                if isinstance(starts, Mapping)
                else [None if start is None else _others(start, left) for start in starts]
            )
        return replace(self, sample_kwargs=options)

    def of_stream(self, name: str) -> SamplerSettings:
        """Return the settings with a seed of their own, for a model drawn beside others.

        Without a name they are the same.
        """
        if not name:
            return self
        seed = int(self.generator("stream", *name.encode()).integers(2**32))
        return replace(self, random_seed=seed)

    def accepting(self, target: float) -> SamplerSettings:
        """Return the settings with this acceptance rate of NUTS, unless another was asked for."""
        options = {"target_accept": target, **self.sample_kwargs}
        if "target_accept" in {**options.get("nuts", {}), **options.get("nuts_sampler_kwargs", {})}:
            del options["target_accept"]
        return replace(self, sample_kwargs=options)

    @property
    def record(self) -> dict[str, int | None]:
        """What a result records of the sampling."""
        names = ("draws", "tune", "chains", "random_seed")
        return {name: getattr(self, name) for name in names}

    @property
    def nuts(self) -> str:
        """Library of NUTS; raises InvalidInputError where Gibbs sampling was asked for."""
        if self.sampler == "gibbs":
            raise InvalidInputError(
                f"sampler must be one of {', '.join(NUTS)} for this model, which has no Gibbs "
                "sampler, found 'gibbs'"
            )
        return self.sampler or ("nutpie" if find_spec("nutpie") else "pymc")

    def by_gibbs(self, kernel: str, priors: Iterable[str] = ()) -> bool:
        """Return whether a mixture of this kernel is drawn by Gibbs sampling.

        The priors are those that a Gibbs sampler has no conditional distribution for.

        Raises
        ------
        InvalidInputError
            If that is asked for with a kernel or priors that are not conjugate, or with arguments
            of NUTS.
        """
        if self.sampler in NUTS or (self.sampler is None and kernel != "gaussian"):
            return False
        if kernel != "gaussian":
            raise InvalidInputError(
                f"Gibbs sampling needs the conjugate gaussian kernel, found kernel = {kernel!r}; "
                "use sampler='nutpie' or 'pymc', or SmoothedBootstrap"
            )
        if given := list(priors):
            raise InvalidInputError(
                f"Gibbs sampling cannot draw with the prior given of {', '.join(given)}: it takes "
                "a Gamma distribution of concentration, rate and precision, a normal one of mean "
                "0 of centre, a Beta distribution of variance_share and a symmetric Dirichlet "
                "distribution of share; give sampler='nutpie' or 'pymc', which take any"
            )
        if self.sample_kwargs:
            raise InvalidInputError(
                f"{next(iter(self.sample_kwargs))} is an argument of NUTS, and this model is drawn "
                "by Gibbs sampling: give sampler='nutpie' or 'pymc', or leave it out"
            )
        return True

    def generator(self, stage: str, *key: int) -> np.random.Generator:
        """Return a generator of its own for a named stage."""
        assert self.random_seed is not None
        name = int.from_bytes(stage.encode()[:8].ljust(8, b"\0"), "little")
        return np.random.default_rng([self.random_seed, name, *key])


def sample_nuts(model: Any, settings: SamplerSettings) -> xr.DataTree:
    """Run NUTS on a PyMC model; raise where a chain was interrupted or is not finite."""
    if settings.keep is None:
        return _sample(model, settings)
    return settings.keep(model, lambda: _sample(model, settings))


def _sample(model: Any, settings: SamplerSettings) -> xr.DataTree:
    import pymc as pm
    import pytensor

    _require_room_for_code()
    library = settings.nuts
    options: dict[str, Any] = dict(settings.accepting(TARGET_ACCEPT).sample_kwargs)
    _refuse_starts_elsewhere(model, options.get("initvals"))
    # In parallel every chain would need a device of its own. PyMC writes into what it is given.
    chains = {"chain_method": "vectorized"} if library in JAX else {}
    # PyMC's new name for them is nuts=, where every library looks for what is of NUTS itself
    named = options.pop("nuts_sampler_kwargs", None) or {}
    own = {name: options.pop(name) for name in OF_NUTS if name in options}
    options["nuts"] = {**chains, **own, **named, **options.get("nuts", {})}
    # BlackJAX cannot show how far chains are that are vectorised: it fails.
    together = library == "blackjax" and options["nuts"].get("chain_method") == "vectorized"
    # Fast mathematics rounds otherwise in code fresh from the compiler than in code from its
    # cache: the same seed would give other draws in the first run than in all later ones.
    exact = pytensor.config.change_flags(numba__fastmath=False)
    with exact, model, warnings.catch_warnings():
        # Convergence is judged later, on privacy quantities and not on labels that switch.
        warnings.filterwarnings(
            "ignore", category=UserWarning, module=rf"pytensor|{'|'.join(NUTS)}"
        )
        try:
            tree = pm.sample(
                draws=settings.draws,
                tune=settings.tune,
                chains=settings.chains,
                cores=settings.cores,
                random_seed=settings.random_seed,
                progressbar=settings.progressbar and not together,
                nuts_sampler=library,
                compute_convergence_checks=False,
                quiet=not settings.progressbar,
                **options,
            )
        except (ValueError, RuntimeError, pm.exceptions.SamplingError) as error:
            raise SamplingError(
                f"PyMC could not sample the model{_required(model, error)}: "
                f"{str(error).strip().partition('\n')[0]}"
            ) from error
        except (ImportError, TypeError, AttributeError) as error:
            if library not in PACKAGES:
                raise
            raise SamplingError(
                f"{library} {version(library)} cannot draw with PyMC {version('pymc')} and these "
                f"options: {str(error).strip().partition('\n')[0]}. {PACKAGES[library]} brings a "
                "version that can; sampler='pymc' comes with PyMC"
            ) from error
    return refuse_incomplete(tree, settings)


def _required(model: Any, error: Exception) -> str:
    """Return what the model must have and has not; nothing where something else failed."""
    free = model.free_RVs
    if not free or any(variable.dtype.startswith(("int", "uint", "bool")) for variable in free):
        return ", which must have free variables, none of them discrete"
    if any(words in str(error).lower() for words in AT_THE_START):
        return ", which must have a finite log density where sampling starts"
    return ""


def _refuse_starts_elsewhere(model: Any, starts: Any) -> None:
    """Refuse initial values of variables that the model does not have, or of other shapes."""
    given = [starts] if isinstance(starts, Mapping) else starts or []
    known = [variable.name for variable in model.free_RVs]
    own = {*known, *(value.name for value in model.value_vars)}
    values = [(str(name), value) for start in given for name, value in (start or {}).items()]
    for name, _ in values:
        if name not in own:
            raise InvalidInputError(
                f"initvals must be of variables of the model, {', '.join(known)}; found one of "
                f"{name!r}"
            )
    # a text, such as "prior", or a variable of PyTensor makes its own shape
    numbers = [(name, np.shape(value)) for name, value in values if _is_numeric(value)]
    shapes = model.eval_rv_shapes() if numbers else {}
    for name, shape in numbers:
        if shape != shapes[name]:
            raise InvalidInputError(
                f"the initial value of {name} must have its shape {shapes[name]}, found {shape}"
            )


def _is_numeric(value: Any) -> bool:
    return isinstance(value, list | tuple) or np.asarray(value).dtype.kind in "biuf"


def _others(start: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in start.items() if name not in names}


def _require_installed(sampler: str) -> None:
    """Refuse a library of NUTS that is not there, and say what would bring it."""
    if sampler in PACKAGES and find_spec(sampler) is None:
        raise InvalidInputError(
            f"sampler = {sampler!r} needs the package {sampler}, which is not installed: "
            f"{PACKAGES[sampler]}; or sampler='pymc', which comes with PyMC"
        )


@cache
def _require_room_for_code() -> Folder | None:
    """Let PyTensor keep its code in a temporary folder where the home folder cannot be written."""
    import pytensor

    usual = Path(os.path.expanduser("~"), ".pytensor")
    nearest = next(place for place in (usual, *usual.parents) if place.exists())
    if os.access(nearest, os.W_OK) or "compiledir" in os.environ.get("PYTENSOR_FLAGS", ""):
        return None
    folder = Folder("edp_bayes_pytensor_")
    # It is settled when PyTensor is imported, but nothing is made there before code is compiled.
    type(pytensor.config).base_compiledir.val = folder.path
    return folder


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
