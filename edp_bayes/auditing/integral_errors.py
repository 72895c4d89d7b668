"""What is left open of everybody's risk where integrals are by quasi-Monte-Carlo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.coupling.joint import JointCurves

__all__ = ["BlockErrors", "IntegralErrors"]


@dataclass(frozen=True, eq=False)
class IntegralErrors:
    """The quantities of `edp_bayes.auditing.evaluation.Risks` with standard errors.

    Attributes
    ----------
    delta, total_risk, total_risk_bound : ndarray
        Shape (2, draw, epsilon): with standard errors subtracted and added; of the sum its own.
        Lower ends leave out those who are bounded.
    individual : ndarray
        Shape (individual, epsilon): mean standard error of delta_i.
    """

    delta: Array
    total_risk: Array
    total_risk_bound: Array
    individual: Array


@dataclass(frozen=True, eq=False)
class BlockErrors:
    """What some individuals add to `IntegralErrors`, whichever others there are.

    Attributes
    ----------
    largest : ndarray
        Shape (2, draw, epsilon): the largest delta_i, with standard errors subtracted and added.
    log_bounded, bounded : ndarray
        Shape (draw, epsilon): the sums of log(1 - delta_i) and of delta_i of those that are upper
        bounds.
    split : ndarray
        Shape (draw, part, epsilon): the sum by parts of the points.
    skipped : ndarray
        Shape (draw, epsilon): bound on the sum of those not looked for.
    individual : ndarray
        Shape (member, epsilon): mean standard error of delta_i.
    """

    largest: Array
    log_bounded: Array
    bounded: Array
    split: Array
    skipped: Array
    individual: Array

    @classmethod
    def zeros(cls, draws: int, people: int, levels: int) -> BlockErrors:
        """Return those of nobody yet."""
        from edp_bayes.divergence.joint.estimates import PARTS

        log_bounded, bounded, skipped = np.zeros((3, draws, levels))
        return cls(
            largest=np.zeros((2, draws, levels)),
            log_bounded=log_bounded,
            bounded=bounded,
            split=np.zeros((draws, PARTS, levels)),
            skipped=skipped,
            individual=np.zeros((people, levels)),
        )

    @property
    def numbers(self) -> int:
        """Numbers for each draw and epsilon."""
        return 5 + int(self.split.shape[1])

    def add_curves(self, part: slice, curves: JointCurves) -> None:
        """Add some of the members."""
        from edp_bayes.auditing.reductions import accumulate

        spare = np.zeros((2, *self.bounded.shape))
        light = curves.bounded[..., None]
        only = np.where(light, curves.value, 0.0)
        accumulate(only, spare[0], self.log_bounded, self.bounded)
        below = np.where(light, 0.0, np.maximum(curves.value - curves.error, 0.0))
        for one, ends in zip((below, curves.raised), self.largest, strict=True):
            accumulate(one, ends, *spare)
        self.individual[part] = curves.error.mean(axis=0)
        self.split[:] += curves.split
        self.skipped[:] += curves.skipped

    def add_block(self, members: Index, block: BlockErrors) -> None:
        """Add a block, by the places of its members."""
        np.maximum(self.largest, block.largest, out=self.largest)
        for name in ("log_bounded", "bounded", "split", "skipped"):
            getattr(self, name)[:] += getattr(block, name)
        self.individual[members] = block.individual

    def of_sums(self, log_survival: Array, total: Array) -> IntegralErrors:
        """Return the errors, given the sums of log(1 - delta_i) and of delta_i of all."""
        # everybody's integrals are at the same points: the error is that of their sum
        parts = self.split.shape[1]
        summed = np.std(self.split, axis=1, ddof=1) / np.sqrt(parts)
        several = []
        for part, light in ((total, self.bounded), (-log_survival, -self.log_bounded)):
            with np.errstate(invalid="ignore"):
                least = np.where(np.isinf(part), part, part - light - summed)
            several.append(np.stack([np.maximum(least, 0.0), part + summed + self.skipped]))
        # By rounding and errors alone they could be in another order.
        total_risk = np.maximum(-np.expm1(-several[1]), self.largest)
        bound = np.minimum(np.maximum(several[0], total_risk), 1.0)
        return IntegralErrors(self.largest, total_risk, bound, self.individual)
