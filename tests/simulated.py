"""Divergences of distributions that are simulated."""

import itertools

import numpy as np


def hockey_stick(log_ratio_p, log_ratio_q, epsilon):
    """Return both directions from simulated log ratios log(P / Q) under P and under Q."""
    forward = np.maximum(-np.expm1(epsilon - log_ratio_p), 0.0).mean()
    backward = np.maximum(-np.expm1(epsilon + log_ratio_q), 0.0).mean()
    return max(forward, backward)


def filtered(e, density, presence, lags, moved):
    """Return the log density of e_t less what moves it, with presence summed out.

    e is (size, k) or (size, k, d). Presence counts in the database and in so many before it:
    moved(here, state) is the move by both, states as `presences` lists them.
    """
    size, states = len(e), presences(lags)
    mass, log = np.zeros((size, len(states))), np.zeros(size)
    mass[:, 0] = 1.0
    for t in range(e.shape[1]):
        after = np.zeros_like(mass)
        for here, chance in ((0, 1.0 - presence), (1, presence)):
            for i, state in enumerate(states):
                j = states.index((here, *state)[:lags])
                after[:, j] += mass[:, i] * chance * density(e[:, t] - moved(here, state))
        log += np.log(after.sum(axis=1))
        mass = after / after.sum(axis=1, keepdims=True)
    return log


def presences(lags):
    """Return in which of so many databases an individual may have been."""
    return list(itertools.product([0, 1], repeat=lags))
