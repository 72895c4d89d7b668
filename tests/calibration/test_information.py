"""The bounds on the width of a band against simulation and the bivariate normal law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from edp_bayes.divergence import gaussian
from tests.calibration import information
from tests.calibration.scenarios import Scenario


def test_information_of_one_normal() -> None:
    scenario = Scenario("normal", 1, "absent 70%")
    who = scenario.who
    regression = who.presence / who.spread**2
    expected = [1.0, 2.0, regression, regression, 2.0 * who.presence, 0.3 * 0.7]
    found = information.information(scenario)
    np.testing.assert_allclose(found, np.diag(expected), atol=1e-7)


def test_maximum_likelihood_reaches_the_bound_of_the_family() -> None:
    scenario, n, repetitions, epsilon = Scenario("normal", 1, "0.4"), 2000, 2000, 0.1
    rng = np.random.default_rng(5)
    rest = rng.standard_normal((repetitions, n))
    own = scenario.who.mean + scenario.who.spread * rng.standard_normal(rest.shape)
    mean, sd = rest.mean(axis=1), rest.std(axis=1)
    slope = ((rest - mean[:, None]) * own).mean(axis=1) / sd**2
    spread = (own - slope[:, None] * rest).std(axis=1)
    one = np.ones((repetitions, 1))
    found = gaussian.curves(
        one,
        (mean + own.mean(axis=1))[:, None],
        np.hypot((1.0 + slope) * sd, spread)[:, None],
        one[:, None],
        mean[:, None, None],
        sd[:, None, None],
        np.array([epsilon]),
    )
    known, _ = information.standard_errors(scenario, epsilon)
    # The standard deviation of a standard deviation is its 1 / sqrt(2 x 2000), 1.6%.
    assert np.sqrt(n) * found.std() == pytest.approx(known, rel=0.05)


def test_influence_of_one_normal() -> None:
    scenario, epsilon = Scenario("normal", 1, "1.0"), 0.3
    _, nothing = information.standard_errors(scenario, epsilon)
    law, without = information.densities(information.parameters(scenario))
    inside = information.GRID[law > np.exp(epsilon) * without]
    # His spread makes the set two half-lines; the far one has no mass.
    near = inside[inside > -5.0].min()
    spread = scenario.who.spread
    joint = stats.multivariate_normal([1.0, 0.0], [[1.0 + spread**2, 1.0], [1.0, 1.0]])
    first = stats.norm.sf(near, 1.0, np.hypot(1.0, spread))
    second = stats.norm.sf(near)
    both = 1.0 - (1.0 - first) - (1.0 - second) + joint.cdf([near, near])
    delta = first - np.exp(epsilon) * second
    variance = first + np.exp(2 * epsilon) * second - 2.0 * np.exp(epsilon) * both - delta**2
    assert nothing == pytest.approx(np.sqrt(variance), rel=0.01)


def test_knowing_the_family_never_hurts() -> None:
    for law in ("normal", "nearly uniform"):
        for individual in ("0.4", "absent 70%", "proportional"):
            known, nothing = information.standard_errors(Scenario(law, 1, individual), 0.1)
            assert 0.0 < known <= nothing
