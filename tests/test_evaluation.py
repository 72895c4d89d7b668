"""Individuals evaluated in canonical blocks: each alone, put together in order."""

from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import scipy.sparse as sp

import edp_bayes as edp
from edp_bayes.auditing import evaluation, reductions
from edp_bayes.auditing.evaluation import TOP, canonical_blocks, evaluate, evaluate_block
from edp_bayes.models import Stacked
from edp_bayes.models.sampling import SamplerSettings

EPSILON = np.array([0.02, 0.1, 0.4])
MODELS = {
    "bootstrap": edp.SmoothedBootstrap(),
    "mixture": edp.DirichletProcessMixture(components=4),
    "stacked": Stacked([edp.SmoothedBootstrap(), edp.DirichletProcessMixture(components=4)]),
}


@pytest.fixture(scope="module")
def responses():
    rng = np.random.default_rng(7)
    size = (30, 300)
    c = rng.gamma(2.0, 0.05, size) * (rng.random(size) < 0.1)
    c[:, 2], c[:, 3] = 0.5 + 0.1 * rng.standard_normal(30), 5.0 * rng.standard_normal(30)
    response = 20.0 + rng.standard_normal(30) + c.sum(axis=1)
    return edp.Responses.from_arrays(response, contribution=sp.csc_array(c))


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS)
def coupling(request, responses):
    settings = SamplerSettings(draws=20, tune=50, chains=2, random_seed=1, progressbar=False)
    return request.param.fit(responses, settings).coupling


def same(first, second):
    for part in fields(first):
        ours, theirs = getattr(first, part.name), getattr(second, part.name)
        if is_dataclass(ours):
            same(ours, theirs)
        elif part.name != "curves":
            np.testing.assert_array_equal(ours, theirs, err_msg=part.name)


def test_all_blocks_together_are_what_the_curves_of_everybody_say(coupling):
    copies = np.random.default_rng(3).integers(0, coupling.n_individuals, coupling.n_draws)
    risks = evaluate(coupling, EPSILON, progressbar=False, copies=copies)
    curves = np.zeros((coupling.n_draws, coupling.n_individuals, EPSILON.size))
    relevant, _ = coupling.relevant(EPSILON)
    assert len(canonical_blocks(relevant)) == 3
    curves[:, relevant] = coupling.curves(relevant, EPSILON)
    np.testing.assert_array_equal(risks.delta, curves.max(axis=1))
    np.testing.assert_allclose(risks.total_risk, 1.0 - (1.0 - curves).prod(axis=1), atol=1e-12)
    np.testing.assert_allclose(risks.total_risk_bound, np.minimum(curves.sum(axis=1), 1.0))
    np.testing.assert_allclose(risks.mean, curves.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(risks.deviation, curves.std(axis=0), atol=1e-14)
    np.testing.assert_allclose(risks.median, np.median(curves, axis=0), atol=1e-15)
    np.testing.assert_array_equal(risks.highest, curves.max(axis=0))
    order = np.argsort(-curves, axis=1, kind="stable")[:, :TOP].transpose(0, 2, 1)
    largest = np.take_along_axis(curves.transpose(0, 2, 1), order, 2)
    np.testing.assert_array_equal(risks.top, largest)
    np.testing.assert_array_equal(risks.who, np.where(largest > 0.0, order, 0))
    rows = np.arange(coupling.n_draws)
    np.testing.assert_array_equal(risks.copied, curves[rows, copies])


def test_a_block_is_the_same_whatever_memory_it_gets(coupling, monkeypatch):
    members = np.arange(5, 60, 3)
    first = evaluate_block(coupling, members, EPSILON)
    monkeypatch.setattr(evaluation, "BLOCK_NUMBERS", 1)
    same(first, evaluate_block(coupling, members, EPSILON))


def test_blocks_grow_with_the_square_root_of_the_number():
    sizes = {m: len(canonical_blocks(np.arange(m))[0]) for m in (100, 10_000, 1_000_000)}
    assert sizes == {100: 100, 10_000: 256, 1_000_000: 2048}
    assert canonical_blocks(np.arange(0)) == []


@pytest.mark.parametrize("draws", [1, 2, 7, 40])
def test_medians_are_those_of_numpy(draws):
    rng = np.random.default_rng(draws)
    curves = rng.lognormal(-8.0, 4.0, (draws, 150, 3))
    curves[curves < 1e-4] = 0.0
    np.testing.assert_array_equal(reductions.medians(curves), np.median(curves, axis=0))


def test_survival_of_small_risks_is_exact():
    """A sum of logarithms is that of NumPy on both sides of where a series takes over."""
    risks = np.geomspace(1e-12, 0.9, 400)[:, None, None]
    largest, log_survival, total, log_bounded = np.zeros((4, 400, 1))
    floor = np.full((400, 1), 1e-3)
    reductions.accumulate(risks, largest, log_survival, total, floor, log_bounded)
    exact = np.log1p(-risks[:, 0])
    np.testing.assert_allclose(log_survival, exact, rtol=1e-15)
    np.testing.assert_array_equal(log_bounded, np.where(risks[:, 0] <= floor, log_survival, 0.0))
