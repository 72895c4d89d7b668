"""Answers on a grid: found, drawn within their bins, and the risk of the rounded answer."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm, truncnorm

import edp_bayes as edp
from edp_bayes.models.base import database_log_likelihood
from edp_bayes.models.gibbs import _standard_normal_within
from edp_bayes.records.rounding import offset_of, plain_step
from edp_bayes.statistical_privacy import delta_minus, delta_plus
from edp_bayes.utils.compiled import compiled
from tests.calibration.rounded import CELLS, difference

QUICK = {"draws": 50, "chains": 2, "random_seed": 1, "progressbar": False}
EPSILON = np.array([0.05, 0.3])


def counts(seed=0, n=60, m=10, prob=0.3):
    rng = np.random.default_rng(seed)
    c = (rng.random((n, m)) < prob).astype(float)
    return c.sum(axis=1), c


def of_counts(step, **options):
    y, c = counts(**options)
    return edp.Responses.from_arrays(y, contribution=c, step=step)


@compiled
def _many(rng, low, high, out):
    for i in range(out.size):
        out[i] = _standard_normal_within(rng, low, high)


@pytest.mark.parametrize(
    ("low", "high"),
    [(-0.3, 0.4), (-4.0, 5.0), (0.1, 9.0), (0.7, 0.9), (2.0, 9.0), (6.0, 6.1), (-9.0, -1.0)],
)
def test_latent_values_are_truncated_normal(low, high):
    out = np.empty(20_000)
    _many(np.random.default_rng(1), low, high, out)
    assert ((out >= low) & (out <= high)).all()
    levels = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    reached = truncnorm.cdf(np.quantile(out, levels), low, high)
    np.testing.assert_allclose(reached, levels, atol=0.015)


def test_the_likelihood_is_that_of_the_bin():
    responses = of_counts(1.0)
    mixture = edp.Mixture([[[0.3, 0.7]]], [[[2.0, 4.0]]], [[[0.4, 1.5]]])
    found = database_log_likelihood(mixture, responses)[0, 0]
    y = responses.response
    mass = sum(
        w * (norm.cdf(y + 0.5, m, s) - norm.cdf(y - 0.5, m, s))
        for w, m, s in ((0.3, 2.0, 0.4), (0.7, 4.0, 1.5))
    )
    np.testing.assert_allclose(found, np.log(mass), rtol=1e-9)


def test_truths_are_the_exact_curves_of_statistical_privacy():
    for size, prob in ((10, 0.1), (10, 0.3)):
        x = np.arange(60)
        truth = difference(binom.pmf(x, size, prob), binom.pmf(x, size - 1, prob), EPSILON)
        # of an individual present with a probability: that of one who is, at another epsilon
        growth = np.expm1(EPSILON)
        kept = prob - growth * (1.0 - prob)
        present, absent = [], []
        for g, k in zip(growth, kept, strict=True):
            inner, outer = np.log1p(g / prob), np.log1p(g / k) if k > 0 else np.inf
            curves = [
                (delta_plus(size, prob, epsilon=e), delta_minus(size, prob, epsilon=e))
                if np.isfinite(e)
                else (0.0, 0.0)
                for e in (inner, outer)
            ]
            present.append(prob * np.array(curves[0]))
            absent.append(max(k, 0.0) * np.array(curves[1]))
        one_way = np.maximum(np.array(present)[:, 0], np.array(absent)[:, 1])
        other_way = np.maximum(np.array(present)[:, 1], np.array(absent)[:, 0])
        closest = np.minimum(np.abs(one_way - truth), np.abs(other_way - truth))
        assert (closest < 1e-12).all()


def test_bands_of_counts_hold_the_exact_risk():
    cell = CELLS[1]
    truth = cell.truth()
    y, c = cell.sample(3)
    audit = edp.audit(
        edp.Responses.from_arrays(y, contribution=c, step=1.0),
        epsilon=[0.05, 0.1, 0.3], individuals=[0], **QUICK,
    )  # fmt: skip
    band = audit.band("individual_delta", kind="pointwise", prob=0.99).sel(individual=0)
    assert (band["lower"] <= truth).all()
    assert (truth <= band["upper"]).all()
    assert audit.settings["step"] == 1.0
    assert audit.checks.loc["ties", "passed"]
    assert "as rounded answers do (step 1)" in audit.checks.loc["ties", "sentence"]


def test_the_risk_is_that_of_the_rounded_answer():
    audit = edp.audit(of_counts(1.0), epsilon=EPSILON, **QUICK)
    edges = np.arange(-200, 200) + 0.5
    growth = np.exp(EPSILON)[:, None]
    risks = []
    for person in range(10):
        p, q = (
            np.diff(d.cdf(edges), prepend=0.0, append=1.0)[..., None, :]
            for d in audit.source.coupling.pair(person)
        )
        forwards = np.maximum(p - growth * q, 0.0).sum(axis=-1)
        risks.append(np.maximum(forwards, np.maximum(q - growth * p, 0.0).sum(axis=-1)))
    np.testing.assert_allclose(audit.delta, np.max(risks, axis=0), atol=1e-10)
    suppressed = audit.released(threshold=3, progressbar=False)
    binned = audit.released(bins=[2.5], progressbar=False)
    assert (suppressed.delta <= audit.delta).all()
    assert (binned.delta <= suppressed.delta + 1e-12).all()
    thirds = audit.released(rounded_to=3, progressbar=False)
    assert (thirds.delta <= audit.delta).all()
    with pytest.raises(edp.InvalidInputError, match="every edge lies between two"):
        audit.released(rounded_to=2, progressbar=False)


def test_a_plain_grid_is_found_and_said():
    y, c = counts()
    with pytest.warns(edp.EdpBayesWarning, match="rounded to a grid of step 1"):
        found = edp.Responses.from_arrays(y, contribution=c)
    assert found.step == 1.0
    with pytest.warns(edp.EdpBayesWarning, match="treated as continuous"):
        assert edp.Responses.from_arrays(y, contribution=c, step=None).step is None
    # tenths with an offset
    tenths = edp.Responses.from_arrays(0.1 * y + 0.03, contribution=0.1 * c)
    assert tenths.step == pytest.approx(0.1)
    assert offset_of(tenths.response, tenths.step) == pytest.approx(0.03)
    # contributions on no grid: what is published without an individual would not be on it
    assert edp.Responses.from_arrays(y, contribution=0.37 * c).step is None
    # few ties are no sign of a grid
    fine = edp.Responses.from_arrays(np.arange(60.0), contribution=c)
    assert fine.step is None
    assert plain_step(fine.response, fine.contribution) == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": 0.0}, "step must be greater than 0, found 0"),
        ({"step": 0.7}, "whole multiples of the step 0.7"),
        ({"step": "one"}, "step must be a number or None"),
        ({"step": 1.0, "noise": edp.LaplaceNoise(1.0)}, "without noise"),
    ],
)
def test_bad_steps_are_named(options, message):
    y, c = counts()
    with pytest.raises((edp.InvalidInputError, edp.InputTypeError), match=message):
        edp.Responses.from_arrays(y, contribution=c, **options)


def test_counts_are_rounded_where_that_matters():
    rng = np.random.default_rng(5)

    def databases(rate):
        rows = [
            (day, f"p{k}") for day in range(30) for k in range(5) for _ in range(rng.poisson(rate))
        ]
        frame = pd.DataFrame(rows, columns=["day", "person"])
        return edp.Databases.from_table(frame, database="day", individual="person")

    few = databases(1.5)
    assert few.respond(edp.queries.Count()).step == 1.0
    assert few.respond(edp.queries.Count(), noise=edp.LaplaceNoise(1.0)).step is None
    assert databases(400.0).respond(edp.queries.Count()).step is None


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (edp.SmoothedBootstrap(), {}),
        (None, {"adversary": edp.Adversary(past=1)}),
    ],
)
def test_where_rounding_is_not_modelled_it_is_said(model, options):
    with pytest.warns(edp.EdpBayesWarning, match="step 1 are treated as continuous"):
        audit = edp.audit(of_counts(1.0), epsilon=EPSILON, model=model, **options, **QUICK)
    assert "step" not in audit.settings
    assert any("treated as continuous" in said for said in audit.warnings)
