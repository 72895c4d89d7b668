"""The audit of one part of a table of cells, here or on a worker."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from edp_bayes.auditing.cells.chance import tested
from edp_bayes.auditing.cells.differencing import difference, said_of
from edp_bayes.auditing.cells.records import TOGETHER, CellRecords, Part
from edp_bayes.auditing.query import audit_for_verdict
from edp_bayes.auditing.released import audit_released
from edp_bayes.distributions.published import Published
from edp_bayes.exceptions import EdpBayesWarning, InvalidInputError
from edp_bayes.responses.dependence import linear_dependence
from edp_bayes.responses.joined import MOST_QUERIES, JointResponses
from edp_bayes.responses.responses import Responses
from edp_bayes.results.verdict import NOT_ESTABLISHED, Target, no_more_than_whole
from edp_bayes.utils.arrays import Index

__all__ = ["ENDS", "NO_AUDIT", "REVEALED", "CellRow", "CellWork", "quietly"]

NO_AUDIT = "no audit"
REVEALED = "revealed exactly"
DIFFERENCING = "differencing"  # what withholds a verdict of cells of which a combination reveals
ENDS = ("limit", "lower", "median")
NUMBERS = 64  # that come back of a cell, at most


@dataclass(frozen=True)
class CellRow:
    """What was found of a part.

    Attributes
    ----------
    values : mapping
        By the name of each column of the table.
    """

    values: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class CellWork:
    """Audits of parts, each a block of its own for an executor.

    Attributes
    ----------
    coupling : CellRecords or None
        The records; None elsewhere, where those of a part are sent.
    seeds : tuple
        A seed of each part.
    target : tuple
        Epsilon and delta of every verdict, or None.
    prob : float
        Probability of the limits.
    options : mapping
        Of `edp_bayes.audit`.
    published : Published or None
        What is published of every answer; None for the whole of it.
    """

    coupling: CellRecords | None
    seeds: tuple[int | None, ...]
    target: tuple[float | None, float | None]
    prob: float
    options: Mapping[str, Any] = field(default_factory=dict)
    published: Published | None = None

    numbers = NUMBERS

    def evaluate(self, members: Index) -> CellRow:
        """Audit a part here."""
        assert self.coupling is not None
        return self._row(self.coupling, self.coupling.parts[int(members[0])], int(members[0]))

    def evaluate_part(self, coupling: CellRecords, members: Index) -> CellRow:
        """Audit a part of which the records are no others."""
        with quietly():
            return self._row(coupling, coupling.parts[0], int(members[0]))

    def _row(self, records: CellRecords, part: Part, place: int) -> CellRow:
        columns = np.unique(np.concatenate(part.columns))
        matrix, people = records.contributions(columns)
        there = np.bincount(matrix.indices, minlength=matrix.shape[0])
        row: dict[str, Any] = {
            "databases": int((there > 0).sum()),
            "individuals": int(people.size),
            "alone": int((there == 1).sum()),
        }
        return CellRow({**row, **self._answer(records, part, people.size, place)})

    def _answer(
        self, records: CellRecords, part: Part, individuals: int, place: int
    ) -> dict[str, Any]:
        """Return the status of a part, its limit and its sentence."""
        epsilon, delta = self.target
        asked = Target.of(individuals, epsilon=epsilon, delta=delta)
        together = part.kind == TOGETHER
        # what a table tells of cells together, or of a cell with its totals, is no more than their
        # whole answers tell
        published = None if together else self.published
        answers = records.answers(part.columns[0]) if len(part.columns) == 1 else None
        if published is not None and answers is not None and published.same(answers):
            said = f"The answer, {published.words}, is the same in all databases"
            return _without_limit(asked, NO_AUDIT, f"No audit: {said}.")
        if answers is not None and individuals > 1 and np.ptp(answers) == 0.0:
            said = (
                f"The answer is {answers[0]:.6g} in all {answers.size} databases, so that nothing "
                "random hides who joins or leaves"
            )
            return _without_limit(asked, NO_AUDIT, f"No audit: {said}.")
        if individuals == 1:
            told = (
                "the answer is their contribution"
                if published is None
                else f"the answer, {published.words}, is of their contribution and of nothing else"
            )
            said = f"One individual alone is in this cell: {told}."
            return _without_limit(asked, REVEALED, f"Revealed exactly. {said}")
        if len(part.columns) > MOST_QUERIES:
            if (one := difference(records, part)) is not None:
                return self._revealed(asked, said_of(one, records, part))
            said = (
                f"{len(part.columns)} cells share individuals or are correlated, and at most "
                f"{MOST_QUERIES} are audited together; no combination of them reveals an individual"
            )
            return _without_limit(asked, NOT_ESTABLISHED, f"Not established. {said}.")
        try:
            responses = records.responses(part)
            given: Responses | JointResponses = responses[0]
            if len(responses) > 1:
                given = Responses.join(*responses)
                dependence = linear_dependence(given)
                if dependence.revealed:
                    who = next(one for one in dependence.warnings if REVEALED in one)
                    return self._revealed(asked, str(who))
            options = self._of_several if together else self.options
            seed = self.seeds[place]
            found = audit_for_verdict(given, random_seed=seed, progressbar=False, **options)
            if published is not None:
                found = audit_released(found, published, progressbar=False)
            verdict = found.verdict(epsilon=epsilon, delta=delta, prob=self.prob)
        except InvalidInputError as error:
            return _without_limit(asked, NO_AUDIT, f"No audit: {error}.")
        chance, p_value = (0.0, np.nan) if found.joint else tested(found.checks)
        row = {
            "status": verdict.status,
            "epsilon": verdict.epsilon,
            "delta": verdict.delta,
            "limit": verdict.limit,
            "lower": verdict.lower,
            "median": verdict.median,
            "limit_withheld": np.nan,
            "withheld_by": ", ".join(verdict.withheld_by),
            "chance": chance,
            "p_value": p_value,
            "sentence": verdict.claim,
        }
        if together and self.published is not None:
            row["status"], row["sentence"] = no_more_than_whole(verdict, self.published.words)
            # ends of the band of the whole answers are none of what is published
            row |= {"lower": np.nan, "median": np.nan}
        if verdict.status == NOT_ESTABLISHED:
            # nobody who reads the table alone takes these for established
            row |= {**dict.fromkeys(ENDS, np.nan), "limit_withheld": verdict.limit}
        return row

    @property
    def _of_several(self) -> Mapping[str, Any]:
        """The options, of an adversary who has seen all of the past: they know no less."""
        adversary = self.options.get("adversary")
        if adversary is None or adversary.past_published is None:
            return self.options
        return {**self.options, "adversary": replace(adversary, past_published=None)}

    def _revealed(self, asked: Target, said: str) -> dict[str, Any]:
        """Return that a combination of cells reveals an individual, where it is published whole."""
        if self.published is None:
            return _without_limit(asked, REVEALED, f"Revealed exactly. {said}")
        left = f"What is left of that where they are {self.published.words} is not known."
        why = f"Not established. Of the whole answers, {said} {left}"
        return _without_limit(asked, NOT_ESTABLISHED, why) | {"withheld_by": DIFFERENCING}


def _without_limit(asked: Target, status: str, sentence: str) -> dict[str, Any]:
    """Return what stands in the row of a part that has no limit."""
    return {
        "status": status,
        "epsilon": asked.epsilon,
        "delta": asked.delta,
        **dict.fromkeys((*ENDS, "limit_withheld"), np.nan),
        "withheld_by": "",
        "chance": 0.0,
        "p_value": np.nan,
        "sentence": sentence,
    }


@contextmanager
def quietly() -> Iterator[None]:
    """Leave out the warnings of single cells: what matters of them stands in their rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        yield
