"""Privacy curves of an audit at epsilons beside its grid, from the individuals who matter there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edp_bayes.auditing.evaluation import BLOCK_NUMBERS, Risks
from edp_bayes.coupling.base import Coupling

__all__ = ["CoupledCurves"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# So few individuals are all evaluated.
FEW = 100


@dataclass(frozen=True, eq=False)
class CoupledCurves:
    """Evaluates the riskiest of every draw at new epsilons, and bounds all others.

    An individual's risk never rises with epsilon, so who is below the target at the value of the
    grid to the left is so further right. Of every draw the riskiest are known at every value of the
    grid, and how risky all others are at most. Left of the grid anybody may be the riskiest: there
    few individuals are all evaluated, and of many it is known that no risk rises by more than
    exp(epsilon) falls.

    Parameters
    ----------
    coupling : Coupling
        The fit.
    epsilon : ndarray
        Shape (epsilon,): the grid of the audit.
    risks : Risks
        What was found there.
    """

    coupling: Coupling
    epsilon: Array
    risks: Risks

    def between(self, epsilon: Array, left: int, target: float, rows: Index) -> tuple[Array, Array]:
        """Return a lower and an upper bound of delta; see `edp_bayes.results.crossings`."""
        at = max(left, 0)
        top, who = self.risks.top[rows, at], self.risks.who[rows, at]
        if self.coupling.n_individuals <= FEW:
            found = self._largest(np.arange(self.coupling.n_individuals), epsilon, rows)
            return found, found
        growth, ends = np.exp(epsilon), np.exp(self.epsilon)
        if left < 0:
            # anybody may be the riskiest there
            most = self.risks.delta[rows, :1] + (ends[0] - growth)
            return np.zeros_like(most), np.minimum(most, 1.0)
        found = self._largest(np.unique(who[top > target]), epsilon, rows)
        least, share = top[:, -1:], (growth - ends[left]) / (ends[left + 1] - ends[left])
        right = self.risks.delta[rows, left + 1][:, None]
        # below the target on the left, they never reach it
        others = np.where(least > target, least + share * (right - least), 0.0)
        return found, np.maximum(found, others)

    def end(self) -> Array:
        """Return the epsilon of every draw beyond which delta is zero, or say why there is none."""
        from edp_bayes.coupling.ratios import largest_log_ratio

        return largest_log_ratio(self.coupling)

    def _largest(self, people: Index, epsilon: Array, rows: Index) -> Array:
        """Return the largest risk of some individuals in some draws, shape (row, epsilon)."""
        found = np.zeros((rows.size, epsilon.size))
        step = max(1, BLOCK_NUMBERS // (self.coupling.n_draws * epsilon.size))
        for start in range(0, people.size, step):
            curves = self.coupling.curves(people[start : start + step], epsilon)
            np.maximum(found, curves[rows].max(axis=1), out=found)
        return found
