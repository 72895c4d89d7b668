"""What other answers of the same data would leave of a risk, in sentences."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from edp_bayes.results.bands import holds_limit, limit_of_both
from edp_bayes.utils.formatting import number, risk_limit

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.results.verdict import Target

__all__ = ["OTHER_ANSWERS", "other_answers_sentences"]

OTHER_ANSWERS = "other_answers"  # the group of a result


def other_answers_sentences(
    others: xr.Dataset, target: Target, at: int, *, prob: float, kind: str
) -> Iterator[tuple[str, str]]:
    """Yield what was audited, "period" or "limit", and whether it would meet a target.

    Parameters
    ----------
    others : Dataset
        As of `edp_bayes.Audit.other_answers`.
    target : Target
        What is to be met.
    at : int
        Where the limit is read in the grid of epsilon.
    prob : float
        Probability of the limit; of more than the draws hold there are no sentences.
    kind : {"pointwise", "simultaneous"}
        As of the verdict.
    """
    if not holds_limit(others.sizes["sample"], prob):
        return
    withheld = json.loads(others.attrs["withheld"])
    for k, answer in enumerate(json.loads(others.attrs["answers"])):
        one = others.isel(answer=k)
        what = _words(answer, float(one["size"]), int(one["databases"]))
        if withheld[k]:
            yield answer, f"{what} nothing would be established: a check withholds the verdict."
            continue
        drawn, shown = (
            one[name].transpose(..., "epsilon").to_numpy() for name in ("delta", "resampled")
        )
        limit = float(limit_of_both(drawn, shown, prob, kind=kind)[at])
        said = "would meet" if limit <= target.delta else "would not meet"
        yield answer, f"{what} the limit would be {risk_limit(limit)}, which {said} the target."


def _words(answer: str, size: float, databases: int) -> str:
    if answer == "period":
        return f"With {number(size)} databases in one, {databases:,} in all,"
    return f"If nobody counted for more than {number(size)},"
