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
    PARTS,
    add_mixture,
    choose,
    control_variate,
    raise_where_few,
)
from edp_bayes.divergence.joint.points import FAR_POINTS
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import borrowing, compiled, in_threads

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
    u, v, quadratic = np.empty(count), np.empty(count), np.empty(count)
    size, inside = np.empty(FAR_POINTS), np.empty(FAR_POINTS)
    parts = np.empty((3, PARTS))
    for s in range(first, last):
        u[:] = 0.0
        v[:] = 0.0
        x = points[s]
        add_mixture(v, quadratic, x, count, p[0][s], p[1][s], p[2][s], factor, inverse, d)
        add_mixture(u, quadratic, x, count, q[0][s], q[1][s], q[2][s], factor, inverse, d)
        for n in range(count):
            size[n] = 0.0
            inside[n] = 0.0
        for n in range(count):
            u[n] /= v[n]
            v[n] = 1.0
            size[cells[s, n]] += 1.0
            inside[cells[s, n]] += u[n]
        _estimate(u, v, cells[s], size, inside, growth, parts, value[s], error[s], split[s])
        raise_where_few(value[s], error[s], count)


@borrowing
def _estimate(u, v, cell, size, inside, growth, parts, value, error, split):  # type: ignore[no-untyped-def]
    """Fill in the value and its standard error at every epsilon.

    As `edp_bayes.divergence.joint.estimates.estimate` with v = 1, but all points of a cell count,
    or none does: size is how many there are, inside the sum of their u. Where the control variate
    is not trusted it is put at zero in place of the difference of means.
    """
    count = u.size
    length = count // PARTS
    known = control_variate(u, v, count, parts)
    trusted = known[2]
    for e in range(growth.size):
        times = 1.0 + growth[e]
        forward_product, backward_product = 0.0, 0.0
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
            forward_product += first_product / count
            backward_product += second_product / count
        products = forward_product, backward_product
        choose(e, products, known, parts, value, error, split)
