"""What an adversary may be given on some databases: advice that can be followed.

What is advised was tried first, by the function that decides what an adversary is given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.adversary.adversary import CALENDAR, Adversary
from edp_bayes.adversary.known import fits, known
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.records.remainder import WAY_OUT
from edp_bayes.utils.formatting import either

if TYPE_CHECKING:
    from edp_bayes.responses.responses import Responses

__all__ = ["advised", "advised_more"]


def advised(
    responses: Responses, wanted: Iterable[Adversary], *, queries: int = 1, why: str = ""
) -> str:
    """Return how to give the first adversary of some that these databases admit, as a sentence.

    Parameters
    ----------
    responses : Responses
        What an audit would be of.
    wanted : iterable of Adversary
        The most wanted first.
    queries : int
        Queries that are published together: all have lags.
    why : str
        What is wrong in all cases, before the advice.

    Examples
    --------
    >>> from edp_bayes.responses.responses import Responses
    >>> y = np.random.default_rng(1).normal(size=20)
    >>> data = Responses.from_arrays(y, response_without=y - 0.01)
    >>> advised(data, [Adversary(past=2, trend=True)], why="Databases are alike")
    'Databases are alike: give adversary=Adversary(past=2, trend=True), --past 2 --trend.'
    """
    if responses.remainder is not None:
        return f"{why}: {WAY_OUT}, and audit against an adversary who knows the past."
    refusal = ""
    for adversary in wanted:
        try:
            _try(adversary, responses, queries)
        except InvalidInputError as error:
            refusal = refusal or str(error)
            continue
        return f"{why}: give adversary={_call(adversary)}, {_options(adversary)}."
    return f"{why}. No adversary who knows more can be audited on these databases: {refusal}."


def advised_more(databases: int, regressors: int, *, queries: int = 1) -> str:
    """Return what more an adversary can be given, after so many regressors, as a sentence.

    Parameters
    ----------
    databases : int
        Those that are explained, without the first that serve as lags.
    regressors : int
        What is known of each already.
    queries : int
        Queries that are published together.
    """
    more = []
    if fits(regressors + queries, databases - 1):
        more.append("more lags (past=, --past)")
    if fits(regressors + 2, databases):
        more.append("a season (season=, --season)")
    if fits(regressors + 1, databases):
        more.append("covariates (covariates=, --covariates)")
    if not more:
        return "Nothing more can be given on so few databases: it takes more of them."
    return f"Give them {either(more)}."


def _try(adversary: Adversary, responses: Responses, queries: int) -> None:
    """Refuse what `known` refuses of these databases, and of several queries on them."""
    from scipy.sparse import csc_array

    y = responses.response_by_database.mean(axis=1)
    nobody = responses.replaced(
        response=y,
        contribution=csc_array(np.full((y.size, 1), 1e-3 * y.std())),
        individual=np.array(["nobody"], dtype=object),
        presence=np.array([y.size]),
        samples=1,
        half_step=None,
        adjustment=None,
    )
    found = known(adversary, nobody, None)
    lags = adversary.past * (queries - 1)
    if not fits(len(found.regressors) + lags, found.position.size):
        raise InvalidInputError(f"{y.size} databases are too few for lags of {queries} queries")


def _call(adversary: Adversary) -> str:
    """Return an adversary as it is written in Python."""
    given = []
    if adversary.past:
        given.append(f"past={adversary.past}")
    if (seen := adversary.past_published) is not None:
        arguments = {name: value for name, value in seen.record.items() if name != "words"}
        given.append(f"past_published={arguments}")
    given += [f"{name}=True" for name in ("trend", "changing_scale") if getattr(adversary, name)]
    if adversary.season is not None:
        given.append(f"season={adversary.season!r}")
    return f"Adversary({', '.join(given)})"


def _options(adversary: Adversary) -> str:
    """Return the options of the command line that stand for an adversary."""
    given = [f"--past {adversary.past}"] if adversary.past else []
    given += ["--past-published"] if adversary.past_published is not None else []
    given += ["--trend"] if adversary.trend else []
    given += ["--changing-scale"] if adversary.changing_scale else []
    if adversary.season is not None:
        season = adversary.season
        given.append(f"--season {season if season == CALENDAR else format(float(season), 'g')}")
    return " ".join(given)
