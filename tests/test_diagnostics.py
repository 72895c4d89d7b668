import json
import subprocess
import sys
from unittest.mock import patch

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import edp_bayes as edp
from edp_bayes.adversary.adversary import Adversary
from edp_bayes.auditing.query import audit
from edp_bayes.diagnostics import (
    check_databases,
    check_draws,
    posterior_predictive_check,
    withheld,
)
from edp_bayes.diagnostics.checks import PendingTest, decide, holm
from edp_bayes.diagnostics.independence import (
    database_means,
    lag_one,
    ljung_box,
    rank_sum_p_values,
)
from edp_bayes.diagnostics.predictive import skewness
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.distributions.noise import LaplaceNoise
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.responses.responses import Responses

N = 41


def responses_of(y, contribution=None, **options):
    if contribution is None:
        contribution = np.full((len(y), 2), 1e-3)
    return Responses.from_arrays(y, contribution=contribution, **options)


def autoregressive(rng, coefficient, size):
    y = np.zeros(size + 100)
    shocks = rng.normal(size=y.size)
    for t in range(1, y.size):
        y[t] = coefficient * y[t - 1] + shocks[t]
    return y[100:]


# databases


def test_independent_databases_pass():
    y = np.random.default_rng(3).normal(10, 1, N)
    checks = check_databases(responses_of(y))
    assert checks.passed
    assert checks.warnings == ()
    assert set(checks.table().index) == {
        "lag-1 autocorrelation",
        "Ljung-Box",
        "trend",
        "halves, distribution",
        "halves, spread",
        "ties",
        "largest share",
        "largest over next",
    }


@pytest.mark.full
def test_false_alarms_stay_near_the_level():
    rng = np.random.default_rng(0)
    alarms = np.mean(
        [not check_databases(responses_of(rng.normal(10, 1, N))).passed for _ in range(600)]
    )
    assert alarms < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 600)


def come_and_go(rng, present, samples=1):
    """Return responses of an individual who is present as told and of five who come by chance."""
    rest = rng.normal(0.0, 1.0, 80)
    own = np.where(present(rest), rng.normal(0.5, 0.05, rest.size), 0.0)
    others = np.where(rng.random((rest.size, 5)) < 0.5, rng.gamma(2.0, 0.02, (rest.size, 5)), 0.0)
    contribution = np.column_stack([own, others]).repeat(samples, axis=0)
    y = rest.repeat(samples) + contribution.sum(axis=1)
    names = ["ann", "bob", "cyd", "dan", "eve", "fay"]
    return responses_of(y, contribution, individual=names, samples=samples)


@pytest.mark.parametrize(
    ("present", "how"), [(lambda r: r > 0.5, "high"), (lambda r: r < -0.5, "low")]
)
@pytest.mark.parametrize("samples", [1, 3])
def test_an_individual_who_follows_the_rest_is_named(present, how, samples):
    checks = check_databases(come_and_go(np.random.default_rng(4), present, samples))
    check = checks["presence"]
    assert not check.passed
    assert (check.statistic > 0) == (how == "high")
    assert check.sentence.startswith(
        f"Individual 'ann' comes when the response without them is {how}: rank sum "
    )
    assert check.sentence in checks.warnings


@pytest.mark.parametrize(
    ("present", "how"),
    [(lambda r: abs(r) > 1.0, "far from its middle"), (lambda r: abs(r) < 0.6, "near its middle")],
)
def test_an_individual_who_comes_at_both_ends_or_in_the_middle_is_named(present, how):
    checks = check_databases(come_and_go(np.random.default_rng(4), present))
    assert checks["presence"].passed
    assert not checks["presence, middle"].passed
    assert checks["presence, middle"].sentence.startswith(
        f"Individual 'ann' comes when the response without them is {how}: rank sum "
    )


def came_once(rank, *, size=0.5, others=0, away=False):
    """Return responses of 60 databases, one of which, the rank-th of the rest, is of `ann`."""
    rng = np.random.default_rng(5)
    rest = rng.normal(0.0, 1.0, 60)
    there = (np.argsort(np.argsort(rest)) == rank) ^ away
    contribution = np.zeros((60, 1 + others))
    contribution[:, 0] = size * there
    contribution[20, 1:] = size
    return responses_of(rest + contribution.sum(axis=1), contribution)


@pytest.mark.parametrize(("rank", "how"), [(59, "high"), (0, "low")])
@pytest.mark.parametrize("away", [False, True])
def test_who_came_once_where_the_rest_is_highest_or_lowest_is_named(rank, how, away):
    checks = check_databases(came_once(rank, away=away))
    check = checks["presence, once"]
    assert check.p_value == check.p_adjusted == pytest.approx(2 / 60)
    assert not check.passed
    how = {"high": "low", "low": "high"}[how] if away else how
    assert f"comes when the response without them is {how}" in check.sentence


def test_who_came_once_in_an_ordinary_database_or_is_one_of_several_passes():
    for responses in (came_once(57), came_once(2), came_once(59, others=3)):
        assert check_databases(responses)["presence, once"].passed
    names = [check.name for check in check_databases(came_once(59), least=0.1).checks]
    assert "presence, once" not in names  # they could add less than the others risk


@pytest.mark.parametrize(
    ("much", "check", "how"),
    [
        (lambda r: r > 0.8, "amounts", "high"),
        (lambda r: r < -0.8, "amounts", "low"),
        (lambda r: abs(r) > 1.2, "amounts, middle", "far from its middle"),
    ],
)
@pytest.mark.parametrize("samples", [1, 3])
def test_who_gives_more_by_the_rest_is_named(much, check, how, samples):
    rest = np.random.default_rng(6).normal(size=80)
    own = np.where(much(rest), 0.6, 0.02)[:, None].repeat(samples, axis=0)
    responses = responses_of(rest.repeat(samples) + own[:, 0], own, samples=samples)
    checks = check_databases(responses)
    assert not checks[check].passed
    assert f"gives more when the response without them is {how}" in checks[check].sentence


def test_amounts_that_are_alike_steady_or_by_chance_pass():
    rng = np.random.default_rng(6)
    rest = rng.normal(size=80)
    by_chance = np.where(rng.random(80) < 0.3, 0.6, 0.02)
    checks = check_databases(responses_of(rest + by_chance, by_chance[:, None]))
    assert checks["amounts"].passed
    assert checks["amounts, middle"].passed
    for own in (0.5 + 0.2 * rest, np.full(80, 0.3), rng.gamma(2.0, 0.1, 80)):
        names = [
            check.name for check in check_databases(responses_of(rest + own, own[:, None])).checks
        ]
        assert "amounts" not in names


def test_presence_is_a_rank_sum_test_of_those_who_can_matter_alike():
    from scipy import stats

    rng = np.random.default_rng(8)
    rest, contribution = rng.normal(size=80), np.zeros((80, 4))
    for k in range(4):
        contribution[rng.permutation(80)[:25], k] = 0.3
    responses = responses_of(rest + contribution.sum(axis=1), contribution)
    p_values = []
    for name in responses.individual:
        others, own = responses.response_without(name), responses.contribution_of(name)
        middle = np.abs(stats.rankdata(others) - 40.5)
        p_values.append(
            [
                stats.mannwhitneyu(
                    ranked[own != 0], ranked[own == 0], method="asymptotic", use_continuity=False
                ).pvalue
                for ranked in (others, middle)
            ]
        )
    checks = check_databases(responses)
    for name, p in zip(("presence", "presence, middle"), np.transpose(p_values), strict=True):
        assert checks[name].p_value == pytest.approx(min(1.0, 4 * min(p)), rel=1e-9)
        assert checks[name].passed


@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(30, 60))
def test_rank_sums_of_few_have_exact_p_values(seed, few, n):
    from scipy import stats

    values = np.random.default_rng(seed).normal(size=n)
    excess = stats.rankdata(values)[:few].sum() - few * (n + 1) / 2
    z = excess / np.sqrt(few * (n - few) * (n + 1) / 12)
    expected = stats.mannwhitneyu(values[:few], values[few:], method="exact").pvalue
    for seen, sign in ((few, 1.0), (n - few, -1.0)):
        found = rank_sum_p_values(n, np.array([seen]), np.array([sign * excess]), np.array([z]))
        assert found[0] == pytest.approx(expected, rel=1e-9)


def test_two_busy_days_are_enough_to_notice_who_comes_on_them_alone():
    """By normal approximation they would be 2.2 standard deviations, among hundreds of others."""
    rng = np.random.default_rng(2)
    holiday = np.isin(np.arange(41), [7, 30])
    own = np.where(holiday, 0.5, 0.0)
    others = np.where(rng.random((41, 200)) < 0.3, 0.01, 0.0)
    y = rng.normal(size=41) + 6.0 * holiday + own
    names = ["ann", *map(str, range(200))]
    check = check_databases(
        responses_of(y, np.column_stack([own, others]), individual=names), least=0.01
    )["presence"]
    assert not check.passed
    assert "Individual 'ann' comes when the response without them is high" in check.sentence


def test_covariates_that_both_follow_are_a_remedy():
    rng = np.random.default_rng(5)
    holiday = rng.random(60) < 0.15
    own = np.where(holiday, 0.5, 0.0)
    responses = responses_of(rng.normal(size=60) + 6.0 * holiday + own, own[:, None])
    options = {"epsilon": [0.1], "draws": 40, "tune": 40, "chains": 2, "progressbar": False}
    plain = audit(responses, random_seed=1, **options)
    assert "Adversary(covariates=...)" in plain.checks.loc["presence", "sentence"]
    assert "comes when the response without them is high" in plain.withheld
    known = Adversary(covariates={"holiday": holiday.astype(float)})
    given = audit(responses, adversary=known, random_seed=1, **options)
    assert given.checks.loc["presence", "passed"]


def test_presence_is_of_no_account_where_it_cannot_add_to_the_largest_risk():
    responses = come_and_go(np.random.default_rng(4), lambda r: r > 0.5)
    assert not check_databases(responses, least=0.01)["presence"].passed
    assert "presence" not in check_databases(responses, least=0.8).table().index


@pytest.mark.full
def test_false_alarms_about_presence_are_rare():
    rng = np.random.default_rng(3)
    alarms = [
        not check_databases(come_and_go(rng, lambda r: rng.random(r.size) < 0.2))["presence"].passed
        for _ in range(300)
    ]
    assert np.mean(alarms) < 0.05


def test_nobody_who_comes_and_goes_is_not_tested():
    y = np.random.default_rng(3).normal(10, 1, N)
    contribution = np.zeros((N, 3))
    contribution[:, 0], contribution[:1, 1], contribution[:-1, 2] = 0.1, 0.1, 0.1
    checks = check_databases(responses_of(y, contribution))
    with pytest.raises(InvalidInputError, match="no check is named 'presence'"):
        checks["presence"]


def test_dependent_databases_are_named_in_plain_words():
    y = autoregressive(np.random.default_rng(5), 0.7, 60) + 10
    checks = check_databases(responses_of(y))
    correlation, _ = lag_one(y)
    assert not checks["Ljung-Box"].passed
    assert (
        f"The databases are not independent: lag-1 autocorrelation {correlation:.2f}, "
        "Ljung-Box over 10 lags, p < 0.001. The bands assume independent databases and are "
        "likely too narrow, and a person who has seen the earlier answers knows more: give "
        "adversary=Adversary(past=2, trend=True), --past 2 --trend."
    ) in checks.warnings
    assert not any("Neighbouring databases" in text for text in checks.warnings)


def test_alternating_databases_are_opposed():
    y = 10 + np.tile([1.0, -1.0], 20) + 0.1 * np.random.default_rng(0).normal(size=40)
    sentence = check_databases(responses_of(y))["lag-1 autocorrelation"].sentence
    assert sentence.startswith("Neighbouring databases are opposed: lag-1 autocorrelation -0.9")
    assert sentence.endswith("give adversary=Adversary(past=2), --past 2.")


@pytest.mark.parametrize("sign", [1, -1])
def test_trend_is_found_with_its_direction(sign):
    y = 10 + sign * np.linspace(0, 4, N) + np.random.default_rng(1).normal(size=N)
    checks = check_databases(responses_of(y))
    assert not checks["trend"].passed
    assert not checks["halves, distribution"].passed
    assert f"drift {'up' if sign > 0 else 'down'}" in checks["trend"].sentence


def test_change_of_spread_is_found():
    rng = np.random.default_rng(2)
    y = 10 + np.concatenate([rng.normal(0, 0.2, 30), rng.normal(0, 2, 30)])
    checks = check_databases(responses_of(y))
    assert not checks["halves, spread"].passed
    assert checks["trend"].passed


def test_two_valued_halves_have_a_finite_outcome():
    y = np.tile([1.0, 2.0], 20)
    with pytest.warns(UserWarning, match="tied"):
        checks = check_databases(responses_of(y))
    assert checks["halves, spread"].p_value == 1.0
    assert not checks["ties"].passed
    assert checks["ties"].statistic == 1.0


def test_lag_one_moments_match_simulation():
    rng = np.random.default_rng(4)
    n = 12
    y = rng.normal(size=(40_000, n))
    centred = y - y.mean(axis=1, keepdims=True)
    r = (centred[:, 1:] * centred[:, :-1]).sum(axis=1) / (centred**2).sum(axis=1)
    variance = (n**4 - 4 * n**3 + 3 * n**2 + 4 * n - 4) / ((n + 1) * n**2 * (n - 1) ** 2)
    assert r.mean() == pytest.approx(-1 / n, abs=4 * np.sqrt(variance / r.size))
    assert r.var() == pytest.approx(variance, rel=0.03)
    value, p = lag_one(y[0])
    assert value == pytest.approx(r[0])
    z = (r[0] + 1 / n) / np.sqrt(variance)
    from scipy.stats import norm

    assert p == pytest.approx(2 * norm.sf(abs(z)))


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.integers(0, 10_000), st.integers(8, 120), st.integers(1, 4), st.integers(0, 2))
def test_ljung_box_agrees_with_statsmodels(seed, size, lags, fitted):
    from statsmodels.stats.diagnostic import acorr_ljungbox

    y = np.random.default_rng(seed).standard_normal(size)
    fitted = min(fitted, lags - 1)
    expected = acorr_ljungbox(y, lags=[lags], model_df=fitted).iloc[0]
    np.testing.assert_allclose(
        ljung_box(y, lags, fitted=fitted), [expected["lb_stat"], expected["lb_pvalue"]], rtol=1e-10
    )


@pytest.mark.full
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
@settings(derandomize=True, deadline=None)
def test_holm_agrees_with_statsmodels(p_values):
    from statsmodels.stats.multitest import multipletests

    with patch("gc.collect"):  # which theirs calls every time
        expected = multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(expected)


def test_samples_of_a_database_are_averaged():
    rng = np.random.default_rng(6)
    centre = rng.normal(10, 1, N)
    y = (centre[:, None] + rng.normal(0, 0.1, (N, 3))).ravel()
    responses = responses_of(y, samples=3)
    assert database_means(responses) == pytest.approx(y.reshape(N, 3).mean(axis=1))
    # Rows within a database are alike: without averaging Ljung-Box would always fail.
    assert check_databases(responses).passed


def test_one_faulty_meter_is_named():
    rng = np.random.default_rng(7)
    contribution = rng.uniform(0.5, 1, (N, 4))
    contribution[5, 2] = 30.0
    y = contribution.sum(axis=1) + rng.normal(50, 1, N)
    people = {"individual": ["a", "b", "c", "d"], "additive": True}
    checks = check_databases(responses_of(y, contribution, **people))
    share, ratio = checks["largest share"], checks["largest over next"]
    assert share.statistic == pytest.approx(30 / y[5])
    assert not share.passed
    assert "Individual 'c'" in share.sentence or "Individual c" in share.sentence
    second = np.delete(contribution, 2, axis=1).max()
    assert ratio.statistic == pytest.approx(30 / second)
    assert not ratio.passed


def test_dominance_at_the_limits_of_the_data():
    y = np.random.default_rng(8).normal(0, 1, N)
    y[3] = 0.0
    contribution = np.zeros((N, 2))
    assert check_databases(responses_of(y, contribution))["largest share"].passed
    contribution[3, 0] = 0.5
    checks = check_databases(responses_of(y, contribution))
    assert checks["largest share"].statistic == np.inf
    assert checks["largest over next"].statistic == np.inf
    alone = check_databases(responses_of(y, contribution[:, :1]))
    assert "largest over next" not in alone.table().index
    with pytest.raises(InvalidInputError, match="no check is named"):
        alone["largest over next"]


def test_equal_database_means_are_refused():
    y = np.tile([1.0, 3.0], 20)
    with pytest.warns(UserWarning, match="tied"):
        responses = responses_of(y, samples=2)
    with pytest.raises(InvalidInputError, match="mean response must vary"):
        check_databases(responses)


def test_level_is_a_probability():
    with pytest.raises(InvalidInputError, match="level"):
        check_databases(responses_of(np.random.default_rng(0).normal(size=N)), level=1.0)


def test_real_daily_precipitation_is_dependent(data_dir):
    daily = np.load(data_dir / "gpcp_daily_mm.npz")["daily_mm"].reshape(61, -1)
    contribution = np.nan_to_num(daily) / daily.shape[1]
    y = contribution.sum(axis=1)
    checks = check_databases(responses_of(y, contribution))
    assert not checks["lag-1 autocorrelation"].passed
    assert checks["lag-1 autocorrelation"].statistic > 0.4
    assert checks["largest share"].passed


def test_real_electricity_is_ruled_by_one_client(data_dir):
    kwh = np.load(data_dir / "electricity_weekly_kwh.npz")["kwh"]
    y = kwh.sum(axis=1)
    checks = check_databases(responses_of(y, kwh))
    assert checks["largest share"].statistic == pytest.approx((kwh / y[:, None]).max())
    assert "the response of database" in checks["largest share"].sentence
    assert checks["Ljung-Box"].p_adjusted < 1e-6


def test_real_climate_drifts_up(data_dir):
    rain = np.load(data_dir / "us_climate_divisions_annual_mm.npz")["annual_mm"]
    (warning,) = check_databases(responses_of(rain.mean(axis=1), rain / 344)).warnings
    assert warning.startswith("The responses drift up: Kendall's tau 0.21, p = 0.002.")


# draws


def draws_of(values, name="delta"):
    return xr.DataArray(
        values,
        dims=("chain", "draw", "epsilon")[: values.ndim],
        coords={"epsilon": np.arange(values.shape[2])} if values.ndim == 3 else None,
        name=name,
    )


def test_good_draws_pass_and_agree_with_arviz():
    import arviz_stats

    array = draws_of(np.random.default_rng(0).normal(size=(4, 1000, 3)))
    checks = check_draws(array, ci_prob=0.9)
    assert checks.passed
    assert checks.draws == 4000
    assert checks.rhat.dims == ("epsilon",)
    np.testing.assert_array_equal(checks.rhat, arviz_stats.rhat(array))
    np.testing.assert_array_equal(checks.ess_bulk, arviz_stats.ess(array, method="bulk"))
    np.testing.assert_array_equal(
        checks.ess_tail, arviz_stats.ess(array, method="tail", prob=(0.05, 0.95))
    )
    assert checks.mcse_mean.values == pytest.approx(1 / np.sqrt(4000), rel=0.2)
    table = checks.table()
    assert list(table.index) == [0, 1, 2]
    assert not table.isna().any().any()


def test_constant_draws_are_converged_beside_others():
    values = np.random.default_rng(1).normal(size=(4, 500, 2))
    values[..., 1] = 0.0
    checks = check_draws(draws_of(values))
    assert checks.constant.values.tolist() == [False, True]
    assert checks.rhat.values[1] == 1.0
    assert checks.ess_bulk.values[1] == checks.ess_tail.values[1] == 2000
    assert checks.mcse_mean.values[1] == checks.mcse_upper.values[1] == 0.0
    assert checks.passed


def test_mostly_zero_draws_stay_finite():
    values = np.maximum(np.random.default_rng(2).normal(-2, 1, size=(4, 1000, 1)), 0.0)
    checks = check_draws(draws_of(values))
    assert np.isfinite(checks.table().to_numpy(dtype=float)).all()
    assert not checks.constant.any()


def test_chains_constant_at_different_values_disagree():
    values = np.repeat([[0.0], [0.0], [1.0], [0.0]], 100, axis=1)
    checks = check_draws(draws_of(values))
    assert not checks.passed
    assert float(checks.rhat) > 1e6
    assert not checks.table().isna().any().any()
    assert checks.warnings[0].startswith("The chains disagree about delta")


def test_shifted_chain_and_slow_chain_warn():
    rng = np.random.default_rng(3)
    shifted = rng.normal(size=(4, 1000))
    shifted[0] += 1
    warnings = check_draws(draws_of(shifted)).warnings
    assert any("R-hat" in text for text in warnings)
    slow = np.stack([autoregressive(rng, 0.98, 1000) for _ in range(4)])
    warnings = check_draws(draws_of(slow)).warnings
    few = [text for text in warnings if text.startswith("delta rests on few")]
    assert len(few) == 1
    assert "in the bulk and" in few[0]


def test_single_chain_is_compared_half_against_half():
    values = np.random.default_rng(4).normal(size=(1, 2001))
    assert check_draws(draws_of(values)).passed
    drift = values + np.linspace(0, 3, 2001)
    assert float(check_draws(draws_of(drift)).rhat) > 1.1


def test_divergences_are_reported():
    array = draws_of(np.random.default_rng(0).normal(size=(4, 1000)))
    (warning,) = check_draws(array, divergences=7).warnings
    assert "diverged 7 time(s) in 4000 draws" in warning


@pytest.mark.parametrize(
    ("array", "error", "match"),
    [
        (np.zeros((4, 100)), InputTypeError, "DataArray"),
        (xr.DataArray(np.zeros(100), dims="draw"), InvalidInputError, "chain and draw"),
        (xr.DataArray(np.full((4, 9), np.nan), dims=("chain", "draw")), InvalidInputError, "finit"),
        (xr.DataArray(np.zeros((4, 3)), dims=("chain", "draw")), InvalidInputError, "at least 4"),
        (xr.DataArray(np.zeros((1, 7)), dims=("chain", "draw")), InvalidInputError, "at least 8"),
    ],
)
def test_unusable_draws_are_refused(array, error, match):
    with pytest.raises(error, match=match):
        check_draws(array)


def test_divergences_must_be_an_integer():
    with pytest.raises(InputTypeError, match="divergences"):
        check_draws(draws_of(np.zeros((4, 100))), divergences=1.5)


# posterior predictive


def posterior_draws(y, draws=500, seed=0):
    """Exact draws of a normal model under its reference prior."""
    rng = np.random.default_rng(seed)
    n = y.size
    variance = (n - 1) * y.var(ddof=1) / rng.chisquare(n - 1, draws)
    mean = rng.normal(y.mean(), np.sqrt(variance / n))
    return Mixture(np.ones((draws, 1)), mean[:, None], np.sqrt(variance)[:, None])


def test_right_model_passes():
    y = np.random.default_rng(11).normal(10, 2, N)
    checks = posterior_predictive_check(posterior_draws(y), responses_of(y), 1)
    assert checks.passed
    assert list(checks.table().index) == [
        "standard deviation",
        "skewness",
        "minimum",
        "maximum",
        "distribution",
    ]


def test_skewed_responses_fail_a_normal_model():
    y = np.exp(np.random.default_rng(12).normal(0, 1, 60))
    checks = posterior_predictive_check(posterior_draws(y), responses_of(y), 1)
    assert not checks["skewness"].passed
    assert not checks["minimum"].passed
    assert "The skewness of the responses is above what the model expects" in " ".join(
        checks.warnings
    )


def test_two_peaks_fail_by_their_distribution():
    rng = np.random.default_rng(13)
    y = np.concatenate([rng.normal(-5, 0.5, 30), rng.normal(5, 0.5, 30)])
    checks = posterior_predictive_check(posterior_draws(y), responses_of(y), 1)
    assert not checks["distribution"].passed


@pytest.mark.full
def test_false_alarms_of_the_predictive_check_are_rare():
    rng = np.random.default_rng(14)
    alarms = 0
    for k in range(200):
        y = rng.normal(0, 1, N)
        draws = posterior_draws(y, 200, k)
        alarms += not posterior_predictive_check(draws, responses_of(y), k).passed
    assert alarms / 200 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_same_seed_same_p_values_and_first_sample_only():
    y = np.random.default_rng(15).normal(0, 1, N)
    draws = posterior_draws(y)
    first = posterior_predictive_check(draws, responses_of(y), 3)
    assert first == posterior_predictive_check(draws, responses_of(y), 3)
    doubled = responses_of(np.column_stack([y, y + 100]).ravel(), samples=2)
    assert first == posterior_predictive_check(draws, doubled, 3)


def test_skewness_agrees_with_scipy():
    from scipy import stats

    samples = np.random.default_rng(16).gamma(1.0, size=(5, 30))
    assert skewness(samples) == pytest.approx(stats.skew(samples, axis=-1))
    assert skewness(np.ones((2, 5))).tolist() == [0.0, 0.0]


def test_too_few_draws_or_noise_are_refused():
    y = np.random.default_rng(17).normal(0, 1, N)
    with pytest.raises(InvalidInputError, match="at least 100 draws"):
        posterior_predictive_check(posterior_draws(y, 99), responses_of(y), 1)
    noisy = Mixture(np.ones((200, 1)), 0.0, 1.0, noise=LaplaceNoise(1.0))
    with pytest.raises(InvalidInputError, match="that of the responses alone"):
        posterior_predictive_check(noisy, responses_of(y), 1)


def test_import_is_light():
    code = (
        "import sys, json; import edp_bayes.diagnostics, edp_bayes.plugin; "
        "print(json.dumps([m for m in ('scipy', 'numba', 'xarray', 'pandas', 'statsmodels', "
        "'arviz_stats') if m in sys.modules]))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(found.stdout) == []


def test_nothing_is_established_where_databases_depend_on_each_other():
    rng = np.random.default_rng(3)
    y = np.zeros(60)
    for t in range(1, 60):
        y[t] = 0.8 * y[t - 1] + rng.normal()
    failed = [(c.name, c.sentence) for c in check_databases(responses_of(y)).checks if not c.passed]
    reason = withheld(failed)
    assert reason.startswith("Not established. ")
    assert "adversary=Adversary(past=2, trend=True)" in reason
    assert withheld([("ties", "Half are tied.")]) is None


def test_scores_stand_in_for_responses_in_the_tests_of_order():
    rng = np.random.default_rng(3)
    responses = responses_of(np.linspace(0.0, 5.0, 60) + rng.normal(size=60))
    assert not check_databases(responses).passed
    assert check_databases(responses, scores=rng.normal(size=60), past=2).passed


def test_residuals_drift_where_residuals_are_tested():
    """Responses that fall under residuals that rise: the sentence is on what was tested."""
    rng = np.random.default_rng(6)
    responses = responses_of(100.0 - np.linspace(0.0, 40.0, 60) + rng.normal(size=60))
    scores = np.linspace(-1.0, 1.0, 60) * np.linspace(0.2, 3.0, 60) + 0.1 * rng.normal(size=60)
    checks = check_databases(responses, scores=scores)
    failed = [check.sentence for check in checks.checks if not check.passed]
    assert any(sentence.startswith("The residuals drift up: Kendall's tau") for sentence in failed)
    assert any(sentence.startswith("The residuals of the databases are not") for sentence in failed)
    halves = "Residuals of the first half of the databases differ from those of the second"
    assert any(sentence.startswith(halves) for sentence in failed)
    assert not any("responses drift" in sentence for sentence in failed)


def test_ties_whose_exact_probability_is_not_known_warn_of_nothing():
    rng = np.random.default_rng(1)
    counts = rng.binomial(20, 0.6, 30).astype(float)
    responses = Responses.from_arrays(counts, contribution=np.ones((30, 2)), step=None)
    # warnings are errors here, but those of the data
    assert 0.0 <= check_databases(responses)["halves, distribution"].p_value <= 1.0


def seasonal(seed, spread):
    """Return monthly sums that vary by a season, and where much is expected more if asked."""
    rng = np.random.default_rng(seed)
    month = np.arange(96)
    level = 1.0 + 0.5 * np.cos(2.0 * np.pi * month / 12)
    grows = level if spread else np.ones(96)
    contribution = 10.0 * rng.gamma(20.0, 0.05, (96, 8)) * grows[:, None]
    noise = rng.normal(0.0, 8.0, 96) * grows
    return edp.Responses.from_arrays(
        100.0 * level + contribution.sum(axis=1) + noise, contribution=contribution, additive=True,
        database=np.arange("2015-01", "2025-01", dtype="M8[M]")[:96],
    )  # fmt: skip


@pytest.mark.parametrize(("transform", "said"), [(None, "--transform log"), ("log", "another")])
def test_a_scale_that_was_chosen_is_not_advised_again(transform, said):
    rng = np.random.default_rng(1)
    y = np.exp(rng.normal(size=60))
    responses = Responses.from_arrays(y, response_without=0.9 * y, transform=transform)
    expected = np.arange(60.0)
    scores = rng.normal(size=60) * (1.0 + expected)
    check = check_databases(responses, scores=scores, expected=expected)["spread, level"]
    assert not check.passed
    assert said in check.sentence
    assert ("logarithm" in check.sentence) == (transform is None)


@pytest.mark.full
@pytest.mark.parametrize(("spread", "passes"), [(True, False), (False, True)])
def test_residuals_that_grow_with_what_is_expected_withhold_a_verdict(spread, passes):
    options = {"draws": 60, "chains": 2, "random_seed": 1, "progressbar": False}
    knows = edp.Adversary(season=12)
    audit = edp.audit(seasonal(2, spread), epsilon=[0.1], adversary=knows, **options)
    row = audit.checks.loc["spread, level"]
    assert row["passed"] == passes
    assert ("spread, level" in audit.verdict().withheld_by) == (not passes)
    if spread:
        assert "--transform log" in row["sentence"]
        scaled = edp.audit(
            seasonal(2, spread), epsilon=[0.1], adversary=knows, transform="log", **options
        )
        assert scaled.checks.loc["spread, level", "passed"]


def test_a_small_p_value_that_passes_is_said_to_be_corrected():
    tests = [PendingTest("a", 1.0, 0.01, "tau 0.3", "It drifts")]
    tests += [PendingTest(f"b{k}", 0.0, 0.5, "nothing", "It fails") for k in range(6)]
    first, *others = decide(tests, 0.05)
    assert first.passed
    assert first.sentence == ("Nothing unusual: tau 0.3, p = 0.010, corrected for all tests 0.070.")
    assert {check.sentence for check in others} == {"Nothing unusual: nothing, p = 0.500."}
    (failed,) = decide(tests[:1], 0.05)
    assert failed.sentence == "It drifts: tau 0.3, p = 0.010. "
