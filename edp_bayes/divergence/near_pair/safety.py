"""Pairs of close mixtures whose log ratio stays within the thresholds, found without integrals.

With r_k(x) the share of component k in the density of p at x, and t_k, s_k the log ratios of
component k of g and of q to that of p, quadratics in u = (x - mu_k) / sd_k,

    (q - g)(x) / p(x) = sum_k share_k r_k(x) (exp(s_k) - exp(t_k)),
    g(x) / p(x) >= sum_k r_k(x) min(exp(s_k), exp(t_k)).

The nodes are cut into cells. The least and the largest r_k, r_k u and r_k u^2 of each cell, found
once a draw, bound the first sum from both sides and the second from below. What the bounds of q / g
in every cell leave within the thresholds has no risk.
"""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.divergence.near_pair.close import log_ratio_terms
from edp_bayes.divergence.near_pair.nodes import FARTHEST
from edp_bayes.utils.compiled import borrowing, decay, linked

__all__ = ["is_safe", "safety_tables", "tabulate_shares"]

CELLS = 16
POINTS = 4  # for each step between nodes
BETWEEN = 1.05  # how much larger than at the points a ratio may be between them
# Rows of a table: the largest of r, r u and r u^2, the least of them, the largest abs(u).
ROWS = 7


@linked
def safety_tables(components):  # type: ignore[no-untyped-def]
    """Return what the functions below write to: tables of a draw, and bounds of a pair."""
    return np.empty((components, ROWS, CELLS)), np.empty((3, CELLS))


@linked
def tabulate_shares(base, nodes, count, work):  # type: ignore[no-untyped-def]
    """Fill in the tables of a draw from its (3, K) base and its `count` nodes."""
    tables, size = work[0], base.shape[1]
    density = np.empty(size)
    for k in range(size):
        for c in range(CELLS):
            for row in range(3):
                tables[k, row, c], tables[k, 3 + row, c] = -np.inf, np.inf
            tables[k, 6, c] = 0.0
    for c in range(CELLS):
        # Cells share their ends, so that nothing lies between two of them.
        for j in range(POINTS * (c * count // CELLS), POINTS * ((c + 1) * count // CELLS) + 1):
            node = min(j // POINTS, count - 1)
            x = nodes[0, node] + (j / POINTS - node) * nodes[1, node]
            total = 0.0
            for k in range(size):
                u = (x - base[1, k]) / base[2, k]
                density[k] = base[0, k] / base[2, k] * math.exp(-0.5 * u * u)
                total += density[k]
            for k in range(size):
                r, u = 0.0, (x - base[1, k]) / base[2, k]
                if total > 0.0 and abs(u) <= FARTHEST:
                    r = density[k] / total
                    tables[k, 6, c] = max(tables[k, 6, c], abs(u))
                value = r
                for row in range(3):
                    tables[k, row, c] = max(tables[k, row, c], value)
                    tables[k, 3 + row, c] = min(tables[k, 3 + row, c], value)
                    value *= u


@borrowing
def is_safe(base, given, without, share, low, high, work):  # type: ignore[no-untyped-def]
    """Return whether q / g - 1 surely stays between low and high.

    The pair is that of `both_integrals` in `edp_bayes.divergence.near_pair.close`.
    """
    tables, bounds = work
    upper, lower, least = bounds[0], bounds[1], bounds[2]
    for c in range(CELLS):
        upper[c] = lower[c] = 0.0
        least[c] = 1.0
    for k in range(base.shape[1]):
        mu, sd, part, table = base[1, k], base[2, k], share[k], tables[k]
        a, b, curvature, _, _ = log_ratio_terms(mu, sd, given[0, k], given[1, k])
        to_a, to_b, to_curvature, _, _ = log_ratio_terms(mu, sd, without[0, k], without[1, k])
        most_a, most_b = max(abs(a), abs(to_a)), max(abs(b), abs(to_b))
        most_curvature = max(abs(curvature), abs(to_curvature))
        a, b, curvature = part * (to_a - a), part * (to_b - b), part * (to_curvature - curvature)
        # Products with a positive and with a negative factor, without branches.
        a0, a1, b0, b1 = max(a, 0.0), min(a, 0.0), max(b, 0.0), min(b, 0.0)
        c0, c1 = max(curvature, 0.0), min(curvature, 0.0)
        for c in range(CELLS):
            r, ru, ruu = table[0, c], table[1, c], table[2, c]
            s, su, suu, u = table[3, c], table[4, c], table[5, c], table[6, c]
            # M = most_a + u (most_b + u most_curvature) bounds abs(t) and abs(s) in the cell. There
            # abs(exp(s) - exp(t) - (s - t)) <= abs(s - t) (exp(M) - 1), and both are >= exp(-M)
            kept, lost = decay(most_a + u * (most_b + u * most_curvature))
            # largest r abs(s - t), by the largest r, r abs(u) and r u^2
            rest = (a0 - a1) * r + (b0 - b1) * max(ru, -su) + (c0 - c1) * ruu
            rest *= lost / kept
            upper[c] += a0 * r + a1 * s + b0 * ru + b1 * su + c0 * ruu + c1 * suu + rest
            lower[c] += a0 * s + a1 * r + b0 * su + b1 * ru + c0 * suu + c1 * ruu - rest
            least[c] -= r * lost
    safe = True
    for c in range(CELLS):
        # (q - g) / p <= upper and g / p >= least, so that q / g - 1 <= upper / least; the lower end
        # likewise
        safe = safe and least[c] > 0.0
        safe = safe and BETWEEN * upper[c] <= high * least[c]
        safe = safe and BETWEEN * lower[c] >= low * least[c]
    return safe
