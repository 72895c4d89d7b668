"""The sparse vector technique: five published variants that answer "above" or "below"."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.mechanisms import truths
from edp_bayes.mechanisms.base import DiscreteMechanism, answers, checked_pair
from edp_bayes.mechanisms.noise import LAPLACE, REACH, log_cdf, log_pdf, log_sf, panels
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

__all__ = ["ABOVE", "BELOW", "UNANSWERED", "SparseVector"]

ABOVE, BELOW, UNANSWERED = 1, 0, -1
LONGEST = 12


@dataclass(frozen=True)
class _Recipe:
    """What tells the variants apart; c is the cutoff, where there is one."""

    share: float  # of the budget that goes to the threshold
    threshold_factor: str = "1"  # scale of the threshold's noise times its budget: 1 or c
    answer_factor: str = "c"  # scale of the answers' noise times its budget: 0, 1, 2c
    stops: bool = True
    renews: bool = False


RECIPES = {
    1: _Recipe(0.5, answer_factor="2c"),
    2: _Recipe(0.5, threshold_factor="c", answer_factor="2c", renews=True),
    4: _Recipe(0.25, answer_factor="1"),
    5: _Recipe(0.5, answer_factor="0", stops=False),
    6: _Recipe(0.5, answer_factor="1", stops=False),
}


@dataclass(frozen=True)
class SparseVector(DiscreteMechanism):
    """Tell which of a sequence of answers lie above a noisy threshold.

    An outcome is a row with 1 for above, 0 for below and -1 for what was no longer answered
    after `cutoff` answers above.

    Parameters
    ----------
    variant : {1, 2, 4, 5, 6}
        Algorithm of Lyu, Su and Li (2017), Figure 1: 1 is theirs and 2 that of Dwork and Roth,
        both budget-private; 4 (Lee and Clifton) is so only for (1 + 6 cutoff) / 4 times the
        budget; 5 (Stoddard) and 6 (Chen) for none, since they never stop. Algorithm 3 releases
        numbers: see `SparseVectorWithAnswers`.
    budget : float
        What the mechanism claims, for answers that change by at most one each.
    cutoff : int
        Number of answers above after which variants 1, 2 and 4 stop.
    threshold : float
        The public threshold.
    pair : tuple of tuple of float
        The true answers of the neighbouring inputs, at most 12 each.

    Raises
    ------
    InvalidInputError
        If the variant is unknown, the budget or the cutoff is not above zero, the threshold is not
        finite or the pair is not of two vectors of one length.

    See Also
    --------
    SparseVectorWithAnswers : the noisy answer that was compared, a mistake
    NumericalSparseVector : the answer with fresh noise

    References
    ----------
    Lyu, Su and Li (2017), Understanding the sparse vector technique for differential privacy.

    Examples
    --------
    >>> SparseVector(1).epsilon() < 1.0, SparseVector(5).epsilon()
    (True, inf)
    """

    adjacency: ClassVar[str] = "substitution"

    variant: int = 1
    budget: float = 1.0
    cutoff: int = 2
    threshold: float = 0.0
    pair: tuple[tuple[float, ...], tuple[float, ...]] = (
        (0.0, 0.0, 0.0, 0.0),
        (1.0, 1.0, -1.0, -1.0),
    )

    def __post_init__(self) -> None:
        if self.variant not in RECIPES:
            raise InvalidInputError(f"variant must be 1, 2, 4, 5 or 6, found {self.variant!r}")
        object.__setattr__(self, "budget", validate.positive_number(self.budget, "budget"))
        validate.positive_integer(self.cutoff, "cutoff")
        validate.number(self.threshold, "threshold")
        if checked_pair(self.pair)[0].size > LONGEST:
            raise InvalidInputError(f"the pair must hold at most {LONGEST} answers")

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name, with the number of the variant."""
        return f"sparse vector {self.variant}"

    @property
    def scales(self) -> tuple[float, float]:
        """Scales of the noise on the threshold and on the answers, 0 for none."""
        recipe = RECIPES[self.variant]
        factors = {"0": 0.0, "1": 1.0, "c": float(self.cutoff), "2c": 2.0 * self.cutoff}
        share = recipe.share
        return (
            factors[recipe.threshold_factor] / (share * self.budget),
            factors[recipe.answer_factor] / ((1.0 - share) * self.budget),
        )

    def log_distribution(self, database: Any) -> Mapping[Hashable, float]:
        """Return the log probability of every row, as a tuple."""
        true = answers(database)
        if true.size > LONGEST:
            raise InvalidInputError(f"the distribution is known for at most {LONGEST} answers")
        grid = ThresholdGrid.of(true - self.threshold, *self.scales)
        return {row: self._log_probability(grid, row) for row in self._rows(true.size)}

    def _rows(self, count: int) -> Iterator[tuple[int, ...]]:
        """Return all rows in which the answers above do not exceed the cutoff."""
        limit = self.cutoff if RECIPES[self.variant].stops else count + 1

        def grow(row: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            if row.count(ABOVE) == limit:
                row = row + (UNANSWERED,) * (count - len(row))
            if len(row) == count:
                yield row
                return
            for answer in (BELOW, ABOVE):
                yield from grow((*row, answer))

        return grow(())

    def _log_probability(self, grid: ThresholdGrid, row: tuple[int, ...]) -> float:
        """Return the sum over stretches of answers that share one noisy threshold."""
        renews = RECIPES[self.variant].renews
        total, log_chance = 0.0, np.zeros_like(grid.nodes)
        for i, answer in enumerate(row):
            if answer == UNANSWERED:
                break
            log_chance = log_chance + (grid.log_above if answer == ABOVE else grid.log_below)[i]
            if answer == ABOVE and renews:
                total, log_chance = total + grid.log_mean(log_chance), np.zeros_like(grid.nodes)
        return total + grid.log_mean(log_chance)

    def _sample(self, database: Any, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        recipe, (spread, jitter) = RECIPES[self.variant], self.scales
        distance = answers(database) - self.threshold
        bar = rng.laplace(scale=spread, size=size)
        noisy = distance + jitter * rng.laplace(size=(size, distance.size))
        rows = np.full(noisy.shape, UNANSWERED)
        left = np.full(size, self.cutoff if recipe.stops else distance.size + 1)
        for i in range(distance.size):
            above = noisy[:, i] >= bar
            rows[:, i] = np.where(left > 0, np.where(above, ABOVE, BELOW), UNANSWERED)
            left -= above
            if recipe.renews:
                bar = np.where(above, rng.laplace(scale=spread, size=size), bar)
        return rows


@dataclass(frozen=True)
class ThresholdGrid:
    """Quadrature over a threshold's Laplace noise, with the chance of each answer at its nodes.

    Attributes
    ----------
    nodes, weights, log_noise : ndarray, shape (node,)
        The last is the log density of the noise.
    log_below, log_above : ndarray, shape (answer, node)
    """

    nodes: Array
    weights: Array
    log_noise: Array
    log_below: Array
    log_above: Array

    @classmethod
    def of(cls, distance: Array, spread: float, jitter: float) -> ThresholdGrid:
        """Return the grid for answers at a distance from the threshold and both noise scales."""
        knots = np.unique(np.append(distance, 0.0))
        reach = REACH * spread
        ends = np.concatenate([[knots[0] - reach], knots, [knots[-1] + reach]])
        step = min(spread, jitter) if jitter > 0.0 else spread
        nodes, weights = truths.quadrature(panels(ends, step))
        below, above = answer_chances(nodes, distance, jitter)
        log_noise = log_pdf(LAPLACE, nodes / spread) - np.log(spread)
        return cls(nodes, weights, log_noise, below, above)

    def log_mean(self, log_chance: Array) -> float:
        """Return the log of the mean over the noise of a chance given at the nodes."""
        return truths.log_integral(self.log_noise + log_chance, self.weights)


def answer_chances(bar: Array, distance: Array, jitter: float) -> tuple[Array, Array]:
    """Return the log chances (answer, bar) of falling below a noisy bar, and of not doing so."""
    gap = bar - distance[:, None]
    if jitter > 0.0:
        return log_cdf(LAPLACE, gap / jitter), log_sf(LAPLACE, gap / jitter)
    below = np.where(gap > 0.0, 0.0, -np.inf)
    return below, np.where(gap > 0.0, -np.inf, 0.0)
