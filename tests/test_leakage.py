"""What the risk at one epsilon is for adversaries who know more and more."""

import matplotlib as mpl
import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes import plots
from edp_bayes.auditing.leakage import Leakage
from edp_bayes.exceptions import InputTypeError, InvalidInputError

mpl.use("agg")

EPSILON, N, PEOPLE = 0.1, 80, 20
MODEL = edp.FiniteMixture(components=1)


def series(seed=1, coefficient=0.9):
    """Contributions on an autoregressive background."""
    rng = np.random.default_rng(seed)
    y = np.zeros(N)
    for t in range(1, N):
        y[t] = coefficient * y[t - 1] + rng.normal()
    contribution = rng.normal(0.5, 0.25, (N, PEOPLE))
    return edp.Responses.from_arrays(
        50.0 + y + contribution.sum(axis=1), contribution=contribution, additive=True
    )


@pytest.fixture(scope="module")
def found():
    return edp.leakage(
        series(),
        epsilon=EPSILON,
        past=(0, 1, 2),
        insiders=(0.0, 0.5, 0.9),
        seeds=2,
        model=MODEL,
        random_seed=1,
        progressbar=False,
    )


@pytest.mark.full
def test_every_value_is_that_of_an_audit(found):
    known = edp.Adversary(past=1)
    audit = edp.audit(
        series(),
        epsilon=[EPSILON],
        adversary=known,
        model=MODEL,
        keep=1,
        draws=100,
        tune=500,
        chains=2,
        random_seed=1,
        progressbar=False,
    )
    row = found.past.loc[1]
    assert row["median"] == pytest.approx(float(audit.delta.median()))
    band = audit.band("delta", kind="pointwise")
    assert row["upper"] == pytest.approx(float(band["upper"][0]))
    assert row["lower"] == pytest.approx(float(band["lower"][0]))


def test_more_knowledge_leaks_more(found):
    past, insiders = found.past, found.insiders
    assert past.index.tolist() == [0, 1, 2]
    assert past["median"][1] > past["median"][0]
    assert insiders["median"].is_monotonic_increasing
    assert insiders["median"][0.0] == pytest.approx(past["median"][0])
    for table in (past, insiders):
        assert (table["lower"] <= table["median"]).all()
        assert (table["median"] <= table["upper"]).all()


def test_draws_of_all_seeds_are_pooled(found):
    draws = found.tree["insiders"]["delta"]
    assert draws.sizes == {"insiders": 3, "draw": 2 * 200}
    assert np.unique(draws.sel(insiders=0.5)).size > 350
    # the one audit without insiders stands there twice
    assert np.unique(draws.sel(insiders=0.0)).size <= 200


@pytest.mark.full
def test_it_is_saved_and_loaded(found, tmp_path):
    again = edp.load(found.save(tmp_path / "leakage.nc"))
    assert again.past.equals(found.past)
    audit = edp.audit(
        series(), epsilon=[0.1], model=MODEL, draws=50, random_seed=1, progressbar=False
    )
    with pytest.raises(InvalidInputError, match="is a saved Audit, not Leakage"):
        edp.load(audit.save(tmp_path / "audit.nc"), kind=Leakage)


def test_it_says_for_what_it_establishes_nothing(found, tmp_path):
    """Answers follow the last one: whoever is taken to know none of them knows too little."""
    assert "past 0" in found.withheld
    assert "insiders 0" in found.withheld
    assert "past 1" not in found.withheld
    assert edp.load(found.save(tmp_path / "leakage.nc")).withheld == found.withheld
    older = found.tree.copy()
    older.attrs = {name: value for name, value in older.attrs.items() if name != "withheld"}
    assert "does not say" in Leakage(older).withheld


def test_the_plot_shows_the_tables_and_says_which_end_is_classical(found):
    pc = found.plot(backend="none", ci_prob=0.9)
    for name in ("past", "insiders"):
        table = found.table(name, prob=0.9)
        np.testing.assert_array_equal(pc.get_viz("median", name)["y"], table["median"])
        np.testing.assert_array_equal(pc.get_viz("band", name)["y_top"], table["upper"])
    assert "classical differential privacy" in pc.get_viz("xlabel", "insiders")["string"]
    one = plots.plot_leakage(found, of="past", backend="matplotlib")
    assert one.get_viz("plot", "past").get_ylabel() == "delta at epsilon 0.1: largest risk"
    with pytest.raises(InvalidInputError, match="of must be"):
        plots.plot_leakage(found, of="future")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"past": None, "insiders": None}, InvalidInputError, "nothing to compare"),
        ({"past": [2, 1]}, InvalidInputError, "past must be increasing"),
        ({"past": [0.5]}, InvalidInputError, "whole numbers"),
        ({"insiders": [0.5, 1.0]}, InvalidInputError, "less than 1"),
        ({"insiders": 0.5}, InputTypeError, "insiders must be a list"),
        ({"adversary": "me"}, InputTypeError, "must be an Adversary"),
        ({"epsilon": [0.1, 0.2]}, InvalidInputError, "epsilon"),
    ],
)
def test_bad_input_is_named(options, error, message):
    with pytest.raises(error, match=message):
        edp.leakage(series(), **{"epsilon": 0.1, "progressbar": False, **options})
