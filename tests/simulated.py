"""Divergences of distributions that are simulated."""

import numpy as np


def hockey_stick(log_ratio_p, log_ratio_q, epsilon):
    """Return both directions from simulated log ratios log(P / Q) under P and under Q."""
    forward = np.maximum(-np.expm1(epsilon - log_ratio_p), 0.0).mean()
    backward = np.maximum(-np.expm1(epsilon + log_ratio_q), 0.0).mean()
    return max(forward, backward)
