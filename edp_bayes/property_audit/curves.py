"""From draws of pi to draws of the exact privacy curve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.results.epsilon_at import WholeCurves
from edp_bayes.statistical_privacy.beta_binomial import beta_binomial_delta
from edp_bayes.statistical_privacy.curves import delta, delta_minus, delta_plus
from edp_bayes.statistical_privacy.inversion import epsilon_at
from edp_bayes.statistical_privacy.mechanisms import Mechanism, parts
from edp_bayes.statistical_privacy.property_query import PropertyQuery
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.progress import track

__all__ = ["CurvesOfDraws", "Query"]

# Draws evaluated at once, between two steps of the progress bar.
BLOCK = 50
# Chebyshev nodes over the logits of pi: doubled until the curves between them agree.
FIRST_NODES, MOST_NODES = 8, 64
TOLERANCE = 1e-5
# Where brackets say how large the error is, curves may be rougher.
ROUGH = 1e-3
# A delta below this is compared as if it were this.
NEGLIGIBLE = 1e-12
# Curves computed one by one where each costs more than a moment, and entries times curves that
# cost little, without noise and with it.
FEW = 800
CHEAP, CHEAP_NOISE = 10**7, 5 * 10**5
LARGEST_DEPENDENT = 10**7


@dataclass(frozen=True)
class Query:
    """The query whose answer is released, and what its adversary knows.

    Parameters
    ----------
    n : int
        Entries of the database.
    mechanism, known, known_positive
        As for `edp_bayes.statistical_privacy.delta`.
    dependent : bool
        Whether the curve of exchangeable, dependent entries may be asked for.

    Raises
    ------
    InputTypeError, InvalidInputError
        If they do not fit together.
    """

    n: int
    mechanism: Mechanism = None
    known: int = 0
    known_positive: int | None = None
    dependent: bool = False

    def __post_init__(self) -> None:
        PropertyQuery(self.n, 0.5, self.mechanism, self.known, self.known_positive)
        if self.dependent:
            self._refuse_what_dependence_cannot()

    @property
    def is_smooth(self) -> bool:
        """Whether the curve of independent entries is worth interpolating over pi.

        Without noise and known entries it is computed at once for every pi.
        """
        sampling, noise = parts(self.mechanism)
        return noise is not None or (sampling is not None and self.known > 0)

    def affordable(self, dependent: bool, wanted: int) -> int:
        """Return how many of the wanted curves are computed one by one by default."""
        noise = parts(self.mechanism)[1]
        if not dependent:
            return min(wanted, FEW) if self.is_smooth else wanted
        return min(wanted, max(FEW, (CHEAP if noise is None else CHEAP_NOISE) // self.n))

    def interpolated(self, prob: Array, epsilon: Array) -> tuple[Array, float]:
        """Return delta of independent entries, interpolated over pi, and its relative error.

        Parameters
        ----------
        prob : ndarray
            Shape (draw,).
        epsilon : ndarray
            Shape (epsilon,).

        Returns
        -------
        delta : ndarray
            Shape (draw, epsilon).
        error : float
            Larger than `TOLERANCE` where the curves are too rough.
        """
        # Their larger one has a kink, each direction has none.
        (plus, first), (minus, second) = (
            interpolated(partial(self._independent, side, epsilon=epsilon), prob)
            for side in (delta_plus, delta_minus)
        )
        return np.maximum(plus, minus), max(first, second)

    def exact(
        self, prob: Array, concentration: Array | None, epsilon: Array, *, progressbar: bool
    ) -> Array:
        """Return delta at every epsilon, computed for every single draw.

        Parameters
        ----------
        prob : ndarray
            Shape (draw,).
        concentration : ndarray, optional
            Shape (draw,), of exchangeable and dependent entries.
        epsilon : ndarray
            Shape (epsilon,), or (draw, epsilon) for epsilons of each draw.
        progressbar : bool
            Show progress.

        Returns
        -------
        ndarray
            Shape (draw, epsilon).
        """
        epsilon = np.broadcast_to(epsilon, (prob.size, epsilon.shape[-1]))
        out = np.empty(epsilon.shape)
        blocks = [slice(k, k + BLOCK) for k in range(0, prob.size, BLOCK)]
        for block in track(blocks, "Privacy curves", total=len(blocks), show=progressbar):
            out[block] = (
                self._independent(delta, prob[block], epsilon[block])
                if concentration is None
                else self._dependent(prob[block], concentration[block], epsilon[block])
            )
        return out

    def _independent(
        self, direction: Callable[..., Array | float], prob: Array, epsilon: Array
    ) -> Array:
        return np.asarray(
            direction(
                self.n,
                prob[:, None],
                epsilon=epsilon,
                mechanism=self.mechanism,
                known=self.known,
                known_positive=self.known_positive,
            )
        )

    def _dependent(self, prob: Array, concentration: Array, epsilon: Array) -> Array:
        """Known entries move the Beta distribution and leave a smaller database."""
        least = np.finfo(np.float64).tiny
        alpha = np.maximum(prob * concentration, least)[:, None]
        beta = np.maximum((1.0 - prob) * concentration, least)[:, None]
        n, mechanism = self.n, self.mechanism
        if self.known:
            assert self.known_positive is not None
            alpha, beta = alpha + self.known_positive, beta + self.known - self.known_positive
            n, noise = n - self.known, parts(mechanism)[1]
            # The unit of noise stays the share of all entries.
            mechanism = None if noise is None else type(noise)(noise.scale * self.n / n)
        return np.asarray(beta_binomial_delta(n, alpha, beta, epsilon=epsilon, mechanism=mechanism))

    def _refuse_what_dependence_cannot(self) -> None:
        advice = "or model=BinomialModel() (--model binomial) if entries are independent"
        rule = "where entries may depend on each other, "
        if self.n > LARGEST_DEPENDENT:
            raise InvalidInputError(
                f"{rule}n must be at most {LARGEST_DEPENDENT:,}, found {self.n:,}; give a smaller "
                f"released_n (--released-n), {advice}"
            )
        if self.known and parts(self.mechanism)[0] is not None:
            raise InvalidInputError(
                f"{rule}known entries need known_positive and no subsampling, found "
                f"{parts(self.mechanism)[0]!r}; leave it out of mechanism (--mechanism), {advice}"
            )
        if self.known and self.known_positive is None:
            raise InvalidInputError(
                f"{rule}known entries need known_positive and no subsampling; give known_positive "
                f"(--known-positive), {advice}"
            )
        if self.n - self.known < 2:
            raise InvalidInputError(
                f"{rule}at least two must be unknown, found known = {self.known} with n = "
                f"{self.n}; give a smaller known (--known), {advice}"
            )


@dataclass(frozen=True, eq=False)
class CurvesOfDraws(WholeCurves):
    """Evaluates the curve of the riskiest property in draws of pi at any epsilon.

    Parameters
    ----------
    query : Query
        Whose curves.
    prob : ndarray
        Shape (draw, property).
    concentration : ndarray, optional
        Shape (draw, property), of exchangeable and dependent entries.
    """

    query: Query
    prob: Array
    concentration: Array | None

    @property
    def shared(self) -> bool:
        """Whether curves are interpolated over pi, which takes the same epsilons for all draws."""
        return self.concentration is None and self.query.is_smooth

    def between(
        self, epsilon: Array, left: int, target: float, rows: NDArray[np.int64]
    ) -> tuple[Array, Array]:
        """Return a lower and an upper bound of delta; see `edp_bayes.results.epsilon_at`."""
        curves, errors = zip(
            *(self._of(k, rows, epsilon) for k in range(self.prob.shape[1])), strict=True
        )
        found, error = np.max(curves, axis=0), max(errors)
        return found * (1.0 - error), np.minimum(found * (1.0 + error), 1.0)

    def _of(self, k: int, rows: NDArray[np.int64], epsilon: Array) -> tuple[Array, float]:
        """Return delta of one property at epsilons of each draw, and its relative error."""
        prob = self.prob[rows, k]
        if self.shared:
            curves, error = self.query.interpolated(prob, epsilon[0])
            if error <= ROUGH:
                return curves, error
        strength = None if self.concentration is None else self.concentration[rows, k]
        return self.query.exact(prob, strength, epsilon, progressbar=False), 0.0

    def end(self, instead: str) -> Array:
        """Return the epsilon of every draw beyond which delta is zero, or say why there is none."""
        if self.concentration is not None:
            raise InvalidInputError(
                "delta must be above 0 here, found 0: where entries depend on each other the "
                f"epsilon beyond which delta is zero is not computed; {instead}, or audit with "
                "model=BinomialModel()"
            )
        query = self.query
        ends = np.asarray(
            epsilon_at(
                0.0,
                query.n,
                self.prob,
                mechanism=query.mechanism,
                known=query.known,
                known_positive=query.known_positive,
            )
        ).max(axis=1)
        if np.isinf(ends).all():
            raise InvalidInputError(
                "delta must be above 0 here, found 0: some answers give an entry away, so delta is "
                f"above zero at every epsilon; {instead}, or add Laplace noise"
            )
        return np.asarray(ends)


def interpolated(curve: Callable[[Array], Array], prob: Array) -> tuple[Array, float]:
    """Return curves at every probability from those at a few, and the largest relative error.

    Parameters
    ----------
    curve : callable
        From probabilities, shape (size,), to curves, shape (size, epsilon).
    prob : ndarray
        Shape (draw,), strictly between 0 and 1.

    Returns
    -------
    values : ndarray
        Shape (draw, epsilon).
    error : float
        The largest seen at nodes that were then added, infinite if none were.
    """
    from scipy.special import expit, logit

    x = logit(prob)
    middle, half = 0.5 * (x.min() + x.max()), 0.5 * (x.max() - x.min())
    if half == 0.0:
        return np.repeat(curve(prob[:1]), prob.size, axis=0), 0.0
    nodes, error = FIRST_NODES, np.inf
    at = _chebyshev(nodes)
    values = curve(expit(middle + half * at))
    while error > TOLERANCE and nodes < MOST_NODES:
        nodes *= 2
        coarse, at = at, _chebyshev(nodes)
        fresh = curve(expit(middle + half * at[1::2]))
        guess = _between(coarse, values, at[1::2])
        error = float((np.abs(guess - fresh) / np.maximum(fresh, NEGLIGIBLE)).max())
        values = np.insert(values, np.arange(1, coarse.size), fresh, axis=0)
    found = _between(at, values, (x - middle) / half)
    return np.asarray(np.clip(found, 0.0, 1.0)), error


def _chebyshev(nodes: int) -> Array:
    """Return nodes + 1 points in [-1, 1], every second of which are those of half as many."""
    return np.asarray(np.cos(np.pi * np.arange(nodes + 1) / nodes))


def _between(nodes: Array, values: Array, at: Array) -> Array:
    """Interpolate at points in [-1, 1] from Chebyshev nodes; logarithms where none underflows."""
    from scipy.interpolate import BarycentricInterpolator

    positive = (values > 1e-290).all(axis=0)
    kept = np.where(positive, np.log(np.where(positive, values, 1.0)), values)
    weights = np.where(np.arange(nodes.size) % 2, -1.0, 1.0)
    weights[[0, -1]] *= 0.5
    found = BarycentricInterpolator(nodes, kept, wi=weights)(at)
    return np.asarray(np.where(positive, np.exp(np.minimum(found, 0.0)), found))
