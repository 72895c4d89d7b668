"""Checks of several responses together: of the databases, and of the density model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edp_bayes.diagnostics.checks import Check, Checks
from edp_bayes.diagnostics.grids import check_grid
from edp_bayes.diagnostics.independence import LEVEL, DatabaseChecks, check_databases
from edp_bayes.diagnostics.predictive import ADVICE, predictive_checks_of
from edp_bayes.utils.sentences import Sentence

if TYPE_CHECKING:
    from edp_bayes.distributions.multivariate import NormalMixture
    from edp_bayes.responses.joined import JointResponses

__all__ = ["check_joint_databases", "check_joint_grid", "joint_predictive_check"]


def check_joint_databases(
    responses: JointResponses,
    *,
    level: float = LEVEL,
    scores: NDArray[np.float64] | None = None,
    past: int = 0,
    regressors: int = 0,
    records: JointResponses | None = None,
    least: float = 0.0,
) -> DatabaseChecks:
    """Make the checks of `check_databases` of every response, at the level over their number.

    Of each check the worst is told, with the name of its query.

    Parameters
    ----------
    responses : JointResponses
        Leave-one-out responses.
    level : float
        Family-wise level of all tests.
    scores : ndarray, optional
        Shape (n, query): normal scores of the residuals, given what an adversary knows.
    past : int
        Lags of a response of its own among that.
    regressors : int
        All that is known of each database.
    records : JointResponses, optional
        The same queries' responses as they were, where `responses` are those of the database in
        question.
    least : float
        As for `check_databases`.
    """
    raw = dict(zip(records.names, records.parts, strict=True)) if records is not None else {}
    share = level / responses.n_queries
    columns = [None] * responses.n_queries if scores is None else list(scores.T)
    each = [
        check_databases(
            part,
            level=share,
            scores=column,
            past=past,
            regressors=regressors,
            queries=responses.n_queries,
            records=raw.get(name),
            least=least,
        ).checks
        for name, part, column in zip(responses.names, responses.parts, columns, strict=True)
    ]
    found: dict[str, list[Check]] = {}
    for name, checks in zip(responses.names, each, strict=True):
        for check in checks:
            said = replace(check, sentence=Sentence(f"{name}: ", check.sentence))
            found.setdefault(check.name, []).append(said)
    return DatabaseChecks(tuple(min(some, key=_worst) for some in found.values()), level)


def check_joint_grid(
    responses: JointResponses, *, epsilon: NDArray[np.float64], upper: NDArray[np.float64]
) -> Checks:
    """Make the check of `check_grid` of every response and tell the worst, with its query's name.

    Whoever is seen in one of the answers is seen in all of them.
    """
    found = [
        (name, check)
        for name, part in zip(responses.names, responses.parts, strict=True)
        for check in check_grid(
            part, epsilon=epsilon, upper=upper, level=LEVEL / responses.n_queries
        ).checks
    ]
    name, worst = min(found, key=lambda one: _worst(one[1]))
    if not worst.passed:
        worst = replace(worst, sentence=Sentence(f"{name}: ", worst.sentence))
    return Checks((worst,), LEVEL)


def joint_predictive_check(
    mixture: NormalMixture,
    responses: JointResponses,
    rng: np.random.Generator,
    *,
    level: float = LEVEL,
    advice: str = ADVICE,
) -> Checks:
    """Compare the responses with replicates: each query, and their products two by two.

    Every query is checked as on its own, at the level over the number of comparisons, and so is the
    product of every two standardised queries, which holds how they go together. Of each check the
    worst is told, with the name of its query.
    """
    y = responses.response
    draws = mixture.weights.reshape(-1, mixture.weights.shape[-1]).shape[0]
    replicates = mixture.sample(len(y), rng).reshape(draws, len(y), -1)
    centre, spread = y.mean(axis=0), y.std(axis=0)
    z, drawn = (y - centre) / spread, (replicates - centre) / spread
    names, d = responses.names, responses.n_queries
    columns = [(names[a], y[:, a], replicates[..., a]) for a in range(d)]
    columns += [
        (f"{names[a]} and {names[b]} together", z[:, a] * z[:, b], drawn[..., a] * drawn[..., b])
        for a in range(d)
        for b in range(a)
    ]
    found: dict[str, list[Check]] = {}
    for name, observed, replicated in columns:
        checks = predictive_checks_of(
            observed,
            replicated,
            level=level / len(columns),
            advice=advice,
            adjusted=responses.adjustment is not None,
        ).checks
        for check in checks:
            said = replace(check, sentence=Sentence(f"{name}: ", check.sentence))
            found.setdefault(check.name, []).append(said)
    return Checks(tuple(min(some, key=_worst) for some in found.values()), level)


def _worst(check: Check) -> tuple[bool, float]:
    p = check.p_adjusted if check.p_adjusted is not None else -abs(check.statistic)
    return check.passed, p
