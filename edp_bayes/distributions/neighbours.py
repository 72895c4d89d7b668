"""Distances to the k-th nearest neighbour, of which variable bandwidths are made."""

from __future__ import annotations

import numpy as np

from edp_bayes.utils.arrays import Array

__all__ = ["neighbour_distances"]


def neighbour_distances(response: Array, neighbours: int) -> Array:
    """Return each row's distance to its neighbours-th nearest other row."""
    order = np.argsort(response, kind="stable")
    ordered = response[order]
    size = response.size
    nearest = np.full(size, np.inf)
    # The nearest k rows and the row itself are k + 1 neighbours in order: try every such run.
    for place in range(neighbours + 1):
        at = np.arange(place, size - neighbours + place)
        reach = np.maximum(
            ordered[at] - ordered[at - place], ordered[at - place + neighbours] - ordered[at]
        )
        nearest[at] = np.minimum(nearest[at], reach)
    distance = np.empty(size)
    distance[order] = nearest
    return distance
