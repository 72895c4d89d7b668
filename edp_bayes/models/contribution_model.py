"""How individuals contribute, as variables of the PyMC model of the response.

An individual is present with odds that change smoothly with the rest r, and then contributes
a_i + b_i r + tau_i e to it, as in `edp_bayes.coupling.contributions.posterior`. Presence rho_ik
with component k of p is that at its location.

Who contributes much makes components of their own: in all databases of these they are there. Then
it is the response that tells the component. With component k of p goes a component N(m_ik, s_ik^2)
of the distribution without i (`moments_without` of `edp_bayes.coupling.curves.one_answer`), so that

    f0(y) = sum_k w_k (1 - rho_ik) N(y; m_ik, s_ik^2),
    f1(y) = sum_k w_k rho_ik N(y; m_ik + a_i + b_i m_ik, (1 + b_i)^2 s_ik^2 + tau_i^2)

are the densities of the response with i absent and present. Given a response y they are present
with probability f1(y) / (f0 + f1)(y).

Where the response has a regression on what an adversary knows, y and r are those of the database
in question: y* = y - s (x_t - x*)' beta and r* = y* - c*, with c* = c - g_i' (x_t - x*).
Contributions are regressed on x_t beside the rest. Log odds of presence change with x_t for all
alike, and with presence in the database before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.contributions.adjustment import ACTIVITY
from edp_bayes.coupling.contributions.pooling import TAILS
from edp_bayes.coupling.contributions.posterior import STEEPEST, ContributionDraws
from edp_bayes.coupling.curves.one_answer import LARGEST_SHARE
from edp_bayes.models.base import require_variables
from edp_bayes.models.base_measure import POSITION, REGRESSORS, add_response, coordinates
from edp_bayes.models.contribution_data import Held
from edp_bayes.models.contributions import CONTRIBUTIONS
from edp_bayes.models.priors import NONNEGATIVE, REAL, Priors
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.distributions.mixtures import Mixture

__all__ = [
    "LEAST_SPREAD",
    "OBSERVED",
    "SUPPORTS",
    "add_contributions",
    "default_priors",
    "new_contributions",
]

ALWAYS = 30.0  # log odds of presence of those never absent
USUAL_ANGLE = -np.log(5.0)  # log odds of pi / 6 in pi: a spread of half the size
OBSERVED = ("present", "contribution")  # beside the response
LEAST_SPREAD = "least_spread"  # name of the smooth floor of spreads
LEAST_RELATIVE = 0.05  # spread relative to size about which the smooth floor is
# What values the pools may have.
SUPPORTS = {
    "size_middle": REAL,
    "size_between": NONNEGATIVE,
    "angle_middle": REAL,
    "angle_between": NONNEGATIVE,
    "presence_middle": REAL,
    "presence_between": NONNEGATIVE,
    "presence_tilted": NONNEGATIVE,
    "change_between": NONNEGATIVE,
    "again_middle": REAL,
    "again_between": NONNEGATIVE,
}
SHARP = 20.0  # of floors: at the floor itself they are higher by log(2) / 20
FAR = 2.0  # standard deviations of the response beyond which presence changes little more


def add_contributions(model: Any, held: Held, priors: Mapping[str, Any] | None = None) -> None:
    """Add contributions to a PyMC model that has weights, locations and scales of normals.

    Named deterministics are `CONTRIBUTIONS`; the observed variables ``present`` and
    ``contribution`` can be predicted, and what is known of the databases is ``pm.Data``. Priors are
    heavy-tailed over the individuals: Student's t of log odds of presence, of how these change with
    the response, of log sizes (root mean squares), and of the log odds of the angle whose sine is
    the spread relative to the size; its cosine is the mean, of the sign of the sum of what was
    contributed. Given a regression, so are slopes of contributions on what is known, in units of
    the spread.

    Parameters
    ----------
    model : pymc.Model
        With variables ``weights``, ``locations`` and ``scales``, as
        `edp_bayes.models.custom.PyMCMixture` has them.
    held : Held
        The data and their units.
    priors : mapping of str to distribution, optional
        In the place of some of `default_priors`.
    """
    import pymc as pm
    import pytensor.tensor as pt

    _add_coordinates(model, held)
    with model:
        pool = Priors({**default_priors(), **(priors or {})}, SUPPORTS, check=False).add
        seen, p = _Seen.of(held), _InQuestion.of(model, held)
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
        slope = _above(steepness * spread / held.steep, -STEEPEST)
        explained, moved, change = _regressed(held, seen, spread, pool)
        rest = p.response[seen.database] - moved / held.units.spread
        intercept = at_centre + change - slope * held.centre

        presence = _Presence.of(held, seen, pool)
        logit = presence.given_rest(seen, p.response, rest)
        if (large := held.large).size:
            moves = intercept[large, None], slope[large, None], spread[large, None] ** 2
            odds = presence.in_databases(large, p.location)
            logit = pt.set_subtensor(logit[:, large], _given_response(p, odds, *moves))
        pm.Bernoulli("present", logit_p=logit, observed=seen.present, dims=EVERYBODY)
        who, unit = seen.owner, held.units.spread
        usual = at_centre[who] + explained + slope[who] * (rest - pt.as_tensor(held.centre)[who])
        pm.Normal(
            "contribution", usual * unit, spread[who] * unit, observed=seen.amount, dims="record"
        )
        at_zero = intercept * unit - slope * held.units.centre
        by_component = pt.sigmoid(presence.by_component(p.location))
        pm.Deterministic(CONTRIBUTIONS[0], by_component, dims=("individual", "component"))
        values = (at_zero, slope, spread * unit)
        for name, value in zip(CONTRIBUTIONS[1:], values, strict=True):
            pm.Deterministic(name, value, dims="individual")


EVERYBODY = ("database", "individual")


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
        "change_between": pm.HalfNormal.dist(0.5),
        "again_middle": pm.Normal.dist(0.0, 1.5),
        "again_between": pm.HalfNormal.dist(1.0),
    }


def _add_coordinates(model: Any, held: Held) -> None:
    """Add what is missing of the coordinates."""
    responses = held.responses
    components = int(model["locations"].shape.eval()[0])
    shared = coordinates(responses, components)
    own = {
        "individual": labels.as_coordinate(responses.individual),
        "sometimes": labels.as_coordinate(responses.individual[held.sometimes]),
        "record": np.arange(held.owner.size),
        **({"predictor": held.predictor} if held.predictor else {}),
    }
    model.add_coords({k: v for k, v in shared.items() if k not in model.coords} | own)


class _Seen(NamedTuple):
    """The data of the model."""

    database: Any
    owner: Any
    amount: Any
    present: Any
    predictors: Any
    before: Any

    @classmethod
    def of(cls, held: Held) -> _Seen:
        """Add data to the current model; None for what there is not.

        Those of the database in question are there for predictions: no variable depends on them.
        """
        import pymc as pm

        add_response(held.responses)
        predictors = before = None
        if held.predictor:
            predictors = pm.Data("predictors", held.predictors, dims=("database", "predictor"))
            pm.Data("predictors_next", held.target, dims="predictor")
        if held.timed:
            before = pm.Data("present_before", held.before[:-1], dims=EVERYBODY)
            pm.Data("present_before_next", held.before_in_question, dims="individual")
        return cls(
            pm.Data("record_database", held.database, dims="record"),
            pm.Data("record_individual", held.owner, dims="record"),
            pm.Data("contribution_data", held.contribution, dims="record"),
            pm.Data("present_data", held.present, dims=EVERYBODY),
            predictors,
            before,
        )


class _InQuestion(NamedTuple):
    """The response and its components at the database in question, standardised."""

    log_weights: Any
    location: Any
    variance: Any
    response: Any

    @classmethod
    def of(cls, model: Any, held: Held) -> _InQuestion:
        """Take them from a model of the response, or of the residuals of its regression."""
        import pytensor.tensor as pt

        units, regression, y = held.units, held.regression, model["response_data"]
        location, scale = model["locations"], model["scales"]
        if regression is not None:
            own = regression.units
            beta, gamma = pt.zeros(0), pt.zeros(())
            position: Any = np.zeros(1)
            if regression.deviation.size:
                beta = model["coefficients"]
            if regression.scaled:
                gamma, position = model["growth"], model[POSITION]
            left = (y - own.centre) / own.spread - pt.dot(model[REGRESSORS], beta)
            # of the databases that were observed, whatever others are predicted later
            observed = regression.sample[:, 0] - pt.dot(pt.as_tensor(regression.design), beta)
            middle = (observed * pt.exp(-gamma * regression.position)).mean()
            in_question = regression.known.target_position if regression.scaled else 0.0
            growth = pt.exp(gamma * in_question)

            def taken(u: Any) -> Any:
                return own.centre + own.spread * (regression.place + growth * (u - middle))

            y, location = taken(left / pt.exp(gamma * position)), taken(location)
            scale = own.spread * growth * scale
        return cls(
            pt.log(model["weights"]),
            (location - units.centre) / units.spread,
            (scale / units.spread) ** 2,
            (y - units.centre) / units.spread,
        )


def _regressed(
    held: Held, seen: _Seen, spread: Any, pool: Callable[[str], Any]
) -> tuple[Any, Any, Any]:
    """Return what is known to explain of contributions.

    That of each record, standardised; each contribution at the database in question; and by how
    much the mean of everybody there differs from that on average, standardised.
    """
    import pymc as pm
    import pytensor.tensor as pt

    if not held.predictor:
        return 0.0, seen.amount, 0.0
    own = pm.StudentT("change_own", TAILS, dims=("individual", "predictor"))
    change = pool("change_between") * spread[:, None] * own
    explained = (change[seen.owner] * seen.predictors[seen.database]).sum(axis=-1)
    there = pt.dot(change, held.target)
    away = explained - there[seen.owner]
    return explained, seen.amount - held.units.spread * away, there


class _Presence(NamedTuple):
    """Log odds of presence: at the mean response, and how they change with it, by individual.

    And how far they are from that in each database, and in that in question.
    """

    odds: Any
    tilt: Any
    away: Any
    in_question: Any

    @classmethod
    def of(cls, held: Held, seen: _Seen, pool: Callable[[str], Any]) -> _Presence:
        """Add their variables to the current model."""
        import pymc as pm
        import pytensor.tensor as pt

        people, some = held.responses.n_individuals, held.sometimes
        odds, tilt = pt.as_tensor(np.full(people, ALWAYS)), pt.zeros(people)
        if some.size == 0:
            return cls(odds, tilt, None, 0.0)
        own = pm.StudentT(
            "log_odds_presence",
            TAILS,
            mu=pool("presence_middle"),
            sigma=pool("presence_between"),
            dims="sometimes",
        )
        bent = pool("presence_tilted") * pm.StudentT("presence_tilt", TAILS, dims="sometimes")
        odds = pt.set_subtensor(odds[some], own)
        bends = ~np.isin(some, held.dominant)
        tilt = pt.set_subtensor(tilt[some], bent * bends)
        away, in_question = None, 0.0
        if held.predictor:
            common = pm.Normal("presence_change", 0.0, ACTIVITY, dims="predictor")
            away = pt.dot(seen.predictors, common)[:, None]
            in_question = pt.dot(pt.as_tensor(held.target), common)
        if held.timed:
            deviation = pm.StudentT("again_own", TAILS, dims="sometimes")
            own = pool("again_middle") + pool("again_between") * deviation
            again = pt.set_subtensor(pt.zeros(people)[some], own)
            recent = seen.before * again
            away = recent if away is None else away + recent
            in_question = in_question + held.before_in_question * again
        return cls(odds, tilt, away, in_question)

    def by_component(self, location: Any) -> Any:
        """Return log odds by component at the database in question, (individual, component)."""
        return (self.odds + self.in_question)[:, None] + self.tilt[:, None] * _bent(location)

    def in_databases(self, some: NDArray[np.int64], location: Any) -> Any:
        """Return log odds of some with each component, (database or 1, individual, component)."""
        odds = self.odds[None] if self.away is None else self.odds + self.away
        return odds[:, some, None] + self.tilt[some, None] * _bent(location)

    def given_rest(self, seen: _Seen, response: Any, rest: Any) -> Any:
        """Return log odds given the response without each individual, (database, individual)."""
        import pytensor.tensor as pt

        odds = self.odds if self.away is None else self.odds + self.away
        absent = odds + self.tilt * _bent(response)[:, None]
        # the rest is the response, but where somebody contributed
        place = seen.database * seen.present.shape[1] + seen.owner
        less = self.tilt[seen.owner] * (_bent(rest) - _bent(response)[seen.database])
        return pt.inc_subtensor(absent.ravel()[place], less).reshape(absent.shape)


def _above(x: Any, least: float) -> Any:
    """Return x, but above a floor: smooth, so that a sampler does not meet an edge there.

    The larger of both within exp(-20 distance) / 20 of the distance between them.
    """
    import pytensor.tensor as pt

    return least + pt.softplus(SHARP * (x - least)) / SHARP


def _bent(place: Any) -> Any:
    """Return where presence changes little more beyond `FAR`."""
    import pytensor.tensor as pt

    return FAR * pt.tanh(place / FAR)


def _given_response(p: _InQuestion, odds: Any, a: Any, b: Any, tau2: Any) -> Any:
    """Return log odds of presence given each response, log f1(y) - log f0(y): (n, individual)."""
    import pytensor.tensor as pt

    presence = pt.sigmoid(odds)
    m = (p.location - presence * a) / (1.0 + presence * b)
    jump = a + b * m
    explained = presence * tau2 + presence * (1.0 - presence) * jump**2
    left = p.variance * _above(1.0 - explained / p.variance, 1.0 - LARGEST_SHARE)
    s2 = left / (1.0 - presence + presence * (1.0 + b) ** 2)
    y = p.response[:, None, None]
    there = m + jump, (1.0 + b) ** 2 * s2 + tau2
    absent = p.log_weights - pt.softplus(odds) + _log_normal(y, m, s2)
    present = p.log_weights - pt.softplus(-odds) + _log_normal(y, *there)
    return pt.logsumexp(present, axis=-1) - pt.logsumexp(absent, axis=-1)


def _log_normal(y: Any, mean: Any, variance: Any) -> Any:
    import pytensor.tensor as pt

    return -0.5 * ((y - mean) ** 2 / variance + pt.log(2.0 * np.pi * variance))


def new_contributions(
    posterior: xr.Dataset, mixture: Mixture, held: Held, rng: np.random.Generator
) -> ContributionDraws:
    """Draw how an individual not in the sample contributes, from the pools of `add_contributions`.

    They are always there, or contribute negative amounts, by the share of those in the sample. What
    is known of the database before says nothing of them.

    Parameters
    ----------
    posterior : Dataset
        Draws of the pools.
    mixture : Mixture
        Of the response, at the database in question; shape (chain, draw, component).
    held : Held
        The data and their units.
    rng : Generator
        Random numbers.
    """
    from scipy.special import expit

    def of(name: str) -> Array:
        require_variables([name], posterior.data_vars, " of the pools")
        values = posterior[name].transpose("chain", "draw", ...).to_numpy()
        return np.asarray(values.reshape(-1, *values.shape[2:]))

    draws, unit = of("size_middle").size, held.units.spread

    def student(*shape: int) -> Array:
        return rng.standard_t(TAILS, (draws, *shape))

    size = np.exp(np.clip(of("size_middle") + of("size_between") * student(), -300.0, 300.0))
    angle = np.pi * expit(of("angle_middle") + of("angle_between") * student())
    location = mixture.locations.reshape(draws, -1)
    presence = np.ones(location.shape)
    sometimes = held.sometimes.size
    if sometimes:
        place = FAR * np.tanh((location - held.units.centre) / unit / FAR)
        own = of("presence_middle") + of("presence_between") * student()
        if held.predictor:
            own = own + of("presence_change") @ held.target
        odds = own[:, None] + (of("presence_tilted") * student())[:, None] * place
        come = rng.random(draws) < sometimes / held.responses.n_individuals
        presence[come] = expit(odds[come])
    sign = np.where(rng.random(draws) < np.mean(held.sign < 0.0), -1.0, 1.0)
    mean, spread = sign * size * np.cos(angle), size * np.sin(angle)
    if held.predictor:
        own = student(held.target.size) @ held.target
        mean = mean + of("change_between") * spread * own
    return ContributionDraws(
        presence[:, None],
        unit * mean[:, None],
        np.zeros((draws, 1)),
        unit * spread[:, None],
    )
