"""Blocked Gibbs sampling of the conjugate Gaussian mixtures.

The same posteriors as by NUTS, far cheaper and without divergences; a test holds the two to each
other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from edp_bayes.coupling.contributions.dominance import fit_without
from edp_bayes.diagnostics.truncation import Truncation
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.exceptions import SamplingError
from edp_bayes.models.base import FittedModel, fitted_mixture, parts_of
from edp_bayes.models.base_measure import (
    BaseMeasure,
    Standardisation,
    assumed,
    least_of,
    narrowest_of,
)
from edp_bayes.models.conditional import Given, given_of
from edp_bayes.models.conjugate_prior import gibbs_dataset, prior_of_gibbs
from edp_bayes.models.coupled import coupled_mixture
from edp_bayes.models.dirichlet_process import DirichletProcessMixture
from edp_bayes.models.finite_mixture import FiniteMixture
from edp_bayes.models.log_prior import (
    coefficient_priors,
    component_priors,
    gather,
    share_prior,
    stick_priors,
)
from edp_bayes.models.regression import InQuestion, Regression
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.responses.responses import Responses
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import borrowing, compiled, decay
from edp_bayes.utils.progress import working

__all__ = ["draw_parameters", "fit_dirichlet_process", "fit_finite"]

BINNED_TRIES = 1000
UNITS = Standardisation(0.0, 1.0)  # of residuals
# Steps of gamma in a sweep, and the share of them that is taken.
WALKS, ACCEPTED = 2, 0.4


def fit_dirichlet_process(
    model: DirichletProcessMixture, data: Responses | Regression, settings: SamplerSettings
) -> FittedModel:
    """Draw a Dirichlet process mixture with a Gaussian kernel.

    Ishwaran and James (2001), Section 5.
    """

    def weight_priors(drawn: GibbsDraws) -> dict[str, Array]:
        sticks = drawn.weights.shape[-1] - 1
        return stick_priors(model.concentration, drawn.concentration, drawn.log_rest, sticks)

    return _fit(
        model,
        data,
        settings,
        components=model.truncate(parts_of(data)[0].n_databases),
        concentration=model.concentration,
        weight_concentration=0.0,
        weight_priors=weight_priors,
    )


def fit_finite(
    model: FiniteMixture, data: Responses | Regression, settings: SamplerSettings
) -> FittedModel:
    """Draw a finite mixture with a Gaussian kernel."""
    return _fit(
        model,
        data,
        settings,
        components=model.components,
        concentration=(1.0, 1.0),
        weight_concentration=model.weight_concentration,
        weight_priors=lambda drawn: share_prior(model.weight_concentration, drawn.weights),
    )


def _fit(
    model: DirichletProcessMixture | FiniteMixture,
    data: Responses | Regression,
    settings: SamplerSettings,
    *,
    components: int,
    concentration: tuple[float, float],
    weight_concentration: float,
    weight_priors: Callable[[GibbsDraws], dict[str, Array]],
) -> FittedModel:
    draw = partial(
        draw_parameters,
        settings=settings,
        components=components,
        base=model.base_measure,
        concentration=concentration,
        weight_concentration=weight_concentration,
        thin=model.thin,
    )
    if isinstance(data, Responses):
        drawn, in_question, responses = (
            draw(data.response_by_database, half=data.half_step),
            None,
            data,
        )
    else:
        drawn = draw(data.sample, units=UNITS, regression=data, half=data.half_step)
        in_question = InQuestion.of(data, drawn.mixture, drawn.coefficients, drawn.growth)
        responses = in_question.responses
    stick = weight_concentration == 0.0
    priors = {**weight_priors(drawn), **drawn.component_priors(model.base_measure)}
    if isinstance(data, Regression):
        priors |= coefficient_priors(data, drawn.coefficients, drawn.growth)
    coupled = coupled_mixture(
        drawn.mixture,
        responses,
        settings.random_seed or 0,
        in_question=in_question,
        without=_without(responses, settings, draw, model.base_measure),
    )
    return fitted_mixture(
        coupled,
        settings,
        parameters=gibbs_dataset(drawn.variables(concentration=stick)),
        prior=partial(
            prior_of_gibbs,
            settings,
            model.base_measure,
            drawn.units,
            components=components,
            concentration=concentration,
            weight_concentration=weight_concentration,
            least=drawn.least,
        ),
        log_prior=gather(priors),
        attributes=model.attributes(parts_of(data)[0]) | assumed(model.base_measure, data),
        remedy=model.remedy,
        truncated=(Truncation(drawn.concentration, components),) if stick else (),
    )


@dataclass(frozen=True, eq=False)
class GibbsDraws:
    """Draws of every parameter, in standardised units.

    Attributes
    ----------
    weights, locations, spreads : ndarray
        Shape (chain, draw, component).
    concentration, centre, rate, precision : ndarray
        Shape (chain, draw).
    log_rest : ndarray
        Shape (chain, draw): log of the weight that the sticks leave to the last component.
    units : Standardisation
        What one and zero stand for.
    least : float
        What keeps components from being finer than the responses can show; see
        `edp_bayes.models.base_measure.least_of`.
    coefficients : ndarray
        Shape (chain, draw, coefficient): of what is known.
    growth : ndarray
        Shape (chain, draw): gamma.
    """

    weights: Array
    locations: Array
    spreads: Array
    concentration: Array
    centre: Array
    rate: Array
    precision: Array
    log_rest: Array
    units: Standardisation
    least: float
    coefficients: Array
    growth: Array

    @property
    def mixture(self) -> Mixture:
        """Distribution of the response, in its own units."""
        centre, spread = self.units.centre, self.units.spread
        return Mixture(self.weights, centre + spread * self.locations, spread * self.spreads)

    def variables(self, *, concentration: bool) -> dict[str, Array]:
        """Return the draws of the variables that the PyMC model has, by their names there."""
        mixture = self.mixture
        return {
            **({"concentration": self.concentration} if concentration else {}),
            "centre": self.centre,
            "rate": self.rate,
            "precision": self.precision,
            "weights": mixture.weights,
            "locations": mixture.locations,
            "scales": mixture.scales,
        }

    def component_priors(self, base: BaseMeasure) -> dict[str, Array]:
        """Return log prior densities of the components and their base measure."""
        return component_priors(
            base,
            centre=self.centre,
            rate=self.rate,
            precision=self.precision,
            locations=self.locations,
            variances=self.spreads**2,
            least=self.least,
        )


def _without(
    responses: Responses,
    settings: SamplerSettings,
    draw: Callable[..., GibbsDraws],
    base: BaseMeasure,
) -> dict[int, Mixture]:
    """Draw the distribution of the response without each dominant individual.

    What is stated of the narrowest components is said of the response, not of what is left of it.
    """
    shape = (settings.chains, settings.draws)
    half, base = responses.half_step, replace(base, narrowest=None)
    return fit_without(
        responses, shape, lambda y, stream: draw(y, stream=stream, half=half, base=base).mixture
    )


def draw_parameters(
    sample: Array,
    *,
    settings: SamplerSettings,
    components: int,
    base: BaseMeasure,
    concentration: tuple[float, float],
    weight_concentration: float,
    thin: int,
    units: Standardisation | None = None,
    stream: str = "",
    regression: Regression | None = None,
    half: Array | None = None,
) -> GibbsDraws:
    """Run every chain, each with a generator of its own; stick-breaking without Dirichlet.

    The responses have shape (n, samples). The units are those of the base measure; by default the
    responses' own mean and spread. A stream names the random numbers. Given a regression the
    mixture is that of its residuals. Given `half`, shape (n,), half the widths of the bins whose
    middles the responses are, one of each database, it is that of values within the bins: these are
    drawn, too (Canale and Dunson 2011).
    """
    if units is None:
        units = Standardisation.of(sample)
    given = given_of(regression, len(sample))
    least = least_of(narrowest_of(base, sample, half, regression) / units.spread)
    y = np.ascontiguousarray((sample - units.centre) / units.spread)
    hyper = np.array(
        [
            base.shape,
            base.rate_shape,
            base.rate_rate,
            base.precision_shape,
            base.precision_rate,
            base.location_scale**2,
            base.scale_shape or 0.0,
            least,
            *concentration,
            weight_concentration,
        ]
    )
    bins = np.empty(0) if half is None else np.ascontiguousarray(half / units.spread)

    def chain(index: int) -> tuple[Array, ...]:
        rng = settings.generator("gibbs", index, *stream.encode())
        parts: tuple[Array, ...] = sweep_chain(
            y, bins, components, hyper, given, settings.tune, settings.draws, thin, rng
        )
        return parts

    with working("Sampling", show=settings.progressbar), ThreadPoolExecutor(settings.cores) as pool:
        chains = list(pool.map(chain, range(settings.chains)))
    w, mu, sd, hyperparameters, coefficients, growth = (
        np.stack(part) for part in zip(*chains, strict=True)
    )
    if not (np.isfinite(w).all() and np.isfinite(mu).all() and np.isfinite(sd).all()):
        raise SamplingError("the Gibbs sampler returned draws that are not finite")
    alpha, centre, rate, precision, log_rest = np.moveaxis(hyperparameters, -1, 0)
    return GibbsDraws(
        w, mu, sd, alpha, centre, rate, precision, log_rest, units, least, coefficients, growth
    )


@borrowing
def _standard_normal_within(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw from the standard normal distribution between two ends, by rejection.

    Robert (1995), Simulation of truncated normal variables, for tails: an exponential distribution
    from the near end on is proposed. Ends below zero are reflected. After BINNED_TRIES refusals
    it is the point nearest to zero.
    """
    flip = high < 0.0
    if flip:
        low, high = -high, -low
    wide = high - low > 2.0
    near = min(max(low, 0.0), high)
    z = near
    for _ in range(BINNED_TRIES):
        if wide and low < 0.5:
            # at least three in ten are taken
            z = rng.standard_normal()
            taken = low <= z <= high
        elif low > 0.0 and (high - low) * low > 1.0:
            # the rate of which most are taken
            rate = 0.5 * (low + math.sqrt(low * low + 4.0))
            z = low + rng.standard_exponential() / rate
            taken = z <= high and rng.random() < math.exp(-0.5 * (z - rate) ** 2)
        else:
            # uniform, against the density's largest value, at near
            z = low + (high - low) * rng.random()
            taken = rng.random() < math.exp(0.5 * (near * near - z * z))
        if taken:
            return -z if flip else z
    return -near if flip else near


@compiled
def sweep_chain(
    y: Array,
    bins: Array,
    K: int,
    hyper: Array,
    given: Given,
    tune: int,
    draws: int,
    thin: int,
    rng: np.random.Generator,
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """One chain on standardised responses (database, sample): weights, locations, sds and others.

    Where there are bins, half the width of each database's, its value within them is drawn.
    The others, last axis: concentration, centre, rate, precision, log of the weight sticks leave.
    Then the coefficients of what is known, and gamma. Blocked Gibbs sampling (Ishwaran and James
    2001, Section 5) of the prior in docs/models/response.md, y_j = x_j' beta + s_j u_j with
    s_j = exp(gamma z_j) as in docs/models/adversary.md. Indices: j database, k component (K of
    them), i sample, later the draw that is kept, a coefficient.
    """
    n, samples = y.shape
    terms = given.design.shape[1]
    beta, gamma = given.start.copy(), given.growth
    coefficients, growths = np.empty((draws, terms)), np.empty(draws)
    step, pace = given.deviation, 0.0
    factor, right = np.empty((terms, terms)), np.empty(terms)
    label = np.zeros(n, dtype=np.int64)
    # of the responses: mean and mean square over a database's samples, all that is needed, because
    # each sample counts 1 / samples; mean and square are those of the residuals u
    raw_mean, raw_square = np.zeros(n), np.zeros(n)
    # own: shape of the components' own rates, 0 for one rate; least: 0.5 f^2, f the narrowest sd
    shape, rate_a, rate_b, precision_a, precision_b, centre_v, own = hyper[:7]
    least, alpha_a, alpha_b, dirichlet = hyper[7:]
    mean = np.zeros(n)
    square = np.zeros(n)
    for j in range(n):
        for i in range(samples):
            raw_mean[j] += y[j, i] / samples
            raw_square[j] += y[j, i] ** 2 / samples
        mean[j], square[j] = raw_mean[j], raw_square[j]
    # w, mu and v: weights, locations and variances, shape (K,), in units of u
    kept = np.empty((3, draws, K))
    others = np.empty((draws, 5))
    w = np.full(K, 1.0 / K)
    mu = rng.standard_normal(K)
    v = np.full(K, 0.5)
    centre, precision, rate, alpha = 0.0, precision_a / precision_b, rate_a / rate_b, 1.0
    # One rate for all components, or one for each about a common one.
    # v_k ~ InverseGamma(shape, rates_k), rates_k ~ Gamma(own, rate)
    rates = np.full(K, rate)
    log_left = 0.0
    # of the databases of a component: how many, sum of means, sum of mean squares
    count = np.empty(K)
    total = np.empty(K)
    squares = np.empty(K)
    mass, constant, half = np.empty(K), np.empty(K), np.empty(K)
    for sweep in range(tune + draws * thin):
        count[:] = 0.0
        total[:] = 0.0
        squares[:] = 0.0
        if bins.size > 0:
            for j in range(n):
                # the answer within its bin, given its component: N(x' beta + s mu_k, s^2 v_k)
                # between the edges (Canale and Dunson 2011)
                k, fitted, scale = label[j], 0.0, math.exp(gamma * given.position[j])
                for a in range(terms):
                    fitted += given.design[j, a] * beta[a]
                middle, spread = fitted + scale * mu[k], scale * math.sqrt(v[k])
                low = (y[j, 0] - bins[j] - middle) / spread
                high = (y[j, 0] + bins[j] - middle) / spread
                raw_mean[j] = middle + spread * _standard_normal_within(rng, low, high)
                raw_square[j] = raw_mean[j] ** 2
                mean[j], square[j] = raw_mean[j], raw_square[j]
        if terms > 0:
            _residuals(raw_mean, raw_square, given, beta, gamma, mean, square)
        # P(label_j = k | .) proportional to w_k v_k^-1/2 exp(-mean_i (u_ji - mu_k)^2 / (2 v_k)),
        # normalised by the largest; 1e-300 keeps the logarithm of an empty weight finite
        # (by a loop: arrays added up take a second to compile)
        for k in range(K):
            constant[k] = math.log(w[k] + 1e-300) - 0.5 * math.log(v[k])
            half[k] = 0.5 / v[k]
        for j in range(n):
            # Loops without branches become vector instructions.
            for k in range(K):
                distance = square[j] + mu[k] * (mu[k] - 2.0 * mean[j])
                mass[k] = constant[k] - distance * half[k]
            top = mass.max()
            for k in range(K):
                mass[k] = decay(top - mass[k])[0]
            running = 0.0
            for k in range(K):
                running += mass[k]
                mass[k] = running
            u = rng.random() * running
            k = 0
            while k < K - 1 and mass[k] < u:
                k += 1
            label[j] = k
            count[k] += 1.0
            total[k] += mean[j]
            squares[k] += square[j]
        inverse, pull, scatter = 0.0, 0.0, 0.0
        for k in range(K):
            # v | mu ~ InverseGamma(shape + n_k / 2, rate_k + (sum (u - mu)^2 + least) / 2);
            # rounding can make the sum negative. mu | v ~ N(middle, 1 / strength)
            rest = squares[k] + mu[k] * (count[k] * mu[k] - 2.0 * total[k])
            sharp = rng.standard_gamma(shape + 0.5 * count[k])
            v[k] = (rates[k] + 0.5 * (max(rest, 0.0) + least)) / sharp
            strength = precision + count[k] / v[k]
            middle = (precision * centre + total[k] / v[k]) / strength
            mu[k] = middle + rng.standard_normal() / math.sqrt(strength)
            inverse += 1.0 / v[k]
            pull += mu[k]
            scatter += (mu[k] - centre) ** 2
        if dirichlet > 0.0:
            whole = 0.0
            for k in range(K):
                # w | . ~ Dirichlet(dirichlet + n_k)
                w[k] = rng.standard_gamma(dirichlet + count[k])
                whole += w[k]
            for k in range(K):
                w[k] /= whole
        else:
            # Sticks V_k | . ~ Beta(1 + n_k, alpha + sum_l>k n_l), w_k = V_k prod_l<k (1 - V_l);
            # remains is 1 - V_k, a ratio of gamma variables, which keeps its digits next to zero.
            # alpha | . ~ Gamma(alpha_a + K - 1, alpha_b - sum log(1 - V_k))
            left, log_left, behind = 1.0, 0.0, float(n)
            for k in range(K - 1):
                behind -= count[k]
                a = rng.standard_gamma(1.0 + count[k])
                b = rng.standard_gamma(alpha + behind)
                remains = max(b / (a + b), 1e-300)
                w[k] = left * (1.0 - remains)
                left *= remains
                log_left += math.log(remains)
            w[K - 1] = left
            alpha = max(rng.standard_gamma(alpha_a + K - 1) / (alpha_b - log_left), 1e-3)
        if own > 0.0:
            # rates_k | v_k ~ Gamma(own + shape, rate + 1 / v_k),
            # rate | . ~ Gamma(rate_a + K own, rate_b + sum rates_k)
            total_rate = 0.0
            for k in range(K):
                rates[k] = rng.standard_gamma(own + shape) / (rate + 1.0 / v[k])
                total_rate += rates[k]
            rate = rng.standard_gamma(rate_a + K * own) / (rate_b + total_rate)
        else:
            # rate | v ~ Gamma(rate_a + K shape, rate_b + sum 1 / v_k)
            rate = rng.standard_gamma(rate_a + K * shape) / (rate_b + inverse)
            rates[:] = rate
        # precision | . ~ Gamma(precision_a + K / 2, precision_b + sum (mu_k - centre)^2 / 2), and
        # centre | . ~ N(precision sum mu_k / information, 1 / information), of prior N(0, centre_v)
        precision = rng.standard_gamma(precision_a + 0.5 * K) / (precision_b + 0.5 * scatter)
        information = 1.0 / centre_v + precision * K
        centre = precision * pull / information + rng.standard_normal() / math.sqrt(information)
        if terms > 0:
            _draw_coefficients(rng, raw_mean, given, label, mu, v, gamma, beta, factor, right)
            if given.deviation > 0.0:
                for _ in range(WALKS):
                    # Metropolis with normal steps; in warm-up try t moves log step by
                    # (taken - ACCEPTED) / t^0.6 (Robbins and Monro), later it is fixed
                    proposed = gamma + step * rng.standard_normal()
                    ratio = _log_growth(
                        raw_mean, raw_square, given, label, mu, v, beta, proposed
                    ) - _log_growth(raw_mean, raw_square, given, label, mu, v, beta, gamma)
                    taken = math.log(rng.random() + 1e-300) < ratio
                    if taken:
                        gamma = proposed
                    if sweep < tune:
                        pace += 1.0
                        step *= math.exp(((1.0 if taken else 0.0) - ACCEPTED) / pace**0.6)
        i = (sweep - tune) // thin
        if sweep >= tune and (sweep - tune) % thin == thin - 1:
            # not by slices: to say that their shapes differ takes seconds to compile
            for k in range(K):
                kept[0, i, k], kept[1, i, k], kept[2, i, k] = w[k], mu[k], math.sqrt(v[k])
            others[i, 0], others[i, 1], others[i, 2] = alpha, centre, rate
            others[i, 3], others[i, 4] = precision, log_left
            growths[i] = gamma
            for a in range(terms):
                coefficients[i, a] = beta[a]
    return kept[0], kept[1], kept[2], others, coefficients, growths


@borrowing
def _residuals(
    raw_mean: Array,
    raw_square: Array,
    given: Given,
    beta: Array,
    gamma: float,
    mean: Array,
    square: Array,
) -> None:
    """Fill in mean and mean square of every database's residuals, u = (y - x' beta) / s.

    With s = exp(gamma z); design (database, coefficient), all others (database,).
    """
    for j in range(raw_mean.size):
        fitted = 0.0
        for a in range(beta.size):
            fitted += given.design[j, a] * beta[a]
        scale = math.exp(-gamma * given.position[j])
        mean[j] = (raw_mean[j] - fitted) * scale
        square[j] = (raw_square[j] + fitted * (fitted - 2.0 * raw_mean[j])) * scale * scale


@borrowing
def _log_growth(
    raw_mean: Array,
    raw_square: Array,
    given: Given,
    label: Index,
    mu: Array,
    v: Array,
    beta: Array,
    gamma: float,
) -> float:
    """Return the log density of gamma given all else, up to a constant.

    -gamma^2 / (2 deviation^2) - sum_j (gamma z_j + mean_i (u_ji - mu_k)^2 / (2 v_k)), k the
    component of j and u as for `_residuals`: gamma z_j is the log of the scale
    (docs/models/adversary.md).
    """
    found = -0.5 * (gamma / given.deviation) ** 2
    for j in range(raw_mean.size):
        fitted = 0.0
        for a in range(beta.size):
            fitted += given.design[j, a] * beta[a]
        scale = math.exp(-gamma * given.position[j])
        mean = (raw_mean[j] - fitted) * scale
        square = (raw_square[j] + fitted * (fitted - 2.0 * raw_mean[j])) * scale * scale
        k = label[j]
        distance = square + mu[k] * (mu[k] - 2.0 * mean)
        found -= gamma * given.position[j] + 0.5 * distance / v[k]
    return found


@borrowing
def _draw_coefficients(
    rng: np.random.Generator,
    raw_mean: Array,
    given: Given,
    label: Index,
    mu: Array,
    v: Array,
    gamma: float,
    beta: Array,
    factor: Array,
    right: Array,
) -> None:
    """Draw the coefficients, normal given all else: by Cholesky's factor of their precision.

    N(A^-1 b, A^-1), A = Lambda + sum x x' / (s^2 v_k), b = sum x (y - s mu_k) / (s^2 v_k), with
    Lambda the prior precisions (docs/models/adversary.md). Of A, then of its factor, the lower
    triangle is kept; right is b.
    """
    terms = beta.size
    for a in range(terms):
        right[a] = 0.0
        for b in range(terms):
            factor[a, b] = 0.0
        factor[a, a] = given.precision[a]
    for j in range(raw_mean.size):
        k, scale = label[j], math.exp(gamma * given.position[j])
        weight = 1.0 / (scale * scale * v[k])
        away = raw_mean[j] - scale * mu[k]
        for a in range(terms):
            pulled = weight * given.design[j, a]
            right[a] += pulled * away
            for b in range(a + 1):
                factor[a, b] += pulled * given.design[j, b]
    for a in range(terms):
        for b in range(a + 1):
            rest = factor[a, b]
            for c in range(b):
                rest -= factor[a, c] * factor[b, c]
            factor[a, b] = math.sqrt(rest) if a == b else rest / factor[b, b]
    # the factor's inverse times the right side, with noise, then its transpose's inverse
    for a in range(terms):
        for b in range(a):
            right[a] -= factor[a, b] * right[b]
        right[a] /= factor[a, a]
    for a in range(terms - 1, -1, -1):
        rest = right[a] + rng.standard_normal()
        for b in range(a + 1, terms):
            rest -= factor[b, a] * beta[b]
        beta[a] = rest / factor[a, a]
