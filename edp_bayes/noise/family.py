"""The smallest scale of Laplace or Gaussian noise that meets a target under the posterior."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from edp_bayes import validate
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.noise.laws import GaussianNoise, LaplaceNoise
from edp_bayes.noise.noisy import NoisyCoupling
from edp_bayes.noise.posterior import Posterior
from edp_bayes.noise.ratios import log_ratios

__all__ = ["protected_share", "smallest_scale"]

FAMILIES: dict[str, Callable[[float], GaussianNoise | LaplaceNoise]] = {
    "gaussian": GaussianNoise,
    "laplace": LaplaceNoise,
}
PRECISION = 1e-3
DOUBLINGS = 60


def protected_share(
    posterior: Posterior, noise: NoiseDistribution, epsilon: float, delta: float
) -> float:
    """Return the share of draws in which the noisy query is (epsilon, delta) private for all.

    For delta = 0 the certified log ratios decide, otherwise the integrals with their error.
    """
    if delta == 0.0:
        return log_ratios(posterior, noise, epsilon).share(epsilon)
    return float((largest_risk(posterior, noise, epsilon) <= delta).mean())


def holds(
    posterior: Posterior,
    noise: NoiseDistribution,
    epsilon: float,
    delta: float,
    assurance: float,
) -> bool:
    """Return whether the noisy query is (epsilon, delta) private in the required share of draws.

    Individuals with large contributions come first, draws in which one of them is not protected
    are not looked at again, and the answer is no as soon as there are too many of those.
    """
    alive = np.arange(posterior.n_draws)
    needed = assurance * posterior.n_draws - 1e-9
    for person in np.argsort(-posterior.largest_move, kind="stable"):
        one = np.array([person])
        if delta == 0.0:
            found = log_ratios(posterior, noise, epsilon, draws=alive, individuals=one)
            alive = alive[found.largest <= epsilon]
        else:
            coupling = NoisyCoupling(posterior, noise)
            risk = coupling.risks(one, np.array([epsilon]), alive)[:, 0, 0]
            alive = alive[risk + coupling.error.get(epsilon, 0.0) <= delta]
        if alive.size < needed:
            return False
    return True


def largest_risk(
    posterior: Posterior,
    noise: NoiseDistribution,
    epsilon: float,
    draws: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None,
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return max_i delta_i with the error of the quadrature added, shape (draw,)."""
    chosen = np.arange(posterior.n_draws) if draws is None else draws
    coupling = NoisyCoupling(posterior, noise)
    largest = np.zeros(chosen.size)
    grid = np.array([epsilon])
    for person in range(posterior.n_individuals):
        risk = coupling.risks(np.array([person]), grid, chosen)[:, 0, 0]
        largest = np.maximum(largest, risk)
    return largest + coupling.error.get(epsilon, 0.0)


def smallest_scale(
    posterior: Posterior,
    family: str,
    epsilon: float,
    delta: float,
    *,
    assurance: float,
    start: float,
) -> NoiseDistribution:
    """Return the least noise of a family, to a relative precision of 0.1%, by bisection.

    More noise of the same family is less noise with more added, so the share of protected draws
    never falls as the scale rises.

    Parameters
    ----------
    posterior : Posterior
        The laws with and without each individual.
    family : {"gaussian", "laplace"}
        Law of the noise.
    epsilon, delta, assurance : float
        Target, and the share of draws that must meet it.
    start : float
        A first guess of the scale.

    Raises
    ------
    InvalidInputError
        If delta is 0 and the family Gaussian, or no scale meets the target.
    """
    validate.choice(family, FAMILIES, "family")
    if family == "gaussian" and delta == 0.0:
        raise InvalidInputError(
            "Gaussian noise cannot reach delta = 0: its tails fall so fast that the log ratio of "
            "two shifted densities has no bound; give a delta above 0 or use Laplace noise"
        )

    def enough(scale: float) -> bool:
        noise = NoiseDistribution((FAMILIES[family](scale),))
        return holds(posterior, noise, epsilon, delta, assurance)

    low, high = 0.0, start
    for _ in range(DOUBLINGS):
        if enough(high):
            break
        low, high = high, 2.0 * high
    else:
        raise InvalidInputError(
            f"no scale of {family} noise up to {high:g} meets epsilon = {epsilon:g}, "
            f"delta = {delta:g} in {assurance:.0%} of the draws"
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
