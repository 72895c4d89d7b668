"""The smallest scale of Laplace or Gaussian noise that meets a target under the posterior."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.noise.certificates.noisy import NoisyCoupling
from edp_bayes.noise.certificates.ratios import protected_draws
from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.noise.posterior import Posterior
from edp_bayes.noise.search import OutOfTimeError, TimeLimitError, check_time, say
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array, Index

__all__ = ["SmallestScale", "exposed", "largest_risk", "protected_share", "smallest_scale"]

FAMILIES: dict[str, Callable[[float], GaussianNoise | LaplaceNoise]] = {
    "gaussian": GaussianNoise,
    "laplace": LaplaceNoise,
}
PRECISION, ROUGH = 1e-3, 0.05
TINY = 1e-12
NUMBERS = 2**20  # risks held at once
GROWTHS, FASTEST = 40, 4.0  # of the ratio to the next scale that is tried
SAMPLE = 100  # draws for a guess of the scale, where they are many


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
    everywhere = np.arange(posterior.n_draws)
    needed = least * posterior.n_draws - 1e-9
    held, _ = _held(posterior, noise, epsilon, delta, everywhere, people, needed)
    return float(held.mean())


def _held(
    posterior: Posterior,
    noise: NoiseDistribution,
    epsilon: float,
    delta: float,
    draws: Index,
    people: Index | None,
    needed: float,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return in which draws the target holds, and in which it is missed, as `protected_draws`."""
    order = posterior.hardest_first(epsilon)
    if people is not None:
        order = order[np.isin(order, people)]
    if delta == 0.0:
        return protected_draws(posterior, noise, epsilon, draws, order, needed=needed)
    alive = np.arange(draws.size)
    coupling = NoisyCoupling(posterior, noise)
    missed = np.zeros(draws.size, dtype=bool)
    for person in order[np.isin(order, _doubtful(posterior, noise, epsilon))]:
        check_time()
        risk = coupling.risks(np.array([person]), np.array([epsilon]), draws[alive])[:, 0, 0]
        over = risk + coupling.error(epsilon) > delta
        missed[alive[over]] = True
        alive = alive[~over]
        if alive.size < needed or alive.size == 0:
            return np.zeros(draws.size, dtype=bool), missed
    return ~missed, missed


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
        check_time()
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
        check_time()
        risk = posterior.coupling.curves(part, np.array([epsilon]))[:, :, 0]
        largest = np.maximum(largest, risk.max(axis=1))
        over[part] = (risk > delta).any(axis=0)
    return largest, np.flatnonzero(over)


def _blocks(people: Index, draws: int) -> list[Index]:
    size = max(1, NUMBERS // draws)
    return [people[start : start + size] for start in range(0, people.size, size)]


@dataclass(frozen=True, eq=False)
class SmallestScale:
    """The least noise of a family that was found, and what is known of smaller scales.

    Attributes
    ----------
    noise : NoiseDistribution
        Noise that is enough.
    held : ndarray of bool
        Shape (draw,): where it is known to be. Noise of a larger scale is noise of a smaller one
        with more added, so a draw that is protected at one scale is protected at all larger ones.
    too_little : float
        A scale that could not be certified.
    complete : bool
        False where time was over before the scale was known to 0.1%.
    """

    noise: NoiseDistribution
    held: NDArray[np.bool_]
    too_little: float
    complete: bool


def smallest_scale(
    posterior: Posterior,
    family: str,
    epsilon: float,
    delta: float,
    *,
    prob: float,
    start: float,
    people: Index | None = None,
    known: Array | None = None,
) -> SmallestScale:
    """Return the least noise of a family, to a relative precision of 0.1%, by bisection.

    More noise of the same family is less noise with more added, so the share of protected draws
    never falls as the scale rises. Draws that are known to be protected at a smaller scale, or not
    to be at a larger one, are not looked at again. Where there are many, some give a first guess.

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
    known : ndarray, optional
        Shape (draw,): scales that are known to be enough; infinite where none is.

    Raises
    ------
    InvalidInputError
        If no scale meets the target: `edp_bayes.noise.calibration.check` refuses Gaussian noise
        for delta = 0.
    TimeLimitError
        If time is over before any scale is known to be enough.
    """
    validate.choice(family, FAMILIES, "family")
    order = np.arange(posterior.n_individuals) if people is None else people
    everywhere = np.arange(posterior.n_draws)
    scales = _Scales(posterior, family, epsilon, delta, prob, order, everywhere, known)
    try:
        guess, ratio = start, 2.0
        if everywhere.size > 2 * SAMPLE:
            some = everywhere[:: everywhere.size // SAMPLE]
            guess = replace(scales, draws=some, known=None if known is None else known[some]).least(
                start, ratio, ROUGH
            )
            ratio = 1.0 + ROUGH
        high = scales.least(guess, ratio, PRECISION)
    except OutOfTimeError:
        return scales.found(complete=False)
    return scales.found(high)


@dataclass(eq=False)
class _Scales:
    """What is known of the scales of a family: which are too little, and which are enough."""

    posterior: Posterior
    family: str
    epsilon: float
    delta: float
    prob: float
    people: Index
    draws: Index
    known: Array | None = None

    def __post_init__(self) -> None:
        size = self.draws.size
        self.needed = max(1, math.ceil(self.prob * size - 1e-9))
        self.little, self.too_little = np.zeros(size), 0.0
        self.plenty = np.full(size, np.inf) if self.known is None else self.known.copy()

    def least(self, guess: float, ratio: float, precision: float) -> float:
        """Return a scale that is enough and little larger than one that is not.

        The ratio of the guess and the next scale that is tried grows from step to step.
        """
        low = high = guess
        if self._enough(guess):
            low = high / ratio
            while low > TINY * guess and self._enough(low):
                ratio = min(ratio**2, FASTEST)
                low, high = low / ratio, low
        else:
            for _ in range(GROWTHS):
                low, high = high, high * ratio
                if self._enough(high):
                    break
                ratio = min(ratio**2, FASTEST)
            else:
                raise InvalidInputError(
                    f"no scale of {self.family} noise up to {high:g} meets epsilon = "
                    f"{self.epsilon:g}, delta = {self.delta:g} in {self.prob:.0%} of the draws"
                )
        while high - low > precision * high and high > TINY * guess:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self._enough(middle) else (middle, high)
        return high

    def _enough(self, scale: float) -> bool:
        say(f"{self.family.capitalize()} noise of scale {scale:.4g}")
        open_ = np.flatnonzero((self.little < scale) & (scale < self.plenty))
        needed = self.needed - int((self.plenty <= scale).sum())
        if open_.size and needed > 0:
            held, missed = _held(
                self.posterior,
                NoiseDistribution((FAMILIES[self.family](scale),)),
                self.epsilon,
                self.delta,
                self.draws[open_],
                self.people,
                needed,
            )
            self.plenty[open_[held]] = scale
            self.little[open_[missed]] = scale
        enough = bool((self.plenty <= scale).sum() >= self.needed)
        if not enough:
            self.too_little = max(self.too_little, scale)
        return enough

    def found(self, scale: float | None = None, *, complete: bool = True) -> SmallestScale:
        """Return noise of a scale, or of the smallest that is known to be enough."""
        if scale is None:
            scale = float(np.partition(self.plenty, self.needed - 1)[self.needed - 1])
        if not math.isfinite(scale):
            raise TimeLimitError(
                f"the time limit passed before any {self.family} noise was known to be enough: "
                "give a longer time_limit (--time-limit), fewer draws (--draws) or a larger epsilon"
            )
        return SmallestScale(
            NoiseDistribution((FAMILIES[self.family](scale),)),
            self.plenty <= scale,
            self.too_little,
            complete,
        )
