"""The worlds of the study: their truths, their samples, and that the page has its results."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from edp_bayes.divergence.shifts import gaussian_shift
from tests.calibration import worlds
from tests.calibration.report import PAGE
from tests.calibration.worlds import EPSILON, LINE, STEP, WORLDS, truth


@pytest.mark.full
def test_truths_are_those_of_closed_forms():
    np.testing.assert_allclose(truth(WORLDS["normal, gives 0.4"]), gaussian_shift(0.4, EPSILON))
    closed = 0.75 * gaussian_shift(0.3, EPSILON)
    np.testing.assert_allclose(truth(WORLDS["closed"]), closed, rtol=1e-6)
    cap = norm.ppf(2.0 / 3.0)
    tests = norm.cdf(cap) - norm.cdf(cap - 0.3), norm.sf(cap - 0.3)
    assert truth(WORLDS["capped"])[0] >= max(tests) - np.exp(0.05) * norm.sf(cap)
    # an interval of length 0.5 above the threshold is empty with them
    gap = norm.cdf(0.5) - norm.cdf(0.0)
    assert truth(WORLDS["comes above 0, gives 0.5"])[2] == pytest.approx(gap, abs=1e-4)
    assert truth(WORLDS["0 without them"])[2] >= worlds.NOTHING - 1e-6


@pytest.mark.full
@pytest.mark.parametrize("name", WORLDS)
def test_both_distributions_are_such_and_samples_follow_them(name):
    world = WORLDS[name]
    samples = world.sample(np.random.default_rng(1), 4000)
    for side in world.true():
        assert side.density.sum() * STEP + sum(side.atoms) == pytest.approx(1.0, abs=2e-4)
    if world.options.get("transform") or world.adversary or "log" in name or "proportion" in name:
        return  # truths on another scale, or of the next database alone
    for values, side in zip(samples, world.true(), strict=True):
        if side.atoms or "atom" in name:
            continue
        cdf = np.cumsum(side.density) * STEP
        low, high = np.interp([-0.5, 1.0], LINE, cdf)
        share = ((values > -0.5) & (values <= 1.0)).mean()
        assert share == pytest.approx(high - low, abs=4.5 * np.sqrt(0.25 / 4000))


@pytest.mark.full
def test_an_audit_of_a_world_is_one_row_and_the_page_has_the_table():
    row = worlds.once(("normal, gives 0.4", 20, 0))
    assert set(row) == set(pd.read_csv(worlds.RESULTS).columns)
    page = PAGE.read_text()
    table = worlds.markdown(worlds.summary(pd.read_csv(worlds.RESULTS)))
    assert table in page


def test_earlier_results_stay():
    earlier = pd.DataFrame({"world": ["closed", "capped"], "n": 60, "repetition": 0, "x": 1.0})
    found = pd.DataFrame({"world": ["closed"], "n": [60], "repetition": [0], "x": [2.0]})
    both = worlds.with_earlier(found, earlier)
    assert both[["world", "x"]].to_numpy().tolist() == [["capped", 1.0], ["closed", 2.0]]
