"""Models that take the slopes of contributions for known say so, and establish nothing."""

import warnings

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.coupling.contributions.adjustment import adjust

FAST = {"epsilon": [0.2], "draws": 40, "tune": 100, "random_seed": 2, "progressbar": False}


def growing(seed=4, n=40, steep=0.02):
    """Return responses whose individuals come at times and contribute more the later they do."""
    rng = np.random.default_rng(seed)
    t = np.arange(n)[:, None]
    c = (0.2 + steep * t) * rng.uniform(0.8, 1.2, (n, 5)) * (rng.random((n, 5)) < 0.4)
    return edp.Responses.from_arrays(rng.normal(10.0, 1.0, n) + c.sum(axis=1), contribution=c)


def audited(model, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        return edp.audit(
            growing(), model=model, adversary=edp.Adversary(trend=True), **FAST, **options
        )


def test_the_bootstrap_takes_slopes_for_known_and_withholds():
    found = audited(edp.SmoothedBootstrap())
    assert not found.checks.loc["slopes", "passed"]
    assert found.checks.loc["slopes", "statistic"] > 0
    assert found.withheld is not None
    assert "takes the slopes for known" in " ".join(map(str, found.warnings))


def test_the_mixture_allows_for_them():
    assert "slopes" not in audited(edp.DirichletProcessMixture()).checks.index


def test_the_remedy_that_is_named_is_one():
    said = audited(edp.SmoothedBootstrap()).checks.loc["slopes", "sentence"]
    assert "DirichletProcessMixture()" in said
    assert "slopes" not in audited(edp.DirichletProcessMixture()).checks.index


@pytest.mark.full
def test_several_queries_withhold_too():
    one = growing()
    both = edp.Responses.join(one, growing(seed=4).replaced(query="other"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        found = edp.audit(
            both, model=edp.SmoothedBootstrap(), adversary=edp.Adversary(trend=True), **FAST
        )
    assert not found.checks.loc["slopes", "passed"]


@pytest.mark.parametrize("value", [0.0, 0.65853658536585])
def test_a_regressor_that_never_changed_stays_in_its_own_units(value):
    """Answers all alike but the last: their lag says nothing, and is far away there."""
    data = growing(n=20, steep=0.0)
    design = np.full((20, 1), value)
    found = adjust(data, design, np.array([value - 27.0]), data.response)
    assert np.isfinite(found.contribution.data).all()
    assert np.isfinite(found.adjustment.variance).all()
    assert (found.adjustment.variance >= 0.0).all()
