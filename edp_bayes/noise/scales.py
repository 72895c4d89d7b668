"""The smallest scale of Laplace or Gaussian noise that meets a target under the posterior."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.noise.certificates.noisy import NoisyCoupling
from edp_bayes.noise.certificates.ratios import protected_draws
from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.noise.posterior import Posterior
from edp_bayes.utils import validate

__all__ = ["exposed", "largest_risk", "protected_share", "smallest_scale"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

FAMILIES: dict[str, Callable[[float], GaussianNoise | LaplaceNoise]] = {
    "gaussian": GaussianNoise,
    "laplace": LaplaceNoise,
}
PRECISION = 1e-3
NUMBERS = 2**20  # risks held at once
DOUBLINGS = 60


def protected_share(
    posterior: Posterior,
    noise: NoiseDistribution,
    epsilon: float,
    delta: float,
    people: Index | None = None,
    *,
    least: float = 0.0,
) -> float:
    """Return the share of draws in which the noisy query is (epsilon, delta) private for all.

    For delta = 0 the certified log ratios decide, otherwise the integrals with their error.
    Individuals who need most noise come first, and draws in which one of them is not protected
    are not looked at again.

    Parameters
    ----------
    people : ndarray of int, optional
        The individuals that matter, all by default.
    least : float
        Zero is returned as soon as the share is known to be below this.
    """
    needed = least * posterior.n_draws - 1e-9
    order = posterior.hardest_first(epsilon)
    if people is not None:
        order = order[np.isin(order, people)]
    if delta == 0.0:
        protected = protected_draws(posterior, noise, epsilon, order, needed=needed)
        return float(protected.mean())
    alive = np.arange(posterior.n_draws)
    coupling = NoisyCoupling(posterior, noise)
    for person in order[np.isin(order, _doubtful(posterior, noise, epsilon))]:
        risk = coupling.risks(np.array([person]), np.array([epsilon]), alive)[:, 0, 0]
        alive = alive[risk + coupling.error(epsilon) <= delta]
        if alive.size < needed or alive.size == 0:
            return 0.0
    return alive.size / posterior.n_draws


def _doubtful(posterior: Posterior, noise: NoiseDistribution, epsilon: float) -> Index:
    """Return the individuals whom no table shows to be safe in all draws."""
    everybody = np.arange(posterior.n_individuals)
    screen = posterior.screen(epsilon)
    if screen is None:
        return everybody
    bounds = screen.bounds(screen.slopes(noise), np.arange(posterior.n_draws), everybody)
    return everybody[(bounds > epsilon).any(axis=0)]


def largest_risk(
    posterior: Posterior,
    noise: NoiseDistribution,
    epsilon: float,
    draws: Index | None = None,
    people: Index | None = None,
) -> Array:
    """Return max_i delta_i with the error of the quadrature added, shape (draw,)."""
    chosen = np.arange(posterior.n_draws) if draws is None else draws
    everybody = np.arange(posterior.n_individuals) if people is None else people
    coupling = NoisyCoupling(posterior, noise)
    largest = np.zeros(chosen.size)
    grid = np.array([epsilon])
    for part in _blocks(everybody, chosen.size):
        risk = coupling.risks(part, grid, chosen)[:, :, 0]
        largest = np.maximum(largest, risk.max(axis=1, initial=0.0))
    return largest + coupling.error(epsilon)


def exposed(posterior: Posterior, epsilon: float, delta: float) -> tuple[Array, Index]:
    """Return max_i delta_i without noise, shape (draw,), and all whose delta_i ever exceeds delta.

    Noise never raises a risk, so nobody else can stand in its way.
    """
    largest = np.zeros(posterior.n_draws)
    over = np.zeros(posterior.n_individuals, dtype=bool)
    for part in _blocks(np.arange(posterior.n_individuals), posterior.n_draws):
        risk = posterior.coupling.curves(part, np.array([epsilon]))[:, :, 0]
        largest = np.maximum(largest, risk.max(axis=1))
        over[part] = (risk > delta).any(axis=0)
    return largest, np.flatnonzero(over)


def _blocks(people: Index, draws: int) -> list[Index]:
    size = max(1, NUMBERS // draws)
    return [people[start : start + size] for start in range(0, people.size, size)]


def smallest_scale(
    posterior: Posterior,
    family: str,
    epsilon: float,
    delta: float,
    *,
    prob: float,
    start: float,
    people: Index | None = None,
) -> NoiseDistribution:
    """Return the least noise of a family, to a relative precision of 0.1%, by bisection.

    More noise of the same family is less noise with more added, so the share of protected draws
    never falls as the scale rises.

    Parameters
    ----------
    posterior : Posterior
        The distributions with and without each individual.
    family : {"gaussian", "laplace"}
        Distribution of the noise.
    epsilon, delta, prob : float
        Target, and the share of draws that must meet it.
    start : float
        A first guess of the scale.
    people : ndarray of int, optional
        The individuals that matter, all by default.

    Raises
    ------
    InvalidInputError
        If no scale meets the target: `edp_bayes.noise.calibration.check` refuses Gaussian noise
        for delta = 0.
    """
    validate.choice(family, FAMILIES, "family")

    def enough(scale: float) -> bool:
        noise = NoiseDistribution((FAMILIES[family](scale),))
        share = protected_share(posterior, noise, epsilon, delta, people, least=prob)
        return share > 0.0

    low, high = 0.0, start
    for _ in range(DOUBLINGS):
        if enough(high):
            break
        low, high = high, 2.0 * high
    else:
        raise InvalidInputError(
            f"no scale of {family} noise up to {high:g} meets epsilon = {epsilon:g}, "
            f"delta = {delta:g} in {prob:.0%} of the draws"
        )
    while low == 0.0:
        if not enough(0.5 * high):
            low = 0.5 * high
        else:
            high *= 0.5
            if high < 1e-12 * start:
                break
    while high - low > PRECISION * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return NoiseDistribution((FAMILIES[family](high),))
