"""Independent hockey-stick integrals: mpmath on piecewise integrals cut at every sign change."""

from __future__ import annotations

import mpmath as mp
import numpy as np


def kernel(name, scale, noise=None):
    if noise is not None:
        raise ValueError("reference kernels carry no noise")
    if name == "gaussian":
        return lambda u: mp.exp(-((u / scale) ** 2) / 2) / (scale * mp.sqrt(2 * mp.pi))
    return lambda u: mp.exp(-abs(u) / scale) / (2 * scale)


def tail(name, scale, u):
    """P(U <= u) of one kernel."""
    if name == "gaussian":
        return mp.erfc(-u / (scale * mp.sqrt(2))) / 2
    return mp.exp(u / scale) / 2 if u < 0 else 1 - mp.exp(-u / scale) / 2


class Exact:
    """A single mixture in exact arithmetic."""

    def __init__(self, mixture):
        self.name = mixture.kernel
        self.parts = [
            (mp.mpf(float(w)), mp.mpf(float(m)), mp.mpf(float(s)))
            for w, m, s in zip(mixture.weights, mixture.locations, mixture.scales, strict=True)
            if w > 0
        ]

    def cdf(self, x):
        return mp.fsum(w * tail(self.name, s, x - m) for w, m, s in self.parts)

    def pdf(self, x):
        return mp.fsum(w * kernel(self.name, s)(x - m) for w, m, s in self.parts)


def grid(p, q, points=400, reach=12):
    """Points dense around every component of both mixtures, knots included."""
    pieces = []
    for mixture in (p, q):
        far = reach if mixture.kernel == "gaussian" else 4 * reach
        inner = np.concatenate([np.linspace(-far, far, points), np.linspace(-3, 3, points)])
        for m, s in zip(mixture.locations, mixture.scales, strict=True):
            pieces.append(m + s * inner)
            pieces.append([m])
    return np.unique(np.concatenate(pieces))


def log_density(mixture, x):
    z = (x[:, None] - mixture.locations) / mixture.scales
    with np.errstate(divide="ignore"):
        terms = np.log(mixture.weights / mixture.scales) + (
            -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
            if mixture.kernel == "gaussian"
            else -np.abs(z) - np.log(2)
        )
    top = terms.max(axis=1, keepdims=True)
    return (top + np.log(np.exp(terms - top).sum(axis=1, keepdims=True)))[:, 0]


def hockey_stick(p, q, epsilon, digits=60, points=400):
    """Return (H, P(p > exp(eps) q)) of two single mixtures without noise.

    Sign changes are bracketed on a dense grid and bisected in exact arithmetic; between them the
    integral is a difference of distribution functions at that precision.
    """
    x = grid(p, q, points)
    gap = log_density(p, x) - log_density(q, x) - epsilon
    with mp.workdps(digits):
        a, b, growth = Exact(p), Exact(q), mp.exp(mp.mpf(float(epsilon)))

        def excess(t):
            return a.pdf(t) - growth * b.pdf(t)

        # near zero the sign of the double precision gap means nothing
        signs = np.sign(gap)
        for k in np.nonzero(np.abs(gap) < 1e-9 * (1 + np.abs(gap).max()))[0]:
            signs[k] = float(mp.sign(excess(mp.mpf(float(x[k])))))
        cuts = [-mp.inf]
        for k in np.nonzero(signs[1:] * signs[:-1] < 0)[0]:
            low, high = mp.mpf(float(x[k])), mp.mpf(float(x[k + 1]))
            rising = signs[k] < 0
            for _ in range(int(digits * 1.7)):
                middle = (low + high) / 2
                if (excess(middle) < 0) == rising:
                    low = middle
                else:
                    high = middle
            cuts.append((low + high) / 2)
        cuts.append(mp.inf)
        total, mass = mp.mpf(0), mp.mpf(0)
        for low, high in zip(cuts, cuts[1:], strict=False):
            left = (a.cdf(low), b.cdf(low)) if low != -mp.inf else (0, 0)
            right = (a.cdf(high), b.cdf(high)) if high != mp.inf else (
                mp.fsum(w for w, _, _ in a.parts),
                mp.fsum(w for w, _, _ in b.parts),
            )  # fmt: skip
            share = (right[0] - left[0]) - growth * (right[1] - left[1])
            if share > 0:
                total += share
                mass += right[0] - left[0]
        return float(total), float(mass)
