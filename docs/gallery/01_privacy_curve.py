"""
A privacy curve with its bands
==============================

delta(epsilon) is the largest risk of any individual. The darker band holds its value at each
single epsilon, the lighter one the whole curve.
"""

import numpy as np

import edp_bayes as edp

rng = np.random.default_rng(1)
contribution = rng.gamma(2.0, 0.15, (41, 20))
response = rng.normal(20.0, 1.0, 41) + contribution.sum(axis=1)
audit = edp.audit(
    edp.Responses.from_arrays(response, contribution=contribution, query="sales"),
    epsilon=np.linspace(0.02, 1.0, 30),
    draws=250,
    random_seed=1,
    progressbar=False,
)
_ = audit.plot_delta(ci_prob=0.9)
