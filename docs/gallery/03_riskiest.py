"""
The riskiest individuals
========================

Client 3 is large and steady, client 7 large and rare; all others are alike.
"""

import numpy as np

import edp_bayes as edp

rng = np.random.default_rng(8)
contribution = rng.gamma(4.0, 0.05, (60, 12))
contribution[:, 3] = rng.normal(1.2, 0.1, 60)
contribution[:, 7] = np.where(rng.random(60) < 0.25, 2.5, 0.0)
response = rng.normal(10.0, 1.0, 60) + contribution.sum(axis=1)
responses = edp.Responses.from_arrays(
    response,
    contribution=contribution,
    individual=[f"client {k}" for k in range(12)],
    query="sales",
)
audit = edp.audit(
    responses,
    epsilon=[0.1, 0.3],
    draws=250,
    random_seed=1,
    progressbar=False,
)
_ = audit.plot_individuals(epsilon=0.3, ci_prob=0.9)
