"""How large the largest risk of every draw is at least: that of those who contribute most."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np

from edp_bayes.utils.arrays import Array, Index

__all__ = ["LEAST", "SHARE", "Floored", "largest_of_pilots"]

# Of a large population, risks surely below this share of the largest, or below this, are bounded.
SHARE, LEAST = 1e-4, 1e-9
FIRST = 4  # evaluated in full, to say whose risk of the others may be larger


class Floored(Protocol):
    """A coupling whose curves may have bounds of closed form, see `RegressionCoupling.bounded`."""

    @property
    def pilots(self) -> Index:
        """Who contributes most on average, the most first."""
        ...

    def with_floor(self, floor: Array, *, by_cells: bool = False) -> Self:
        """Return the coupling whose curves may be upper bounds where they are not above a floor."""
        ...

    def curves(self, individuals: Index, epsilon: Array) -> Array:
        """Return delta_i(eps), shape (draw, individual, epsilon)."""
        ...


def largest_of_pilots(coupling: Floored, epsilon: Array) -> Array:
    """Return the largest risk of the pilots, or zero where it is below 1e-9.

    Bounds spare most of the integrals: a pilot whose risk is at most that of the first few, at
    every epsilon of a draw, does not raise the largest.

    Parameters
    ----------
    coupling : Floored
        Whose curves are exact.
    epsilon : ndarray
        Shape (epsilon,).

    Returns
    -------
    ndarray, shape (draw, epsilon)
    """
    first, others = np.split(coupling.pilots, [FIRST])
    largest = np.asarray(coupling.curves(first, epsilon).max(axis=1))
    if others.size:
        floor = np.maximum(largest, LEAST)
        curves = coupling.with_floor(floor, by_cells=True).curves(others, epsilon)
        # what is not above the floor may be a bound
        more = np.where(curves > floor[:, None], curves, 0.0).max(axis=1)
        largest = np.maximum(largest, more)
    return largest
