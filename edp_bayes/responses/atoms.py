"""Answers that are one value again and again, such as 0 or a cap: atoms of their distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.responses.rounding import FOUND, ROUNDING
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from edp_bayes.responses.responses import Responses

__all__ = [
    "FEWEST_TIES",
    "FOUND",
    "AtAtoms",
    "at_atoms",
    "at_values",
    "checked_atoms",
    "places",
    "refuse_atoms",
    "tied_ends",
]

FEWEST_TIES = 3
MOST = 5


def refuse_atoms(atoms: object, what: str) -> None:
    """Refuse answers with atoms where only a density is known what to do with."""
    if atoms is not None:
        raise InvalidInputError(
            f"{what} is known for answers that have a density, and these have atoms: audit without "
            "atoms, which treats all answers as continuous"
        )


@dataclass(frozen=True, eq=False)
class AtAtoms:
    """How often answers, with and without every individual, are at an atom.

    Attributes
    ----------
    values : ndarray
        Shape (atom,): the atoms, increasing.
    count : ndarray
        Shape (atom,): databases whose answer is that atom.
    others : int
        Databases whose answer is no atom.
    leaves : ndarray
        Shape (individual, atom): of the databases at an atom, those whose answer without the
        individual is another.
    falls : ndarray
        Shape (individual, atom): of the databases at none, those whose answer without the
        individual is that atom.
    """

    values: Array
    count: Array
    others: int
    leaves: Array
    falls: Array

    @property
    def record(self) -> dict[str, int]:
        """How many answers are at each atom, by its value as text."""
        return {
            f"{value:.12g}": int(count)
            for value, count in zip(self.values, self.count, strict=True)
        }


def places(values: Array, atoms: Array, size: Array | float = 0.0) -> Index:
    """Return the position of the atom at which each value is, -1 where at none.

    `size` is that of the numbers of which a value is the difference.

    Examples
    --------
    >>> places(np.array([0.0, 1.5, 3.0]), np.array([0.0, 3.0])).tolist()
    [0, -1, 1]
    """
    found = np.full(values.shape, -1, dtype=np.int64)
    for k, atom in enumerate(atoms):
        near = np.abs(values - atom) <= ROUNDING * np.maximum(abs(atom), size)
        found[near] = k
    return found


def at_atoms(responses: Responses) -> AtAtoms:
    """Return how often the answers are at their atoms."""
    atoms = responses.atoms
    assert isinstance(atoms, np.ndarray)
    return at_values(responses, atoms)


def at_values(responses: Responses, atoms: Array) -> AtAtoms:
    """Return how often the answers, with and without everybody, are at these values, increasing."""
    here = places(responses.response, atoms)
    c = responses.collected
    with_them, without = here[c.indices], _without(responses.response, c, atoms)
    shape = (responses.n_individuals, atoms.size)
    leaves, falls = np.zeros(shape), np.zeros(shape)
    left = (with_them >= 0) & (without != with_them)
    fell = (with_them < 0) & (without >= 0)
    np.add.at(leaves, (responses.owner[left], with_them[left]), 1.0)
    np.add.at(falls, (responses.owner[fell], without[fell]), 1.0)
    count = np.bincount(here[here >= 0], minlength=atoms.size).astype(np.float64)
    return AtAtoms(atoms, count, int((here < 0).sum()), leaves, falls)


def checked_atoms(atoms: Any, response: Array, contribution: csc_array[np.float64]) -> Array | None:
    """Return atoms, increasing, of which there are ties enough; None where there are none.

    Raises
    ------
    InvalidInputError, InputTypeError
        If they are no numbers, more than five or twice the same, or if fewer than three answers,
        with or without an individual, are at one of them.
    """
    if atoms is None:
        return None
    if isinstance(atoms, str):
        if atoms != FOUND:
            raise InputTypeError(
                f"atoms must be numbers, such as [0.0], {FOUND!r} or None, found {atoms!r}"
            )
        found = tied_ends(response, contribution)
        return found if found.size else None
    values = np.atleast_1d(validate.finite_array(atoms, "atoms")).astype(np.float64)
    if values.ndim != 1 or not 1 <= values.size <= MOST:
        raise InvalidInputError(f"atoms must be 1 to {MOST} numbers, found {values.tolist()}")
    values = np.sort(values)
    if (np.diff(values) == 0.0).any():
        raise InvalidInputError(f"atoms must be different numbers, found {values.tolist()}")
    for value in values:
        ties = _ties(response, contribution, value)
        if ties < FEWEST_TIES:
            raise InvalidInputError(
                f"an atom is a value that the answer has in at least {FEWEST_TIES} databases, with "
                f"or without an individual, and {value:.12g} is that of {ties}: leave it out of "
                "atoms (--atoms)"
            )
    values.setflags(write=False)
    return values


def tied_ends(response: Array, contribution: csc_array[np.float64]) -> Array:
    """Return which of the smallest and the largest answer are those of at least 3 databases.

    Answers without an individual count, too.

    Examples
    --------
    >>> from scipy.sparse import csc_array
    >>> answers = np.array([0.0, 2.5, 0.0, 1.5, 4.0, 0.0])
    >>> tied_ends(answers, csc_array(np.zeros((6, 1)))).tolist()
    [0.0]
    """
    without = response[contribution.indices] - contribution.data
    near = ROUNDING * np.maximum(np.abs(response[contribution.indices]), np.abs(without))
    snapped = np.where(np.abs(without) <= near, 0.0, without)
    everything = np.concatenate([response, snapped])
    found = np.unique([everything.min(), everything.max()])
    return found[[_ties(response, contribution, end) >= FEWEST_TIES for end in found]]


def _ties(response: Array, contribution: csc_array[np.float64], atom: float) -> int:
    """Return in how many databases the answer is an atom, with or without one individual."""
    one = np.array([atom])
    own = int((places(response, one) >= 0).sum())
    without = _without(response, contribution, one) >= 0
    first = contribution.indptr[:-1][np.diff(contribution.indptr) > 0]
    if not without.any():
        return own
    return max(own, int(np.add.reduceat(without.astype(np.int64), first).max()))


def _without(response: Array, contribution: csc_array[np.float64], atoms: Array) -> Index:
    """Return the atoms at which answers without an individual are, of every contribution."""
    y = response[contribution.indices]
    return places(y - contribution.data, atoms, np.abs(y))
