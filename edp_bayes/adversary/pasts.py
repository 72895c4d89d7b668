"""What earlier answers may have been, where an adversary has seen no more than an interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edp_bayes.utils.arrays import Array, Index

__all__ = ["Pasts", "pasts_of"]


@dataclass(frozen=True, eq=False)
class Pasts:
    """Earlier answers as they may have been.

    Attributes
    ----------
    answers : ndarray
        Shape (candidate, lag): the last answer first.
    spell : ndarray of int
        Shape (candidate,): databases that follow each other have one number, from 0 on.
    """

    answers: Array
    spell: Index

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.spell.size)

    @property
    def mean(self) -> Array:
        """Mean of every lag, shape (lag,)."""
        return np.asarray(self.answers.mean(axis=0))


def pasts_of(
    answers: Array, low: Array, high: Array, around: Array, *, past: int, row: int | None
) -> Pasts:
    """Return earlier answers as they may have been, the real ones among them.

    An answer is what is known beside it plus a residual. The residuals before other databases are
    put in the place of those before the database in question. What then lies in the intervals that
    were published is what its past may have been. An answer that was published in full is known:
    the others follow it by a regression.

    Parameters
    ----------
    answers : ndarray
        Shape (n,): one database after the other, less what insiders contributed.
    low, high : ndarray
        Shape (n,): the interval in which each lies, as far as is published; both are the answer
        where that is published in full.
    around : ndarray
        Shape (n, regressor): what else is known of each database.
    past : int
        How many earlier answers were seen.
    row : int or None
        Which of the databases that have so many before them is in question; None for the next one.

    Returns
    -------
    Pasts
        Of every database before which the same may have been published.

    Examples
    --------
    >>> y = np.array([1.0, 6.0, 2.0, 7.0, 3.0])
    >>> hidden = y < 5.0
    >>> low, high = np.where(hidden, -np.inf, y), np.where(hidden, 5.0, y)
    >>> found = pasts_of(y, low, high, np.empty((5, 0)), past=1, row=None)
    >>> found.answers.ravel().tolist(), found.spell.tolist()
    ([1.0, 2.0, 3.0], [0, 1, 2])
    """
    n = answers.size
    residual = _left(answers[:, None], around)[:, 0]
    places = np.arange(past, n + 1)[:, None] - np.arange(1, past + 1)
    at = n - past if row is None else row
    here = places[at]
    known = low[here] == high[here]
    if known.all():
        return Pasts(answers[here][None], np.zeros(1, dtype=np.int64))
    left = _left(residual[places][:, ~known], residual[places][:, known])
    candidates = answers[here][~known] + left - left[at]
    inside = ((candidates >= low[here][~known]) & (candidates < high[here][~known])).all(axis=1)
    inside[at] = True  # whatever rounding makes of it
    found = np.repeat(answers[here][None], inside.sum(), axis=0)
    found[:, ~known] = candidates[inside]
    return Pasts(found, _spells(np.flatnonzero(inside)))


def _left(y: Array, x: Array) -> Array:
    """Return what a line leaves of each column."""
    full = np.column_stack([np.ones(len(y)), x])
    return np.asarray(y - full @ np.linalg.lstsq(full, y, rcond=None)[0])


def _spells(places: Index) -> Index:
    """Return a number for every run of places that follow each other."""
    return np.cumsum(np.diff(places, prepend=places[0]) > 1).astype(np.int64)
