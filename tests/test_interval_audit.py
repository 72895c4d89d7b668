"""Interval level and interval epsilon of the main audit, from its response density."""

import io
import re

import mpmath
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import edp_bayes as edp
from edp_bayes import interval
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.interval.response_intervals import WIDTHS
from edp_bayes.results.query import Audit


def audit_of(weights, locations, scales, kernel="gaussian", noise=None):
    """An audit whose only posterior is that of the response density."""
    parts = {
        name: (("chain", "draw", "component"), np.atleast_3d(np.asarray(value, dtype=float)))
        for name, value in (("weights", weights), ("locations", locations), ("scales", scales))
    }
    shape = parts["locations"][1].shape
    parts = {name: (dims, np.broadcast_to(v, shape).copy()) for name, (dims, v) in parts.items()}
    coords = {"chain": np.arange(shape[0]), "draw": np.arange(shape[1])}
    mixture = xr.Dataset(parts, coords, attrs={"kernel": kernel})
    distribution = (
        f'{{"distribution": "{type(noise).__name__}", "scale": {noise.scale}}}' if noise else "null"
    )
    tree = xr.DataTree.from_dict({"mixture": mixture})
    tree.attrs = {"noise": distribution}
    return Audit(tree)


# Few draws are quick, and said to be few.
pytestmark = pytest.mark.filterwarnings(
    "ignore:The (bulk|tail) of|The chains disagree:edp_bayes.EdpBayesWarning"
)


@pytest.fixture(scope="module")
def audit():
    rng = np.random.default_rng(3)
    share = rng.gamma(2.0, 0.05, (40, 6))
    response = 20.0 + rng.standard_normal(40) + share.sum(axis=1)
    return edp.audit(
        edp.Responses.from_arrays(response, response[:, None] - share),
        epsilon=[0.05, 0.3],
        model=edp.SmoothedBootstrap(),
        draws=150,
        chains=2,
        random_seed=4,
        progressbar=False,
    )


def test_one_normal_distribution_has_a_closed_form():
    found = audit_of(1.0, [[[100.0], [200.0]]], [[[5.0], [4.0]]])
    level = found.interval_level(0.1)
    truth = 2.0 * stats.norm.cdf([2.0, 5.0]) - 1.0
    np.testing.assert_allclose(level[0], truth, rtol=1e-12)
    epsilon = found.interval_epsilon(0.1)
    tails = 2.0 * stats.norm.sf([2.0, 5.0])
    np.testing.assert_allclose(epsilon[0], -np.log(tails) / [10.0, 20.0], rtol=1e-10)
    assert level.name, epsilon.name == ("interval_level", "interval_epsilon")


def test_the_laplace_mechanism_gets_its_own_epsilon_back():
    """Laplace noise of scale s / eps around a known count: eps at every width."""
    for epsilon in (0.02, 0.1, 5.0):
        found = audit_of(1.0, [[[100.0]]], 3.0 / epsilon, kernel="laplace")
        got = found.interval_epsilon([0.01, 0.2, 0.9], sensitivity=3.0)
        np.testing.assert_allclose(got[0, 0], epsilon, rtol=1e-9)


@settings(derandomize=True, deadline=None, max_examples=15)
@given(
    st.lists(st.floats(50.0, 150.0), min_size=3, max_size=3),
    st.lists(st.floats(0.5, 20.0), min_size=3, max_size=3),
    st.floats(0.02, 0.9),
    st.sampled_from(["gaussian", "laplace"]),
)
def test_mixtures_agree_with_thirty_digits(locations, scales, width, kernel):
    weights = [0.2, 0.45, 0.35]  # no part of them is 1/2: the median is unique
    found = audit_of([[weights]], [[locations]], [[scales]], kernel)
    with mpmath.workdps(30):

        def below(x):
            return sum(
                w * _cdf((mpmath.mpf(x) - m) / s, kernel)
                for w, m, s in zip(weights, locations, scales, strict=True)
            )

        low = mpmath.findroot(
            lambda x: below(x) - 0.5, (0, 300), solver="anderson", tol=1e-45, verify=False
        )
        gap = width * abs(low)
        outside = below(low - gap) + sum(
            w * _cdf(-(low + gap - m) / s, kernel)
            for w, m, s in zip(weights, locations, scales, strict=True)
        )
        truth = float(-mpmath.log(outside) / gap)
        inside = float(1 - outside)
    assert found.interval_level(width).item() == pytest.approx(inside, rel=1e-10)
    assert found.interval_epsilon(width).item() == pytest.approx(truth, rel=1e-8)


def _cdf(u, kernel):
    if kernel == "gaussian":
        return mpmath.ncdf(u)
    return mpmath.exp(u) / 2 if u < 0 else 1 - mpmath.exp(-u) / 2


@pytest.mark.parametrize(
    ("kernel", "noise"),
    [
        ("gaussian", None),
        ("gaussian", LaplaceNoise(0.7)),
        ("laplace", LaplaceNoise(0.3)),
        ("laplace", GaussianNoise(0.5)),
        ("gaussian", GaussianNoise(0.5)),
    ],
    ids=["gaussian", "gaussian-laplace", "two-laplaces", "laplace-gaussian", "two-gaussians"],
)
def test_epsilon_stays_finite_and_smooth_where_tails_underflow(kernel, noise):
    """log(1 - p_w) is concave or straight: its slope never jumps where a double ends."""
    found = audit_of(1.0, [[[1000.0]]], 1.0, kernel, noise)
    widths = np.linspace(0.02, 0.9, 200)
    log_outside = -found.interval_epsilon(widths)[0, 0].to_numpy() * widths * 1000.0
    assert np.isfinite(log_outside).all()
    assert log_outside[-1] < -745.0 or noise is not None
    steps = np.diff(log_outside)
    assert (steps < 0).all()
    assert (np.diff(steps) < 1e-3 * -steps[1:]).all()


def test_a_stated_level_leaves_only_the_median_uncertain(audit):
    centre = interval.answer_from_mixture(audit.mixture)
    found = audit.interval_epsilon(0.1, level=0.8, sensitivity=2.0)
    truth = interval.epsilon(centre.to_numpy(), 0.1, 0.8, sensitivity=2.0)
    np.testing.assert_allclose(found, truth, rtol=1e-12)


def test_the_level_is_the_share_of_responses_that_the_density_draws(audit):
    centre = interval.answer_from_mixture(audit.mixture).to_numpy()[..., None]
    values = audit.mixture.sample(4000, 1)
    share = (np.abs(values - centre) < 0.05 * np.abs(centre)).mean(axis=-1)
    # Largest of 300 binomial shares: five standard errors.
    np.testing.assert_allclose(audit.interval_level(0.05), share, atol=5 * 0.5 / 4000**0.5)


def test_a_vector_of_widths_is_a_dimension(audit):
    level = audit.interval_level([0.02, 0.1])
    assert level.dims == ("chain", "draw", "width")
    np.testing.assert_array_equal(level.sel(width=0.1), audit.interval_level(0.1))
    assert audit.interval_epsilon([0.02, 0.1], level=0.9).dims == ("chain", "draw", "width")
    assert (level.diff("width") > 0).all()


def test_a_median_of_zero_has_an_empty_interval_and_the_limit_of_epsilon():
    found = audit_of(1.0, [[[0.0], [1e-12], [1e-5]]], 2.0)
    level, epsilon = found.interval_level(0.1), found.interval_epsilon(0.1)
    np.testing.assert_allclose(level, 0.0, atol=1e-6)
    # A normal density at its centre, twice.
    np.testing.assert_allclose(epsilon, 2.0 * stats.norm.pdf(0.0, scale=2.0), rtol=1e-6)


@pytest.mark.full
def test_the_level_stands_in_the_summary_and_the_epsilon_where_a_sensitivity_is_given(audit):
    plain = audit.summary(ci_prob=0.9)
    assert not plain.index.str.startswith("interval_epsilon").any()
    table = audit.summary(ci_prob=0.9, sensitivity=1.0)
    assert table.loc["interval_level[0.1]"].equals(plain.loc["interval_level[0.1]"])
    for width in WIDTHS:
        for name in ("interval_level", "interval_epsilon"):
            draws = getattr(audit, name)(width)
            row = table.loc[f"{name}[{width}]"]
            assert row["median"] == pytest.approx(float(draws.median()))
            assert row["eti90_ub"] == pytest.approx(float(draws.quantile(0.95)), rel=1e-3)
    other = audit.summary(width=0.3, sensitivity=7.0, targets=0.5)  # reached in every draw
    seven = float(7.0 * audit.interval_epsilon(0.3).median())
    assert other.loc["interval_epsilon[0.3]", "median"] == pytest.approx(seven)
    assert np.isfinite(other.to_numpy()).all()


@pytest.mark.full
def test_the_level_stands_in_the_printed_report_without_a_second_epsilon(audit):
    from rich.console import Console

    from edp_bayes.cli.report import print_report

    console = Console(width=80, file=io.StringIO())
    print_report(audit, console, prob=0.9)
    printed = console.file.getvalue()
    assert "Within a relative width of the median response: median and 90% equal-tailed" in printed
    assert "Laplace mechanism" not in printed
    assert "interval_epsilon" not in printed
    lines = printed.splitlines()
    start = next(k for k, line in enumerate(lines) if "Within a relative width" in line)
    row = next(line for line in lines[start:] if re.match(r"│ +0\.1 │", line))
    assert f"{float(audit.interval_level(0.1).median()):.2g}" in row
    assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": 0.0}, "width must be greater than 0, found 0.0"),
        ({"width": -0.1}, "width must be greater than 0, found -0.1"),
        ({"width": np.nan}, "width must be finite"),
        ({"width": "wide"}, "width must be numeric"),
        ({"width": [0.1, 0.1]}, "vector of different numbers"),
        ({"width": []}, "vector of different numbers"),
        ({"width": 0.1, "level": 1.0}, "level must lie strictly between 0 and 1"),
        ({"width": 0.1, "level": np.nan}, "level must be finite"),
        ({"width": 0.1, "sensitivity": 0.0}, "sensitivity must be greater than 0"),
        ({"width": 0.1, "level": 0.5, "sensitivity": -1.0}, "sensitivity must be greater than 0"),
    ],
    ids=str,
)
def test_bad_input_is_named(audit, arguments, message):
    with pytest.raises((InvalidInputError, InputTypeError), match=message):
        audit.interval_epsilon(**arguments)
    if set(arguments) == {"width"}:
        with pytest.raises((InvalidInputError, InputTypeError), match=message):
            audit.interval_level(**arguments)


def test_a_level_around_a_median_of_zero_is_refused():
    centred = audit_of(1.0, [[[0.0]]], 2.0)
    assert interval.answer_from_mixture(centred.mixture).item() == 0.0
    with pytest.raises(InvalidInputError, match="the median response must not be 0, found 1 of 1"):
        centred.interval_epsilon(0.1, level=0.8)
