"""Small joint fits for tests: people always, rarely and heavily there, and one who dominates."""

import numpy as np

import edp_bayes as edp
from edp_bayes.models.joint import fit_joint
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.responses.dependence import linear_dependence

MODELS = {
    "mixture": edp.DirichletProcessMixture(components=6),
    "bootstrap": edp.SmoothedBootstrap(),
}
EPSILON = np.array([0.1, 0.5, 1.0])


def joint_responses(people=40, n=30, seed=5, noise=None):
    """Return a sum and a count of people, some of whom stand out."""
    rng = np.random.default_rng(seed)
    here = rng.random((n, people)) < 0.2
    here[:, 0] = True
    price, count = 0.2 * rng.gamma(2.0, 1.0, (n, people)) * here, 0.3 * here
    price[:, 0] += 0.5
    price[:, 1] = 5.0 * rng.standard_normal(n)
    price[:, 2] = 0.0
    price[:3, 2] = 3.0
    base = rng.standard_normal((2, n))
    names = [f"secret {k:03}" for k in rng.permutation(people)]
    parts = [
        edp.Responses.from_arrays(
            10.0 + y + c.sum(axis=1), contribution=c, individual=names, query=query, noise=noise
        )
        for y, c, query in zip(base, (price, count), ("sum", "count"), strict=True)
    ]
    return edp.Responses.join(*parts)


def joint_coupling(model="mixture", draws=20, **options):
    """Return the coupling of a small fit."""
    both = joint_responses(**options)
    settings = SamplerSettings(draws=draws, tune=200, chains=2, random_seed=1, progressbar=False)
    return fit_joint(MODELS[model], both, linear_dependence(both), settings).coupling
