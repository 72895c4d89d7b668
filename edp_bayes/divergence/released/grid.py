"""Where bins end, as compiled functions take it."""

from __future__ import annotations

import math
from typing import NamedTuple

from edp_bayes.utils.arrays import Array
from edp_bayes.utils.compiled import compiled

__all__ = [
    "MANY_BINS",
    "MOST_BINS",
    "PARTS",
    "Grid",
    "edge_after",
    "edge_before",
    "edges_within",
    "moved",
]

# Bins in reach of a pair up to which their masses are kept one by one, and up to which they are
# added up for one number, which takes less time than an integral.
MOST_BINS, MANY_BINS = 512, 4096
# Parts of a step in which its edges may lie where the worst place of a grid is looked for.
PARTS = 32


class Grid(NamedTuple):
    """Bins: between given edges, or below `start` one and above it those of a step.

    Attributes
    ----------
    edges : ndarray
        Shape (edge,): increasing; where there are any, nothing else counts.
    start : float
        Everything below is one bin; -inf where there is no such bin.
    step : float
        Width of the bins above; 0 where answers there are published in full.
    origin : float
        An edge of these bins.
    """

    edges: Array
    start: float
    step: float
    origin: float


@compiled
def moved(grid, centre):  # type: ignore[no-untyped-def]
    """Return the grid for responses as distances from a centre."""
    return Grid(grid.edges - centre, grid.start - centre, grid.step, grid.origin - centre)


@compiled
def edge_after(grid, x):  # type: ignore[no-untyped-def]
    """Return the first edge of the stepped bins that is above x."""
    k = math.floor((x - grid.origin) / grid.step)
    while grid.origin + k * grid.step <= x:
        k += 1.0
    return grid.origin + k * grid.step


@compiled
def edge_before(grid, x):  # type: ignore[no-untyped-def]
    """Return the last edge of the stepped bins that is at most x."""
    k = math.ceil((x - grid.origin) / grid.step)
    while grid.origin + k * grid.step > x:
        k -= 1.0
    return grid.origin + k * grid.step


@compiled
def edges_within(grid, low, high, parts, out):  # type: ignore[no-untyped-def]
    """Fill in all edges from low to high, steps divided in parts; -1 where out is short."""
    if grid.edges.size > 0:
        for k in range(grid.edges.size):
            out[k] = grid.edges[k]
        return grid.edges.size
    if grid.step == 0.0:
        return -1
    size = 0
    if grid.start > low:
        out[0], size = grid.start, 1
        low = grid.start
    if high <= low:
        return size
    part = grid.step / parts
    # whole numbers of steps from the origin, so that an edge is the same number wherever it is met
    first = math.floor((low - grid.origin) / grid.step)
    if (high - low) / part > out.size - 6:
        return -1
    k = 0
    while True:
        edge = grid.origin + first * grid.step + k * part
        if edge > high:
            return size
        if edge > low:
            out[size] = edge
            size += 1
        k += 1
