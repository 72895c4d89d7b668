"""Everybody's risk from several queries in every draw, block by block, with errors of integrals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from edp_bayes.auditing.evaluation import canonical_blocks
from edp_bayes.auditing.reductions import accumulate, medians, moments
from edp_bayes.divergence.joint.estimates import PARTS
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.progress import track

if TYPE_CHECKING:
    from edp_bayes.auditing.executors.base import Runner
    from edp_bayes.coupling.joint import JointCoupling

__all__ = ["JointBlockRisks", "JointRisks", "JointWork", "evaluate_joint"]

FEW = 100  # individuals, for whom what each answer tells on its own is evaluated in every draw
BLOCK_NUMBERS = 2**24  # numbers held at once while a block is evaluated


@dataclass(frozen=True, eq=False)
class JointRisks:
    """Privacy quantities of every draw, with the standard errors of their integrals.

    Attributes
    ----------
    delta, total_risk, total_risk_bound : ndarray
        Shape (3, draw, epsilon): as integrated, and with standard errors subtracted and added; of
        the sum its own. Lower ends leave out whoever is bounded.
    mean, deviation, median : ndarray
        Shape (individual, epsilon): of delta_i.
    error : ndarray
        Shape (individual, epsilon): mean standard error of delta_i.
    screened_bound : ndarray
        Shape (epsilon,): bound on the sum of all risks that were not looked for, in any draw.
    bounded : ndarray
        Shape (draw, epsilon): sum of the risks that are upper bounds.
    """

    delta: Array
    total_risk: Array
    total_risk_bound: Array
    mean: Array
    deviation: Array
    median: Array
    error: Array
    screened_bound: Array
    bounded: Array


@dataclass(frozen=True, eq=False)
class JointBlockRisks:
    """What a block of individuals adds to `JointRisks`, whoever else there is.

    Attributes
    ----------
    largest : ndarray
        Shape (3, draw, epsilon): the largest delta_i, as integrated and with standard errors
        subtracted and added.
    log_survival, total : ndarray
        Shape (2, draw, epsilon): the sums of log(1 - delta_i) and of delta_i, of all and of those
        that are upper bounds.
    split : ndarray
        Shape (draw, part, epsilon): the sum by parts of the points.
    skipped : ndarray
        Shape (draw, epsilon): bound on the sum of those not looked for.
    mean, deviation, median, error : ndarray
        Shape (member, epsilon): summaries over the draws.
    """

    largest: Array
    log_survival: Array
    total: Array
    split: Array
    skipped: Array
    mean: Array
    deviation: Array
    median: Array
    error: Array


@dataclass(frozen=True, eq=False)
class JointWork:
    """What is to be evaluated, as `edp_bayes.auditing.executors.base.Work`.

    Attributes
    ----------
    coupling : JointCoupling
        The fit.
    epsilon : ndarray
        Shape (epsilon,).
    """

    coupling: JointCoupling
    epsilon: Array

    found: ClassVar[type[JointBlockRisks]] = JointBlockRisks

    def evaluate(self, members: Index) -> JointBlockRisks:
        """Evaluate a block here."""
        return _evaluate_block(self.coupling, members, self.epsilon)

    def evaluate_part(self, coupling: JointCoupling, members: Index) -> JointBlockRisks:
        """Evaluate a block of which the coupling is a part of the whole."""
        return _evaluate_block(coupling, np.arange(members.size), self.epsilon)

    @property
    def numbers(self) -> int:
        """Numbers that come back for each block, but for those of each individual."""
        return self.coupling.n_draws * self.epsilon.size * (8 + PARTS)


def evaluate_joint(
    coupling: JointCoupling,
    epsilon: Array,
    *,
    progressbar: bool,
    run: Runner | None = None,
    exact_up_to: int | None = None,
) -> JointRisks:
    """Evaluate every individual, block by block; arguments as for `evaluate`.

    In populations above `exact_up_to` only those who may have the largest risk are integrated.
    """
    from edp_bayes.auditing.executors.local import here

    people = coupling.n_individuals
    integrated = exact_up_to is None or people <= exact_up_to
    if people > FEW or not integrated:
        coupling = coupling.with_floor(epsilon, integrated=integrated)
    blocks = canonical_blocks(np.arange(people))
    found = (run or here)(JointWork(coupling, epsilon), blocks)
    shown = track(found, "Individuals", total=len(blocks), show=progressbar)
    shape = (coupling.n_draws, people, epsilon.size)
    return _combined(zip(blocks, shown, strict=True), shape)


def _evaluate_block(coupling: JointCoupling, members: Index, epsilon: Array) -> JointBlockRisks:
    size, levels = coupling.n_draws, epsilon.size
    largest, unused, spare = np.zeros((3, 3, size, levels))
    log_survival, total = np.zeros((2, 2, size, levels))
    split, skipped = np.zeros((size, PARTS, levels)), np.zeros((size, levels))
    mean, deviation, median, error = np.zeros((4, members.size, levels))
    step = max(1, BLOCK_NUMBERS // (size * (5 * levels + coupling.width)))
    for start in range(0, members.size, step):
        part = slice(start, start + step)
        curves = coupling.curves(members[part], epsilon)
        light = curves.bounded[..., None]
        only = np.where(light, curves.value, 0.0)
        accumulate(curves.value, largest[0], log_survival[0], total[0])
        accumulate(only, spare[0], log_survival[1], total[1])
        below = np.where(light, 0.0, np.maximum(curves.value - curves.error, 0.0))
        accumulate(below, largest[1], unused[1], spare[1])
        accumulate(np.minimum(curves.value + curves.error, 1.0), largest[2], unused[2], spare[2])
        mean[part], deviation[part], _ = moments(curves.value)
        median[part] = medians(curves.value)
        error[part] = curves.error.mean(axis=0)
        split += curves.split
        skipped += curves.skipped
    return JointBlockRisks(
        largest, log_survival, total, split, skipped, mean, deviation, median, error
    )


def _combined(
    blocks: Iterable[tuple[Index, JointBlockRisks]], shape: tuple[int, int, int]
) -> JointRisks:
    """Put the canonical blocks together, added in their order."""
    size, people, levels = shape
    largest = np.zeros((3, size, levels))
    log_survival, total = np.zeros((2, 2, size, levels))
    split, skipped = np.zeros((size, PARTS, levels)), np.zeros((size, levels))
    mean, deviation, median, error = np.zeros((4, people, levels))
    for members, block in blocks:
        np.maximum(largest, block.largest, out=largest)
        log_survival += block.log_survival
        total += block.total
        split += block.split
        skipped += block.skipped
        mean[members], deviation[members] = block.mean, block.deviation
        median[members], error[members] = block.median, block.error
    # everybody's integrals are at the same points: the error is that of their sum
    summed = np.std(split, axis=1, ddof=1) / np.sqrt(PARTS)
    several = []
    for part, light in (total, -log_survival):
        with np.errstate(invalid="ignore"):
            least = np.where(np.isinf(part), part, part - light - summed)
        several.append(np.stack([part, np.maximum(least, 0.0), part + summed + skipped]))
    # By rounding and errors alone they could be in another order.
    total_risk = np.maximum(-np.expm1(-several[1]), largest)
    return JointRisks(
        delta=largest,
        total_risk=total_risk,
        total_risk_bound=np.minimum(np.maximum(several[0], total_risk), 1.0),
        mean=mean,
        deviation=deviation,
        median=median,
        error=error,
        screened_bound=skipped.max(axis=0),
        bounded=total[1],
    )
