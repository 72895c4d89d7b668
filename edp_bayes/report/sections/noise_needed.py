"""What noise would be needed: what was calibrated, what is always enough, what others do alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.report.content import Enough, IntervalRow, NoiseFound
from edp_bayes.results.summaries import interval, largest_and_spread
from edp_bayes.utils.formatting import about, percent, risk, rounded_up

if TYPE_CHECKING:
    from edp_bayes.noise.distribution import NoiseDistribution
    from edp_bayes.noise.verification import Verification
    from edp_bayes.results.query import Audit

__all__ = ["enough", "found", "interval_rows"]


def found(noise: Any, worded: Callable[[str], str], prob: float) -> tuple[NoiseFound, ...]:
    """Return calibrated distributions of noise as rows.

    Parameters
    ----------
    noise : NoiseDistribution, Noise, Verification or a sequence of them
        What `edp_bayes.noise.calibrate` or `edp_bayes.noise.verify` returned.
    worded : callable
        Puts what the report calls individuals into a sentence.
    prob : float
        Probability of the intervals of a verification.

    Raises
    ------
    InputTypeError
        If one of them is no distribution of noise.
    """
    if isinstance(noise, tuple) and not noise:
        return ()
    from edp_bayes.noise.distribution import NoiseDistribution, as_distribution
    from edp_bayes.noise.verification import Verification

    single = isinstance(noise, NoiseDistribution) or not isinstance(noise, Iterable)
    return tuple(
        _verified(one, worded, prob)
        if isinstance(one, Verification)
        else _row(as_distribution(one), worded)
        for one in ((noise,) if single else noise)
    )


def enough(audit: Audit, shown: NDArray[np.int64], *, rounded: bool) -> Enough | None:
    """Return the scale of Laplace noise that hides the largest contribution at each epsilon.

    Adding Laplace noise of scale C / epsilon makes the answers with and without anybody whose
    contribution never exceeds C differ by at most exp(epsilon), database by database, so it does
    whatever their distribution. None where nobody changes an answer, where noise is there already,
    or where contributions are known adjusted alone. The spread is that of the answers as released.
    """
    need = largest_and_spread(audit)
    if need is None:
        return None
    largest, spread = need
    bound = rounded_up(largest) if rounded else largest
    grid = audit.epsilon.to_numpy()[shown]
    return Enough(bound, tuple(bound / e if e > 0.0 else math.inf for e in grid.tolist()), spread)


def _row(noise: NoiseDistribution, worded: Callable[[str], str]) -> NoiseFound:
    record = noise.record
    distributions = [type(distribution).__name__ for _, distribution in noise]
    return NoiseFound(
        distribution=" with ".join(dict.fromkeys(distributions)),
        method=str(record.get("method", "given")),
        epsilon=record.get("epsilon"),
        delta=record.get("delta"),
        absolute=noise.mean_absolute,
        deviation=math.sqrt(noise.variance),
        reached=record.get("reached"),
        message=worded(record.get("message", "")),
    )


def _verified(verification: Verification, worded: Callable[[str], str], prob: float) -> NoiseFound:
    """Return the noise that was verified, with what is left of the risk in words."""
    said = []
    for k, epsilon in enumerate(verification.epsilon.to_numpy()):
        low, middle, high = interval(verification.delta.isel(epsilon=k), prob)
        least, total, most = interval(verification.total_risk.isel(epsilon=k), prob)
        said.append(
            f"At ε = {epsilon:.4g} with this noise, δ is {about(middle)} "
            f"({percent(prob)} interval {risk(low)} to {risk(high)}) and δ* is {about(total)} "
            f"({risk(least)} to {risk(most)}); nobody has any risk in "
            f"{percent(verification.probability(epsilon=float(epsilon)))} of the draws."
        )
    plain = _row(verification.noise, worded)
    return replace(plain, method=f"{plain.method}, verified", message=" ".join(said))


def interval_rows(audit: Audit, prob: float) -> tuple[IntervalRow, ...]:
    """Return interval_level at the widths of an audit's summary.

    None for several queries together: intervals are of one answer. The epsilon of Laplace noise
    that leaves the same interval is no measure of what the answer hides, and stands in no report.
    """
    if audit.joint or not audit.intervals_known:
        return ()
    from edp_bayes.interval.response_intervals import WIDTHS

    level = audit.interval_level(WIDTHS)
    return tuple(IntervalRow(width, interval(level.sel(width=width), prob)) for width in WIDTHS)
