"""Nodes that resolve every component of a Gaussian mixture where it counts."""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.utils.compiled import borrowing, linked

__all__ = ["FARTHEST", "MOST_NODES", "place_nodes", "span"]

STEP = 0.5  # of the narrowest component that counts, between nodes
NEGLIGIBLE = 1e-14  # mass of a component's tails that needs no nodes
MOST_NODES = 2048
FARTHEST = 10.0  # standard deviations: a component farther away adds nothing to a node


@linked
def place_nodes(base, nodes, step=STEP, negligible=NEGLIGIBLE):  # type: ignore[no-untyped-def]
    """Fill nodes (2, MOST_NODES) with points and the steps after them; return their number.

    base is (3, K), weights, locations and standard deviations; step is in the narrowest of these
    that counts, and tails of a mass that is negligible need no nodes. Returns 0 for a mixture that
    needs more nodes than there is room for.
    """
    size = base.shape[1]
    reach = np.empty((2, size))
    x, last = np.inf, -np.inf
    for k in range(size):
        reach[0, k], reach[1, k] = np.inf, -np.inf
        if base[0, k] > negligible:
            # beyond z sd a normal tail is below exp(-z^2 / 2); w times that is negligible at half
            half = math.sqrt(2.0 * math.log(base[0, k] / negligible)) * base[2, k]
            reach[0, k], reach[1, k] = base[1, k] - half, base[1, k] + half
            x, last = min(x, reach[0, k]), max(last, reach[1, k])
    count = 0
    while x <= last:
        if count == MOST_NODES:
            return 0
        width = np.inf
        for k in range(size):
            # Steps become shorter towards a narrow component, and longer after it.
            away = max(reach[0, k] - x, x - reach[1, k])
            width = min(width, max(base[2, k], 0.5 * away))
        nodes[0, count], nodes[1, count] = x, step * width
        count += 1
        x = _within(reach, x + step * width)
    return count


@borrowing
def _within(reach, x):  # type: ignore[no-untyped-def]
    """Return x, or the next point which a component reaches."""
    following = np.inf
    for k in range(reach.shape[1]):
        if reach[0, k] <= x <= reach[1, k]:
            return x
        if reach[0, k] > x:
            following = min(following, reach[0, k])
    return following


@linked
def span(nodes, count, mu, sd):  # type: ignore[no-untyped-def]
    """Return the first node near a component, and the first one beyond it."""
    first = 0
    while first < count and nodes[0, first] < mu - FARTHEST * sd:
        first += 1
    last = first
    while last < count and nodes[0, last] <= mu + FARTHEST * sd:
        last += 1
    return first, last
