"""Reductions of individual risks over individuals, in their order, whatever the blocks."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from edp_bayes.divergence.compiled import compiled, in_threads

__all__ = ["accumulate"]

Array = NDArray[np.float64]


def accumulate(curves: Array, largest: Array, log_survival: Array, total: Array) -> None:
    """Add a block (draw, individual, epsilon) to the running results (draw, epsilon), in place.

    largest is max_i delta_i, log_survival the sum of log(1 - delta_i), total the sum of delta_i.
    """
    in_threads(_accumulate, len(curves), curves, largest, log_survival, total)


@compiled
def _accumulate(first, last, curves, largest, log_survival, total):  # type: ignore[no-untyped-def]
    people, levels = curves.shape[1:]
    for s in range(first, last):
        for i in range(people):
            for e in range(levels):
                value = curves[s, i, e]
                if value > 0.0:
                    largest[s, e] = max(largest[s, e], value)
                    total[s, e] += value
                    log_survival[s, e] += math.log1p(-value) if value < 1.0 else -np.inf
