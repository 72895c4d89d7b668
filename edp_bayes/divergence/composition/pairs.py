"""Curves of an individual over several databases, pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from edp_bayes.divergence.composition.convolution import composed_curves
from edp_bayes.divergence.composition.rounding import RoundedLosses, rounded_losses
from edp_bayes.utils.arrays import Array

__all__ = ["ExactLosses", "Losses", "RoundedOnce", "composed", "curves"]


class Losses(Protocol):
    """Privacy losses of some pairs, shape (S,)."""

    def rounded(
        self, *, databases: int, largest: float, step: Array | None = None
    ) -> RoundedLosses:
        """Return them on grids, rounded up and down."""
        ...

    def parts(self) -> Sequence[Losses]:
        """Return estimates of them from parts of what they rest on; none where they are exact."""
        ...


@dataclass(frozen=True, eq=False)
class ExactLosses:
    """Privacy losses of pairs in one dimension, by their components."""

    p: Array
    q: Array

    def rounded(
        self, *, databases: int, largest: float, step: Array | None = None
    ) -> RoundedLosses:
        """Return them on grids, rounded up and down."""
        return rounded_losses(self.p, self.q, databases=databases, largest=largest, step=step)

    def parts(self) -> Sequence[Losses]:
        """Return nothing: they are exact."""
        return []


@dataclass(frozen=True, eq=False)
class RoundedOnce:
    """Privacy losses of some pairs on grids that serve for any number of databases up to one.

    Attributes
    ----------
    whole : RoundedLosses
    parts : tuple of RoundedLosses
        The same from parts of what they rest on; none where they are exact.
    """

    whole: RoundedLosses
    parts: tuple[RoundedLosses, ...]

    @classmethod
    def of(cls, losses: Losses, *, databases: int, largest: float) -> RoundedOnce:
        """Round privacy losses for up to so many databases and epsilons up to the largest."""
        whole = losses.rounded(databases=databases, largest=largest)
        parts = tuple(
            part.rounded(databases=databases, largest=largest, step=whole.step)
            for part in losses.parts()
        )
        return cls(whole, parts)

    def bounds(
        self, pair: int, databases: int, epsilon: Array, *, error: bool = True
    ) -> tuple[Array, Array]:
        """Return upper and lower bounds of delta of one pair, shape (E,), as `composed`.

        Without the error of estimates they are closer to each other, and there sooner.
        """
        upper, lower = composed_curves([self.whole.at(pair)], [databases], epsilon)
        some = self.parts if error else ()
        parts = (composed_curves([part.at(pair)], [databases], epsilon) for part in some)
        return _with_error(upper, lower, [0.5 * (above + below) for above, below in parts])


def curves(
    pairs: Sequence[tuple[Array, Array]], counts: Sequence[int], epsilon: Array
) -> tuple[Array, Array]:
    """Return upper and lower bounds of delta over independent databases of several kinds.

    Parameters
    ----------
    pairs : sequence of (ndarray, ndarray)
        For each kind of database the components of p and of q, shapes (S, K, 5) and (S, L, 5), see
        `edp_bayes.divergence.any_pair.components.rows`; or in groups that an answer tells apart,
        (S, G, K, 5) and (S, G, L, 5).
    counts : sequence of int
        How many databases there are of each kind.
    epsilon : ndarray, shape (E,)
        Not negative, increasing.

    Returns
    -------
    upper, lower : ndarray, shape (S, E)
        Bounds of max(H(P || Q), H(Q || P)) of the products of all distributions.

    Examples
    --------
    Two releases with unit noise and a contribution of 0.3: a shift of 0.3 sqrt(2).

    >>> from edp_bayes.divergence.any_pair.components import GAUSSIAN, rows
    >>> from edp_bayes.divergence.shifts import gaussian_shift
    >>> p, q = (rows(GAUSSIAN, np.ones((1, 1)), np.full((1, 1), m), 1.0) for m in (0.3, 0.0))
    >>> upper, lower = curves([(p, q)], [2], np.array([0.1]))
    >>> exact = float(gaussian_shift(0.3 * 2**0.5, 0.1))
    >>> bool(lower[0, 0] <= exact <= upper[0, 0]), bool(upper[0, 0] - lower[0, 0] < 1e-3)
    (True, True)
    """
    return composed([ExactLosses(*pair) for pair in pairs], counts, epsilon)


def composed(kinds: Sequence[Losses], counts: Sequence[int], epsilon: Array) -> tuple[Array, Array]:
    """Return upper and lower bounds, as `curves`, from privacy losses of each kind of database.

    Where losses are estimates, the standard error of the composed curve, as its estimates from
    parts say, and what these differ from it on average are added to the upper bound and taken off
    the lower one.
    """
    upper, lower, step = _composed(kinds, counts, epsilon, None)
    parts = [kind.parts() for kind in kinds]
    number = max(map(len, parts))
    middle = []
    for k in range(number):
        some = [part[k] if part else kind for part, kind in zip(parts, kinds, strict=True)]
        above, below, _ = _composed(some, counts, epsilon, step)
        middle.append(0.5 * (above + below))
    return _with_error(upper, lower, middle)


def _with_error(upper: Array, lower: Array, middle: Sequence[Array]) -> tuple[Array, Array]:
    """Widen bounds by the standard error that estimates from parts show; none if there are none."""
    number = len(middle)
    if not number:
        return upper, lower
    scatter = np.std(middle, axis=0, ddof=1) / np.sqrt(number)
    bias = np.abs(np.mean(middle, axis=0) - 0.5 * (upper + lower)) / (number - 1.0)
    error = scatter + bias
    return np.minimum(upper + error, 1.0), np.maximum(lower - error, 0.0)


def _composed(
    kinds: Sequence[Losses], counts: Sequence[int], epsilon: Array, step: Array | None
) -> tuple[Array, Array, Array]:
    total, largest = sum(counts), float(epsilon[-1])
    parts = [kind.rounded(databases=total, largest=largest, step=step) for kind in kinds]
    if len(parts) > 1 and step is None:
        # one step for all, of which each kind has its share
        squares = [k * part.step**2 for part, k in zip(parts, counts, strict=True)]
        step = np.sqrt(np.sum(squares, axis=0) / total)
        parts = [kind.rounded(databases=total, largest=largest, step=step) for kind in kinds]
    size = parts[0].step.size
    upper, lower = np.empty((2, size, epsilon.size))
    for s in range(size):
        upper[s], lower[s] = composed_curves([part.at(s) for part in parts], counts, epsilon)
    return upper, lower, parts[0].step
