"""The privacy loss as a random variable: what an answer tells, and how often it tells so much."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.divergence.composition.doubling import RoundedUp, Sums, powered
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.statistical_privacy import arguments, curves
from edp_bayes.statistical_privacy.mechanisms import Mechanism
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.reprs import by_shapes

__all__ = ["PrivacyLoss", "checked_weights", "privacy_loss"]

_TOLERANCE = 1e-9
_EXACT = 2**16  # atoms up to which sums are not rounded
_PLACES = 2**15  # of the grid where they are
_TAIL = 1e-13  # mass at either end that is moved upwards
_LEAST_RANGE = 1e-6
_LARGEST_LOSS = 700.0  # of one answer; what is beyond counts as infinite where it is rounded


@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """The privacy loss log(P / Q) of an answer that is drawn from P; P and Q are discrete.

    It determines delta(epsilon) = H_eps(P || Q) at every epsilon, and the losses of independent
    answers add. The loss in the other direction is a variable of its own, that of (Q, P).

    Parameters
    ----------
    losses : array_like, shape (atom,)
        Its finite values, increasing, in nats.
    masses : array_like, shape (atom,)
        Their probabilities under P, above 0.
    infinite : float
        Probability under P of answers that are impossible under Q.

    Raises
    ------
    InputTypeError, InvalidInputError
        If losses do not increase, masses and `infinite` are not probabilities of sum 1, or the
        masses exp(-loss) under Q have a sum above 1.

    See Also
    --------
    privacy_loss : the privacy loss of a property query
    delta : delta of a property query
    edp_bayes.hockey_stick : delta between two mixtures

    Examples
    --------
    >>> loss = PrivacyLoss([-0.5, 0.5], [1 - 0.6225, 0.6225])
    >>> round(loss.delta(epsilon=0.2), 4), round(loss.mean(), 4), loss.quantile(0.9)
    (0.1613, 0.1225, 0.5)
    >>> round(loss.composed(2).delta(epsilon=0.2), 4)
    0.2134
    """

    losses: Array
    masses: Array
    infinite: float = 0.0

    __repr__ = by_shapes

    def __post_init__(self) -> None:
        losses = validate.finite_array(self.losses, "losses", ndim=1).copy()
        masses = validate.finite_array(self.masses, "masses", ndim=1).copy()
        infinite = validate.number(self.infinite, "infinite")
        if losses.shape != masses.shape:
            raise InvalidInputError(
                "losses and masses must have one length, found "
                f"{losses.size} losses and {masses.size} masses"
            )
        if (np.diff(losses) <= 0.0).any():
            at = int(np.argmax(np.diff(losses) <= 0.0))
            raise InvalidInputError(
                f"losses must increase, found {losses[at]:g} before {losses[at + 1]:g}; "
                "PrivacyLoss.of_masses sorts and joins them"
            )
        if (masses <= 0.0).any() or infinite < 0.0:
            least = min([infinite, *masses])
            raise InvalidInputError(
                f"masses must be above 0 and infinite at least 0, found {least:g}"
            )
        total = float(masses.sum()) + infinite
        if abs(total - 1.0) > _TOLERANCE:
            raise InvalidInputError(f"masses and infinite must have the sum 1, found {total:.12g}")
        with np.errstate(over="ignore"):
            under_q = float((masses * np.exp(-losses)).sum())
            # a mass may be wrong by the tolerance, and most of it matters at the lowest loss
            allowed = _TOLERANCE * float(np.exp(-losses[:1]).max(initial=1.0))
        if under_q > 1.0 + allowed:
            raise InvalidInputError(
                "the masses exp(-loss) under Q must have a sum of at most 1, found "
                f"{under_q:.12g}: these are not the losses of two distributions"
            )
        losses.flags.writeable = masses.flags.writeable = False
        for name, value in (("losses", losses), ("masses", masses), ("infinite", infinite)):
            object.__setattr__(self, name, value)

    @classmethod
    def of_masses(cls, p: ArrayLike, q: ArrayLike) -> PrivacyLoss:
        """Return the privacy loss of two discrete distributions.

        Parameters
        ----------
        p, q : array_like, shape (answer,)
            Probabilities of the same answers under P and under Q.

        Returns
        -------
        PrivacyLoss

        Raises
        ------
        InputTypeError, InvalidInputError
            If they are not probabilities of sum 1, or differ in length.

        Examples
        --------
        >>> loss = PrivacyLoss.of_masses([0.2, 0.3, 0.5], [0.1, 0.9, 0.0])
        >>> loss.losses.round(4), loss.masses, loss.infinite
        (array([-1.0986,  0.6931]), array([0.3, 0.2]), 0.5)
        """
        first, second = (_distribution(side, name) for side, name in ((p, "p"), (q, "q")))
        if first.size != second.size:
            raise InvalidInputError(
                f"p and q must hold the same answers, found {first.size} and {second.size}"
            )
        finite = (first > 0.0) & (second > 0.0)
        losses = np.log(first[finite]) - np.log(second[finite])
        infinite = float(first[(first > 0.0) & ~finite].sum())
        return _sorted(losses, first[finite], infinite)

    @classmethod
    def mixture(cls, losses: Sequence[PrivacyLoss], weights: ArrayLike) -> PrivacyLoss:
        """Return the loss of an answer to one of several queries, drawn at random and revealed.

        Where the drawn query is not revealed, its delta is an upper bound (joint convexity).

        Parameters
        ----------
        losses : sequence of PrivacyLoss
            Of each query.
        weights : array_like, shape (query,)
            Probabilities of the queries.

        Returns
        -------
        PrivacyLoss

        Raises
        ------
        InputTypeError, InvalidInputError
            If the weights are not probabilities of sum 1, one for each.

        Examples
        --------
        >>> loud, silent = PrivacyLoss([], [], 1.0), PrivacyLoss([0.0], [1.0])
        >>> PrivacyLoss.mixture([loud, silent], [0.25, 0.75]).delta(epsilon=3.0)
        0.25
        """
        _check_losses(losses)
        w = checked_weights(weights, len(losses))
        return _sorted(
            np.concatenate([one.losses for one in losses]),
            np.concatenate([k * one.masses for k, one in zip(w, losses, strict=True)]),
            float(sum(k * one.infinite for k, one in zip(w, losses, strict=True))),
        )

    def delta(self, *, epsilon: ArrayLike) -> Array | float:
        """Return E (1 - exp(epsilon - loss))_+ = H_eps(P || Q), epsilon >= 0 of any shape."""
        eps = arguments.epsilons(epsilon)
        found = np.empty(eps.size)
        for k, value in enumerate(eps.ravel()):
            above = self.losses > value
            found[k] = (self.masses[above] * -np.expm1(value - self.losses[above])).sum()
        found = np.minimum(found + self.infinite, 1.0)
        return found.reshape(eps.shape) if eps.shape else float(found[0])

    def exceeds(self, *, epsilon: ArrayLike) -> Array | float:
        """Return the probability of a loss above epsilon, which is never below delta(epsilon)."""
        eps = arguments.epsilons(epsilon)
        start = np.searchsorted(self.losses, eps, side="right")
        found = np.minimum(self._tails()[start], 1.0)
        return found if eps.shape else float(found)

    def mean(self) -> float:
        """Return the mean loss, the Kullback-Leibler divergence of P from Q; it may be infinite."""
        return math.inf if self.infinite > 0.0 else float(self.masses @ self.losses)

    def quantile(self, prob: ArrayLike) -> Array | float:
        """Return the smallest value that the loss exceeds with a probability of at most 1 - prob.

        Parameters
        ----------
        prob : array_like
            From 0 to 1, any shape.

        Returns
        -------
        ndarray or float
            Infinity where prob is above 1 - `infinite`.
        """
        level = validate.finite_array(prob, "prob")
        if ((level < 0.0) | (level > 1.0)).any():
            raise InvalidInputError(
                f"prob must lie in [0, 1], found {level[(level < 0.0) | (level > 1.0)].flat[0]}"
            )
        # tails fall: the first loss beyond which little enough is left
        beyond = self._tails()[1:]
        at = np.searchsorted(-beyond, level - 1.0, side="left")
        found = np.append(self.losses, math.inf)[at]
        return found if level.shape else float(found)

    def joined(self, other: PrivacyLoss) -> PrivacyLoss:
        """Return the loss of both answers together, which are independent given either hypothesis.

        Parameters
        ----------
        other : PrivacyLoss
            Of an independent answer.

        Returns
        -------
        PrivacyLoss
            The exact sum up to 65,536 atoms; otherwise one that dominates it, see `composed`.
        """
        _check_losses([other])
        if self.losses.size * other.losses.size <= _EXACT:
            return _product(self, other)
        step = _step([self, other])
        sums = _rule(step).joined(_on_grid(self, step), _on_grid(other, step))
        return _of_sums(sums, step, _middle(self) + _middle(other))

    def composed(self, times: int) -> PrivacyLoss:
        """Return the loss of answers from so many independent databases, all with these P and Q.

        Answers from the same database are not independent, and their losses do not add so.

        Parameters
        ----------
        times : int
            Number of databases.

        Returns
        -------
        PrivacyLoss
            The exact sum up to 65,536 atoms. Otherwise losses are put on a grid of at most
            32,768 places, each atom split on its neighbours so that its masses under P and Q are
            kept, which only adds privacy loss (Doroshenko and others 2022): no delta is below
            the truth. Tails and rounding errors are moved upwards, the upper ones to infinity.
            This adds to delta about 1e-12 for each database (5e-9 for 8,192 measured), and makes
            the mean infinite; the true one is `times` that of one database.
        """
        count = validate.positive_integer(times, "times")
        if count * math.log(max(self.losses.size, 1)) <= math.log(_EXACT) + _TOLERANCE:
            return reduce(_product, [self] * count)
        step = _step([self])
        one = _on_grid(self, step)
        found = powered(lambda databases: one if databases == 1 else None, count, _rule(step))
        return _of_sums(found, step, count * _middle(self))

    def _tails(self) -> Array:
        """Return the probability of the k-th loss or a larger one, then that of an infinite one."""
        both = np.append(self.masses, self.infinite)
        return np.asarray(np.cumsum(both[::-1])[::-1])


def privacy_loss(
    n: int,
    prob: float,
    *,
    mechanism: Mechanism = None,
    known: int = 0,
    known_positive: int | None = None,
    direction: str = "plus",
) -> PrivacyLoss:
    """Return the privacy loss of a property query without noise.

    Parameters
    ----------
    n, prob, known, known_positive
        Scalars as for `edp_bayes.statistical_privacy.delta`. Where entries are known and drawn
        known_positive must be given, for different curves are worst at different epsilons.
    mechanism : Subsampling or SamplingWithReplacement, optional
        Noise is refused: it makes the loss continuous.
    direction : {"plus", "minus"}
        log(P_plus / P_minus) under P_plus, whose delta is `delta_plus`, or the other way round.

    Returns
    -------
    PrivacyLoss
        Masses below 1e-308 count as none.

    Raises
    ------
    InputTypeError, InvalidInputError
        As for `delta`; also if noise is added.

    See Also
    --------
    PrivacyLoss : the privacy loss as a distribution
    delta : delta of a property query

    Examples
    --------
    >>> loss = privacy_loss(100, 0.1, direction="minus")
    >>> round(loss.delta(epsilon=0.5), 6), round(loss.quantile(0.99), 4)
    (0.022556, 0.9808)
    """
    validate.choice(direction, ("plus", "minus"), "direction")
    pair, most = curves.count_pair(n, prob, mechanism, known, known_positive)
    p, q = (pair.plus, pair.minus) if direction == "plus" else (pair.minus, pair.plus)
    if not math.isfinite(most):
        return PrivacyLoss.of_masses(p, q)
    # where Q underflows and P does not the loss is at most the largest log ratio
    finite = (p > 0.0) & (q > 0.0)
    edge = (p > 0.0) & ~finite
    losses = np.append(np.log(p[finite]) - np.log(q[finite]), np.full(int(edge.sum()), most))
    return _sorted(losses, np.append(p[finite], p[edge]), 0.0)


def checked_weights(weights: ArrayLike, size: int) -> Array:
    """Return probabilities of sum 1, one for each of so many."""
    w = _distribution(weights, "weights")
    if w.size != size:
        raise InvalidInputError(f"weights must hold one value for each of {size}, found {w.size}")
    return w


def _distribution(value: ArrayLike, name: str) -> Array:
    array = validate.finite_array(value, name, ndim=1)
    if (array < 0.0).any():
        raise InvalidInputError(f"{name} must not be negative, found {array.min():g}")
    if abs(float(array.sum()) - 1.0) > _TOLERANCE:
        raise InvalidInputError(f"{name} must have the sum 1, found {array.sum():.12g}")
    return array


def _check_losses(losses: Iterable[object]) -> None:
    for one in losses:
        if not isinstance(one, PrivacyLoss):
            raise InputTypeError(f"losses must be PrivacyLoss, found {one!r}")


def _sorted(losses: Array, masses: Array, infinite: float) -> PrivacyLoss:
    """Return the loss with equal values joined and those without mass left out."""
    values, place = np.unique(losses[masses > 0.0], return_inverse=True)
    joined = np.bincount(place, masses[masses > 0.0], values.size)
    return PrivacyLoss(values, joined, infinite)


def _product(one: PrivacyLoss, other: PrivacyLoss) -> PrivacyLoss:
    return _sorted(
        np.add.outer(one.losses, other.losses).ravel(),
        np.multiply.outer(one.masses, other.masses).ravel(),
        one.infinite + other.infinite - one.infinite * other.infinite,
    )


def _rule(step: float) -> RoundedUp:
    return RoundedUp(_PLACES, step, 0.0, math.inf)


def _kept(loss: PrivacyLoss) -> slice:
    """Return the atoms without tails that hold next to nothing, and without losses far beyond."""
    low = int(np.searchsorted(np.cumsum(loss.masses), _TAIL, side="right"))
    last = int(np.searchsorted(np.cumsum(loss.masses[::-1]), _TAIL, side="right"))
    beyond = int((loss.losses > _LARGEST_LOSS).sum())
    high = loss.losses.size - max(last, beyond)
    return slice(low, high) if low < high else slice(0, high)


def _middle(loss: PrivacyLoss) -> float:
    """Return the likeliest loss, which is put on the grid: there rounding would add up."""
    return float(loss.losses[loss.masses.argmax()]) if loss.losses.size else 0.0


def _step(losses: Sequence[PrivacyLoss]) -> float:
    """Return the step of a grid that holds each of the losses."""
    spans = [np.ptp(one.losses[_kept(one)]) for one in losses if one.losses[_kept(one)].size]
    return max([_LEAST_RANGE, *map(float, spans)]) / (_PLACES // 2)


def _on_grid(loss: PrivacyLoss, step: float) -> Sums:
    """Split every atom on its neighbours in a grid so that both its masses are kept.

    Place n is n steps from the likeliest loss.
    """
    kept = _kept(loss)
    losses, masses = loss.losses[kept] - _middle(loss), loss.masses[kept].copy()
    infinite = loss.infinite + float(loss.masses[kept.stop :].sum())
    if not losses.size:
        return Sums(np.zeros((1, 1)), 0, 1, 1, infinite)
    masses[0] += float(loss.masses[: kept.start].sum())
    below = np.floor(losses / step)
    share = np.expm1(below * step - losses) / np.expm1(-step)
    right = np.clip(share, 0.0, 1.0) * masses
    first = int(below[0])
    place = (below - first).astype(np.int64)
    size = int(place[-1]) + 2
    on_grid = np.bincount(place, masses - right, size) + np.bincount(place + 1, right, size)
    return Sums(on_grid[None], first, 1, 1, infinite)


def _of_sums(sums: Sums, step: float, middle: float) -> PrivacyLoss:
    """Return sums on a grid as a loss; what rounding may have moved is at infinity.

    It is taken from the lowest losses, so that every tail is at least the true one.
    """
    infinite = min(sums.infinite + sums.lost, 1.0)
    below = np.cumsum(sums.masses[0])
    masses = np.clip(below - (below[-1] + infinite - 1.0), 0.0, sums.masses[0])
    kept = masses > 0.0
    places = sums.first + np.flatnonzero(kept)
    losses = np.asarray(middle + step * sums.stride * places, dtype=np.float64)
    return PrivacyLoss(losses, masses[kept], infinite)
