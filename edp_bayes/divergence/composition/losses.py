"""How much probability both distributions of a pair have by privacy loss, exactly.

The privacy loss of an answer is L = log(p / q). What composes is its distribution: here the masses
under p and under q of every bucket of L, from the sign changes that the hockey-stick integrals use.
"""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.divergence.any_pair.components import GAUSSIAN, TABLE_ROWS
from edp_bayes.divergence.any_pair.curves import BATCH, by_level, centred
from edp_bayes.divergence.any_pair.evaluators import VALUES, evaluator
from edp_bayes.divergence.any_pair.sign_changes import STACK, Evaluate, Workspace
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import compiled, in_threads

__all__ = ["bucket_masses", "each_component"]

# Mass of a component's tails that is neglected: it counts as loss zero.
NEGLIGIBLE = 1e-22


def bucket_masses(p: Array, q: Array, edges: Array, offset: Array) -> tuple[Array, Array]:
    """Return the masses of both distributions of every pair in buckets of the privacy loss.

    Parameters
    ----------
    p, q : ndarray, shape (pair, K, 5) and (pair, L, 5), or (pair, G, K, 5) and (pair, G, L, 5)
        Components, see `edp_bayes.divergence.any_pair.components.rows`; with one axis more, in
        groups that an answer tells apart, each of the same weight in both.
    edges : ndarray, shape (pair, E)
        Increasing from 0: buckets end at offset - edge and at offset + edge.
    offset : ndarray, shape (pair,)
        The middle.

    Returns
    -------
    masses, excess : ndarray, shape (pair, 2, 2 E + 1)
        masses under p and under q of the buckets from the lowest to the highest loss, the middle
        one of which is the loss that is exactly the offset; and the mass under p less exp(offset)
        times that under q, without cancellation, twice: the second time with its sign changed.
    """
    if p.ndim == 4:
        return _of_groups(p, q, edges, offset)
    p, q = centred(p, q[:, None])
    lifted = q[:, 0].copy()
    lifted[..., 0] *= np.exp(offset)[:, None]
    growth = np.ascontiguousarray(np.expm1(edges))
    gaussian = bool((p[..., 4] == GAUSSIAN).all() and (lifted[..., 4] == GAUSSIAN).all())
    reach = -math.log(NEGLIGIBLE)
    levels = edges.shape[1]
    work = np.empty((len(p), 4, levels + 1))
    in_threads(
        _losses, len(p), evaluator(gaussian), p, lifted, growth, math.sqrt(2.0 * reach), reach, work
    )
    scale = np.exp(offset)[:, None]
    excess, lower = work[:, 0, 1:], work[:, 1, 1:]
    deficit, upper = work[:, 2, :0:-1], work[:, 3, :0:-1]
    masses = np.zeros((len(p), 2, 2 * levels + 1))
    masses[:, 0, :levels], masses[:, 0, levels + 1 :] = upper, lower + excess
    masses[:, 1, :levels], masses[:, 1, levels + 1 :] = (upper + deficit) / scale, lower / scale
    masses[:, :, levels] = np.maximum(1.0 - masses.sum(axis=2), 0.0)
    signed = np.zeros((len(p), 2 * levels + 1))
    signed[:, :levels], signed[:, levels + 1 :] = -deficit, excess
    return np.maximum(masses, 0.0), signed


def each_component(p: Array, q: Array) -> tuple[Index, Array, Array, Array]:
    """Return groups that an answer tells apart as pairs of their own, with pair and weight of each.

    Groups that weigh nothing are left out.
    """
    weights = p[..., 0].sum(axis=2)
    pair, group = np.nonzero(weights > 0.0)
    each = weights[pair, group]
    found = p[pair, group], q[pair, group]
    for part in found:
        part[..., 0] /= each[:, None]
    return pair, each, *found


def _of_groups(p: Array, q: Array, edges: Array, offset: Array) -> tuple[Array, Array]:
    pair, weights, *sides = each_component(p, q)
    parts = bucket_masses(sides[0], sides[1], edges[pair], offset[pair])
    masses = np.zeros((len(p), *parts[0].shape[1:]))
    excess = np.zeros((len(p), *parts[1].shape[1:]))
    np.add.at(masses, pair, weights[:, None, None] * parts[0])
    np.add.at(excess, pair, weights[:, None] * parts[1])
    return masses, excess


@compiled
def _losses(
    first: int,
    last: int,
    evaluate: Evaluate,
    p: Array,
    q: Array,
    growth: Array,
    reach_gaussian: float,
    reach_laplace: float,
    out: Array,
) -> None:
    """Fill in the integrals by privacy loss of pairs first to last, shape (pair, 4, E + 1).

    Answers with log(p / q) above e of the E edges give the integrals of p - q and of q, rows 0 and
    1 in column e; those with log(q / p) above e of them the integrals of q - p and of p, rows 2
    and 3. So the masses of p and q in a bucket of losses are sums of two
    of them (docs/mathematics/releases.md, the privacy loss). p and q have shape (pair, K, 5) and
    (pair, L, 5), growth, which is exp(edge) - 1, (pair, E).
    """
    levels, most = growth.shape[1], p.shape[1] + q.shape[1]
    spans, bends = np.empty((2 * most, 5)), np.empty(most)
    level = np.empty(levels)
    cell = Workspace(
        evaluate, np.zeros((TABLE_ROWS, most + 16)), np.zeros(3, dtype=np.int64), level,
        np.empty(BATCH), np.empty((VALUES, BATCH)), np.empty((4, BATCH)), np.empty((STACK, 7)),
        np.empty((256 + 2 * levels, 6)), np.empty((4, levels + 1)),
    )  # fmt: skip
    for s in range(first, last):
        for e in range(levels):
            level[e] = growth[s, e]
        by_level(cell, p[s], q[s], reach_gaussian, reach_laplace, spans, bends)
        for row in range(len(cell.work)):
            for e in range(levels + 1):
                out[s, row, e] = cell.work[row, e]
