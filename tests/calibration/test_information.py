"""The bounds on the width of a band against simulation, quadrature and normal pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
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


@pytest.mark.full
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


@pytest.mark.parametrize(
    ("distribution", "individual", "epsilon"),
    [("skewed", "proportional", 0.3), ("bimodal", "absent 70%", 0.1)],
)
def test_information_of_mixtures_is_that_of_the_joint_density(
    distribution, individual, epsilon
) -> None:
    """In other parameters, by scores of (rest, contribution) at nodes, and exact integrals."""
    scenario = Scenario(distribution, 1, individual)
    who = scenario.who
    always = who.presence == 1.0
    weights, means, sds = scenario.components
    k = weights.size
    theta = np.concatenate([weights[:-1], means, sds**2, [who.mean, who.slope, who.spread**2]])
    if not always:
        theta = np.append(theta, who.presence)

    def parts(t):
        mixture = np.append(t[: k - 1], 1.0 - t[: k - 1].sum()), t[k - 1 : 2 * k - 1]
        presence = 1.0 if always else t[3 * k + 2]
        return *mixture, np.sqrt(t[2 * k - 1 : 3 * k - 1]), *t[3 * k - 1 : 3 * k + 2], presence

    def delta(t):
        w, m, s, intercept, slope, variance, presence = parts(t)
        w = np.concatenate([(1.0 - presence) * w, presence * w])
        first = np.concatenate([m, (1.0 + slope) * m + intercept])
        second = np.concatenate([s, np.sqrt(((1.0 + slope) * s) ** 2 + variance)])
        without = (array[None, None] for array in (w, np.tile(m, 2), np.tile(s, 2)))
        return gaussian.curves(
            w[None], first[None], second[None], *without, np.array([epsilon])
        ).item()

    rest = np.linspace(-7.0, 7.0, 1401)[:, None]
    nodes, shares = np.polynomial.hermite_e.hermegauss(12)
    own = who.mean + who.slope * rest + who.spread * nodes
    density = stats.norm.pdf(rest, means, sds) @ weights * 0.01
    there = who.presence * density[:, None] * shares / shares.sum()
    away = (1.0 - who.presence) * density

    def logs(t):
        w, m, s, intercept, slope, variance, presence = parts(t)
        others = np.log(stats.norm.pdf(rest, m, s) @ w)
        present = stats.norm.logpdf(own, intercept + slope * rest, np.sqrt(variance))
        return (
            present + others[:, None] + np.log(presence),
            others + (0.0 if always else np.log1p(-presence)),
        )

    def derivatives(function, step):
        moves = step * np.eye(theta.size)
        return np.array([(function(theta + m) - function(theta - m)) / (2 * step) for m in moves])

    present = derivatives(lambda t: logs(t)[0], 1e-6)
    absent = derivatives(lambda t: logs(t)[1], 1e-6)
    fisher = np.einsum("iab,jab,ab->ij", present, present, there)
    fisher += np.einsum("ia,ja,a->ij", absent, absent, away)
    gradient = derivatives(delta, 1e-5)
    expected = np.sqrt(gradient @ np.linalg.solve(fisher, gradient))
    known, _ = information.standard_errors(scenario, epsilon)
    assert known == pytest.approx(expected, rel=0.005)


@pytest.mark.full
@pytest.mark.parametrize(
    ("distribution", "individual", "epsilon"),
    [("skewed", "proportional", 0.3), ("bimodal", "absent 70%", 0.1), ("normal", "0.1", 0.02)],
)
def test_influence_is_that_of_simulated_databases(distribution, individual, epsilon) -> None:
    scenario = Scenario(distribution, 1_000_000, individual)
    databases = scenario.sample(np.random.default_rng(1))
    with_him = databases.response
    without = databases.response_without(databases.individual[0])
    p, q = information.densities(information.parameters(scenario))
    values = []
    for first, second, one, other in ((p, q, with_him, without), (q, p, without, with_him)):
        gap = first - np.exp(epsilon) * second
        inside = [np.interp(y, information.GRID, gap) > 0 for y in (one, other)]
        values.append((gap[gap > 0].sum(), np.std(inside[0] - np.exp(epsilon) * inside[1])))
    _, nothing = information.standard_errors(scenario, epsilon)
    assert nothing == pytest.approx(max(values)[1], rel=0.02)


def test_no_bound_needs_what_lies_below_zero() -> None:
    names = ["population", "distribution", "n", "individual", "epsilon", "method"]
    values = ["width", "width_that_covers", "coverage_high", "truth"]
    cells = [(1, "normal", 20, "0.05", 0.02), (1, "normal", 400, "0.4", 0.02)]
    rows = [
        (*cell, method, 1.0, 1.0, 0.95, Scenario(*cell[1:4]).truth["delta"][0])
        for cell in cells
        for method in (information.DEFAULT, information.RIVAL)
    ]
    table = pd.DataFrame(rows, columns=names + values)
    found = information.beside(table).sort_values("n")
    for cell, width in zip(cells, found["family"], strict=True):
        known, _ = information.standard_errors(Scenario(*cell[1:4]), cell[4])
        half = stats.norm.ppf(0.975) * known / np.sqrt(cell[2])
        truth = Scenario(*cell[1:4]).truth["delta"][0]
        assert width == pytest.approx(half + min(half, truth))
    assert found["both cover"].all()


def test_influence_of_one_normal() -> None:
    scenario, epsilon = Scenario("normal", 1, "1.0"), 0.3
    _, nothing = information.standard_errors(scenario, epsilon)
    density, without = information.densities(information.parameters(scenario))
    inside = information.GRID[density > np.exp(epsilon) * without]
    # Their spread makes the set two half-lines; the far one has no mass.
    near = inside[inside > -5.0].min()
    spread = scenario.who.spread
    joint = stats.multivariate_normal([1.0, 0.0], [[1.0 + spread**2, 1.0], [1.0, 1.0]])
    first = stats.norm.sf(near, 1.0, np.hypot(1.0, spread))
    second = stats.norm.sf(near)
    both = 1.0 - (1.0 - first) - (1.0 - second) + joint.cdf([near, near])
    delta = first - np.exp(epsilon) * second
    variance = first + np.exp(2 * epsilon) * second - 2.0 * np.exp(epsilon) * both - delta**2
    assert nothing == pytest.approx(np.sqrt(variance), rel=0.002)


@pytest.mark.full
def test_knowing_the_family_never_hurts() -> None:
    for distribution in ("normal", "nearly uniform"):
        for individual in ("0.4", "absent 70%", "proportional"):
            known, nothing = information.standard_errors(Scenario(distribution, 1, individual), 0.1)
            assert 0.0 < known <= nothing
