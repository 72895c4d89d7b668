"""
Total risk between its bounds
=============================

delta* takes individuals to be exposed independently. Whatever the dependence, the truth lies
between the largest individual risk and the sum of all of them.
"""

import numpy as np

import edp_bayes as edp

rng = np.random.default_rng(2)
contribution = rng.gamma(2.0, 0.08, (50, 40))
response = rng.normal(10.0, 1.0, 50) + contribution.sum(axis=1)
audit = edp.audit(
    edp.Responses.from_arrays(response, contribution=contribution, query="sales"),
    epsilon=np.linspace(0.05, 0.8, 20),
    model=edp.SmoothedBootstrap(),
    draws=250,
    random_seed=1,
    progressbar=False,
)
_ = audit.plot_total_risk(ci_prob=0.9)
