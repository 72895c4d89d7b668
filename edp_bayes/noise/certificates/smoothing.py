"""Mixtures with a triangle of noise added, on a lattice of points; compiled."""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.divergence.any_pair.evaluators import _single
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import compiled

__all__ = ["kernel_sums", "point_values", "sliding_values", "triangle_values"]

REACH = 9.0  # standard deviations beyond which a normal density is left out
SHORT = 0.1  # widths of a triangle, in standard deviations, up to which a series is as good


def triangle_values(
    components: Array, kernel: str, *, start: float, step: float, count: int, spacing: float
) -> Array:
    """Return the density of X + spacing (U + V - 1) at start + step * (0, ..., count - 1).

    Parameters
    ----------
    components : ndarray, shape (draw, component, 3)
        Weights, locations and scales of X in each draw.
    kernel : {"gaussian", "laplace"}
        Family of the components.
    start, step, count
        The lattice.
    spacing : float
        Half the width of the triangle.

    Returns
    -------
    ndarray, shape (draw, count)

    Notes
    -----
    With K the second antiderivative of the kernel's density, the result is the second difference
    (K(t + spacing) - 2 K(t) + K(t - spacing)) / spacing^2.
    """
    out = np.zeros((len(components), count))
    work = _gaussian if kernel == "gaussian" else _laplace
    # many small calls: threads would cost more than they save
    parts = np.ascontiguousarray(components)
    work(0, len(parts), parts, float(start), float(step), float(spacing), out)
    return out


def point_values(rows: Array, x: Array) -> Array:
    """Return densities at points of their own for each draw.

    Parameters
    ----------
    rows : ndarray, shape (draw, component, 5)
        Components, see `edp_bayes.divergence.any_pair.components.rows`; families may differ.
    x : ndarray, shape (draw, point)

    Returns
    -------
    ndarray, shape (draw, point)
    """
    out = np.zeros(x.shape)
    _points(0, len(rows), np.ascontiguousarray(rows), np.ascontiguousarray(x), out)
    return out


def sliding_values(table: Array, weights: Array, first: Index, count: int) -> Array:
    """Return sum_k weights[k] table[first[k] + i] for i < count, zero off the table: (draw, count).

    weights and first have shape (draw, component).
    """
    out = np.zeros((len(weights), count))
    rows = np.ascontiguousarray(weights)
    _sliding(0, len(rows), np.ascontiguousarray(table), rows, np.ascontiguousarray(first), out)
    return out


def kernel_sums(weight: Array, place: Array, scale: Array, z: Array, kernel: str) -> Array:
    """Return the sum over all k of weight[k] times a kernel at place[k], at increasing z.

    Laplace kernels of a common scale take one pass through kernels and points together.
    """
    out = np.zeros(z.size)
    order = np.lexsort((place, scale))
    w, mu, s = (np.ascontiguousarray(part[order]) for part in (weight, place, scale))
    work = _laplace_sums if kernel == "laplace" else _gaussian_sums
    work(w, mu, s, np.ascontiguousarray(z), out)
    return out


@compiled
def _gaussian_sums(weight: Array, place: Array, scale: Array, z: Array, out: Array) -> None:
    """Add normal densities at increasing z, each where it counts; see `kernel_sums`."""
    for k in range(weight.size):
        w, mu, s = weight[k], place[k], scale[k]
        if w == 0.0:
            continue
        low, high = np.searchsorted(z, mu - REACH * s), np.searchsorted(z, mu + REACH * s)
        for i in range(low, high):
            u = (z[i] - mu) / s
            out[i] += w / (s * math.sqrt(2.0 * math.pi)) * math.exp(-0.5 * u * u)


@compiled
def _laplace_sums(weight: Array, place: Array, scale: Array, z: Array, out: Array) -> None:
    """Go through all kernels of one scale and all points in order: each sum follows the last."""
    first = 0
    while first < weight.size:
        s, last = scale[first], first
        while last < weight.size and scale[last] == s:
            last += 1
        # total: sum of w exp(-(at - place) / s) over the kernels passed, at the last of these; from
        # left to right for kernels at most z, then from right to left for those above
        half = 0.5 / s
        total, at, k = 0.0, place[first], first
        for i in range(z.size):
            while k < last and place[k] <= z[i]:
                total = total * math.exp((at - place[k]) / s) + weight[k]
                at = place[k]
                k += 1
            if k > first:
                out[i] += half * total * math.exp((at - z[i]) / s)
        total, at, k = 0.0, place[last - 1], last - 1
        for back in range(z.size):
            i = z.size - 1 - back
            while k >= first and place[k] > z[i]:
                total = total * math.exp((place[k] - at) / s) + weight[k]
                at = place[k]
                k -= 1
            if k < last - 1:
                out[i] += half * total * math.exp((z[i] - at) / s)
        first = last


@compiled
def _sliding(
    first_row: int, last_row: int, table: Array, weights: Array, first: Index, out: Array
) -> None:
    """Add the table, moved and weighted; see `sliding_values`. d is the draw, k the component."""
    for d in range(first_row, last_row):
        for k in range(weights.shape[1]):
            w, shift = weights[d, k], first[d, k]
            for i in range(max(0, -shift), min(out.shape[1], table.size - shift)):
                out[d, i] += w * table[shift + i]


@compiled
def _points(first: int, last: int, rows: Array, x: Array, out: Array) -> None:
    """Add densities of the components at points of their own; see `point_values` for the shapes."""
    for d in range(first, last):
        for k in range(rows.shape[1]):
            w, mu, a, b, family = rows[d, k]
            if w > 0.0:
                for i in range(x.shape[1]):
                    out[d, i] += _single(x[d, i], x[d, i], family, w, mu, a, b)[0]


@compiled
def _laplace(
    first: int,
    last: int,
    components: Array,
    start: float,
    step: float,
    spacing: float,
    out: Array,
) -> None:
    """Fill in `triangle_values` for Laplace kernels; d is the draw, k the component.

    The second antiderivative is K(t) = abs(t) / 2 + (s / 2) exp(-abs(t) / s), s the scale. The
    second difference of its first term is the tent max(spacing - abs(t), 0).
    """
    count = out.shape[1]
    for d in range(first, last):
        for k in range(components.shape[1]):
            w, mu, s = components[d, k]
            if w <= 0.0:
                continue
            # the tent, where the triangle contains the location
            low = max(math.ceil((mu - spacing - start) / step), 0)
            high = min(math.floor((mu + spacing - start) / step), count - 1)
            for i in range(low, high + 1):
                t = abs(start + i * step - mu)
                value = max(spacing - t, 0.0)
                value += (
                    0.5
                    * s
                    * (
                        math.exp(-(spacing + t) / s)
                        - 2.0 * math.exp(-t / s)
                        + math.exp(-abs(spacing - t) / s)
                    )
                )
                out[d, i] += w * value / spacing**2
            ratio = math.exp(-step / s)
            for side in range(2):
                i = max(high + 1, 0) if side == 0 else min(low - 1, count - 1)
                if i < 0 or i >= count:
                    continue
                t = abs(start + i * step - mu)
                # outside of the tent the density is exp(-t / s) / (2 s) (sinh(half) / half)^2, so
                # that each point is the last times one ratio; from half = 300 on sinh is exp / 2
                half = 0.5 * spacing / s
                if half < 300.0:
                    value = math.exp(-t / s) / (2.0 * s) * (math.sinh(half) / half) ** 2
                else:
                    value = 0.5 * s * math.exp(-(t - spacing) / s) / spacing**2
                value *= w
                while 0 <= i < count and value > 1e-300:
                    out[d, i] += value
                    value *= ratio
                    i += 1 if side == 0 else -1


@compiled
def _second(t: float, s: float) -> float:
    """Second antiderivative of the normal density at t <= 0; its second difference elsewhere."""
    z = t / s
    tail = 0.5 * math.erfc(-z / math.sqrt(2.0))
    return t * tail + s * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


@compiled
def _gaussian(
    first: int,
    last: int,
    components: Array,
    start: float,
    step: float,
    spacing: float,
    out: Array,
) -> None:
    """Fill in `triangle_values` for normal kernels; d is the draw, k the component.

    K(t) = t Phi(t / s) + s phi(t / s), by symmetry at t <= 0. Where spacing / s = sqrt(r) is small
    its second difference is sum_m 2 r^(m - 1) He_2m-2(t / s) / (2 m)!, times the density, m >= 1.
    """
    count = out.shape[1]
    for d in range(first, last):
        for k in range(components.shape[1]):
            w, mu, s = components[d, k]
            if w <= 0.0:
                continue
            reach = REACH * s + spacing
            low = max(math.ceil((mu - reach - start) / step), 0)
            high = min(math.floor((mu + reach - start) / step), count - 1)
            for i in range(low, high + 1):
                t = -abs(start + i * step - mu)
                if spacing < SHORT * s:
                    # the series in even derivatives, six terms: the second difference would cancel
                    z, r = (t / s) ** 2, (spacing / s) ** 2
                    value = math.exp(-0.5 * z) / (s * math.sqrt(2.0 * math.pi))
                    fourth = 3.0 + z * (z - 6.0)
                    sixth = -15.0 + z * (45.0 + z * (z - 15.0))
                    eighth = 105.0 + z * (-420.0 + z * (210.0 + z * (z - 28.0)))
                    tenth = -945.0 + z * (4725.0 + z * (-3150.0 + z * (630.0 + z * (z - 45.0))))
                    series = eighth / 1814400.0 + r * tenth / 239500800.0
                    series = fourth / 360.0 + r * (sixth / 20160.0 + r * series)
                    value *= 1.0 + r * ((z - 1.0) / 12.0 + r * series)
                else:
                    # K(t + spacing) = K(-(t + spacing)) + (t + spacing) on the other side of zero
                    ahead = t + spacing
                    value = _second(-abs(ahead), s) + max(ahead, 0.0)
                    value += _second(t - spacing, s) - 2.0 * _second(t, s)
                    value /= spacing**2
                out[d, i] += w * max(value, 0.0)
