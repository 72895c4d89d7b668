"""Hockey-stick divergence of discrete distributions, as the sum that defines it."""

import numpy as np


def exact_sum(p, q, epsilon):
    """Return the sum of (p - exp(epsilon) q) where it is positive, (leading axes, epsilon)."""
    p, q = (np.asarray(mass, float)[..., None, :] for mass in (p, q))
    growth = np.exp(np.atleast_1d(epsilon))[:, None]
    with np.errstate(invalid="ignore"):
        return np.maximum(p - np.where(q > 0.0, growth * q, 0.0), 0.0).sum(axis=-1)
