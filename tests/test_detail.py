"""Answers that gather more narrowly than their model shows withhold a verdict."""

import warnings

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes import Mixture
from edp_bayes.diagnostics import check_detail
from edp_bayes.diagnostics.detail import _left_out, _of_kernels
from edp_bayes.distributions.kernel_estimates import BANDWIDTHS
from edp_bayes.models.base_measure import BaseMeasure

WIDE = Mixture(np.ones((200, 1)), 2.5, 1.72)
FAST = {"epsilon": [0.2], "draws": 250, "chains": 2, "random_seed": 3, "progressbar": False}


def six_peaks(n=60, width=0.2, seed=1):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 6, n) + width * rng.standard_normal(n)


def responses(y, **options):
    return edp.Responses.from_arrays(y, contribution=np.full((y.size, 1), 0.3), **options)


def audited(y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        return edp.audit(responses(y), **FAST, **options)


def test_the_score_of_kernels_is_that_of_scipy():
    from scipy import stats

    y = six_peaks(20)
    spread = min(y.std(), np.subtract(*np.quantile(y, [0.75, 0.25])) / 1.349)
    scores = []
    for h in BANDWIDTHS * spread:
        for kernel in (stats.norm, stats.laplace):
            density = [kernel.pdf(one, np.delete(y, i), h).mean() for i, one in enumerate(y)]
            scores.append(np.log(np.maximum(density, 1e-300)).sum())
    expected = np.log(np.mean(np.exp(np.array(scores) - max(scores)))) + max(scores)
    assert _of_kernels(y) == pytest.approx(expected, rel=1e-10)


def test_a_known_density_scores_as_it_is():
    from scipy import stats

    y = six_peaks()
    assert _left_out(WIDE, y) == pytest.approx(stats.norm.logpdf(y, 2.5, 1.72).sum(), rel=1e-12)


def test_leaving_out_is_exact_where_the_posterior_is_known():
    # A normal mean, sd 1, a flat prior: left out, N(mean, 1 + 1 / (n - 1))
    from scipy import stats

    rng = np.random.default_rng(2)
    y = rng.standard_normal(30)
    draws = Mixture(np.ones((500, 1)), rng.normal(y.mean(), 30**-0.5, (500, 1)), 1.0)
    exact = sum(
        stats.norm.logpdf(one, np.delete(y, i).mean(), np.sqrt(1 + 1 / 29))
        for i, one in enumerate(y)
    )
    assert _left_out(draws, y) == pytest.approx(exact, abs=0.2)


def test_too_smooth_a_density_fails_and_says_how_much():
    (failed,) = check_detail(WIDE, responses(six_peaks())).checks
    assert (failed.name, failed.passed) == ("detail", False)
    assert failed.statistic == pytest.approx(
        _of_kernels(six_peaks()) - _left_out(WIDE, six_peaks())
    )
    assert failed.statistic > np.log(3.0)
    assert "gather more narrowly" in str(failed.sentence)


def test_the_right_density_passes():
    peaks = Mixture(np.full((200, 6), 1 / 6), np.arange(6.0), 0.2)
    assert check_detail(peaks, responses(six_peaks())).checks == ()


def test_neither_scale_nor_place_matters():
    (one,) = check_detail(WIDE, responses(six_peaks())).checks
    moved = Mixture(np.ones((200, 1)), 2500.0 + 7.0, 1720.0)
    (other,) = check_detail(moved, responses(1000.0 * six_peaks() + 7.0)).checks
    assert other.statistic == pytest.approx(one.statistic, rel=1e-6)


@pytest.mark.parametrize("step", [0.5, 0.25, 0.1])
def test_ties_are_no_detail(step):
    rng = np.random.default_rng(4)
    y = np.round(rng.normal(0.0, 1.0, 60) / step) * step
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        found = responses(y).replaced(step=None)
    assert check_detail(Mixture(np.ones((200, 1)), y.mean(), y.std()), found).checks == ()


def test_rounded_answers_many_databases_and_few_draws_are_not_compared():
    y = six_peaks()
    assert check_detail(WIDE, responses(np.round(y), step=1.0)).checks == ()
    assert check_detail(WIDE, responses(six_peaks(1001))).checks == ()
    few = Mixture(np.ones((99, 1)), 2.5, 1.72)
    assert check_detail(few, responses(y)).checks == ()


@pytest.mark.full
def test_an_audit_withholds_and_its_remedy_does_not():
    y = six_peaks()
    found = audited(y)
    assert not found.checks.loc["detail", "passed"]
    assert found.withheld is not None
    shared = edp.DirichletProcessMixture(base_measure=BaseMeasure(scale_shape=None))
    narrow = audited(y, model=shared)
    assert "detail" not in narrow.checks.index
    risks = [one.to_datatree()["posterior/delta"][..., 0] for one in (narrow, found)]
    assert risks[0].quantile(0.95) > risks[1].quantile(0.95)  # of the models; both limits are above
    assert all(one.upper("delta")[0] >= risks[0].quantile(0.95) for one in (narrow, found))


@pytest.mark.full
def test_smooth_answers_keep_their_verdict():
    failed = 0
    for seed in range(6):
        y = np.random.default_rng(seed).standard_normal(60)
        failed += "detail" in audited(y).checks.index
    assert failed <= 1


def test_kernel_estimates_are_not_compared_with_themselves():
    found = audited(six_peaks(), model=edp.SmoothedBootstrap())
    assert "detail" not in found.checks.index


def test_residuals_given_an_adversary_are_not_compared():
    found = audited(six_peaks(), adversary=edp.Adversary(past=1))
    assert "detail" not in found.checks.index
