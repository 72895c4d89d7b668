"""A few cells of the calibration study, enough to catch a coverage below 80%."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.divergence import hockey_stick
from edp_bayes.responses.responses import Responses
from tests.calibration import higher, study
from tests.calibration.methods import run_once
from tests.calibration.scenarios import DISTRIBUTIONS, EPSILON, INDIVIDUALS, Scenario

REPETITIONS = 50
CELLS = [
    Scenario("normal", 41, "0.4"),
    Scenario("heavy-tailed", 41, "0.4"),
    Scenario("bimodal", 100, "absent 70%"),
    Scenario("skewed", 400, "comes with few"),
    Scenario("nearly uniform", 100, "0.4"),
    Scenario("normal", 41, "0.1", population=300),
]


@pytest.mark.full
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_the_default_model_covers(cell):
    repetitions = REPETITIONS if cell.population == 1 else 8
    values = study.batch(cell, "dirichlet process", 0, repetitions)
    for row in study.rows_of(cell, "dirichlet process", "delta", 0, values["delta"]):
        covered = round(row["coverage"] * repetitions)
        # Fails when the data speak against a coverage of 80% or more.
        assert stats.binomtest(covered, repetitions, 0.8, alternative="less").pvalue > 1e-3, row


@pytest.mark.full
def test_a_careless_band_is_caught():
    """Unpaired posteriors, known not to cover small risks, fail the same test."""
    cell = Scenario("normal", 41, "0.1")
    values = study.batch(cell, "unpaired", 0, 30)["delta"]
    rows = list(study.rows_of(cell, "unpaired", "delta", 0, values))
    covered = [round(row["coverage"] * 30) for row in rows]
    assert min(stats.binomtest(c, 30, 0.8, alternative="less").pvalue for c in covered) < 1e-3


@pytest.mark.full
def test_separate_posteriors_of_a_population_are_those_of_everybody():
    rng = np.random.default_rng(9)
    contribution = rng.gamma(2.0, 0.1, (20, 3))
    y = rng.standard_normal(20) + contribution.sum(1)
    one, three = (
        run_once("unpaired", Responses.from_arrays(y, contribution=columns), 0)
        for columns in (contribution[:, :1], contribution)
    )
    for quantity in ("delta", "total_risk"):
        np.testing.assert_allclose(one[quantity].median, one["delta"].median)
        assert (three[quantity].median > one["delta"].median).all()
    assert (three["total_risk"].median > three["delta"].median).all()


@pytest.mark.parametrize("factor", [0.3, 1.0, 2.0])
def test_stretched_bands_hold_the_truth_in_95_percent(factor):
    median = np.random.default_rng(6).standard_normal(1000)
    lower, upper = median - 2.0 * factor, median + factor
    stretch = study._stretch(lower, median, upper, 0.3)
    for slight, least in ((0.999, False), (1.001, True)):
        low, high = (median + slight * stretch * (end - median) for end in (lower, upper))
        assert (((low <= 0.3) & (high >= 0.3)).mean() >= 0.95) == least


def test_bands_without_width_are_never_wide_enough():
    ends = np.zeros(20)
    assert study._stretch(ends, ends, ends, 0.0) == 0.0
    assert np.isinf(study._stretch(ends, ends, ends + 1.0, -0.1))


@pytest.mark.full
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("individual", INDIVIDUALS)
def test_the_truth_is_that_of_the_sampler(distribution, individual):
    """Moments of large samples with and without the individual match the true mixtures."""
    scenario = Scenario(distribution, 40_000, individual)
    responses = scenario.sample(np.random.default_rng(5))
    w, m, s = scenario.components
    assert w @ m == pytest.approx(0.0, abs=1e-12)
    assert w @ (s**2 + m**2) == pytest.approx(1.0)
    rest = responses.response_without(responses.individual[0])
    assert rest.mean() == pytest.approx(0.0, abs=0.03)
    assert rest.std() == pytest.approx(1.0, abs=0.05)
    who = INDIVIDUALS[individual]
    truth = scenario.truth["delta"]
    without = Mixture(w, m, s)
    moved = Mixture(w, (1 + who.slope) * m + who.mean, np.hypot((1 + who.slope) * s, who.spread))
    both = Mixture(
        np.r_[(1 - who.presence) * w, who.presence * moved.weights],
        np.r_[m, moved.locations],
        np.r_[s, moved.scales],
    )
    expected = np.maximum(
        hockey_stick(both, without, epsilon=EPSILON), hockey_stick(without, both, epsilon=EPSILON)
    )
    np.testing.assert_allclose(truth, expected, rtol=1e-9, atol=1e-13)
    assert responses.response.mean() == pytest.approx(float(both.mean()), abs=0.04)


@pytest.mark.full
def test_population_truth_counts_everybody():
    alone = Scenario("normal", 41, "0.05").truth["delta"]
    crowd = Scenario("normal", 41, "0.05", population=300)
    assert crowd.means.size == 299
    assert crowd.means.mean() == pytest.approx(0.01, rel=0.2)
    assert (crowd.truth["delta"][:2] >= 0.9 * alone[:2]).all()
    assert (crowd.truth["total_risk"] >= crowd.truth["delta"]).all()


def test_a_run_never_repeats_what_the_results_hold():
    cell = Scenario("normal", 41, "0.1")
    earlier = pd.DataFrame(
        [[cell.population, cell.distribution, cell.n, cell.individual, "unpaired", 20, 40]],
        columns=[*study.CELL[:5], "first", "repetitions"],
    )
    pair = (cell, "unpaired")
    for first in (0, 40):
        with pytest.raises(ValueError, match=r"20 to 59 of normal, n=41, 0.1, m=1, unpaired"):
            study.missing(earlier, [pair], first, 40)
    for first, count in ((20, 40), (20, 20), (40, 20)):  # all there
        assert study.missing(earlier, [pair], first, count) == []
    for first, count in ((20, 60), (60, 40)):  # a longer run, or one after it
        assert study.missing(earlier, [pair], first, count) == [pair]
    others = [(cell, "normal"), (Scenario("normal", 20, "0.1"), "unpaired")]
    assert study.missing(earlier, [pair, *others], 20, 40) == others


def test_the_higher_end_covers_what_the_other_band_reaches(tmp_path, monkeypatch):
    """Bands half as high as the truth beside bands of twice the truth: the higher holds it."""
    monkeypatch.setattr(study, "CACHE", tmp_path)
    cell = Scenario("normal", 41, "0.4")
    truth = cell.truth["delta"]
    for method, factor in ((higher.DEFAULT, 0.5), (higher.OTHER, 2.0)):
        row = truth * np.array([0.0, factor, factor, 0.0, factor])[:, None]
        np.savez(study._path(cell, method, 0), delta=np.broadcast_to(row, (20, *row.shape)))
    found = higher.summary(higher.rows(cell, 20)).xs(41, level="n")
    assert found["mean"].to_dict() == {"default": 0.0, "higher": 1.0}
    assert found["rarely"].to_dict() == {"default": 4, "higher": 0}
    assert found["wider"]["higher"] == pytest.approx(3.0)
