"""The difference quotient of the empirical distribution: a step density, compared exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edp_bayes.utils.arrays import Array


@dataclass(frozen=True, eq=False)
class StepDensity:
    """A density that is constant on cells and zero outside them.

    Parameters
    ----------
    edges : ndarray
        Strictly increasing, shape (cell + 1,). A single edge stands for a point mass, which is
        all that is left when every response is equal.
    heights : ndarray
        Density of each cell, shape (cell,).
    """

    edges: Array
    heights: Array

    def pdf(self, x: Array) -> Array:
        """Return the density at x; cells hold their right edge, the first one both."""
        if self.heights.size == 0:
            return np.where(x == self.edges[0], np.inf, 0.0)
        return np.where(x == self.edges[0], self.heights[0], self.left_limit(x))

    def left_limit(self, x: Array) -> Array:
        """Return the height just below x."""
        padded = np.concatenate(([0.0], self.heights, [0.0]))
        return np.asarray(padded[np.searchsorted(self.edges, x, side="left")])


def cell_points(size: int) -> int:
    """Return the paper's number of responses per cell, about the root of the sample size."""
    return max(1, round(float(np.sqrt(size))))


def step_density(responses: Array, points: int) -> StepDensity:
    """Return the difference quotient of the empirical distribution function.

    The edges are order statistics about `points` apart, from the smallest response to the
    largest; a cell's height is its share of the responses over its width. Responses on an edge
    belong half to either side, so that the estimate of reflected responses is reflected; at
    each end half a response falls outside and the rest counts as the whole.

    Parameters
    ----------
    responses : ndarray
        Shape (row,).
    points : int
        Responses per cell.
    """
    ordered = np.sort(responses)
    last = ordered.size - 1
    cells = max(1, round(last / points))
    edges = np.unique(ordered[np.rint(np.linspace(0, last, cells + 1)).astype(np.int64)])
    below = 0.5 * (np.searchsorted(ordered, edges) + np.searchsorted(ordered, edges, "right"))
    below[[0, -1]] = 0.5, last + 0.5
    return StepDensity(edges, np.diff(below) / (last * np.diff(edges)))


def hockey_stick(p: StepDensity, q: StepDensity, *, epsilon: Array) -> Array:
    """Return max(H_eps(p || q), H_eps(q || p)) for every epsilon, a finite sum.

    Where one density is zero and the other is not, the log ratio is infinite and the whole
    mass of that stretch counts at every epsilon.

    Parameters
    ----------
    p, q : StepDensity
        The two densities.
    epsilon : ndarray
        Shape (E,).

    Returns
    -------
    ndarray
        Shape (E,).
    """
    if p.heights.size == 0 or q.heights.size == 0:
        same = p.heights.size == q.heights.size and bool(p.edges[0] == q.edges[0])
        return np.full(epsilon.shape, 0.0 if same else 1.0)
    edges = np.union1d(p.edges, q.edges)
    width = np.diff(edges)
    masses = [distribution.left_limit(edges[1:]) * width for distribution in (p, q)]
    ratio = np.exp(epsilon)[:, None]
    forward, backward = (
        np.maximum(a - ratio * b, 0.0).sum(axis=1) for a, b in (masses, masses[::-1])
    )
    return np.asarray(np.minimum(np.maximum(forward, backward), 1.0))
