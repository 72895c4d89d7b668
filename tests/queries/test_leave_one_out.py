"""Fast leave-one-out responses against NumPy on the records that remain."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.queries import Count, Mean, Proportion, Quantile, Slope, Sum, Variance
from edp_bayes.responses.databases import Databases

pytestmark = pytest.mark.filterwarnings("ignore::edp_bayes.exceptions.EdpBayesWarning")

N = 8
CASES = {
    Count(): len,
    Sum("x"): lambda f: f["x"].to_numpy().sum(),
    Mean("x"): lambda f: f["x"].to_numpy().mean(),
    Proportion("x", ">=", 1.5): lambda f: (f["x"].to_numpy() >= 1.5).mean(),
    Proportion("flag"): lambda f: f["flag"].to_numpy().mean(),
    Variance("x"): lambda f: np.var(f["x"].to_numpy(), ddof=1),
    Variance("x", ddof=0): lambda f: np.var(f["x"].to_numpy(), ddof=0),
    Quantile("x", 0.0): lambda f: np.quantile(f["x"].to_numpy(), 0.0),
    Quantile("x"): lambda f: np.quantile(f["x"].to_numpy(), 0.5),
    Quantile("x", 0.37): lambda f: np.quantile(f["x"].to_numpy(), 0.37),
    Quantile("x", 1.0): lambda f: np.quantile(f["x"].to_numpy(), 1.0),
    Slope("y", "x"): lambda f: np.polyfit(f["x"] - f["x"].mean(), f["y"] - f["y"].mean(), 1)[0],
}


@st.composite
def tables(draw):
    """Random tables; individuals own several records or none, and values repeat."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    m = draw(st.integers(2, 6))
    records = draw(st.integers(0, 60))
    # Two others besides every individual, whose x differ, keep all queries defined.
    base = np.repeat(np.arange(N), 4)
    database = np.concatenate([base, rng.integers(N, size=records)])
    individual = np.concatenate([np.tile([100, 100, 101, 101], N), rng.integers(m, size=records)])
    scale = draw(st.sampled_from([1e-3, 1.0, 1e4]))
    shift = draw(st.sampled_from([0.0, -3.0, 1e6]))
    grain = draw(st.sampled_from([None, 0.5]))
    x, y = rng.normal(size=(2, database.size))
    if grain is not None:
        x = np.round(x / grain) * grain
    x[: base.size] = np.tile([-1.0, 2.0, 0.5, 3.0], N) + np.repeat(np.arange(N), 4) / 8
    return pd.DataFrame(
        {
            "database": database,
            "individual": individual,
            "x": x * scale + shift,
            "y": y * 3.0 + x,
            "flag": np.where(
                np.arange(database.size) % 3 == 0, rng.random(database.size) < 0.5, x > 1
            ),
        }
    ).sample(frac=1.0, random_state=seed % 1000)


@pytest.mark.full
@pytest.mark.parametrize(("query", "function"), CASES.items(), ids=lambda case: str(case)[:20])
@given(table=tables())
@settings(derandomize=True, deadline=None, max_examples=30)
def test_fast_form_agrees_with_a_rerun(query, function, table):
    databases = Databases.from_table(table, database="database", individual="individual")
    expected = [function(group) for _, group in table.groupby("database")]
    if np.ptp(expected) <= 1e-12 * np.abs(expected).max():
        with pytest.raises(InvalidInputError, match="constant"):
            databases.respond(query)
        return
    fast = databases.respond(query)
    rerun = databases.respond(function, workers=1, progressbar=False)
    np.testing.assert_array_equal(fast.presence, rerun.presence)
    without_fast = fast.response[:, None] - fast.contribution.toarray()
    without = rerun.response[:, None] - rerun.contribution.toarray()
    scale = np.maximum(np.abs(rerun.response)[:, None], np.abs(without))
    scale = np.maximum(scale, np.ptp(rerun.response))
    assert (np.abs(fast.response - rerun.response) <= 1e-10 * scale.T.max(axis=0)).all()
    assert (np.abs(without_fast - without) <= 1e-10 * scale).all()


def offset_table(shift):
    """Values of a sixteenth each, so that the table with a shift is exact, far from zero."""
    rng = np.random.default_rng(2)
    x = rng.integers(-64, 64, size=(20, 50)) / 16
    return pd.DataFrame(
        {
            "database": np.repeat(np.arange(20), 50),
            "individual": np.tile(np.arange(50) // 2, 20),
            "x": x.ravel() + shift,
            "y": (x**2).ravel() + shift,
        }
    )


def contributions(shift, query):
    table = offset_table(shift)
    databases = Databases.from_table(table, database="database", individual="individual")
    return databases.respond(query).contribution.toarray()


@pytest.mark.parametrize(
    "query", [Mean("x"), Variance("x"), Quantile("x", 0.3), Slope("y", "x")], ids=str
)
def test_contributions_far_from_zero_keep_their_digits(query):
    # Subtracting two responses near 1e9 would leave about 1e-7 of error in a contribution.
    near, far = contributions(0.0, query), contributions(2.0**30, query)
    assert np.abs(near).max() > 1e-3
    np.testing.assert_allclose(far, near, rtol=1e-10, atol=1e-14)


def test_mean_in_rational_arithmetic():
    table = offset_table(2.0**30)
    found = contributions(2.0**30, Mean("x"))
    for j in (0, 7, 19):
        mine = table[table["database"] == j]
        x = [Fraction(value) for value in mine["x"]]
        for i in (0, 13, 24):
            rest = [v for v, owner in zip(x, mine["individual"], strict=True) if owner != i]
            exact = sum(x) / len(x) - sum(rest) / len(rest)
            assert found[j, i] == pytest.approx(float(exact), rel=1e-12)


def test_proportion_is_exactly_zero_where_nothing_changes():
    # The individual "a" owns one record that holds and one that does not: so does the rest.
    table = pd.DataFrame({"d": np.repeat(np.arange(20), 6), "i": list("aabbbb") * 20})
    flags = np.tile([True, False, True, False, True, False], (20, 1))
    flags[::2, 2:] = [True, True, True, False]
    table["flag"] = flags.ravel()
    responses = Databases.from_table(table, database="d", individual="i").respond(Proportion())
    np.testing.assert_array_equal(responses.contribution_of("a")[1::2], 0.0)
    np.testing.assert_allclose(responses.contribution_of("a")[::2], 4 / 6 - 3 / 4)
    assert responses.contribution.nnz == 10 + 10


def test_slope_where_one_individual_holds_nearly_all_of_the_spread():
    rng = np.random.default_rng(8)
    x = rng.normal(size=(20, 12)) * 1e-3
    x[:, 0] += 1e8
    y = 3.0 * x + rng.normal(size=(20, 12)) * 1e-3
    table = pd.DataFrame(
        {"d": np.repeat(np.arange(20), 12), "i": np.tile(np.arange(12), 20), "x": x.ravel()}
    ).assign(y=y.ravel())
    responses = Databases.from_table(table, database="d", individual="i").respond(Slope("y", "x"))
    expected = [
        np.polyfit(a - a.mean(), b - b.mean(), 1)[0]
        for a, b in zip(x[:, 1:], y[:, 1:], strict=True)
    ]
    np.testing.assert_allclose(responses.response_without(0), expected, rtol=1e-10)


def test_quantile_of_one_record_for_each_individual():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 31))
    table = pd.DataFrame(
        {"d": np.repeat(np.arange(20), 31), "i": np.tile(np.arange(31), 20), "x": x.ravel()}
    )
    responses = Databases.from_table(table, database="d", individual="i").respond(
        Quantile("x", 0.9)
    )
    for i in (0, 30):
        np.testing.assert_allclose(
            responses.response_without(i), np.quantile(np.delete(x, i, axis=1), 0.9, axis=1)
        )
