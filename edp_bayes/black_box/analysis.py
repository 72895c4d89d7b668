"""From outcomes to draws of delta and of the local epsilon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from edp_bayes.black_box.cells import MERGED, Cells, count
from edp_bayes.black_box.outcomes import Outcomes
from edp_bayes.black_box.posterior.models import LogRatioModel
from edp_bayes.black_box.posterior.privacy import (
    CellCurves,
    delta_curves,
    distributions,
    local_epsilon,
)
from edp_bayes.black_box.statistic import learn
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.utils.arrays import Array

__all__ = ["Findings", "analyse"]

FEW_OUTCOMES = 20


@dataclass(frozen=True, eq=False)
class Findings:
    """What two samples say of a mechanism.

    Attributes
    ----------
    delta : ndarray
        Shape (chain * draw, epsilon).
    local_epsilon : ndarray
        Shape (chain * draw,), infinite in some draws where infinity cannot be excluded.
    cells : Cells
        What the outcomes were counted in.
    statistic : str
        What outcomes of several continuous columns were reduced to; empty if they were not.
    source : CellCurves
        Evaluates delta at other epsilons.
    """

    delta: Array
    local_epsilon: Array
    cells: Cells
    statistic: str
    source: CellCurves

    @property
    def lower_bound(self) -> bool:
        """Whether outcomes were reduced or counted together: delta is then a lower bound."""
        return bool(self.statistic) or bool((self.cells.role == MERGED).any())

    @property
    def warnings(self) -> list[str]:
        """What is doubtful, in words."""
        found = []
        if min(self.cells.sizes) < FEW_OUTCOMES:
            found.append(
                f"Only {min(self.cells.sizes)} outcomes of a side: with fewer than {FEW_OUTCOMES} "
                "the prior decides much of the result."
            )
        if self.statistic:
            found.append(
                f"The audit is of a number made from each outcome ({self.statistic}): what it "
                "finds is a lower bound for the mechanism."
            )
        if not self.local_epsilon.any():
            found.append(
                "No outcome reaches tau under either database: the local epsilon is 0, a "
                "supremum over nothing. A smaller tau needs more samples."
            )
        if (self.cells.role == MERGED).any():
            found.append(
                "There are so many different outcomes that rare ones were counted together; delta "
                "is then a lower bound."
            )
        return found


def analyse(
    outcomes: Outcomes,
    model: LogRatioModel,
    settings: SamplerSettings,
    epsilon: Array,
    tau: float,
    statistic: Callable[[Array], Array] | None = None,
) -> Findings:
    """Count, draw the log ratios, and evaluate delta and the local epsilon in every draw."""
    described = ""
    if outcomes.kind != "discrete" and outcomes.columns > 1:
        if statistic is not None:
            described = f"a stated statistic, {getattr(statistic, '__name__', 'unnamed')}"
        elif outcomes.kind == "continuous":
            statistic, outcomes = learn(outcomes, settings.generator("learn"))
            described = f"{statistic.name}, learned on half of each sample"
        else:
            described = _describe_rows(outcomes)
    cells = count(outcomes, tau, statistic)
    found = distributions(cells, model.draw(cells, settings), settings.generator("mass"))
    return Findings(
        delta_curves(found, epsilon),
        local_epsilon(cells, found, tau),
        cells,
        described,
        CellCurves(found, outcomes.kind),
    )


def _describe_rows(outcomes: Outcomes) -> str:
    """Return what several continuous numbers in one row of a mixed outcome are reduced to."""
    from edp_bayes.black_box.outcomes import continuous_columns

    most = int(continuous_columns(outcomes).max())
    return "the sum of the columns that do not repeat" if most > 1 else ""
