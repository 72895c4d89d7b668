"""Small data and posteriors shared by the tests of noise."""

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.noise.posterior import posterior_of


def make_responses(seed=7, n=24, m=6, dominated=False):
    rng = np.random.default_rng(seed)
    c = rng.gamma(2.0, 0.08, (n, m)) * (rng.random((n, m)) < 0.7)
    if dominated:
        c[:, 0] = 5.0 + rng.standard_normal(n)
    return edp.Responses.from_arrays(20.0 + rng.standard_normal(n) + c.sum(axis=1), contribution=c)


@pytest.fixture(scope="session")
def responses():
    return make_responses()


@pytest.fixture(scope="session")
def plug_in(responses):
    return posterior_of(responses, model=edp.noise.FixedBandwidth(0.6))


@pytest.fixture(scope="session")
def bootstrap(responses):
    return posterior_of(
        responses, model=edp.SmoothedBootstrap(), draws=5, random_seed=1, progressbar=False
    )


@pytest.fixture(scope="session")
def mixture(responses):
    return posterior_of(
        responses,
        model=edp.FiniteMixture(components=2),
        draws=5,
        random_seed=1,
        progressbar=False,
    )
