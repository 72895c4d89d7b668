"""Reductions of individual risks over individuals, in their order, whatever the blocks."""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import compiled, in_threads

__all__ = ["accumulate", "keep_largest", "medians", "moments"]

SERIES = 1e-4  # risks below have a logarithm of four terms, to the last bit or two
LEAST_MEDIANS = 64  # for which a thread is started


def accumulate(
    curves: Array,
    largest: Array,
    log_survival: Array,
    total: Array,
    floor: Array | None = None,
    log_bounded: Array | None = None,
) -> None:
    """Add a block (draw, individual, epsilon) to the running results (draw, epsilon), in place.

    largest is max_i delta_i, log_survival the sum of log(1 - delta_i), total the sum of delta_i,
    log_bounded the part of log_survival that risks not above the floor have, which may be bounds.
    """
    if floor is None or log_bounded is None:
        floor, log_bounded = np.zeros((2, *largest.shape))
    results = largest, log_survival, total, floor, log_bounded
    in_threads(_accumulate, len(curves), curves, *results)


@compiled
def _accumulate(first, last, curves, largest, log_survival, total, floor, log_bounded):  # type: ignore[no-untyped-def]
    """Add draws first to last of a block, individual by individual.

    Of every draw s and epsilon e: largest = max_i delta_i, total = sum_i delta_i, log_survival =
    sum_i log(1 - delta_i), so that delta* = 1 - exp(log_survival), and bounds of it
    (docs/mathematics/hockey_stick.md, total risk). Below SERIES log(1 - v) is
    -v - v^2 / 2 - v^3 / 3 - v^4 / 4. Risks are probabilities; curves has shape (draw, individual,
    epsilon), all others (draw, epsilon).
    """
    people, levels = curves.shape[1:]
    for s in range(first, last):
        for i in range(people):
            for e in range(levels):
                value = curves[s, i, e]
                if value > 0.0:
                    largest[s, e] = max(largest[s, e], value)
                    total[s, e] += value
                    if value < SERIES:
                        survival = -value * (
                            1.0 + value * (0.5 + value * (1.0 / 3.0 + 0.25 * value))
                        )
                    else:
                        survival = math.log1p(-value) if value < 1.0 else -np.inf
                    log_survival[s, e] += survival
                    if value <= floor[s, e]:
                        log_bounded[s, e] += survival


def keep_largest(curves: Array, members: Index, top: Array, who: Index) -> None:
    """Add a block of individuals (draw, individual, epsilon) to the largest risks, in place.

    top and who have shape (draw, epsilon, rank): the risks by falling size, and whose they are.
    """
    in_threads(_keep_largest, len(curves), curves, members, top, who)


@compiled
def _keep_largest(first, last, curves, members, top, who):  # type: ignore[no-untyped-def]
    """Insert risks of draws first to last into the sorted lists of the largest of each (s, e).

    top falls along the rank; a tie stays behind who came first, so that the order of blocks alone
    decides. curves has shape (draw, individual, epsilon), members (individual,), and top and who
    (draw, epsilon, rank).
    """
    people, levels = curves.shape[1:]
    for s in range(first, last):
        for i in range(people):
            for e in range(levels):
                value, k = curves[s, i, e], top.shape[2] - 1
                if value <= top[s, e, k]:
                    continue
                while k > 0 and top[s, e, k - 1] < value:
                    top[s, e, k], who[s, e, k] = top[s, e, k - 1], who[s, e, k - 1]
                    k -= 1
                top[s, e, k], who[s, e, k] = value, members[i]


def medians(curves: Array) -> Array:
    """Return the median over the draws of a block (draw, individual, epsilon) of risks.

    Most are zero in most draws, and only of the others draws are sorted.
    """
    out = np.zeros(curves.shape[1:])
    seen = 2 * np.count_nonzero(curves, axis=0) >= len(curves)
    some, half = np.ascontiguousarray(curves[:, seen].T), len(curves) // 2

    def split(first: int, last: int) -> None:
        # Around one place: around two, as `numpy.median` does, it takes three times as long.
        some[first:last].partition(half, axis=1)

    in_threads(split, len(some), least=LEAST_MEDIANS)
    middle = some[:, half]
    if len(curves) % 2 == 0:
        middle = 0.5 * (middle + some[:, :half].max(axis=1))
    out[seen] = middle
    return out


def moments(curves: Array) -> tuple[Array, Array, Array]:
    """Return mean, standard deviation and maximum over the draws of a block.

    Its shape is (draw, individual, epsilon).
    """
    out = np.empty((3, *curves.shape[1:]))
    in_threads(_moments, curves.shape[1], curves, out)
    return out[0], out[1], out[2]


@compiled
def _moments(first, last, curves, out):  # type: ignore[no-untyped-def]
    """Fill in the moments of individuals first to last over the S draws, in two passes.

    out[0] = sum_s delta_s / S, out[1] = sqrt(sum_s (delta_s - out[0])^2 / S), out[2] = max_s
    delta_s. Probabilities; curves has shape (draw, individual, epsilon), out (3, individual,
    epsilon).
    """
    draws, _, levels = curves.shape
    for i in range(first, last):
        for e in range(levels):
            out[0, i, e] = out[1, i, e] = out[2, i, e] = 0.0
        for s in range(draws):
            for e in range(levels):
                out[0, i, e] += curves[s, i, e] / draws
                out[2, i, e] = max(out[2, i, e], curves[s, i, e])
        for s in range(draws):
            for e in range(levels):
                out[1, i, e] += (curves[s, i, e] - out[0, i, e]) ** 2 / draws
        for e in range(levels):
            out[1, i, e] = math.sqrt(out[1, i, e])
