"""Bounds on the risk of a pair of normals in several dimensions, by Renyi divergences.

For every order alpha > 1

    H_eps(P || Q) <= c_alpha exp((alpha - 1) (D_alpha(P || Q) - eps)),
    c_alpha = (1 - 1 / alpha)^(alpha - 1) / alpha,

the bound behind the conversion of Renyi to approximate differential privacy (Balle, Barthe,
Gaboardi, Hsu and Sato 2020). By joint convexity what bounds the pairs of components bounds the
mixtures.
"""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.utils.compiled import borrowing

__all__ = ["ORDERS", "log_moment", "pair_bound"]

# Orders above one, and the logarithms of their constants.
ABOVE = np.geomspace(0.25, 1000.0, 16)
ORDERS = np.stack([ABOVE, ABOVE * np.log(ABOVE / (1.0 + ABOVE)) - np.log1p(ABOVE)])


@borrowing
def pair_bound(variances, shifts, d, thresholds, levels, orders, out):  # type: ignore[no-untyped-def]
    """Fill in bounds on H(P || Q) beyond the first few log ratios.

    Q is standard normal and P has independent parts with these variances and means. thresholds are
    the first `levels` epsilons, orders (2, order) is ORDERS; the least over orders, at most 1. With
    mixed = alpha - (alpha - 1) variance, D_alpha is the sum over parts of alpha shift^2 / (2
    mixed), less log(mixed) / (2 (alpha - 1)) and log(variance) / 2.
    """
    for e in range(levels):
        out[e] = 0.0
    for order in range(orders.shape[1]):
        above = orders[0, order]
        alpha, divergence = 1.0 + above, 0.0
        for a in range(d):
            mixed = alpha - above * variances[a]
            if mixed <= 0.0:
                divergence = np.inf
                break
            divergence += 0.5 * alpha * shifts[a] * shifts[a] / mixed
            divergence -= 0.5 * math.log(mixed) / above + 0.5 * math.log(variances[a])
        if divergence == np.inf:
            break  # larger orders are infinite, too
        for e in range(levels):
            out[e] = min(out[e], orders[1, order] + above * (divergence - thresholds[e]))
    for e in range(levels):
        out[e] = math.exp(out[e])


@borrowing
def log_moment(variances, shifts, d, above):  # type: ignore[no-untyped-def]
    """Return log E exp(above L) of L = log(P / Q) under P, that is above D_(1 + above)(P || Q).

    P and Q are as for `pair_bound`; infinite where it is.
    """
    alpha, found = 1.0 + above, 0.0
    for a in range(d):
        mixed = alpha - above * variances[a]
        if mixed <= 0.0:
            return np.inf
        found += 0.5 * above * alpha * shifts[a] * shifts[a] / mixed
        found -= 0.5 * math.log(mixed) + 0.5 * above * math.log(variances[a])
    return found
