"""Independent hockey-stick integrals, in 40 digit arithmetic, for mixtures without noise."""

from __future__ import annotations

import itertools

import mpmath as mp
import numpy as np

DIGITS = 40


class Exact:
    """One mixture in exact arithmetic."""

    def __init__(self, mixture):
        self.kernel = mixture.kernel
        self.parts = [
            (mp.mpf(float(w)), mp.mpf(float(m)), mp.mpf(float(s)))
            for w, m, s in zip(mixture.weights, mixture.locations, mixture.scales, strict=True)
            if w > 0
        ]
        self.total = mp.fsum(w for w, _, _ in self.parts)

    def cdf(self, x):
        return mp.fsum(w * self._below((x - m) / s) for w, m, s in self.parts)

    def pdf(self, x):
        return mp.fsum(w / s * self._kernel((x - m) / s) for w, m, s in self.parts)

    def _below(self, z):
        if self.kernel == "gaussian":
            return mp.erfc(-z / mp.sqrt(2)) / 2
        return mp.exp(z) / 2 if z < 0 else 1 - mp.exp(-z) / 2

    def _kernel(self, z):
        if self.kernel == "gaussian":
            return mp.exp(-z * z / 2) / mp.sqrt(2 * mp.pi)
        return mp.exp(-abs(z)) / 2


def grid(p, q, points):
    """Points dense around every component of both mixtures, knots included."""
    pieces = []
    for mixture in (p, q):
        far = 12 if mixture.kernel == "gaussian" else 48
        inner = np.concatenate([np.linspace(-far, far, points), np.linspace(-3, 3, points)])
        pieces += [
            m + s * np.append(inner, 0.0)
            for m, s in zip(mixture.locations, mixture.scales, strict=True)
        ]
    return np.unique(np.concatenate(pieces))


def hockey_stick(p, q, epsilon, points=400):
    """Return H_eps(p || q) and P(p > exp(eps) q).

    Sign changes are bracketed on a dense grid and bisected; between them the integral is a
    difference of distribution functions, which at this precision loses nothing that matters.
    """
    x = grid(p, q, points)
    gap = p.logpdf(x) - q.logpdf(x) - epsilon
    with mp.workdps(DIGITS):
        a, b, growth = Exact(p), Exact(q), mp.exp(mp.mpf(float(epsilon)))

        def excess(t):
            return a.pdf(t) - growth * b.pdf(t)

        signs = np.sign(gap)
        for k in np.flatnonzero(np.abs(gap) < 1e-12 * (1 + np.abs(gap).max())):
            # here the sign in double precision means nothing
            signs[k] = float(mp.sign(excess(mp.mpf(float(x[k])))))
        x, signs = x[signs != 0], signs[signs != 0]
        cuts = [(mp.mpf(0), mp.mpf(0))]
        for k in np.flatnonzero(signs[1:] * signs[:-1] < 0):
            t = _bisect(excess, x[k], x[k + 1], rising=signs[k] < 0)
            cuts.append((a.cdf(t), b.cdf(t)))
        cuts.append((a.total, b.total))
        total, mass = mp.mpf(0), mp.mpf(0)
        for left, right in itertools.pairwise(cuts):
            share = (right[0] - left[0]) - growth * (right[1] - left[1])
            if share > 0:
                total += share
                mass += right[0] - left[0]
        return float(total), float(mass)


def _bisect(excess, low, high, *, rising):
    low, high = mp.mpf(float(low)), mp.mpf(float(high))
    for _ in range(45):  # an error dx costs only dx^2 in the integral
        middle = (low + high) / 2
        if (excess(middle) < 0) == rising:
            low = middle
        else:
            high = middle
    return (low + high) / 2
