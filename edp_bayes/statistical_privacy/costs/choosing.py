"""Which mechanism reaches a target (epsilon, delta) with the least utility loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.statistical_privacy import arguments, curves
from edp_bayes.statistical_privacy.costs.utility import KINDS, utility_loss
from edp_bayes.statistical_privacy.inversion import epsilon_at
from edp_bayes.statistical_privacy.mechanisms import (
    GaussianNoise,
    LaplaceNoise,
    Mechanism,
    Noise,
    Subsampling,
)
from edp_bayes.utils import validate

__all__ = ["MechanismChoice", "least_utility_loss"]

_PRECISION = 1e-9
_LARGEST_SCALE = 1e12


@dataclass(frozen=True)
class MechanismChoice:
    """A mechanism that reaches a target, with what it costs.

    Parameters
    ----------
    mechanism : Subsampling, GaussianNoise, LaplaceNoise or None
        None where the answer reaches the target without a mechanism.
    delta : float
        What it attains at the target epsilon.
    utility_loss : float
        Of the kind that was asked for.
    alternatives : tuple of MechanismChoice
        The other kinds of mechanism that reach the target, by increasing loss.

    See Also
    --------
    least_utility_loss : the cheapest mechanism for a target
    utility_loss : the distance to the true share

    Examples
    --------
    >>> choice = least_utility_loss(100, 0.1, epsilon=0.5, delta=0.01)
    >>> all(choice.utility_loss <= other.utility_loss for other in choice.alternatives)
    True
    """

    mechanism: Mechanism
    delta: float
    utility_loss: float
    alternatives: tuple[MechanismChoice, ...] = field(default=(), repr=False)


def least_utility_loss(
    n: int,
    prob: float,
    *,
    epsilon: float,
    delta: float,
    known: int = 0,
    kind: str = "squared",
) -> MechanismChoice:
    """Return the mechanism that reaches (epsilon, delta) with the least utility loss.

    Each kind is weakened as far as the target allows: the largest sample, the smallest scale.
    That is one search each, because a smaller sample and wider Gaussian or Laplace noise can be
    made from the answer of the weaker mechanism, so delta never rises with them.

    Parameters
    ----------
    n, prob, known
        Scalars as for `edp_bayes.statistical_privacy.delta`; known entries in their worst case.
    epsilon, delta : float
        The target: epsilon at most 700, delta 0 or at least 1e-300.
    kind : {"squared", "absolute"}
        As for `utility_loss`.

    Returns
    -------
    MechanismChoice

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range, or no mechanism reaches the target.

    See Also
    --------
    MechanismChoice : the mechanism that was chosen
    utility_loss : the distance to the true share
    epsilon_at : the smallest epsilon for a delta

    Examples
    --------
    >>> choice = least_utility_loss(1000, 0.1, epsilon=0.1, delta=0.001)
    >>> type(choice.mechanism).__name__, choice.delta <= 0.001
    ('LaplaceNoise', True)
    """
    validate.choice(kind, KINDS, "kind")
    arguments.finite_epsilons(epsilon)
    arguments.deltas(delta)

    def attained(mechanism: Mechanism) -> float:
        if delta == 0.0:
            # what underflows at this epsilon is not zero
            pure = epsilon_at(0.0, n, prob, mechanism=mechanism, known=known)
            return 0.0 if float(pure) <= epsilon else math.inf
        return float(curves.delta(n, prob, epsilon=epsilon, mechanism=mechanism, known=known))

    if attained(None) <= delta:
        return MechanismChoice(None, attained(None), 0.0)
    found = [
        MechanismChoice(m, attained(m), float(utility_loss(n, prob, m, kind=kind)))
        for m in _candidates(n, delta, lambda m: attained(m) <= delta)
    ]
    if not found:
        raise InvalidInputError(
            f"no mechanism reaches delta = {delta:g} at epsilon = {epsilon:g}; "
            "one of them must be above 0"
        )
    best, *others = sorted(found, key=lambda choice: choice.utility_loss)
    return MechanismChoice(best.mechanism, best.delta, best.utility_loss, tuple(others))


def _candidates(n: int, delta: float, reached: Callable[[Mechanism], bool]) -> Iterator[Mechanism]:
    size = _largest_sample(n, reached)
    if size:
        yield Subsampling(size=size)
    distributions: tuple[type[Noise], ...] = (LaplaceNoise, GaussianNoise)
    for noise in distributions[: 2 if delta > 0.0 else 1]:  # Gaussian tails never end
        scale = _smallest_scale(n, noise, reached)
        if scale is not None:
            yield noise(scale)


def _largest_sample(n: int, reached: Callable[[Mechanism], bool]) -> int:
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        if reached(Subsampling(size=middle)):
            low = middle
        else:
            high = middle
    return low


def _smallest_scale(
    n: int, noise: type[Noise], reached: Callable[[Mechanism], bool]
) -> float | None:
    low, high = 0.0, 1.0 / n
    while not reached(noise(high)):
        low, high = high, 2.0 * high
        if high * n > _LARGEST_SCALE:
            return None
    while high - low > _PRECISION * high:
        middle = 0.5 * (low + high)
        if reached(noise(middle)):
            high = middle
        else:
            low = middle
    return high
