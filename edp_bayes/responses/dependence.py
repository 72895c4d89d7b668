"""Linear dependence of several queries' answers: redundant queries, and who is revealed exactly.

Some combination of the answers, or of the answers without an individual, may be the same in every
database. It is looked for by singular values of the standardised responses themselves: covariance
matrices lose half of the digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.responses.joined import JointResponses
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.sentences import Sentence, name_of

__all__ = ["Dependence", "Revealed", "combination", "linear_dependence"]

UNITS = 64 * np.finfo(np.float64).eps  # in the last place, of the largest response
NEARLY = 1e-7  # standard deviations of an answer: variances tell no less, half of the digits
COLLINEAR = 1e-10  # a singular value of standardised regressors that is none
LOOSE = 1e-6  # of a covariance: a dependence that is there is far below
LEAST_PART = 1e-9  # of a coefficient, relative to the largest


class Revealed(NamedTuple):
    """An individual whom a combination of the answers reveals exactly.

    Attributes
    ----------
    individual : int
        Position.
    databases : int
        In how many databases.
    combination : ndarray
        Shape (d,): what is multiplied by the answers to all queries.
    alone : bool
        The combination is constant without them, so that nothing else is learned beside it; or else
        with everybody.
    """

    individual: int
    databases: int
    combination: Array
    alone: bool


@dataclass(frozen=True, eq=False)
class Dependence:
    """What depends linearly.

    Attributes
    ----------
    kept : tuple of int
        Queries whose answers do not follow from those before.
    revealed : tuple of Revealed
        One for each individual revealed.
    warnings : tuple of str
        What was found, in sentences.
    """

    kept: tuple[int, ...]
    revealed: tuple[Revealed, ...] = ()
    warnings: tuple[str, ...] = ()


def linear_dependence(responses: JointResponses, design: Array | None = None) -> Dependence:
    """Look for combinations that are constant over all databases, or follow from what is known.

    Parameters
    ----------
    responses : JointResponses
        Two to five queries.
    design : ndarray, optional
        Shape (n, regressor): what an adversary knows of every database. A combination that is a
        constant and a sum of these is as good as constant.

    Raises
    ------
    InvalidInputError
        If a combination is not constant and varies by less than 1e-7 standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> c = rng.normal(5.0, 1.0, (40, 3))
    >>> total = edp.Responses.from_arrays(c.sum(1), contribution=c, query="sum")
    >>> mean = edp.Responses.from_arrays(c.sum(1) / 3, contribution=c / 3, query="mean")
    >>> linear_dependence(edp.Responses.join(total, mean)).kept
    (0,)
    """
    y, names = responses.response, responses.names
    scale = y.std(axis=0)
    tolerance = UNITS * np.abs(y).max(axis=0) / scale
    given = _Given.of(design, len(y))
    if (responses.noise_variance > 0.0).any():
        # known noise is independent, so no combination that has any of it is constant
        return _with_noise(responses, tolerance, scale, given)
    return _found(responses, tuple(range(len(names))), tolerance, scale, given)


@dataclass(frozen=True, eq=False)
class _Given:
    """What is known of every database.

    Attributes
    ----------
    basis : ndarray
        Shape (n, rank): orthonormal, the constant among what it spans.
    words : str
        What a combination is that is spanned by it.
    """

    basis: Array
    words: str

    @classmethod
    def of(cls, design: Array | None, n: int) -> _Given:
        if design is None or design.shape[1] == 0:
            return cls(np.full((n, 1), 1.0 / np.sqrt(n)), "is the same in all databases")
        centred = design - design.mean(axis=0)
        vectors, sizes, _ = np.linalg.svd(centred / centred.std(axis=0), full_matrices=False)
        telling = vectors[:, sizes > COLLINEAR * sizes[0]]
        basis = np.column_stack([np.full(n, 1.0 / np.sqrt(n)), telling])
        return cls(basis, "follows from what the adversary knows in all databases")

    def left(self, y: Array) -> Array:
        """Return what of columns (n, query) does not follow."""
        for _ in range(2):
            y = y - self.basis @ (self.basis.T @ y)
        return y


def _with_noise(
    responses: JointResponses, tolerance: Array, scale: Array, given: _Given
) -> Dependence:
    free = tuple(np.flatnonzero(responses.noise_variance == 0.0).tolist())
    noisy = tuple(np.flatnonzero(responses.noise_variance > 0.0).tolist())
    if not free:
        return Dependence(noisy)
    found = _found(responses, free, tolerance, scale, given)
    return Dependence(tuple(sorted((*found.kept, *noisy))), found.revealed, found.warnings)


def _found(
    responses: JointResponses,
    queries: tuple[int, ...],
    tolerance: Array,
    scale: Array,
    given: _Given,
) -> Dependence:
    y = given.left((responses.response - responses.response.mean(axis=0)) / scale)
    entries = responses.entries
    c = entries.value / scale
    people, kept = responses.n_individuals, list(queries)
    warnings: list[str] = []
    revealed: dict[int, Revealed] = {}
    while len(kept) > 1:
        v, deviation = _least_varying(y[:, kept])
        direction = np.zeros(y.shape[1])
        direction[kept] = v
        if deviation > max(float(np.abs(v) @ tolerance[kept]), UNITS):
            if deviation < NEARLY:
                raise InvalidInputError(
                    f"{combination(direction / scale, responses.names)} varies by {deviation:.1g} "
                    f"standard deviations of an answer, less than numbers can tell ({NEARLY:g}): "
                    "leave one of these queries out"
                )
            break
        last = max(k for k in kept if abs(direction[k]) > LEAST_PART)
        said = combination(direction / scale, responses.names)
        shown = np.abs(c @ direction) > np.abs(direction) @ tolerance
        count = np.bincount(entries.owner[shown], minlength=people)
        who = np.flatnonzero(count)
        for i in who.tolist():
            if i not in revealed or revealed[i].databases < count[i]:
                revealed[i] = Revealed(i, int(count[i]), direction / scale, alone=False)
        said = f"{said} {given.words}"
        warnings += _said_of_answers(responses, said, responses.names[last], who, count)
        kept.remove(last)
    for i in _candidates(responses, y, c, kept, given):
        database, _ = entries.of(i)
        own = c[entries.start[i] : entries.start[i + 1]]
        rest = y.copy()
        rest[database] -= own
        v, deviation = _least_varying(given.left(rest[:, kept]))
        if deviation > max(float(np.abs(v) @ tolerance[kept]), NEARLY):
            continue
        direction = np.zeros(y.shape[1])
        direction[kept] = v
        shown = np.abs(own @ direction) > np.abs(direction) @ tolerance
        found = Revealed(i, int(shown.sum()), direction / scale, alone=True)
        warnings.append(_said_of_one(responses, found))
        if i in revealed and revealed[i].databases > found.databases:
            found = revealed[i]._replace(alone=True)
        revealed[i] = found
    return Dependence(tuple(kept), tuple(revealed.values()), tuple(warnings))


def _least_varying(y: Array) -> tuple[Array, float]:
    """Return the unit combination of columns that varies least, and its standard deviation."""
    _, sizes, vectors = np.linalg.svd(y - y.mean(axis=0), full_matrices=False)
    v = vectors[-1]
    v = np.where(np.abs(v) > LEAST_PART * np.abs(v).max(), v, 0.0)
    return v * np.sign(v[np.flatnonzero(v)[0]]), float(sizes[-1] / np.sqrt(len(y)))


def _candidates(
    responses: JointResponses, y: Array, c: Array, kept: list[int], given: _Given
) -> list[int]:
    """Return who may leave a constant combination, by a loose look at covariances."""
    entries, c = responses.entries, c[:, kept]
    covariance = entries.covariance_without(y[:, kept], c)
    if given.basis.shape[1] > 1:
        # y is what is left of the responses; of the contributions what follows is subtracted here
        spanned = entries.total(given.basis[entries.database, 1:, None] * c[:, None, :])
        covariance = covariance - np.swapaxes(spanned, 1, 2) @ spanned / len(y)
    least, largest = np.linalg.eigvalsh(covariance)[:, 0], np.trace(covariance, axis1=1, axis2=2)
    return np.flatnonzero(least <= LOOSE * np.maximum(largest, LOOSE)).tolist()


def combination(direction: Array, names: tuple[str, ...]) -> str:
    """Return a combination of queries in words, its largest coefficient one.

    Examples
    --------
    >>> combination(np.array([2.0, -1.0]), ("sum", "count"))
    'sum - 0.5 x count'
    """
    top = direction[int(np.abs(direction).argmax())]
    relative = direction / top
    first = relative[np.flatnonzero(np.abs(relative) > LEAST_PART)[0]]
    relative = relative * np.sign(first)
    said = ""
    for value, name in zip(relative, names, strict=True):
        if abs(value) <= LEAST_PART:
            continue
        times = "" if f"{abs(value):.3g}" == "1" else f"{abs(value):.3g} x "
        sign = (" - " if value < 0 else " + ") if said else ("-" if value < 0 else "")
        said += f"{sign}{times}{name}"
    return said


def _said_of_answers(
    responses: JointResponses, said: str, dropped: str, who: Index, count: Index
) -> list[str]:
    n = responses.n_databases
    if who.size == 0:
        return [
            Sentence(
                f"{dropped} follows from the other answers, with and without anybody, and is left "
                f"out: {said}."
            )
        ]
    first = int(who[np.argsort(-count[who], kind="stable")[0]])
    more = f", and {who.size - 1} more" if who.size > 1 else ""
    return [
        Sentence(
            f"{said}, and not without individual ",
            name_of(responses.individual, first),
            f" in {count[first]} of {n}{more}: they are revealed exactly there, whatever epsilon.",
        )
    ]


def _said_of_one(responses: JointResponses, one: Revealed) -> Sentence:
    said = combination(one.combination, responses.names)
    return Sentence(
        f"{said} varies by what individual ",
        name_of(responses.individual, one.individual),
        f" contributes and by nothing else: they are revealed exactly in {one.databases} of "
        f"{responses.n_databases} databases, whatever epsilon.",
    )
