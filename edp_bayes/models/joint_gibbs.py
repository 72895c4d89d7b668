"""Blocked Gibbs sampling of mixtures of multivariate normals.

Component k has covariance Sigma_k ~ InverseWishart(nu, 2 r_k I) and location
mu_k ~ Normal(m, I / precision), with a rate of its own r_k ~ Gamma(scale_shape, rate), for
whitened responses; in one dimension it is `edp_bayes.models.base_measure.BaseMeasure`. Scales of
components differ, their shapes no more than the data say: scales that are whole matrices (a matrix
F distribution of Sigma_k) favour components that are thin in some direction, in which everybody
seems to stand out.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edp_bayes.distributions.multivariate import NormalMixture, Units
from edp_bayes.exceptions import SamplingError
from edp_bayes.models.base_measure import least_of, narrowest_spread, spread_within_ties
from edp_bayes.models.conditional import given_of
from edp_bayes.models.conjugate_prior import upper_roots
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.compiled import borrowing, compiled
from edp_bayes.utils.progress import working
from edp_bayes.utils.small_matrices import cholesky, inverse_factor

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.models.base_measure import BaseMeasure
    from edp_bayes.models.joint_regression import JointRegression
    from edp_bayes.models.sampling import SamplerSettings

__all__ = ["JointDraws", "Weights", "draw_joint", "hyperparameters"]

# Steps of gamma in a sweep, and the share of them that is taken.
WALKS, ACCEPTED = 2, 0.4


class Weights(NamedTuple):
    """Prior of the weights: stick-breaking of a Gamma concentration, or Dirichlet if above zero.

    Attributes
    ----------
    components : int
        Their number.
    concentration : tuple of float
        Shape and rate.
    dirichlet : float
        Concentration of every weight of a finite mixture; 0 for stick-breaking.
    """

    components: int
    concentration: tuple[float, float] = (1.0, 1.0)
    dirichlet: float = 0.0


class Hyperparameters(NamedTuple):
    """The prior, for compiled code; see `hyperparameters`."""

    degrees: float
    scale_shape: float
    rate_shape: float
    rate_rate: float
    precision_shape: float
    precision_rate: float
    centre_variance: float
    least: float
    alpha_shape: float
    alpha_rate: float
    dirichlet: float


class ByNuts(NamedTuple):
    """A PyMC model and the draws of its posterior."""

    model: Any
    tree: xr.DataTree


class JointDraws(NamedTuple):
    """Draws of a mixture in whitened units, and its parameters at the top.

    Attributes
    ----------
    mixture : NormalMixture
        Shape (chain, draw, component).
    concentration, rate, precision : ndarray
        Shape (chain, draw).
    coefficients : ndarray
        Shape (chain, draw, coefficient, query): of what is known.
    growth : ndarray
        Shape (chain, draw): gamma.
    centre : ndarray
        Shape (chain, draw, axis).
    prior : Hyperparameters, optional
        Of Gibbs sampling.
    by_nuts : ByNuts, optional
        What NUTS drew, and of what.
    """

    mixture: NormalMixture
    concentration: Array
    rate: Array
    precision: Array
    coefficients: Array
    growth: Array
    centre: Array
    prior: Hyperparameters | None = None
    by_nuts: ByNuts | None = None

    def variables(self, *, concentration: bool) -> dict[str, Array]:
        """Return the draws of the variables that the PyMC model has, by their names there."""
        return {
            **({"concentration": self.concentration} if concentration else {}),
            "centre": self.centre,
            "rate": self.rate,
            "precision": self.precision,
            "weights": self.mixture.weights,
            "locations": self.mixture.locations,
            "roots": upper_roots(self.mixture.covariances),
        }

    @property
    def sample_stats(self) -> xr.Dataset | None:
        """What NUTS says of itself."""
        return None if self.by_nuts is None else self.by_nuts.tree["sample_stats"].to_dataset()

    @property
    def constant_data(self) -> xr.Dataset | None:
        """Data that the PyMC model of NUTS holds."""
        if self.by_nuts is None or "constant_data" not in self.by_nuts.tree.children:
            return None
        return self.by_nuts.tree["constant_data"].to_dataset()

    @property
    def divergences(self) -> int:
        """Number of divergent transitions after warm-up."""
        found = self.sample_stats
        return 0 if found is None or "diverging" not in found else int(found["diverging"].sum())


def hyperparameters(
    z: Array, base: BaseMeasure, weights: Weights, *, at_least: float = 0.0
) -> Hyperparameters:
    """Return the prior of a base measure for whitened responses (n, d).

    Degrees of freedom are such that each response on its own has the prior of one dimension:
    nu = 2 shape + d - 1. Components narrower than the responses can show
    (`edp_bayes.models.base_measure.narrowest_spread`) have next to no density: that of Sigma_k is
    multiplied by exp(-least trace(Sigma_k^-1) / 2), as in one dimension
    (`edp_bayes.models.base_measure.least_of`). They are no narrower than `at_least`, either.
    """
    d = z.shape[1]
    narrowest = max(at_least, min(narrowest_spread(z[:, [a]]) for a in range(d)))
    return Hyperparameters(
        degrees=2.0 * base.shape + d - 1.0,
        scale_shape=base.scale_shape or 0.5,
        rate_shape=base.rate_shape,
        rate_rate=base.rate_rate,
        precision_shape=base.precision_shape,
        precision_rate=base.precision_rate,
        centre_variance=base.location_scale**2,
        least=least_of(narrowest),
        alpha_shape=weights.concentration[0],
        alpha_rate=weights.concentration[1],
        dirichlet=weights.dirichlet,
    )


def within_ties(y: Array, units: Units) -> float:
    """Return how narrow a component must be, in whitened units, to hold one value of each response.

    Of responses (n, d) without ties anything, which is 0.
    """
    one = np.linalg.norm(units.factor, axis=1)
    held = [spread_within_ties(column) / unit for column, unit in zip(y.T, one, strict=True)]
    return min((spread for spread in held if spread > 0.0), default=0.0)


def draw_joint(
    y: Array,
    units: Units,
    *,
    base: BaseMeasure,
    weights: Weights,
    settings: SamplerSettings,
    thin: int,
    stream: str = "",
    regression: JointRegression | None = None,
) -> JointDraws:
    """Run every chain, each with a generator of its own, on responses (n, d).

    Given a regression, whose units these are, the mixture is that of its residuals.
    """
    z = np.ascontiguousarray(units.whiten(y))
    seen = z if regression is None else regression.residuals(*regression.mode)
    prior = hyperparameters(seen, base, weights, at_least=within_ties(y, units))
    given = given_of(regression, *z.shape)

    def chain(index: int) -> tuple[Array, ...]:
        rng = settings.generator("joint", index, *stream.encode())
        found: tuple[Array, ...] = sweep_chain(
            z, weights.components, prior, given, settings.tune, settings.draws, thin, rng
        )
        return found

    with working("Sampling", show=settings.progressbar), ThreadPoolExecutor(settings.cores) as pool:
        chains = list(pool.map(chain, range(settings.chains)))
    w, mu, factor, others, beta, gamma = (np.stack(part) for part in zip(*chains, strict=True))
    if not all(np.isfinite(part).all() for part in (w, mu, factor)):
        raise SamplingError("the Gibbs sampler returned draws that are not finite")
    mixture = NormalMixture(w, mu, factor @ np.swapaxes(factor, -1, -2))
    alpha, rate, precision = np.moveaxis(others[..., :3], -1, 0)
    return JointDraws(mixture, alpha, rate, precision, beta, gamma, others[..., 3:], prior)


@borrowing
def _triangle(rng, degrees, out, d):  # type: ignore[no-untyped-def]
    """Fill in Bartlett's lower triangle A: A A' is Wishart of unit scale.

    A_aa^2 is chi-squared with degrees - a degrees of freedom, a from zero; below it is N(0, 1).
    """
    for a in range(d):
        for b in range(d):
            out[a, b] = rng.standard_normal() if b < a else 0.0
        out[a, a] = math.sqrt(2.0 * rng.standard_gamma(0.5 * (degrees - a)))


@borrowing
def _draw_covariance(rng, degrees, scale, cov, root, inverse, precision, work, d):  # type: ignore[no-untyped-def]
    """Draw from an inverse Wishart distribution; fill in it, a root, and its inverse.

    With scale = L L' and A Bartlett's triangle it is F F', F = L A'^-1. All are (d, d): the root is
    the lower factor of cov, inverse that root's, precision cov^-1 = inverse' inverse.
    """
    lower, triangle, inner = work[0], work[1], work[2]
    cholesky(scale, lower, d)
    _triangle(rng, degrees, triangle, d)
    inverse_factor(triangle, inner, d)
    for a in range(d):
        for b in range(d):
            total = 0.0
            for c in range(min(a, b) + 1):
                total += lower[a, c] * inner[b, c]
            inverse[a, b] = total  # F, for a moment
    for a in range(d):
        for b in range(d):
            total = 0.0
            for c in range(d):
                total += inverse[a, c] * inverse[b, c]
            cov[a, b] = total
    cholesky(cov, root, d)
    inverse_factor(root, inverse, d)
    for a in range(d):
        for b in range(d):
            total = 0.0
            for c in range(max(a, b), d):
                total += inverse[c, a] * inverse[c, b]
            precision[a, b] = total


@borrowing
def _draw_normal(rng, information, right, out, work, d):  # type: ignore[no-untyped-def]
    """Draw from the normal distribution of mean M^-1 right and covariance M^-1, M the information.

    With W the inverse of its lower factor, M^-1 = W' W; the right side is lost.
    """
    cholesky(information, work[0], d)
    inverse_factor(work[0], work[1], d)
    for a in range(d):
        out[a] = rng.standard_normal()
        for b in range(a + 1):
            out[a] += work[1, a, b] * right[b]
    for a in range(d):
        right[a] = 0.0
        for b in range(a, d):
            right[a] += work[1, b, a] * out[b]
    for a in range(d):
        out[a] = right[a]


@borrowing
def _residuals(y, given, beta, gamma, z):  # type: ignore[no-untyped-def]
    """Fill in the residuals z = (y - beta' x) exp(-gamma z_t) of every database, shape (n, d)."""
    n, d = y.shape
    for j in range(n):
        scale = math.exp(-gamma * given.position[j])
        for b in range(d):
            fitted = 0.0
            for a in range(given.design.shape[1]):
                fitted += given.design[j, a] * beta[a, b]
            z[j, b] = (y[j, b] - fitted) * scale


@borrowing
def _log_growth(y, given, label, mu, sharp, beta, gamma, z):  # type: ignore[no-untyped-def]
    """Return the log density of gamma given all else, up to a constant; z becomes residuals.

    -gamma^2 / (2 deviation^2) - sum_j (d gamma z_j + (u_j - mu_k)' S_k^-1 (u_j - mu_k) / 2), with u
    the residuals and k the component of j: all d queries share one scale. sharp is S_k^-1.
    """
    n, d = y.shape
    _residuals(y, given, beta, gamma, z)
    found = -0.5 * (gamma / given.deviation) ** 2
    for j in range(n):
        k = label[j]
        found -= d * gamma * given.position[j]
        for a in range(d):
            for b in range(d):
                away = (z[j, a] - mu[k, a]) * (z[j, b] - mu[k, b])
                found -= 0.5 * sharp[k, a, b] * away
    return found


@borrowing
def _draw_coefficients(  # type: ignore[no-untyped-def]
    rng, y, given, label, mu, sharp, count, gamma, beta, crossed, factor, right, away
):
    """Draw the coefficients, normal given all else, a term after the other.

    Their precision is that of the prior and, of each component, the sum of x x' times (Kronecker)
    the component's own: Lambda x I + sum_k (sum_j in k x_j x_j' / s_j^2) x S_k^-1, with
    s_j = exp(gamma z_j) and S_k^-1 = sharp[k] (docs/models/several_queries.md). Coefficient (a, b)
    is entry a d + b: term a, query b. Lower triangles are kept.
    """
    n, d = y.shape
    terms, K = given.design.shape[1], mu.shape[0]
    for k in range(K):
        for a in range(terms):
            for b in range(a + 1):
                crossed[k, a, b] = 0.0
    for a in range(terms * d):
        right[a] = 0.0
        for b in range(terms * d):
            factor[0, a, b] = 0.0
        factor[0, a, a] = given.precision[a // d]
    for j in range(n):
        k, scale = label[j], math.exp(gamma * given.position[j])
        weight = 1.0 / (scale * scale)
        for b in range(d):
            away[b] = 0.0
            for c in range(d):
                away[b] += sharp[k, b, c] * (y[j, c] - scale * mu[k, c])
        # right side: sum_j x_j S_k^-1 (y_j - s_j mu_k) / s_j^2
        for a in range(terms):
            pulled = weight * given.design[j, a]
            for b in range(d):
                right[a * d + b] += pulled * away[b]
            for b in range(a + 1):
                crossed[k, a, b] += pulled * given.design[j, b]
    for k in range(K):
        if count[k] == 0.0:
            continue
        for a in range(terms):
            for b in range(a + 1):
                for e in range(d):
                    for f in range(d):
                        factor[0, a * d + e, b * d + f] += crossed[k, a, b] * sharp[k, e, f]
    cholesky(factor[0], factor[1], terms * d)
    # the factor's inverse times the right side, with noise, then its transpose's inverse
    for a in range(terms * d):
        for b in range(a):
            right[a] -= factor[1, a, b] * right[b]
        right[a] /= factor[1, a, a]
    for a in range(terms * d - 1, -1, -1):
        rest = right[a] + rng.standard_normal()
        for b in range(a + 1, terms * d):
            rest -= factor[1, b, a] * right[b]
        right[a] = rest / factor[1, a, a]
        beta[a // d, a % d] = right[a]


@compiled
def sweep_chain(y, K, prior, given, tune, draws, thin, rng):  # type: ignore[no-untyped-def]
    """One chain on whitened responses (n, d): weights, locations, roots of covariances, others.

    The others, last axis: concentration, rate, precision, centre (d of them). Then the coefficients
    of what is known, and gamma. Gibbs sampling of the prior in docs/models/several_queries.md:
    `models.gibbs` with covariances in the place of variances. Indices: j database, k component (K
    of them), a and b query (or term of what is known), i the draw that is kept.
    """
    n, d = y.shape
    terms = given.design.shape[1]
    beta, gamma = given.start.copy(), given.growth
    coefficients, growths = np.empty((draws, terms, d)), np.empty(draws)
    step, pace = given.deviation, 0.0
    z, label = y.copy(), np.zeros(n, dtype=np.int64)
    crossed, factor = np.empty((K, terms, terms)), np.empty((2, terms * d, terms * d))
    drawn = np.empty(terms * d)
    kept_w, kept_mu = np.empty((draws, K)), np.empty((draws, K, d))
    kept_root, others = np.empty((draws, K, d, d)), np.empty((draws, 3 + d))
    # of component k: root lower factor of S_k, inverse root^-1, sharp S_k^-1, psi scale of the
    # prior S_k ~ InverseWishart(degrees, psi_k), psi_k = 2 r_k I
    w, mu = np.full(K, 1.0 / K), np.empty((K, d))
    root, inverse, sharp = np.zeros((K, d, d)), np.zeros((K, d, d)), np.zeros((K, d, d))
    psi, work = np.zeros((K, d, d)), np.zeros((3, d, d))
    scale, cov = np.empty((d, d)), np.empty((d, d))
    count, total, squares = np.empty(K), np.empty((K, d)), np.empty((K, d, d))
    mass, away, centre = np.empty(K), np.empty(d), np.zeros(d)
    information, pull = np.empty((d, d)), np.empty(d)
    rate, precision = (
        prior.rate_shape / prior.rate_rate,
        prior.precision_shape / prior.precision_rate,
    )
    alpha = 1.0
    for k in range(K):
        for a in range(d):
            mu[k, a] = rng.standard_normal()
            root[k, a, a], inverse[k, a, a] = math.sqrt(0.5), math.sqrt(2.0)
            sharp[k, a, a], psi[k, a, a] = 2.0, 1.0
    for sweep in range(tune + draws * thin):
        for k in range(K):
            count[k] = 0.0
            for a in range(d):
                total[k, a] = 0.0
                for b in range(d):
                    squares[k, a, b] = 0.0
        if terms > 0:
            _residuals(y, given, beta, gamma, z)
        for j in range(n):
            # P(label_j = k | .) proportional to w_k N(z_j; mu_k, S_k); the log determinant of
            # S_k^-1/2 is the sum of the logs of the diagonal of inverse
            top = -np.inf
            for k in range(K):
                logs = math.log(w[k] + 1e-300)
                for a in range(d):
                    u = 0.0
                    for b in range(a + 1):
                        u += inverse[k, a, b] * (z[j, b] - mu[k, b])
                    logs += math.log(inverse[k, a, a]) - 0.5 * u * u
                mass[k] = logs
                top = max(top, logs)
            running = 0.0
            for k in range(K):
                running += math.exp(mass[k] - top)
                mass[k] = running
            u, k = rng.random() * running, 0
            while k < K - 1 and mass[k] < u:
                k += 1
            label[j] = k
            count[k] += 1.0
            for a in range(d):
                total[k, a] += z[j, a]
                for b in range(d):
                    squares[k, a, b] += z[j, a] * z[j, b]
        scatter, sharpness = 0.0, 0.0
        for a in range(d):
            pull[a] = 0.0
        for k in range(K):
            # S | mu ~ InverseWishart(degrees + n_k, psi_k + sum (z - mu)(z - mu)' + least I)
            for a in range(d):
                for b in range(d):
                    scale[a, b] = psi[k, a, b] + squares[k, a, b]
                    scale[a, b] += count[k] * mu[k, a] * mu[k, b]
                    scale[a, b] -= total[k, a] * mu[k, b] + mu[k, a] * total[k, b]
                scale[a, a] += prior.least
            _draw_covariance(
                rng, prior.degrees + count[k], scale, cov, root[k], inverse[k], sharp[k], work, d
            )
            # mu | S ~ N(M^-1 (precision centre + S^-1 sum z), M^-1), M = precision I + n_k S^-1
            for a in range(d):
                away[a] = precision * centre[a]
                for b in range(d):
                    away[a] += sharp[k, a, b] * total[k, b]
                    information[a, b] = count[k] * sharp[k, a, b]
                information[a, a] += precision
            _draw_normal(rng, information, away, mu[k], work, d)
            for a in range(d):
                scatter += (mu[k, a] - centre[a]) ** 2
                pull[a] += mu[k, a]
            # r_k | S_k ~ Gamma(scale_shape + degrees d / 2, rate + trace S_k^-1); own is r_k
            trace = 0.0
            for a in range(d):
                trace += sharp[k, a, a]
            shape = prior.scale_shape + 0.5 * prior.degrees * d
            own = rng.standard_gamma(shape) / (rate + trace)
            for a in range(d):
                for b in range(d):
                    psi[k, a, b] = 2.0 * own if a == b else 0.0
            sharpness += own
        if prior.dirichlet > 0.0:
            behind = 0.0
            for k in range(K):
                # w | . ~ Dirichlet(dirichlet + n_k)
                w[k] = rng.standard_gamma(prior.dirichlet + count[k])
                behind += w[k]
            for k in range(K):
                w[k] /= behind
        else:
            # Sticks V_k | . ~ Beta(1 + n_k, alpha + sum_l>k n_l); remains is 1 - V_k.
            # alpha | . ~ Gamma(alpha_shape + K - 1, alpha_rate - sum log(1 - V_k))
            left, log_left, behind = 1.0, 0.0, float(n)
            for k in range(K - 1):
                behind -= count[k]
                part = rng.standard_gamma(1.0 + count[k])
                rest = rng.standard_gamma(alpha + behind)
                remains = max(rest / (part + rest), 1e-300)
                w[k] = left * (1.0 - remains)
                left *= remains
                log_left += math.log(remains)
            w[K - 1] = left
            shape = prior.alpha_shape + K - 1
            alpha = max(rng.standard_gamma(shape) / (prior.alpha_rate - log_left), 1e-3)
        # rate | . ~ Gamma(rate_shape + K scale_shape, rate_rate + sum r_k);
        # precision | . ~ Gamma(precision_shape + K d / 2, precision_rate + sum |mu_k - m|^2 / 2);
        # m = centre | . ~ N(precision sum mu_k / strength, I / strength)
        shape = prior.rate_shape + K * prior.scale_shape
        rate = rng.standard_gamma(shape) / (prior.rate_rate + sharpness)
        shape = prior.precision_shape + 0.5 * K * d
        precision = rng.standard_gamma(shape) / (prior.precision_rate + 0.5 * scatter)
        strength = 1.0 / prior.centre_variance + precision * K
        for a in range(d):
            centre[a] = precision * pull[a] / strength + rng.standard_normal() / math.sqrt(strength)
        if terms > 0:
            _draw_coefficients(
                rng, y, given, label, mu, sharp, count, gamma, beta, crossed, factor, drawn, away
            )
            if given.deviation > 0.0:
                for _ in range(WALKS):
                    # Metropolis with normal steps; in warm-up try t moves log step by
                    # (taken - ACCEPTED) / t^0.6 (Robbins and Monro), later it is fixed
                    proposed = gamma + step * rng.standard_normal()
                    ratio = _log_growth(y, given, label, mu, sharp, beta, proposed, z)
                    ratio -= _log_growth(y, given, label, mu, sharp, beta, gamma, z)
                    taken = math.log(rng.random() + 1e-300) < ratio
                    if taken:
                        gamma = proposed
                    if sweep < tune:
                        pace += 1.0
                        step *= math.exp(((1.0 if taken else 0.0) - ACCEPTED) / pace**0.6)
        i = (sweep - tune) // thin
        if sweep >= tune and (sweep - tune) % thin == thin - 1:
            others[i, 0], others[i, 1], others[i, 2] = alpha, rate, precision
            for a in range(d):
                others[i, 3 + a] = centre[a]
            growths[i] = gamma
            for a in range(terms):
                for b in range(d):
                    coefficients[i, a, b] = beta[a, b]
            for k in range(K):
                kept_w[i, k] = w[k]
                for a in range(d):
                    kept_mu[i, k, a] = mu[k, a]
                    for b in range(d):
                        kept_root[i, k, a, b] = root[k, a, b]
    return kept_w, kept_mu, kept_root, others, coefficients, growths
