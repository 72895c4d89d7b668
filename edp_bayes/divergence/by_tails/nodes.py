"""Nodes that resolve every component of a pair of Gaussian mixtures where it counts."""

from __future__ import annotations

import math

from edp_bayes.divergence.by_tails.columns import (
    KIND,
    MU,
    NOISE,
    NOISY,
    NU,
    ONLY_P,
    ONLY_Q,
    RATE,
    RATE_Q,
    A,
    C,
    V,
    noisy_radius,
)
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.compiled import ZERO, borrowing

__all__ = ["MOST_NODES", "place"]

MOST_NODES = 4096
STEP = 0.5  # of the narrowest component that counts, between nodes
RUN = 4  # nodes at one step
BEND = 10.0  # scales beyond which the tail of a component with noise is exponential


@borrowing
def place(columns: Array, count: int, negligible: float, zones: Array, x: Array) -> int:
    """Fill x with nodes, gaps between all components left out; return their number.

    Tails of components that weigh less than `negligible` get no nodes. `zones` is written to.
    Returns 0 for a pair that needs more nodes than there is room for.
    """
    found = ZERO
    for k in range(count):
        row = columns[k]
        if row[KIND] == NOISY:
            found = _noisy_zones(zones, found, row, negligible)
            continue
        if row[KIND] != ONLY_Q:
            found = _zone(zones, found, row[A], row[MU], row[RATE], negligible)
        if row[KIND] != ONLY_P:
            found = _zone(zones, found, row[V] + row[C], row[NU], row[RATE_Q], negligible)
    at, end = math.inf, -math.inf
    for k in range(found):
        at, end = min(at, zones[0, k]), max(end, zones[1, k])
    size = ZERO
    while at < end:
        if size + RUN + 1 > MOST_NODES:
            return ZERO
        width, start, inside = math.inf, math.inf, False
        for k in range(found):
            ahead = zones[0, k] - at
            if ahead > 0.0:
                start = min(start, zones[0, k])
                # A run of nodes ends before a zone starts, or resolves it.
                width = min(width, max(zones[2, k], ahead / RUN))
            elif at < zones[1, k]:
                inside = True
                width = min(width, zones[2, k])
        if not inside:
            x[size] = at
            size += 1
            at = start
            continue
        width = min(width, max(end - at, 0.0) / RUN)
        for i in range(RUN):
            x[size] = at + i * width
            size += 1
        after = at + RUN * width
        at = after if after > at else math.nextafter(at, math.inf)
    x[size] = end
    return size + 1


@borrowing
def _zone(
    zones: Array, found: int, weight: float, mu: float, rate: float, negligible: float
) -> int:
    """Enter start, end and largest step of a component, unless it weighs nothing."""
    if weight <= negligible:
        return found
    half = math.sqrt(2.0 * math.log(weight / negligible)) / rate
    zones[0, found], zones[1, found], zones[2, found] = mu - half, mu + half, STEP / rate
    return found + 1


@borrowing
def _noisy_zones(zones: Array, found: int, row: Array, negligible: float) -> int:
    """Enter where a component with noise bends, and where its tails are exponential."""
    weight, sd, b = max(row[C], row[V] + row[C]), 1.0 / row[RATE_Q], row[NOISE]
    if weight <= negligible:
        return found
    radius = noisy_radius(row, math.sqrt(2.0 * math.log(weight / negligible)))
    bend = min(radius, (BEND + sd / b) * sd)
    zones[0, found], zones[1, found], zones[2, found] = row[NU] - bend, row[NU] + bend, STEP * sd
    found += 1
    zones[0, found], zones[1, found] = row[NU] - radius, row[NU] + radius
    zones[2, found] = STEP * max(sd, b)
    return found + 1
