"""Integrals of (g - q / (1 + low))_+ and (q - (1 + high) g)_+ over a grid of thresholds.

With s = q / g - 1 the first is over {s < low} and the second over {s > high}. Between two nodes
s is split where it turns; each threshold a monotone piece passes is a sign change, polished by
Newton's method (an error dx costs O(dx^2)), and the integrals are differences of tails.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from edp_bayes.utils.compiled import ZERO, borrowing, generic, inlined

__all__ = ["sweep"]

NEWTON = 40
TURNS = 8
CUBIC_STEPS = 3
FLAT = 1e-4  # of the slopes at the ends: then s at its turn is known to 1e-8 of its rise
# The rows of state at which a direction begins; not literals, for the reason of ZERO.
FORWARD, BACKWARD = ZERO, cast(int, np.int64(3))
CLOSE_ENOUGH = 1e-3  # of the width of a piece: a Newton step after which the next is below rounding


def sweep(point: Callable[..., Any], tails: Callable[..., Any]) -> Callable[..., None]:
    """Return the compiled function integrate(near, x, count, s, slope, levels).

    Its arguments are what the two functions need, the first `count` nodes with s and its slope
    there, and the tuple of the thresholds (low, high), a workspace (6, E) and the two integrals
    (E,) to be filled in. For each direction and threshold the workspace says whether the set is
    open on the left (1 from minus infinity, 2 from a point) and holds the masses below and above
    that point.

    Parameters
    ----------
    point : compiled function of (near, j, x)
        Returns s and its slope at x, between the nodes j - 1 and j.
    tails : compiled function of (near, j, x, weight)
        Returns the masses of q - weight g below and above x.
    """

    @generic
    def turn(near, j, start, end):  # type: ignore[no-untyped-def]
        """Find where s turns: on its Hermite cubic, then by the secant rule on its slope."""
        a, _, fa = start
        b, _, fb = end
        enough = FLAT * (abs(fa) + abs(fb))
        t = a + _cubic_turn(start, end) * (b - a)
        s, m = point(near, j, t)
        for _ in range(TURNS):
            if abs(m) <= enough:
                break
            # regula falsi; the value at the end that stays is halved, so that both ends move in (as
            # in the Illinois rule)
            if (m > 0.0) == (fa > 0.0):
                a, fa = t, m
                fb *= 0.5
            else:
                b, fb = t, m
                fa *= 0.5
            t = (a * fb - b * fa) / (fb - fa)
            s, m = point(near, j, t)
        return t, s, 0.0

    @generic
    def root(near, j, start, end, target):  # type: ignore[no-untyped-def]
        """Find where s passes a value: on its Hermite cubic, then by Newton's method on s."""
        a, b, rising = start[0], end[0], end[1] > start[1]
        width = b - a
        x = a + _on_cubic(start, end, target) * width
        for _ in range(NEWTON):
            s, m = point(near, j, x)
            # [a, b] brackets the root; it is halved where a Newton step leaves it or slopes mislead
            if (s < target) == rising:
                a = x
            else:
                b = x
            new = x + (target - s) / m if m != 0.0 else a
            if a <= new <= b and (m > 0.0) == rising:
                moved, x = abs(new - x), new
                if moved < CLOSE_ENOUGH * width:
                    break
            else:
                x = 0.5 * (a + b)
        return x

    @generic
    def piece(near, j, start, end, first, last, levels):  # type: ignore[no-untyped-def]
        """Cross the thresholds between the ends of a monotone piece, given how many each passes."""
        low, high, state, forward, backward = levels
        rises = end[1] > start[1]
        for e in range(min(first[0], last[0]), max(first[0], last[0])):
            # (g - q / (1 + low))_+ over {s < low}: masses of q - (1 + low) g, over -(1 + low)
            weight = 1.0 + low[e]
            below, above = tails(near, j, root(near, j, start, end, low[e]), weight)
            _cross(state, FORWARD, e, not rises, -below / weight, -above / weight, forward)
        for e in range(min(first[1], last[1]), max(first[1], last[1])):
            below, above = tails(near, j, root(near, j, start, end, high[e]), 1.0 + high[e])
            _cross(state, BACKWARD, e, rises, below, above, backward)

    @generic
    def integrate(near, x, count, s, slope, levels):  # type: ignore[no-untyped-def]
        """Fill in both integrals over the monotone pieces of s, from left to right."""
        low, high, state, forward, backward = levels
        for e in range(low.size):
            forward[e] = backward[e] = 0.0
            state[FORWARD, e] = 1.0 if s[0] < low[e] else 0.0
            state[BACKWARD, e] = 1.0 if s[0] > high[e] else 0.0
        below, above = _passed(low, high, s[0], ZERO, ZERO)
        bottom, top = _neighbours(low, high, below, above)
        for j in range(1, count):
            # no threshold is passed between two nodes, and s does not turn there
            if bottom < s[j] < top and slope[j - 1] * slope[j] >= 0.0:
                continue
            was_below, was_above = below, above
            below, above = _passed(low, high, s[j], below, above)
            bottom, top = _neighbours(low, high, below, above)
            # a turn matters only near a threshold: within the mean of both slopes times the step
            turns = slope[j - 1] * slope[j] < 0.0 and _near_threshold(
                s[j - 1], s[j], 0.5 * (abs(slope[j - 1]) + abs(slope[j])) * (x[j] - x[j - 1]),
                (min(below, was_below), max(below, was_below)),
                (min(above, was_above), max(above, was_above)), low, high,
            )  # fmt: skip
            if below == was_below and above == was_above and not turns:
                continue
            first, last = (was_below, was_above), (below, above)
            start, end = (x[j - 1], s[j - 1], slope[j - 1]), (x[j], s[j], slope[j])
            if turns:
                middle = turn(near, j, start, end)
                between = _passed(low, high, middle[1], below, above)
                piece(near, j, start, middle, first, between, levels)
                piece(near, j, middle, end, between, last, levels)
            else:
                piece(near, j, start, end, first, last, levels)
        for e in range(low.size):
            # A set still open extends to plus infinity.
            if state[FORWARD, e] == 2.0:
                forward[e] += state[FORWARD + 2, e]
            if state[BACKWARD, e] == 2.0:
                backward[e] += state[BACKWARD + 2, e]

    return integrate


@inlined
def _passed(low, high, s, below, above):  # type: ignore[no-untyped-def]
    """Count the thresholds low above s and high below s, from counts at a point nearby."""
    while below < low.size and low[below] > s:
        below += 1
    while below > 0 and low[below - 1] <= s:
        below -= 1
    while above < high.size and high[above] < s:
        above += 1
    while above > 0 and high[above - 1] >= s:
        above -= 1
    return below, above


@inlined
def _neighbours(low, high, below, above):  # type: ignore[no-untyped-def]
    """Return the nearest thresholds below and above s, given how many it has passed."""
    bottom = low[below] if below < low.size else -np.inf
    top = high[above] if above < high.size else np.inf
    return high[above - 1] if above > 0 else bottom, low[below - 1] if below > 0 else top


@borrowing
def _near_threshold(s0, s1, margin, below, above, low, high):  # type: ignore[no-untyped-def]
    """Return whether a threshold lies within the margin above both ends or below both."""
    top, bottom = max(s0, s1) + margin, min(s0, s1) - margin
    return (
        (above[1] < high.size and high[above[1]] < top)
        or (above[0] > 0 and high[above[0] - 1] > bottom)
        or (below[1] < low.size and low[below[1]] > bottom)
        or (below[0] > 0 and low[below[0] - 1] < top)
    )


@inlined
def _cubic(start, end):  # type: ignore[no-untyped-def]
    """Return the cubic through both ends with their slopes, without s at the start, on [0, 1]."""
    width, rise = end[0] - start[0], end[1] - start[1]
    m0, m1 = start[2] * width, end[2] * width
    return m0, 3.0 * rise - 2.0 * m0 - m1, m0 + m1 - 2.0 * rise


@borrowing
def _cubic_turn(start, end):  # type: ignore[no-untyped-def]
    """Find where the cubic through both ends with their slopes turns, in [0, 1]."""
    a, b, c = _cubic(start, end)
    root = math.sqrt(max(b * b - 3.0 * c * a, 0.0))
    half = -(b + math.copysign(root, b))
    t = a / half if half != 0.0 else 0.5
    if not 0.0 <= t <= 1.0:
        t = half / (3.0 * c) if c != 0.0 else 0.5
    return min(max(t, 0.0), 1.0)


@borrowing
def _on_cubic(start, end, target):  # type: ignore[no-untyped-def]
    """Find where the cubic through both ends with their slopes passes a value, in [0, 1]."""
    a, b, c = _cubic(start, end)
    rising, needed = end[1] > start[1], target - start[1]
    t = needed / (end[1] - start[1])
    for _ in range(CUBIC_STEPS):
        slope = a + t * (2.0 * b + 3.0 * c * t)
        if slope == 0.0 or (slope > 0.0) != rising:
            break
        t = min(max(t - (t * (a + t * (b + t * c)) - needed) / slope, 0.0), 1.0)
    return t


@borrowing
def _cross(state, row, e, enters, below, above, total):  # type: ignore[no-untyped-def]
    """Enter or leave, at a sign change, the set over which an integral is taken.

    State rows of one direction: 0 closed, 1 open from minus infinity, 2 open from a point; then the
    masses below and above that point. Of an interval the mass is the difference of masses above or
    of masses below, whichever is smaller at its right end: less is lost by rounding.
    """
    if enters:
        state[row, e], state[row + 1, e], state[row + 2, e] = 2.0, below, above
        return
    if state[row, e] == 1.0:
        total[e] += below
    elif state[row, e] == 2.0:
        total[e] += (
            state[row + 2, e] - above if abs(above) < abs(below) else below - state[row + 1, e]
        )
    state[row, e] = 0.0
