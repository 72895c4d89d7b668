"""How individuals contribute, as variables of the PyMC model of the response.

An individual is present with odds that change smoothly with the rest r, and then contributes
a_i + b_i r + tau_i e to it, as in `edp_bayes.coupling.contributions`. Presence rho_ik with
component k of p is that at its location.

Who contributes much makes components of their own: in all databases of these they are there. Then
it is the response that tells the component. With component k of p goes a component N(m_ik, s_ik^2)
of the distribution without i (`moments_without` of `edp_bayes.coupling.curves`), so that

    f0(y) = sum_k w_k (1 - rho_ik) N(y; m_ik, s_ik^2),
    f1(y) = sum_k w_k rho_ik N(y; m_ik + a_i + b_i m_ik, (1 + b_i)^2 s_ik^2 + tau_i^2)

are the densities of the response with i absent and present. Given a response y they are present
with probability f1(y) / (f0 + f1)(y).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.contributions import (
    INDEPENDENCE_WEIGHT,
    STEEPEST,
    ContributionDraws,
    Statistics,
)
from edp_bayes.coupling.curves import LARGEST_SHARE
from edp_bayes.coupling.drawn import DrawnContributions
from edp_bayes.coupling.pooling import TAILS
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.models.base_measure import coordinates
from edp_bayes.models.priors import NONNEGATIVE, REAL, Priors
from edp_bayes.utils import labels

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.distributions.mixtures import Mixture
    from edp_bayes.models.base import FittedModel
    from edp_bayes.records.responses import Responses

__all__ = [
    "CONTRIBUTIONS",
    "SUPPORTS",
    "add_contributions",
    "check_names",
    "default_priors",
    "drawn_contributions",
    "drawn_without_regression",
    "new_contributions",
    "with_drawn",
]

Array = NDArray[np.float64]

# Presence, intercept, slope and spread of contributions, in units of the response.
CONTRIBUTIONS = (
    "contribution_presence",
    "contribution_intercept",
    "contribution_slope",
    "contribution_spread",
)
ALWAYS = 30.0  # log odds of presence of those never absent
USUAL_ANGLE = -np.log(5.0)  # log odds of pi / 6 in pi: a spread of half the size
LEAST_SPREAD = "least_spread"  # name of the smooth floor of spreads
LEAST_RELATIVE = 0.05  # spread relative to size about which the smooth floor is
MOST = 2000  # individuals
LARGE = 0.5  # standard deviations of the response, of who makes components of their own
# What values the pools may have.
SUPPORTS = {
    "size_middle": REAL,
    "size_between": NONNEGATIVE,
    "angle_middle": REAL,
    "angle_between": NONNEGATIVE,
    "presence_middle": REAL,
    "presence_between": NONNEGATIVE,
    "presence_tilted": NONNEGATIVE,
}
FAR = 2.0  # standard deviations of the response beyond which presence changes little more


def add_contributions(
    model: Any,
    responses: Responses,
    dominant: Sequence[int] | NDArray[np.int64] = (),
    priors: Mapping[str, Any] | None = None,
) -> None:
    """Add contributions to a PyMC model that has weights, locations and scales of normals.

    Named deterministics are `CONTRIBUTIONS`; the observed variables ``present`` and
    ``contribution`` can be predicted. Priors are heavy-tailed over the individuals: Student's t of
    log odds of presence, of how these change with the response, of log sizes (root mean squares),
    and of the log odds of the angle whose sine is the spread relative to the size; its cosine is
    the mean, of the sign of the sum of what was contributed.

    Parameters
    ----------
    model : pymc.Model
        With variables ``weights``, ``locations`` and ``scales``, as
        `edp_bayes.models.custom.PyMCMixture` has them.
    responses : Responses
        On the scale that is modelled, one response a database.
    dominant : sequence of int, optional
        Whose presence does not depend on the component, see `edp_bayes.coupling.dominance`.
    priors : mapping of str to distribution, optional
        In the place of some of `default_priors`.
    """
    import pymc as pm
    import pytensor.tensor as pt

    held = _Held.of(responses)
    components = int(model["locations"].shape.eval()[0])
    model.add_coords(
        {
            **{
                k: v for k, v in coordinates(responses, components).items() if k not in model.coords
            },
            "individual": labels.as_coordinate(responses.individual),
            "sometimes": labels.as_coordinate(responses.individual[held.sometimes]),
            "record": np.arange(held.database.size),
        }
    )
    with model:
        location = (model["locations"] - held.mean) / held.unit
        variance = (model["scales"] / held.unit) ** 2

        pool = Priors({**default_priors(), **(priors or {})}, SUPPORTS, check=False).add
        size = pm.StudentT(
            "log_size", TAILS, mu=pool("size_middle"), sigma=pool("size_between"), dims="individual"
        )
        size = pt.exp(size)
        # mean and spread are the legs of a right angle whose hypotenuse is the size
        own = pm.StudentT("angle_own", TAILS, dims="individual")
        angle = np.pi * pt.sigmoid(pool("angle_middle") + pool("angle_between") * own)
        pm.Potential(LEAST_SPREAD, -0.5 * LEAST_RELATIVE**2 * (pt.sin(angle) ** -2).sum())
        spread, at_centre = size * pt.sin(angle), held.sign * size * pt.cos(angle)
        steepness = pm.Normal("steepness", 0.0, 1.0, dims="individual")
        slope = pt.maximum(steepness * spread / held.steep, -STEEPEST)
        intercept = at_centre - slope * held.centre

        odds, tilt = _odds_of_presence(held, dominant, pool)
        # with what component an individual comes, by where it lies
        by_component = odds[:, None] + tilt[:, None] * FAR * pt.tanh(location / FAR)
        logit = odds + tilt * held.place
        if (large := np.setdiff1d(held.large, dominant)).size:
            moves = intercept[large, None], slope[large, None], spread[large, None] ** 2
            told = _given_response(
                held.response, pt.log(model["weights"]), location, variance, by_component[large],
                *moves,
            )  # fmt: skip
            logit = pt.set_subtensor(logit[:, large], told)
        pm.Bernoulli(
            "present", logit_p=logit, observed=held.present, dims=("database", "individual")
        )
        who, rest = held.owner, held.rest
        pm.Normal(
            "contribution",
            (intercept[who] + slope[who] * rest) * held.unit,
            spread[who] * held.unit,
            observed=held.contribution,
            dims="record",
        )
        both = ("individual", "component")
        at_zero = intercept * held.unit - slope * held.mean
        for name, value, dims in zip(
            CONTRIBUTIONS,
            (pt.sigmoid(by_component), at_zero, slope, spread * held.unit),
            (both, *["individual"] * 3),
            strict=True,
        ):
            pm.Deterministic(name, value, dims=dims)


def default_priors() -> dict[str, Any]:
    """Return the prior of every pool, of the individuals' log sizes, angles and log odds.

    Sizes are in standard deviations of the response; see docs/models/contributions.md.
    """
    import pymc as pm

    return {
        "size_middle": pm.Normal.dist(np.log(0.25), 2.0),
        "size_between": pm.HalfNormal.dist(1.0),
        "angle_middle": pm.Normal.dist(USUAL_ANGLE, 1.0),
        "angle_between": pm.HalfNormal.dist(0.5),
        "presence_middle": pm.Normal.dist(-1.0, 2.0),
        "presence_between": pm.HalfNormal.dist(1.5),
        "presence_tilted": pm.HalfNormal.dist(1.0),
    }


def _odds_of_presence(
    held: _Held, dominant: Sequence[int] | NDArray[np.int64], pool: Callable[[str], Any]
) -> tuple[Any, Any]:
    """Return log odds of presence at the mean response, and how they change, both (individual,)."""
    import pymc as pm
    import pytensor.tensor as pt

    people = held.present.shape[1]
    odds, tilt = pt.as_tensor(np.full(people, ALWAYS)), pt.zeros(people)
    if held.sometimes.size == 0:
        return odds, tilt
    own = pm.StudentT(
        "log_odds_presence",
        TAILS,
        mu=pool("presence_middle"),
        sigma=pool("presence_between"),
        dims="sometimes",
    )
    bent = pool("presence_tilted") * pm.StudentT("presence_tilt", TAILS, dims="sometimes")
    odds = pt.set_subtensor(odds[held.sometimes], own)
    bends = ~np.isin(held.sometimes, dominant)
    return odds, pt.set_subtensor(tilt[held.sometimes], bent * bends)


def _given_response(
    response: Array, log_weights: Any, location: Any, variance: Any, odds: Any,
    a: Any, b: Any, tau2: Any,
) -> Any:  # fmt: skip
    """Return log odds of presence given each response, log f1(y) - log f0(y): (n, individual)."""
    import pytensor.tensor as pt

    presence = pt.sigmoid(odds)
    m = (location - presence * a) / (1.0 + presence * b)
    jump = a + b * m
    explained = presence * tau2 + presence * (1.0 - presence) * jump**2
    left = variance - pt.minimum(explained, LARGEST_SHARE * variance)
    s2 = left / (1.0 - presence + presence * (1.0 + b) ** 2)
    y = pt.as_tensor(response)[:, None, None]
    there = m + jump, (1.0 + b) ** 2 * s2 + tau2
    absent = log_weights - pt.softplus(odds) + _log_normal(y, m, s2)
    present = log_weights - pt.softplus(-odds) + _log_normal(y, *there)
    return pt.logsumexp(present, axis=-1) - pt.logsumexp(absent, axis=-1)


def check_names(names: Any) -> None:
    """Refuse what does not name the four variables of contributions; None is no name.

    Raises
    ------
    InputTypeError
        If they are not four texts.
    """
    if names is None:
        return
    several = isinstance(names, tuple | list) and len(names) == len(CONTRIBUTIONS)
    if not (several and all(isinstance(name, str) for name in names)):
        raise InputTypeError(
            "contributions must be the names of presence, intercept, slope and spread, found "
            f"{names!r}"
        )


def drawn_contributions(
    posterior: xr.Dataset,
    weights: Array,
    responses: Responses,
    names: tuple[str, ...] = CONTRIBUTIONS,
    new: ContributionDraws | None = None,
) -> DrawnContributions:
    """Collect the draws of contributions of a posterior.

    Parameters
    ----------
    posterior : xarray.Dataset
        Dims (chain, draw, ...), the individuals in the order of the responses; or in another one,
        which their dim ``individual`` has as coordinates.
    weights : ndarray
        Shape (chain, draw, component).
    responses : Responses
        What they were drawn from.
    names : tuple of str
        Of presence, shape (individual,) or (individual, component), and of intercept, slope and
        spread, shape (individual,).
    new : ContributionDraws, optional
        Those of an individual not in the sample.

    Raises
    ------
    InvalidInputError
        If a name is not there, has another shape or other individuals, or its values are
        impossible.
    """
    missing = [name for name in names if name not in posterior]
    if missing:
        raise InvalidInputError(
            f"the model must have variables of contributions named {', '.join(names)}; "
            f"{', '.join(missing)} not found among {', '.join(map(str, posterior.data_vars))}"
        )
    people, components = responses.n_individuals, weights.shape[-1]
    one: list[tuple[int, ...]] = [(people,)]
    shapes = [[*one, (people, components)], one, one, one]
    parts = []
    for name, allowed in zip(names, shapes, strict=True):
        values = _ordered(posterior[name], responses).transpose("chain", "draw", ...).to_numpy()
        if values.shape[2:] not in allowed:
            raise InvalidInputError(
                f"{name} must have the shape {' or '.join(map(str, allowed))} of the individuals, "
                f"found {values.shape[2:]}"
            )
        parts.append(np.asarray(values.reshape(-1, *values.shape[2:]), dtype=np.float64))
    presence, intercept, slope, spread = parts
    if ((presence < 0.0) | (presence > 1.0)).any() or (spread < 0.0).any():
        raise InvalidInputError(
            f"{names[0]} must be between 0 and 1 and {names[3]} at least 0, found values from "
            f"{presence.min():g} to {presence.max():g} and from {spread.min():g}"
        )
    presence = presence[..., None] if presence.ndim == 2 else presence
    return DrawnContributions.of(
        ContributionDraws(presence, intercept, slope, spread),
        weights.reshape(-1, components),
        Statistics.of(responses).centre,
        new,
    )


def with_drawn(
    fitted: FittedModel,
    posterior: xr.Dataset,
    responses: Responses,
    names: tuple[str, ...] = CONTRIBUTIONS,
    *,
    new: ContributionDraws | None = None,
    without: Mapping[int, Mixture] | None = None,
) -> FittedModel:
    """Return a fit whose contributions are those of a posterior, see `drawn_contributions`.

    Parameters
    ----------
    without : mapping of int to Mixture, optional
        The distribution without some individuals.
    """
    from edp_bayes.coupling.regression import RegressionCoupling

    assert isinstance(fitted.coupling, RegressionCoupling)
    source = drawn_contributions(posterior, fitted.mixture.weights, responses, names, new)
    coupling = replace(fitted.coupling, posterior=source, presence=None, without=without or {})
    return replace(fitted, coupling=coupling)


def _ordered(values: xr.DataArray, responses: Responses) -> xr.DataArray:
    """Return a variable with its individuals in the order of the responses."""
    if "individual" not in values.coords:
        return values
    wanted, found = labels.as_coordinate(responses.individual), values["individual"].to_numpy()
    if found.size == wanted.size and (found == wanted).all():
        return values
    if sorted(map(str, found.tolist())) != sorted(map(str, wanted.tolist())):
        raise InvalidInputError(
            f"{values.name} is of individuals who are not those of the responses: found "
            f"{found[0]!r} and {found.size - 1:,} more, for {wanted[0]!r} and "
            f"{wanted.size - 1:,} more"
        )
    return values.sel(individual=wanted)


def new_contributions(
    posterior: xr.Dataset, components: int, responses: Responses, rng: np.random.Generator
) -> ContributionDraws:
    """Draw how an individual not in the sample contributes, from the pools of `add_contributions`.

    They are always there, or contribute negative amounts, by the share of those in the sample.
    """
    from scipy.special import expit

    held = _Held.of(responses)

    def of(name: str) -> Array:
        return np.asarray(posterior[name].to_numpy().reshape(-1))

    draws = of("size_middle").size

    def student() -> Array:
        return rng.standard_t(TAILS, draws)

    size = np.exp(np.clip(of("size_middle") + of("size_between") * student(), -300.0, 300.0))
    angle = np.pi * expit(of("angle_middle") + of("angle_between") * student())
    presence = np.ones((draws, components))
    people, sometimes = responses.n_individuals, held.sometimes.size
    if sometimes:
        location = posterior["locations"].transpose("chain", "draw", ...).to_numpy()
        place = FAR * np.tanh((location.reshape(draws, -1) - held.mean) / held.unit / FAR)
        own = of("presence_middle") + of("presence_between") * student()
        odds = own[:, None] + (of("presence_tilted") * student())[:, None] * place
        come = rng.random(draws) < sometimes / people
        presence[come] = expit(odds[come])
    sign = np.where(rng.random(draws) < np.mean(held.sign < 0.0), -1.0, 1.0)
    mean, spread = held.unit * sign * size * np.cos(angle), held.unit * size * np.sin(angle)
    return ContributionDraws(
        presence[:, None], mean[:, None], np.zeros((draws, 1)), spread[:, None]
    )


def drawn_without_regression(model: object) -> InvalidInputError:
    """Return what is raised where an adversary knows something and contributions are drawn."""
    return InvalidInputError(
        f"{model!r} draws contributions, and these have no regression on what an adversary knows: "
        "leave adversary= out, or take DirichletProcessMixture()"
    )


class _Held:
    """What of the data the model holds, responses standardised."""

    def __init__(self, responses: Responses) -> None:
        y, c = responses.response, responses.collected
        n = y.size
        self.mean, self.unit = float(y.mean()), float(y.std(ddof=1))
        self.database, self.owner = c.indices.astype(np.int64), responses.owner
        self.response = (y - self.mean) / self.unit
        self.contribution = c.data
        self.rest = (y[self.database] - c.data - self.mean) / self.unit
        stats = Statistics.of(responses)
        self.sign = np.where(stats.contribution < 0.0, -1.0, 1.0)
        self.centre = (stats.centre - self.mean) / self.unit
        self.steep = np.sqrt(INDEPENDENCE_WEIGHT * stats.rest_variance) / self.unit
        self.present = np.zeros((n, responses.n_individuals), dtype=np.int64)
        self.present[self.database, self.owner] = 1
        rest = self.response[:, None] - c.toarray() / self.unit
        self.place = FAR * np.tanh(rest / FAR)
        absent = stats.count < n
        self.large = np.flatnonzero((stats.size > LARGE * self.unit) & absent)
        self.sometimes = np.flatnonzero(absent)

    @classmethod
    def of(cls, responses: Responses) -> _Held:
        """Refuse what this model has no likelihood for."""
        if responses.samples > 1:
            raise InvalidInputError(
                "FullPosterior takes one response a database, found "
                f"{responses.samples} samples: take DirichletProcessMixture()"
            )
        if responses.n_individuals > MOST:
            raise InvalidInputError(
                f"FullPosterior is for at most {MOST:,} individuals, found "
                f"{responses.n_individuals:,}: take DirichletProcessMixture()"
            )
        if responses.remainder is not None:
            raise InvalidInputError(
                "FullPosterior needs the contributions of all individuals, and those of "
                f"{responses.reduced.sum()} were not collected: collect them, or take "
                "DirichletProcessMixture()"
            )
        return cls(responses)


def _log_normal(y: Any, mean: Any, variance: Any) -> Any:
    import pytensor.tensor as pt

    return -0.5 * ((y - mean) ** 2 / variance + pt.log(2.0 * np.pi * variance))
