"""delta(epsilon) of a property query whose adversary knows the distribution of the entries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.statistical_privacy import arguments
from edp_bayes.statistical_privacy.counts import exact_curves, noise_curves, pure
from edp_bayes.statistical_privacy.counts.distribution_pairs import DistributionPair, binomial_pair
from edp_bayes.statistical_privacy.counts.known_entries import known_pairs
from edp_bayes.statistical_privacy.counts.noise_tails import GAUSSIAN, LAPLACE
from edp_bayes.statistical_privacy.counts.replacement import known_replacement_pair, largest_ratio
from edp_bayes.statistical_privacy.mechanisms import (
    LaplaceNoise,
    Mechanism,
    Noise,
    Sampling,
    SamplingWithReplacement,
    any_parts,
)
from edp_bayes.utils.arrays import Array

__all__ = ["count_pair", "delta", "delta_minus", "delta_plus", "pure_epsilon"]

# Which of the two directions, as the curves of the compiled modules take it.
_PLUS, _MINUS = False, True


def delta(
    n: ArrayLike,
    prob: ArrayLike,
    *,
    epsilon: ArrayLike,
    mechanism: Mechanism = None,
    known: ArrayLike = 0,
    known_positive: ArrayLike | None = None,
) -> Array | float:
    """Return delta(epsilon) = max(delta_plus, delta_minus) of a property query.

    The query answers with the share of the n entries that have a property. Entries have it
    independently with probability prob, which the adversary knows; they compare the answer's
    distribution given that a critical entry has the property with that given that it has not
    (Breutigam and Reischuk, "Statistical Privacy"). All results are exact.

    Parameters
    ----------
    n : array_like of int
        Entries of the database, at least 2.
    prob : array_like
        Probability that an entry has the property, strictly between 0 and 1.
    epsilon : array_like
        Non-negative; with noise at most 700 or infinite.
    mechanism : Subsampling, SamplingWithReplacement, GaussianNoise, LaplaceNoise or a sequence
        What distorts the answer, nothing if not given. Scales of noise are in units of the
        answer, a share in [0, 1]. A sequence is a sampling followed by noise.
    known : array_like of int
        How many other entries the adversary knows exactly, below n.
    known_positive : array_like of int, optional
        How many of them have the property. It matters only where entries are drawn, and there
        the worst case is taken if it is not given.

    Returns
    -------
    ndarray or float
        Broadcast shape of all arguments; a float if all are scalars. Values lie in [0, 1].

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range, NaN or of another type; if prob is 0 or 1, which
        makes the query trivial; if a sample without replacement is larger than the database, or
        the double sum over one with replacement has more than 1e9 terms.

    See Also
    --------
    delta_plus : the risk of being seen to be positive
    delta_minus : the risk of being seen to be negative
    epsilon_at : the smallest epsilon for a delta
    PropertyQuery : the share of entries with a property

    Examples
    --------
    >>> round(delta(epsilon=0.5, n=100, prob=0.1), 6)
    0.022556
    >>> from edp_bayes.statistical_privacy import GaussianNoise
    >>> round(delta(epsilon=0.01, n=1000, prob=0.1, mechanism=GaussianNoise(0.003), known=999), 3)
    0.128
    """
    cases = _Cases.of(epsilon, n, prob, mechanism, known, known_positive)
    return cases.evaluate(_PLUS, _MINUS)


def delta_plus(
    n: ArrayLike,
    prob: ArrayLike,
    *,
    epsilon: ArrayLike,
    mechanism: Mechanism = None,
    known: ArrayLike = 0,
    known_positive: ArrayLike | None = None,
) -> Array | float:
    """Return H_eps(P_plus || P_minus), the risk that the critical entry is seen to be positive.

    Without a mechanism P_minus is Binomial(n - 1, prob) and P_plus one more (the paper's
    Theorems 4.1 and 4.2, computed from the two distributions).

    Arguments, results and errors are those of `delta`.

    See Also
    --------
    delta : delta of a property query
    delta_minus : the risk of being seen to be negative

    Examples
    --------
    >>> round(delta_plus(epsilon=0.5, n=100, prob=0.1), 6)
    0.006991
    """
    cases = _Cases.of(epsilon, n, prob, mechanism, known, known_positive)
    return cases.evaluate(_PLUS)


def delta_minus(
    n: ArrayLike,
    prob: ArrayLike,
    *,
    epsilon: ArrayLike,
    mechanism: Mechanism = None,
    known: ArrayLike = 0,
    known_positive: ArrayLike | None = None,
) -> Array | float:
    """Return H_eps(P_minus || P_plus), the risk that the critical entry is seen to be negative.

    It is `delta_plus` of the complementary property (the paper's Theorems 4.1 and 4.2 print its
    upper limit as a ceiling, which must be a floor). Arguments, results and errors are those of
    `delta`.

    See Also
    --------
    delta : delta of a property query
    delta_plus : the risk of being seen to be positive

    Examples
    --------
    >>> round(delta_minus(epsilon=0.5, n=100, prob=0.1), 6)
    0.022556
    """
    cases = _Cases.of(epsilon, n, prob, mechanism, known, known_positive)
    return cases.evaluate(_MINUS)


def pure_epsilon(
    n: ArrayLike,
    prob: ArrayLike,
    mechanism: Mechanism,
    known: ArrayLike,
    known_positive: ArrayLike | None,
) -> Array | None:
    """Return the least epsilon at which delta is 0, in the shape of all arguments.

    It is not known for a sample without replacement and with Laplace noise where entries are
    known: the result is None.
    Arguments and errors are those of `delta`.
    """
    cases = _Cases.of(0.0, n, prob, mechanism, known, known_positive)
    return cases.pure()


def count_pair(
    n: int, prob: float, mechanism: Mechanism, known: int, known_positive: int | None
) -> tuple[DistributionPair, float]:
    """Return both distributions of the count that is answered, and their largest log ratio.

    Arguments and errors are those of `delta`, all scalars; noise is refused.
    """
    cases = _Cases.of(0.0, n, prob, mechanism, known, known_positive)
    if cases.shape:
        raise InputTypeError(f"all arguments must be single numbers, found shape {cases.shape}")
    if cases.noise is not None:
        raise InvalidInputError(
            "the privacy loss is a variable of finitely many values without noise only, found "
            f"{cases.noise!r}"
        )
    if cases.sampling is not None and known > 0 and known_positive is None:
        raise InvalidInputError(
            f"known_positive must be given where entries are known and drawn, found known = {known}"
        )
    ratio = cases.pure()
    assert ratio is not None
    return next(cases.pairs(0)), float(ratio)


@dataclass(frozen=True, eq=False)
class _Cases:
    """Checked arguments as vectors of one length."""

    epsilon: Array
    n: Array
    prob: Array
    known: Array
    positive: Array  # NaN where the worst case is asked for
    sampling: Sampling | None
    noise: Noise | None
    shape: tuple[int, ...]

    @classmethod
    def of(
        cls,
        epsilon: ArrayLike,
        n: ArrayLike,
        prob: ArrayLike,
        mechanism: Mechanism,
        known: ArrayLike,
        known_positive: ArrayLike | None,
    ) -> _Cases:
        sampling, noise = any_parts(mechanism)
        values = {
            "epsilon": arguments.epsilons(epsilon),
            "n": arguments.sizes(n, "n", 2),
            "prob": arguments.probabilities(prob),
            "known": arguments.sizes(known, "known", 0),
            "known_positive": np.asarray(np.nan)
            if known_positive is None
            else arguments.sizes(known_positive, "known_positive", 0),
        }
        (eps, size, probability, certain, positive), shape = arguments.broadcast(**values)
        if (certain >= size).any():
            at = int(np.argmax(certain >= size))
            raise InvalidInputError(
                "known must be below n, for the critical entry is not known, found "
                f"known = {certain[at]:.0f} with n = {size[at]:.0f}"
            )
        if (positive > certain).any():
            at = int(np.argmax(positive > certain))
            raise InvalidInputError(
                f"known_positive must not exceed known, found {positive[at]:.0f} of "
                f"{certain[at]:.0f}"
            )
        if noise is not None:
            noise_curves.check(eps)
        return cls(eps, size, probability, certain, positive, sampling, noise, shape)

    def evaluate(self, *directions: bool) -> Array | float:
        """Return the largest of the given directions in the shape of all arguments."""
        values = np.zeros(self.epsilon.size)
        if self.noise is None and not self._replaced and not (self.sampling and self.known.any()):
            for direction in directions:
                np.maximum(values, self._exact(direction), out=values)
        else:
            for where in self._groups():
                values[where] = self._worst(where, directions)
        return values.reshape(self.shape) if self.shape else float(values[0])

    def pure(self) -> Array | None:
        """Return the largest log ratio of both, or None where it has no closed form."""
        laplace = isinstance(self.noise, LaplaceNoise)
        if laplace and self.sampling is not None and self.known.any() and not self._replaced:
            return None
        found = np.empty(self.n.size)
        for case in range(found.size):
            n, prob = int(self.n[case]), float(self.prob[case])
            drawn, known = self._drawn(n), int(self.known[case])
            if self._replaced:
                scale = self.noise.scale * drawn if isinstance(self.noise, LaplaceNoise) else None
                found[case] = largest_ratio(n, drawn, prob, known, self.positive[case], scale)
            elif isinstance(self.noise, LaplaceNoise):
                found[case] = pure.laplace_ratio(n, drawn, prob, self.noise.scale * drawn)
            else:  # far out Gaussian noise leaves the ratio of the last counts
                found[case] = pure.sampled_ratio(n, drawn, prob, known, self.positive[case])
        return found.reshape(self.shape)

    def _exact(self, direction: bool) -> Array:
        out = np.empty(self.epsilon.size)
        unknown = self.n - self.known
        drawn = np.asarray([self._drawn(n) for n in unknown], float) if self.sampling else unknown
        exact_curves.curves(self.epsilon, unknown, drawn, self.prob, direction, out)
        return out

    def _worst(self, where: NDArray[np.bool_], directions: tuple[bool, ...]) -> Array:
        """Return the largest of all directions and distributions for the cases of one group."""
        epsilon = self.epsilon[where]
        found = np.zeros(epsilon.size)
        case = int(np.flatnonzero(where)[0])
        for pair in self.pairs(case):
            for direction in directions:
                one = pair.mirrored() if direction == _MINUS else pair
                np.maximum(found, self._curve(one, epsilon, case), out=found)
        return found

    def _groups(self) -> Iterator[NDArray[np.bool_]]:
        """Masks of the cases that share everything but epsilon."""
        keys = np.stack([self.n, self.prob, self.known, np.nan_to_num(self.positive, nan=-1.0)])
        _, group = np.unique(keys, axis=1, return_inverse=True)
        for k in range(int(group.max()) + 1 if group.size else 0):
            yield group == k

    @property
    def _replaced(self) -> bool:
        return isinstance(self.sampling, SamplingWithReplacement)

    def _drawn(self, n: Any) -> int:
        return int(n) if self.sampling is None else self.sampling.drawn(int(n))

    def pairs(self, case: int) -> Iterator[DistributionPair]:
        """Yield both distributions of the count, one pair for every number of known positives."""
        n, known = int(self.n[case]), int(self.known[case])
        prob, positive = float(self.prob[case]), self.positive[case]
        worst = np.isnan(positive)
        counts = range(known + 1) if worst else range(int(positive), int(positive) + 1)
        if self.sampling is None:
            yield binomial_pair(n - known, n - known, prob)
        elif self._replaced:
            for count in counts:
                yield known_replacement_pair(n, self._drawn(n), prob, known, count)
        elif known == 0:
            yield binomial_pair(n, self._drawn(n), prob)
        else:
            yield from known_pairs(n, self._drawn(n), prob, known, counts)

    def _curve(self, pair: DistributionPair, epsilon: Array, case: int) -> Array:
        if self.noise is None:
            return pair.delta_plus(epsilon=epsilon)
        family = LAPLACE if isinstance(self.noise, LaplaceNoise) else GAUSSIAN
        counted = self._drawn(self.n[case])
        return noise_curves.curve(pair, epsilon, family, self.noise.scale * counted)
