"""The posterior that noise is calibrated against: p and every p_i, draw by draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.adversary.adversary import Adversary
from edp_bayes.adversary.known import explained
from edp_bayes.coupling.base import Coupling, draw_count
from edp_bayes.coupling.contributions.posterior import ContributionDraws
from edp_bayes.coupling.regression import RegressionCoupling
from edp_bayes.coupling.shift import ShiftCoupling
from edp_bayes.coupling.views.some_draws import pick
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.models.base import DensityModel, FittedModel, fit_as_asked
from edp_bayes.models.regression import regression_on, restored
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.noise.certificates.screening import Screen
from edp_bayes.records.remainder import require_collected
from edp_bayes.responses.atoms import refuse_atoms
from edp_bayes.responses.responses import Responses
from edp_bayes.results.pseudonyms import UNPLACED
from edp_bayes.utils import labels, validate
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.results.query import Audit

__all__ = ["FixedBandwidth", "Posterior", "posterior_of"]

# Settings of an audit that say what the adversary knows.
NOISE_LEAVES = "what noise leaves of the risk"
AGAINST = ("against", "at", "known", "insiders")


@dataclass(frozen=True, eq=False)
class Posterior:
    """Draws of the distribution of the response and of the distribution without each individual.

    Parameters
    ----------
    coupling : Coupling
        p and every p_i, without known noise.
    individual : ndarray
        Shape (m,): labels.
    responses : Responses, optional
        The data, where they are known.
    fingerprint : str
        Of the data.
    record : mapping
        Settings of the fit.
    raw : Responses, optional
        The data as they were, before anything was adjusted to the database in question.
    """

    coupling: Coupling
    individual: NDArray[Any]
    responses: Responses | None = None
    fingerprint: str = ""
    record: Mapping[str, Any] = field(default_factory=dict)
    raw: Responses | None = None

    @property
    def kernel(self) -> str:
        """Family of the components."""
        return self.coupling.mixture.kernel

    @property
    def against(self) -> str:
        """Against whom, in words, with a comma before; empty where no adversary was given."""
        who = self.record.get("against")
        return f", against {who}" if who else ""

    @property
    def n_draws(self) -> int:
        """Number of draws, all chains together."""
        return self.coupling.n_draws

    @property
    def n_individuals(self) -> int:
        """Number of individuals."""
        return self.coupling.n_individuals

    @property
    def half(self) -> Posterior:
        """Every other draw."""
        return replace(self, coupling=pick(self.coupling, np.arange(0, self.n_draws, 2)))

    @cached_property
    def base(self) -> Array:
        """Components of p, shape (draw, component, 3): weights, locations, scales."""
        return _components(self.coupling.mixture)

    @property
    def shifted(self) -> ShiftCoupling | None:
        """The coupling, where every component only moves; None otherwise."""
        return self.coupling if isinstance(self.coupling, ShiftCoupling) else None

    @cached_property
    def common_scale(self) -> Array | None:
        """Scale of all components in each draw, shape (draw,); None where they differ."""
        scales = self.base[..., 2]
        if self.shifted is None or (scales != scales[:, :1]).any():
            return None
        return np.asarray(scales[:, 0])

    def pair(self, individual: int) -> tuple[Array, Array]:
        """Return the components with and without one individual, each (draw, component, 3)."""
        if self.shifted is None:
            p, q = self.coupling.pair(individual)
            return _components(p), _components(q)
        moved = self.base.copy()
        moved[..., 1] -= self._contribution(individual)
        return self.base, moved

    def moves(self, individual: int) -> Array:
        """Return the contribution of one individual to every component, shape (component,)."""
        if self.shifted is None:
            raise InputTypeError(
                "contributions are fixed numbers under the smoothed bootstrap only"
            )
        return self._contribution(individual)

    def contributions(self, people: Index) -> ContributionDraws:
        """Return how some individuals contribute in every draw; the last ones asked for are kept.

        For couplings by regression.
        """
        assert isinstance(self.coupling, RegressionCoupling)
        known = self._contributions.get("last")
        if known is None or not np.array_equal(known[0], people):
            known = self._contributions["last"] = (people, self.coupling.contributions(people))
        return known[1]

    @cached_property
    def largest_move(self) -> Array:
        """Bound on how far any component moves, shape (m,); infinite where there is none."""
        if self.shifted is None:
            return np.full(self.n_individuals, np.inf)
        return np.asarray(self.shifted.responses.largest_contribution)

    def screen(self, epsilon: float) -> Screen | None:
        """Return a table of the pairs that are safe at epsilon; the last one made is kept.

        None under the smoothed bootstrap, where `largest_move` says as much at once.
        """
        if self.shifted is not None:
            return None
        known = self._screens.get("last")
        if known is None or not 0.5 * known.epsilon <= epsilon <= 2.0 * known.epsilon:
            known = self._screens["last"] = Screen.of(self, epsilon)
        return known

    def hardest_first(self, epsilon: float) -> Index:
        """Return all individuals, those who seem to need most noise first."""
        screen = self.screen(epsilon)
        need = self.largest_move if screen is None else screen.length.max(axis=0)
        return np.argsort(-need, kind="stable")

    @cached_property
    def _contributions(self) -> dict[str, tuple[Index, ContributionDraws]]:
        return {}

    @cached_property
    def _screens(self) -> dict[str, Screen]:
        return {}

    def _contribution(self, individual: int) -> Array:
        assert self.shifted is not None
        matrix = self.shifted.responses.contribution
        start, stop = matrix.indptr[individual : individual + 2]
        dense = np.zeros(matrix.shape[0])
        dense[matrix.indices[start:stop]] = matrix.data[start:stop]
        return dense


@dataclass(frozen=True)
class FixedBandwidth:
    """The published kernel estimate as a model with a single draw: equal weights, one bandwidth.

    It says nothing about uncertainty and is there to compare with published numbers.

    Parameters
    ----------
    bandwidth : float
        Scale of the kernel, in the units of the response.
    kernel : {"laplace", "gaussian"}
        Family of the kernel.

    Raises
    ------
    InvalidInputError
        If the bandwidth is not above zero or the kernel is unknown.

    See Also
    --------
    edp_bayes.models.SmoothedBootstrap : a kernel estimate with a posterior
    edp_bayes.plugin.empirical_privacy : the published point estimates
    calibrate : the least noise for a target

    Examples
    --------
    >>> FixedBandwidth(30.9).kernel
    'laplace'
    """

    bandwidth: float
    kernel: str = "laplace"

    def __post_init__(self) -> None:
        validate.choice(self.kernel, validate.KERNELS, "kernel")
        bandwidth = validate.positive_number(self.bandwidth, "bandwidth")
        object.__setattr__(self, "bandwidth", bandwidth)

    def fit(self, responses: Responses, settings: SamplerSettings) -> FittedModel:
        """Return the one draw; the settings have nothing to say here."""
        from edp_bayes.models.base import database_log_likelihood

        rows = responses.response.size
        mixture = Mixture(
            np.full((1, 1, rows), 1.0 / rows),
            responses.response,
            self.bandwidth,
            kernel=self.kernel,
        )
        return FittedModel(
            mixture=mixture,
            coupling=ShiftCoupling.fit(mixture, responses),
            log_likelihood=database_log_likelihood(mixture, responses),
            attributes={"model": repr(self), "sampler": "none"},
        )


def posterior_of(
    source: Responses | Audit | FittedModel | Posterior,
    *,
    responses: Responses | None = None,
    model: DensityModel | None = None,
    adversary: Adversary | None = None,
    at: Any = None,
    draws: int | None = None,
    tune: int | None = None,
    chains: int | None = None,
    random_seed: int | None = None,
    progressbar: bool = True,
    most_draws: int | None = None,
    **sample_options: Any,
) -> Posterior:
    """Return the posterior that a source stands for.

    Parameters
    ----------
    source : Responses, Audit or FittedModel
        Responses are fitted as `edp_bayes.audit` fits them. An audit holds the draws of p but not
        the contributions, so it needs `responses` too; with them every draw of the audit is found
        again.
    responses : Responses, optional
        The data of an audit.
    model, adversary, at, draws, tune, chains, random_seed, progressbar, **sample_options
        As for `edp_bayes.audit`, for responses only; 250 draws of each chain if not given.
    most_draws : int, optional
        For an audit only: how many of its draws to take, evenly spaced; all by default.

    Raises
    ------
    InputTypeError
        If the source is something else.
    InvalidInputError
        If an audit comes without responses or with other ones, the responses carry noise or are
        rounded (`step`), or options of a fit are given where nothing is fitted.
    """
    from edp_bayes.models.default import model_of_sampler
    from edp_bayes.results.query import Audit

    if isinstance(source, Posterior):
        return source
    for data in (source, responses):
        if isinstance(data, Responses):
            require_collected(data.remainder, "noise")
    if isinstance(source, Audit) and "reduced" in source.settings:
        raise InvalidInputError(
            "noise needs the contributions of everybody, and those of some individuals of this "
            "audit were not collected: audit again with all of them"
        )
    if isinstance(source, Audit | FittedModel):
        asked = {
            "model": model,
            "adversary": adversary,
            "at": at,
            "draws": draws,
            "tune": tune,
            "chains": chains,
            **sample_options,
        }
        if useless := [name for name, value in asked.items() if value is not None]:
            raise InvalidInputError(
                f"{useless[0]} is for responses, which are fitted; what was fitted has its own: "
                "leave it out, or give most_draws= for fewer draws of an audit"
            )
    if isinstance(source, Audit):
        return _of_audit(source, responses, most_draws)
    if isinstance(source, FittedModel):
        if responses is None:
            raise InvalidInputError("a fitted model needs its responses: give responses=")
        _refuse_noise(responses)
        _refuse_steps(responses.step)
        refuse_transform(responses.transform)
        refuse_atoms(responses.atoms, NOISE_LEAVES)
        return _posterior(
            source.coupling, _in_question(source, responses), responses, source.attributes
        )
    if not isinstance(source, Responses):
        raise InputTypeError(
            f"responses or an audit are needed, found {type(source).__name__}; make responses by "
            "Databases.respond or Responses.from_arrays"
        )
    _refuse_noise(source)
    _refuse_steps(source.step)
    refuse_transform(source.transform)
    refuse_atoms(source.atoms, NOISE_LEAVES)
    names = ("sampler", "cores")
    named = {name: sample_options.pop(name) for name in names if name in sample_options}
    settings = SamplerSettings(
        draws=250 if draws is None else draws,
        tune=1000 if tune is None else tune,
        chains=4 if chains is None else chains,
        random_seed=random_seed,
        progressbar=progressbar,
        sample_kwargs=sample_options,
        **named,
    )
    regression = regression_on(source, adversary, at)
    if regression is not None and len(regression.known.tellers) > 1:
        raise InvalidInputError(
            "two individuals may be the worst to know their own contribution, and an audit tells "
            "which: give edp.audit(..., adversary=...) and its responses, as responses="
        )
    chosen, _ = model_of_sampler(model, settings.sampler, source)
    if regression is None:  # the published estimate is a single draw
        fitted = chosen.fit(source, settings)
    else:
        fitted = fit_as_asked(chosen, regression, settings)
    against = {} if regression is None else regression.record
    record = {**settings.record, **fitted.attributes, **against}
    return _posterior(fitted.coupling, _in_question(fitted, source), source, record)


def _in_question(fitted: FittedModel, responses: Responses) -> Responses:
    """Return the responses that a fitted model is coupled to."""
    return responses if fitted.in_question is None else fitted.in_question.responses


def _of_audit(audit: Audit, responses: Responses | None, most_draws: int | None) -> Posterior:
    if responses is None:
        raise InvalidInputError(
            "an audit holds no contributions: give the responses it was made from, as responses="
        )
    settings: Mapping[str, Any] = audit.settings
    refuse_transform(settings.get("transform"))
    refuse_atoms(settings.get("atoms"), NOISE_LEAVES)
    if settings["fingerprint"] != responses.fingerprint:
        raise InvalidInputError(
            "these responses are not those of the audit: their fingerprint is "
            f"{responses.fingerprint[:16]}, the audit's {settings['fingerprint'][:16]}"
        )
    _refuse_noise(responses)
    _refuse_steps(settings.get("step"))
    responses = responses.replaced(step=None)
    if unplaced := audit.tree.attrs.get(UNPLACED):
        raise InvalidInputError(
            f"under pseudonyms this audit does not say {unplaced}: give the audit with its names"
        )
    model = str(settings["model"])
    if model.startswith("Stacked("):
        raise InvalidInputError(
            "an audit does not say which model each draw of a stacked model is from: give the "
            f"responses themselves and model={model}"
        )
    mixture, data = audit.mixture, responses
    if "known" in audit.tree.children:
        group = audit.tree["known"].to_dataset()
        regression, beta, gamma, shift = restored(group, responses)
        mixture = Mixture(
            mixture.weights, mixture.locations - shift, mixture.scales, kernel=mixture.kernel
        )
        data = regression.adjusted(beta, gamma)
    mixture = _thinned(mixture, most_draws)
    if model.startswith("SmoothedBootstrap("):
        coupling: Coupling = ShiftCoupling.fit(mixture, data)
    else:
        without = {
            i: _thinned(distribution, most_draws) for i, distribution in audit.without.items()
        }
        seed = int(settings["random_seed"])
        coupling = RegressionCoupling.fit(mixture, data, seed, without)
    known = {name: settings.get(name) for name in ("model", "tune", "random_seed")}
    known |= {name: settings[name] for name in AGAINST if name in settings}
    return _posterior(coupling, data, responses, known)


def _posterior(
    coupling: Coupling, data: Responses, released: Responses, record: Mapping[str, Any]
) -> Posterior:
    raw, audited = released, set(labels.plain_list(data.individual))
    insiders = tuple(i for i in labels.plain_list(released.individual) if i not in audited)
    if insiders:
        raw = explained(released, np.arange(released.n_databases), insiders)
    return Posterior(coupling, data.individual, data, released.fingerprint, record, raw)


def _thinned(mixture: Mixture, most_draws: int | None) -> Mixture:
    """Return at most so many draws, evenly spaced in every chain; at least one of each chain."""
    chains, draws = mixture.weights.shape[:2]
    if most_draws is None:
        most = chains * draws
    else:
        most = max(validate.positive_integer(most_draws, "most_draws"), chains)
    each = min(draws, most // chains)
    rows = np.arange(each) * draws // each
    parts = (mixture.weights, mixture.locations, mixture.scales)
    whole = np.broadcast_arrays(*parts)
    return Mixture(*(part[:, rows] for part in whole), kernel=mixture.kernel)


def _refuse_steps(step: object) -> None:
    if step is not None:
        raise InvalidInputError(
            f"noise is calibrated for continuous answers, and these are rounded to a grid of step "
            f"{step:g}: audit.released(rounded_to={step:g}, noise_after=LaplaceNoise(scale)) says "
            "what noise of a scale, added to the rounded answer, leaves of the risk. Answers "
            "treated as continuous, responses.replaced(step=None), can be calibrated for"
        )


def refuse_transform(transform: object) -> None:
    """Refuse answers that are modelled on another scale than noise is added on."""
    if transform is not None:
        raise InvalidInputError(
            f"noise is added to the answer, and here it is modelled on the scale of transform "
            f"{transform}: calibrate for responses without it, responses.replaced(transform=None), "
            "or for an audit of these"
        )


def _refuse_noise(responses: Responses) -> None:
    if responses.noise is not None:
        raise InvalidInputError(
            f"these responses already carry {responses.noise}: calibrate the query without its "
            "noise, and let what is found take its place"
        )


def _components(mixture: Mixture) -> Array:
    size = draw_count(mixture)
    parts = (mixture.weights, mixture.locations, mixture.scales)
    return np.stack([part.reshape(size, -1) for part in parts], axis=-1)
