"""Presence in the database in question of individuals who come and leave in spells.

Presence is taken for a Markov chain of two states. With the share rho of databases and the
autocorrelation a, it is rho + a (1 - rho) after presence and rho (1 - a) after absence. The
autocorrelation is pooled over individuals and drawn to zero where it is uncertain. Doubt goes to
the side of presence:

- After presence, a is no less than half a standard deviation below the individual's own estimate,
  up to its largest value, and presence is no less than their share.
- After absence, a is the lower end of an interval, of their own estimate where that end is lower.
  They come back at least as often as all who had left did, or as their share says if that is less.
- Newcomers, of whom too little is known, stay at least as often as all did who had been there for
  as long in a row. Their own record counts, too: of k databases in a row they stayed after k - 1,
  and what the others did stands for the last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edp_bayes.responses.responses import contributing
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.responses.joined import JointResponses
    from edp_bayes.responses.responses import Responses

__all__ = ["newcomers", "recent_odds", "responses_in_question", "runs"]

LEAST = 3  # presences of whom an autocorrelation of their own is learned
MOST_ALIKE = 0.9
# Standard deviations by which a may lie below the own estimate; 1.64 leave 5% below.
OWN_PRESENT = 0.5
OWN_ABSENT = 1.64


def recent_odds(cells: Index, people: int, n: int, course: Array, odds: float, row: int) -> Array:
    """Return the odds of presence at the database in question over those of everybody, shape (m,).

    Parameters
    ----------
    cells : ndarray of int
        individual * n + database of every presence, in order.
    people, n : int
        Individuals and databases.
    course : ndarray
        Shape (n,): presence in each database over that on average, as all individuals have it.
    odds : float
        Everybody's odds at the database in question over those on average.
    row : int
        Which of the databases is in question, from 1; n for the next one.
    """
    owner, place = np.divmod(cells, n)
    count = np.bincount(owner, minlength=people).astype(np.float64)
    out, changing = np.ones(people), (count > 0.0) & (count < n)
    if not changing.any():
        return out
    run = _last_run(owner, place, people, row)
    alike, less = _autocorrelation(owner, place, count, course, run)
    share = count[changing] / n
    usual = odds * share / (1.0 - share + odds * share)
    stay = np.maximum(usual + alike[changing] * (1.0 - usual), share)
    stayed = _stays(owner, place, n)[np.minimum(run, n - 1)]
    stayed = (np.maximum(run - 1, 0) + stayed) / np.maximum(run, 1)  # unused where run is 0
    new = ((count < LEAST) | (count == run))[changing]
    stay = np.where(new, np.maximum(stay, stayed[changing]), stay)
    back = usual * (1.0 - less[changing])
    back = np.minimum(usual, np.maximum(back, _returns(owner, place, count, n)))
    chance = np.where(run[changing] > 0, stay, back)
    out[changing] = chance / (1.0 - chance) * (1.0 - usual) / usual
    return out


def _autocorrelation(
    owner: Index, place: Index, count: Array, course: Array, run: Index
) -> tuple[Array, Array]:
    """Return everybody's autocorrelation of presence, after presence and after absence.

    It is that beside the course of all. Of those seen `LEAST` times or more it is drawn to the mean
    as far as their own errors explain how they differ; all others have the mean. Then it is drawn
    to zero, as James and Stein do. After absence it is `OWN_ABSENT` standard deviations less, of
    the own estimate where that leaves less. After presence it is no less than the own estimate less
    `OWN_PRESENT` standard deviations. It is at least zero and at most `MOST_ALIKE`, or more for
    those who have been there long.
    """
    people, n = count.size, course.size
    before, after = np.append(0.0, course[:-1]), np.append(course[1:], 0.0)

    def total(values: Array) -> Array:
        return np.bincount(owner, values, people)

    again = np.append(~_starts(owner, place)[1:], False).astype(np.float64)
    share = count / n
    product = total(again) - share * total((before + after)[place])
    product += share**2 * float(course[1:] @ course[:-1])
    square = count - 2.0 * share * total(course[place]) + share**2 * float(course @ course)
    some = (count >= LEAST) & (count < n)
    if not some.any():
        return np.zeros(people), np.zeros(people)
    # one over n is the bias of independent presence
    own = product[some] / square[some] + 1.0 / n
    common, noise = float(own.mean()), 1.0 / n
    between = max(float(own.var()) - noise, 0.0)
    kept = between / (between + noise)
    alike, variance = np.full(people, common), np.full(people, between + noise / own.size)
    alike[some] = common + kept * (own - common)
    variance[some] = kept * noise + noise / own.size
    with np.errstate(divide="ignore"):
        certain = np.maximum(1.0 - variance / np.maximum(alike, 0.0) ** 2, 0.0)
    most = np.maximum(MOST_ALIKE, 1.0 - 1.0 / (run + 2.0))
    alike = np.clip(np.where(alike > 0.0, certain * alike, 0.0), 0.0, most)
    less = alike - OWN_ABSENT * np.sqrt(variance)
    less[some] = np.minimum(less[some], own - OWN_ABSENT * np.sqrt(noise))
    least = own - OWN_PRESENT * np.sqrt(noise)
    alike[some] = np.minimum(np.maximum(alike[some], least), most[some])
    return alike, np.maximum(less, 0.0)


def _starts(owner: Index, place: Index) -> NDArray[np.bool_]:
    """Return which presences are not preceded by one of the same individual."""
    return np.append(True, (np.diff(place) != 1) | (np.diff(owner) != 0))[: owner.size]


def _last_run(owner: Index, place: Index, people: int, row: int) -> Index:
    """Return in how many databases in a row, up to the one before, everybody has been."""
    run, starts = np.zeros(people, dtype=np.int64), _starts(owner, place)
    begun = place[np.flatnonzero(starts)[np.cumsum(starts) - 1]]
    before = place == row - 1
    run[owner[before]] = row - begun[before]
    return run


def newcomers(owner: Index, place: Index, people: int, n: int) -> Index:
    """Return in how many databases everybody was who was in all of the last and in none before.

    Zero for all others, those who are always there among them.

    Examples
    --------
    >>> owner, place = np.array([0, 0, 1, 1, 2]), np.array([3, 4, 0, 4, 4])
    >>> newcomers(owner, place, 3, 5).tolist()
    [2, 0, 1]
    """
    count = np.bincount(owner, minlength=people)
    run = _last_run(owner, place, people, n)
    return np.where((run == count) & (count < n), run, 0)


def runs(owner: Index, place: Index, n: int) -> tuple[Index, Index]:
    """Return how many stayed who had been there k times in a row, and of how many, (n,) each by k.

    Of all together, those who are always there among them. What came before the first database is
    not counted, nor those who had been there k times at the end.

    Examples
    --------
    >>> owner, place = np.array([0, 0, 1, 1, 2]), np.array([3, 4, 0, 4, 1])
    >>> [part.tolist() for part in runs(owner, place, 5)]
    [[0, 1, 0, 0, 0], [0, 3, 0, 0, 0]]
    """
    reached, at_risk = _reached(owner, place, n)
    stayed = reached[1:].copy()
    stayed[0] = at_risk[0] = 0
    return stayed, at_risk


def _reached(owner: Index, place: Index, n: int) -> tuple[Index, Index]:
    """Return how many runs were at least so long, (n + 1,), and of how many that is known, (n,)."""
    if owner.size == 0:
        return np.zeros(n + 1, dtype=np.int64), np.zeros(n, dtype=np.int64)
    ends = np.append(np.flatnonzero(_starts(owner, place))[1:], owner.size)
    length = np.diff(ends, prepend=0)
    open_end = place[ends - 1] == n - 1  # whether they stayed is not known
    reached = np.bincount(length, minlength=n + 1)[::-1].cumsum()[::-1]
    censored = np.bincount(length[open_end], minlength=n + 1)
    return reached, reached[:n] - censored[:n]


def _stays(owner: Index, place: Index, n: int) -> Array:
    """Return how often those who had been there k times in a row stayed, shape (n,), by k.

    Of all together, those who are always there among them. One more individual is added, who stayed
    as often as all did after any presence: a few who are always there are few at each k, and stayed
    very often. What came before the first database is not counted.
    """
    reached, at_risk = _reached(owner, place, n)
    # half a presence and half an absence added
    usual = (reached[2:].sum() + 0.5) / (at_risk[1:].sum() + 1.0)
    return np.asarray((reached[1:] + usual) / (at_risk + 1.0))


def _returns(owner: Index, place: Index, count: Array, n: int) -> float:
    """Return how often those who had been there and were not came back, of all together."""
    seen = count > 0.0
    first, there = np.full(count.size, n), np.bincount(owner[place < n - 1], minlength=count.size)
    np.minimum.at(first, owner, place)
    back = np.bincount(owner[_starts(owner, place)], minlength=count.size) - 1
    away = n - 1 - first - there
    return float((back[seen].sum() + 0.5) / (np.maximum(away[seen], 0).sum() + 1.0))


def responses_in_question[R: (Responses, JointResponses)](responses: R) -> R:
    """Return responses whose individuals are present as often as in the database in question.

    For couplings that move each database by what an individual contributed there. Those who have
    left keep their largest contributions, and those who stay have theirs in further databases, too:
    all in as many as the odds of the adjustment say. Answers to several queries move in the same
    databases.
    """
    adjustment = responses.adjustment
    if adjustment is None or responses.remainder is not None:
        return responses
    samples, n, cells = responses.samples, responses.n_databases, responses.presence_cells
    found, spread = responses.entries, responses.response.std(axis=0)
    size = (np.abs(found.value) / np.maximum(spread, 1e-300)).sum(axis=1)
    weight = np.zeros(cells.size)
    entry = found.owner * n + found.database // samples
    np.maximum.at(weight, np.searchsorted(cells, entry), size)
    order = responses.parts[0].response_by_database.mean(axis=1)
    moved = _taken(cells, weight, responses.n_individuals, n, adjustment.own_odds, order)
    if moved is None:
        return responses
    matrices = [_rearranged(part.contribution, samples, *moved) for part in responses.parts]
    return responses.of_parts(
        [
            part.replaced(
                contribution=matrix,
                half_step=part.half_step,
                presence=contributing(matrix, n, samples),
            )
            for part, matrix in zip(responses.parts, matrices, strict=True)
        ]
    )


def _taken(
    cells: Index, weight: Array, people: int, n: int, odds: Array, response: Array
) -> tuple[Index, Index, Index] | None:
    """Return who is present in the database in question, and as in which database before.

    As owner, database and the database whose contributions are taken; None where nothing changes.
    """
    count = np.bincount(cells // n, minlength=people)
    share = count / n
    wanted = np.rint(n * odds * share / (1.0 - share + odds * share)).astype(np.int64)
    wanted = np.where((count == 0) | (count == n), count, np.clip(wanted, 1, n))
    if (wanted == count).all():
        return None
    start = np.concatenate([[0], np.cumsum(count)])
    by_response = np.argsort(response, kind="stable")
    owner, database, donor = [], [], []
    for i in range(people):
        part = slice(start[i], start[i + 1])
        own = cells[part] % n
        if wanted[i] < count[i]:
            own = np.sort(own[np.argsort(-weight[part], kind="stable")[: wanted[i]]])
        source = own
        if wanted[i] > count[i]:
            others = by_response[~np.isin(by_response, own)]
            more = wanted[i] - count[i]
            # as many low as high responses, so that presence follows none of them
            added = others[((np.arange(more) + 0.5) * others.size / more).astype(np.int64)]
            source = np.concatenate([own, own[np.arange(more) % own.size]])
            own = np.concatenate([own, added])
        owner.append(np.full(own.size, i))
        database.append(own)
        donor.append(source)
    return np.concatenate(owner), np.concatenate(database), np.concatenate(donor)


def _rearranged(matrix, samples: int, owner: Index, database: Index, donor: Index):  # type: ignore[no-untyped-def]
    """Return contributions to databases, taken from others of the same individual."""
    from scipy.sparse import csc_array

    sample = np.arange(samples)
    rows = (database[:, None] * samples + sample).ravel()
    taken = (donor[:, None] * samples + sample).ravel()
    columns = np.repeat(owner, samples)
    values = np.asarray(matrix.tocsr()[taken, columns]).ravel()
    kept = values != 0.0
    return csc_array((values[kept], (rows[kept], columns[kept])), shape=matrix.shape)
