"""Checks that audits of one query and of several have alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes import diagnostics
from edp_bayes.diagnostics.convergence import convergence
from edp_bayes.models.leave_one_out import LEAST_DRAWS, doubtful, leave_one_out
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.sentences import Sentence

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.adversary.known import Explained
    from edp_bayes.models.base import FittedModel
    from edp_bayes.models.joint import FittedJoint
    from edp_bayes.responses.joined import JointResponses
    from edp_bayes.responses.responses import Responses

__all__ = ["checked", "new_ones"]


def new_ones(
    responses: Responses | JointResponses,
    raw: Responses | JointResponses,
    given: Explained | None,
    epsilon: Array,
    upper: Array,
) -> tuple[diagnostics.Checks, ...]:
    """Return the check of newcomers; of a database that was seen presence is known."""
    if given is not None and given.at is not None:
        return ()
    found = diagnostics.check_newcomers(
        responses,
        raw,
        epsilon=epsilon,
        upper=upper,
        fewest=1 if given is not None and given.timed else 2,
        regressors=0 if given is None else len(given.regressors),
    )
    return (found,)


def checked(
    tests: Sequence[diagnostics.Checks],
    posterior: xr.Dataset,
    responses: Responses | JointResponses,
    fitted: FittedModel | FittedJoint,
    doubts: Sequence[str],
    *,
    advice: bool = True,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return checks, those of the draws and a score among them, as rows, and all that is doubtful.

    `doubts` is what was doubtful before. Without `advice` the draws are not checked, nor scored:
    neither withholds a verdict.
    """
    rows, failed = _of_draws(posterior, responses, fitted) if advice else ([], [])
    tables = [test.table().reset_index() for test in tests]
    found = [row for table in tables for row in json.loads(table.to_json(orient="records"))]
    said = [check.sentence for test in tests for check in test.checks]
    tested = [row | {"sentence": sentence} for row, sentence in zip(found, said, strict=True)]
    sentences = [sentence for test in tests for sentence in test.warnings]
    return [*tested, *rows], [*doubts, *sentences, *failed]


def _of_draws(
    posterior: xr.Dataset,
    responses: Responses | JointResponses,
    fitted: FittedModel | FittedJoint,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the checks of the draws and the score of the model, and those that failed."""
    checks, failed = convergence(
        posterior[["delta", "total_risk"]],
        divergences=fitted.divergences,
        independent=fitted.independent,
        diverging=fitted.diverging,
    )
    score = _score_row(responses, fitted)
    return [*checks, score], [*failed, *([] if score["passed"] else [score["sentence"]])]


def _score_row(
    responses: Responses | JointResponses, fitted: FittedModel | FittedJoint
) -> dict[str, Any]:
    """Out-of-sample log density: the model's own where it has one, by PSIS-LOO otherwise."""
    name = "out-of-sample log density"
    if fitted.predictive is not None:
        total = float(fitted.predictive.sum())
        text = f"Leave-one-out log predictive density {total:.2f}."
        return {"check": name, "statistic": total, "passed": True, "sentence": Sentence(text)}
    draws = int(np.prod(fitted.log_likelihood.shape[:2]))
    if draws < LEAST_DRAWS:
        text = f"{draws} draws are too few for PSIS-LOO, which needs at least {LEAST_DRAWS}."
        return {"check": name, "statistic": None, "passed": False, "sentence": Sentence(text)}
    found = leave_one_out(fitted.log_likelihood)
    bad = doubtful(found)
    text = f"PSIS-LOO log predictive density {float(found.elpd):.2f} (se {float(found.se):.2f})"
    if bad:
        text += (
            f"; {bad} of {responses.n_databases} databases have a Pareto k above "
            f"{float(found.good_k):.2f}, so a few databases dominate the fit."
        )
    return {
        "check": name,
        "statistic": float(found.elpd),
        "passed": bad == 0,
        "sentence": Sentence(text if bad else f"{text}."),
    }
