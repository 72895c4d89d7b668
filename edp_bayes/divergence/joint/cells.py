"""Risks of answers of which only a cell is published, at quasi-random points of all of them.

What is published of the answers is a function of them, and tells apart cells of equal values alone.
With P and Q the distributions with and without an individual the risk is the sum over cells A of
(P(A) - exp(eps) Q(A))_+, or of the same exchanged. Points of P say both masses of every cell. The
positive part of a mean is never above the mean of positive parts, so that points in cells never say
more than the same points one by one; and as it is convex, what they say is on average no less than
what is true, whatever the cells are.
"""

from __future__ import annotations

import numpy as np

from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.divergence.joint.estimates import (
    LARGEST_ERROR,
    LARGEST_RATIO,
    MOST_ERRORS,
    PARTS,
    add_density,
    mean_and_error,
)
from edp_bayes.divergence.joint.points import FAR_POINTS
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import borrowing, compiled, in_threads
from edp_bayes.utils.small_matrices import cholesky, inverse_factor

__all__ = ["cell_curves"]


def cell_curves(
    p: NormalMixture,
    q: NormalMixture,
    points: Array,
    cells: Index,
    epsilon: Array,
    out: tuple[Array, Array, Array],
) -> None:
    """Fill in max(H(P || Q), H(Q || P)) over cells, and its standard error.

    Parameters
    ----------
    p, q : NormalMixture
        Shape (pair, component), with known noise.
    points : ndarray
        Shape (pair, d, point): of p, as `edp_bayes.divergence.joint.points.mixture_points`.
    cells : ndarray of int
        Shape (pair, point): the cell of each, from 0.
    epsilon : ndarray
        Shape (epsilon,).
    out : tuple of ndarray
        Values and errors (pair, epsilon), and what each part of the points says (pair, part,
        epsilon).
    """
    growth = np.expm1(epsilon)
    in_threads(_curves, len(points), tuple(p), tuple(q), points, cells, growth, *out)


@compiled
def _curves(first, last, p, q, points, cells, growth, value, error, split):  # type: ignore[no-untyped-def]
    """Fill in what `cell_curves` says of some pairs: u = q / p at points of p."""
    d, count = points.shape[1:]
    factor, inverse = np.empty((d, d)), np.empty((d, d))
    u, density, quadratic = np.empty(count), np.empty(count), np.empty(count)
    size, inside = np.empty(FAR_POINTS), np.empty(FAR_POINTS)
    parts = np.empty((3, PARTS))
    for s in range(first, last):
        for n in range(count):
            u[n] = 0.0
            density[n] = 0.0
        for k in range(p[0].shape[1]):
            if p[0][s, k] > 0.0:
                cholesky(p[2][s, k], factor, d)
                inverse_factor(factor, inverse, d)
                add_density(
                    density, quadratic, points[s], count, p[0][s, k], p[1][s, k], inverse, d
                )
        for k in range(q[0].shape[1]):
            if q[0][s, k] > 0.0:
                cholesky(q[2][s, k], factor, d)
                inverse_factor(factor, inverse, d)
                add_density(u, quadratic, points[s], count, q[0][s, k], q[1][s, k], inverse, d)
        for n in range(count):
            size[n] = 0.0
            inside[n] = 0.0
        for n in range(count):
            u[n] /= density[n]
            size[cells[s, n]] += 1.0
            inside[cells[s, n]] += u[n]
        _estimate(
            u, cells[s], size, inside, count, growth, parts, value[s], error[s], split[s]
        )  # fmt: skip


@borrowing
def _estimate(u, cell, size, inside, count, growth, parts, value, error, split):  # type: ignore[no-untyped-def]
    """Fill in the value and its standard error at every epsilon.

    As `edp_bayes.divergence.joint.estimates.estimate` with v = 1, but all points of a cell count,
    or none does: size is how many there are, inside the sum of their u. The difference of means,
    which is zero, is the control; where u is too heavy it is put at zero in place of that.
    """
    length = count // PARTS
    square, largest = 0.0, 0.0
    for part in range(PARTS):
        total = 0.0
        for n in range(part * length, (part + 1) * length):
            control = 1.0 - u[n]
            total += control
            square += control * control
            largest = max(largest, u[n])
        parts[2, part] = total / length
    mean, mean_error = mean_and_error(parts[2])
    square = square / count - mean * mean
    most = min(LARGEST_ERROR, MOST_ERRORS * mean_error)
    trusted = largest <= LARGEST_RATIO and abs(mean) <= most and square > 0.0
    for e in range(growth.size):
        times = 1.0 + growth[e]
        forward, backward, forward_product, backward_product = 0.0, 0.0, 0.0, 0.0
        for part in range(PARTS):
            first, second, first_product, second_product = 0.0, 0.0, 0.0, 0.0
            for n in range(part * length, (part + 1) * length):
                control, c = 1.0 - u[n], cell[n]
                above, below = 0.0, 0.0
                if size[c] > times * inside[c]:
                    above = control - growth[e] * u[n]
                elif inside[c] > times * size[c]:
                    below = -control - growth[e]
                if not trusted:
                    # 1 - E min(u, exp(eps)): the mass of q is one, wherever points miss it
                    below += control
                first += above
                second += below
                first_product += above * control
                second_product += below * control
            parts[0, part], parts[1, part] = first / length, second / length
            forward += parts[0, part] / PARTS
            backward += parts[1, part] / PARTS
            forward_product += first_product / count
            backward_product += second_product / count
        slopes = (0.0, 0.0)
        if trusted:
            slopes = (
                (forward_product - forward * mean) / square,
                (backward_product - backward * mean) / square,
            )
        value[e], error[e], chosen = 0.0, 0.0, 0
        for side in range(2):
            for part in range(PARTS):
                parts[side, part] -= slopes[side] * parts[2, part]
            found, own_error = mean_and_error(parts[side])
            if found > value[e]:
                value[e], error[e], chosen = min(found, 1.0), own_error, side
        if value[e] * count < PARTS:
            # too few points tell: they may all have missed it
            error[e] = max(error[e], 1.0 / count)
        for part in range(PARTS):
            split[part, e] += parts[chosen, part]
