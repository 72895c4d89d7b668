"""What an adversary knows of every database where several queries are published together.

The past is that of all queries: the answers y_t follow c + x_t' C + exp(gamma z_t) u_t with the
earlier answers to every query among x_t, a vector autoregression. All else is as for one query.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.records.adversary import Adversary
from edp_bayes.records.dependence import linear_dependence
from edp_bayes.records.joined import JointResponses
from edp_bayes.records.known import (
    INSIDERS,
    MANY,
    Explained,
    Known,
    Regressor,
    refuse_determined,
    refuse_many,
    regressed,
    say_many,
    say_unassessed,
)

__all__ = ["JointKnown", "joint_known"]


@dataclass(frozen=True, eq=False, kw_only=True)
class JointKnown(Explained):
    """What is known of several queries; further attributes are those of `Explained`.

    Attributes
    ----------
    responses : JointResponses
        Of the databases that are explained: the first ones serve as lags only. What insiders
        contributed to sums is subtracted, and insiders are no longer among the individuals.
    lagged : tuple of int
        Queries whose earlier answers are the first regressors, those of one lag after those of the
        lag before. Of a query that follows from the others there are none.
    past : int
        Number of lags of each.
    """

    responses: JointResponses
    lagged: tuple[int, ...]
    past: int

    @property
    def row(self) -> int:
        """Which of the explained databases is in question, their number for the next one."""
        return self.row_of(self.responses.database)


def joint_known(adversary: Adversary, responses: JointResponses, at: Any) -> JointKnown:
    """Return what an adversary knows of several queries that are published together.

    Raises
    ------
    InvalidInputError
        As `Adversary.given`; every lag of every query counts as a regressor. Also if they are to
        know their own contribution.
    """
    if adversary.own:
        raise InvalidInputError(
            "a joint audit takes no own=True: which individual's own contribution tells most has "
            "no single answer for several queries. Give those who tell most as insiders=[...]"
        )
    if adversary.past_published is not None:
        raise InvalidInputError(
            "a joint audit takes no past_published: how the past lies in intervals of several "
            "answers together is not learned from so few databases, and knowing it in full never "
            "lowers the risk. Leave it out, or audit each query on its own"
        )
    databases, past = responses.n_databases, adversary.past
    refuse_many(past * responses.n_queries, databases - past, databases)
    parts = [regressed(adversary, responses.parts[0], at)]
    # what is not a query's own is the same for all
    own = replace(
        adversary, trend=False, season=None, covariates=None, knows=None, bins=None,
        changing_scale=False,
    )  # fmt: skip
    parts += [regressed(own, part, at) for part in responses.parts[1:]]
    rest = JointResponses(tuple(part.responses for part in parts))
    lagged = linear_dependence(rest).kept
    regressors = (*_lags(parts, responses.names, lagged, past), *_others(parts, responses.names))
    n = rest.n_databases
    refuse_many(len(regressors), n, databases)
    for name, part in zip(responses.names, rest.parts, strict=True):
        refuse_determined(part, regressors, f"the answers to {name}")
    first = parts[0]
    shared = set.intersection(*(set(part.unassessed) for part in parts))
    unassessed = tuple(label for label in first.unassessed if label in shared)
    said = (say_unassessed(unassessed, responses, past),) if unassessed else ()
    many = (say_many(len(regressors), n),) if len(regressors) > MANY * n else ()
    return JointKnown(
        responses=rest,
        lagged=lagged,
        past=past,
        regressors=regressors,
        position=first.position,
        target_position=first.target_position,
        scaled=adversary.changing_scale,
        against=adversary.words,
        at=at,
        warnings=tuple(dict.fromkeys(w for part in parts for w in part.warnings)) + many + said,
        insiders=first.insiders,
        unassessed=unassessed,
    )


def _lags(
    parts: list[Known], names: tuple[str, ...], lagged: tuple[int, ...], past: int
) -> list[Regressor]:
    """Return the earlier answers to all queries, lag by lag."""
    return [
        replace(part, name=f"{part.name} of {names[k]}")
        for lag in range(past)
        for k in lagged
        for part in (parts[k].regressors[lag],)
    ]


def _others(parts: list[Known], names: tuple[str, ...]) -> list[Regressor]:
    """Return all that is no lag, with the answer to every query on insiders' records."""
    return [
        replace(one, name=f"{INSIDERS}, {name}") if one.name == INSIDERS else one
        for part, name in zip(parts, names, strict=True)
        for one in part.regressors
        if not one.lag
    ]
