"""Risks under a test chosen once: never above the best, near it where all draws agree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edp_bayes as edp
from edp_bayes.auditing.evaluation import evaluate
from edp_bayes.auditing.lower_bounds import Cells, lower_bounds
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.divergence import hockey_stick
from edp_bayes.models import DirichletProcessMixture, SamplerSettings
from edp_bayes.results import bands
from edp_bayes.results.query import Audit

EPSILON = np.array([0.02, 0.1, 0.5])
DISTRIBUTIONS = {
    "gaussian": {"kernel": "gaussian"},
    "laplace": {"kernel": "laplace"},
    "with noise": {"kernel": "gaussian", "noise": edp.LaplaceNoise(0.3)},
}


def best(p, q):
    return np.maximum(hockey_stick(p, q, epsilon=EPSILON), hockey_stick(q, p, epsilon=EPSILON))


def of_test(p, q):
    cells = Cells.of(p)
    return cells.risk(cells.masses_of(q), EPSILON)


def drawn(seed, size, distribution, spread):
    """Draws of p that differ by `spread`, and of q, the same moved and narrowed."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(size, 2.0), (1, 20))
    weights += spread * rng.dirichlet(np.ones(size), (1, 20))
    weights /= weights.sum(axis=-1, keepdims=True)
    place = rng.normal(0.0, 2.0, size) + spread * rng.normal(size=(1, 20, size))
    scale = rng.uniform(0.3, 2.0, size) * np.exp(spread * rng.normal(size=(1, 20, size)))
    moved = rng.uniform(-1.0, 1.0)
    return Mixture(weights, place, scale, **distribution), Mixture(
        weights, place - moved, scale, **distribution
    )


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 6),
    distribution=st.sampled_from(sorted(DISTRIBUTIONS)),
    spread=st.floats(0.0, 0.5),
)
def test_no_test_is_better_than_the_best(seed, size, distribution, spread):
    p, q = drawn(seed, size, DISTRIBUTIONS[distribution], spread)
    found = of_test(p, q)
    assert found.shape == (1, 20, 3)
    assert (found >= 0.0).all()
    assert (found <= best(p, q) + 1e-12).all()


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 6),
    distribution=st.sampled_from(sorted(DISTRIBUTIONS)),
)
def test_where_draws_agree_the_lower_bound_is_the_best(seed, size, distribution):
    p, q = drawn(seed, size, DISTRIBUTIONS[distribution], 0.0)
    same = np.zeros((1, 5), dtype=int)
    p, q = (each[0, same] for each in (p, q))
    exact, found = best(p, q), of_test(p, q)
    # the best event is cut to cells: at worst where it is narrower than they are
    assert (found >= 0.9 * exact - 0.002).all()


def test_the_event_is_that_of_the_mean_densities():
    """Against the event on a fine grid, found from densities instead of masses."""
    p, q = drawn(3, 4, DISTRIBUTIONS["gaussian"], 0.3)
    x = np.linspace(-25.0, 25.0, 20_001)
    first, second = (distribution.pdf(x) for distribution in (p, q))
    expected = []
    for growth in np.exp(EPSILON):
        reached = []
        for a, b in ((first, second), (second, first)):
            event = a.mean(axis=(0, 1)) > growth * b.mean(axis=(0, 1))
            reached.append(((a - growth * b) * event).sum(axis=-1) * (x[1] - x[0]))
        expected.append(max(reached, key=np.mean))
    expected = np.maximum(np.stack(expected, axis=-1), 0.0)
    found = of_test(p, q)
    # single draws may gain or lose at the edges of cells, their mean only loses
    np.testing.assert_allclose(found.mean(axis=1), expected.mean(axis=1), rtol=0.02)
    np.testing.assert_allclose(found, expected, atol=0.1 * expected.max())


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(7)
    contribution = rng.gamma(2.0, 0.1, (40, 6))
    contribution[:, 2] *= rng.random(40) < 0.2
    responses = edp.Responses.from_arrays(
        rng.normal(10.0, 1.0, 40) + contribution.sum(axis=1), contribution=contribution
    )
    settings = SamplerSettings(
        draws=40, tune=200, chains=2, random_seed=1, progressbar=False, cores=1
    )
    return responses, DirichletProcessMixture().fit(responses, settings).coupling


def test_delta_and_delta_star_follow_from_everybody(fitted):
    _, coupling = fitted
    risks = evaluate(coupling, EPSILON, progressbar=False)
    everybody = np.arange(6)
    curves = coupling.curves(everybody, EPSILON)
    found = lower_bounds(coupling, everybody, curves, risks.delta, risks.total_risk, EPSILON)
    assert found.step == 1
    for person in range(6):
        p, q = coupling.pair(person)
        reaches = of_test(p, q)
        expected = np.minimum(reaches, curves[:, person].reshape(reaches.shape))
        np.testing.assert_array_equal(found.individual_delta[:, :, person], expected)
    assert (found.individual_delta.reshape(curves.shape) <= curves).all()
    np.testing.assert_array_equal(found.delta, found.individual_delta.max(axis=2))
    np.testing.assert_allclose(
        found.total_risk, 1.0 - np.prod(1.0 - found.individual_delta, axis=2), rtol=1e-9, atol=1e-12
    )


def test_individuals_who_are_not_tested_keep_their_risk(fitted):
    _, coupling = fitted
    risks = evaluate(coupling, EPSILON, progressbar=False)
    curves = coupling.curves(np.arange(6), EPSILON)
    some = np.array([4, 1])
    found = lower_bounds(coupling, some, curves[:, some], risks.delta, risks.total_risk, EPSILON)
    tested = found.individual_delta.reshape(-1, 2, 3)
    others = np.delete(curves, some, axis=1)
    product = np.prod(1.0 - others, axis=1) * np.prod(1.0 - tested, axis=1)
    np.testing.assert_allclose(
        found.total_risk.reshape(-1, 3), 1.0 - product, rtol=1e-9, atol=1e-12
    )
    expected = np.where(curves[:, some].max(axis=1) < risks.delta, risks.delta, tested.max(axis=1))
    np.testing.assert_array_equal(found.delta.reshape(-1, 3), expected)


@pytest.fixture(scope="module")
def audit(fitted):
    return edp.audit(
        fitted[0], epsilon=EPSILON, model=edp.SmoothedBootstrap(), draws=300, chains=2, keep=3,
        random_seed=1, progressbar=False,
    )  # fmt: skip


@pytest.mark.parametrize("kind", bands.KINDS)
@pytest.mark.parametrize("quantity", ["delta", "total_risk", "individual_delta"])
def test_a_band_ends_below_at_the_lower_bound(audit, kind, quantity):
    band = audit.band(quantity, kind=kind, prob=0.9)
    tested = audit.tree["lower_bounds"][quantity]
    assert tested.sizes["draw"] == 150
    draws = audit.tree["posterior"][quantity]
    databases = audit.tree["resampled"]["delta" if quantity == "total_risk" else quantity]
    if quantity == "individual_delta":
        band, tested, draws, databases = (
            part.isel(individual=1) for part in (band, tested, draws, databases)
        )
    make = getattr(bands, kind)
    lower, upper = make(draws.to_numpy().reshape(-1, 3), 0.9)
    below, _ = make(tested.to_numpy().reshape(-1, 3), 0.9)
    _, above = make(databases.to_numpy(), 0.9)
    above = np.maximum.accumulate(above[::-1])[::-1]
    np.testing.assert_array_equal(band["upper"], np.maximum(upper, above))
    np.testing.assert_array_equal(band["lower"], np.minimum(lower, below))


def test_bands_of_an_audit_saved_without_it_still_work(audit):
    tree = audit.to_datatree()
    del tree["lower_bounds"]
    older = Audit(tree)
    lower, _ = bands.pointwise(older.delta.to_numpy().reshape(-1, 3), 0.9)
    np.testing.assert_array_equal(older.band(kind="pointwise", prob=0.9)["lower"], lower)
