"""Several releases of rounded, binned and suppressed answers: bounds of what is published."""

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.divergence.composition.binned import AtMost, BinLosses
from edp_bayes.divergence.composition.pairs import composed

QUICK = {"draws": 10, "tune": 80, "chains": 2, "random_seed": 1, "progressbar": False}
EPSILON = np.array([0.0, 0.1, 0.5])
GROWTH = np.exp(EPSILON)[:, None]
EDGES = 2.0 * (0.5 + np.arange(-100, 100))
RULES = {
    "rounded": ({"rounded_to": 2.0}, EDGES),
    "bins": ({"bins": [19.0, 21.5]}, np.array([19.0, 21.5])),
    "both": ({"rounded_to": 2.0, "threshold": 20.0}, EDGES[EDGES > 18.9]),
    "suppressed": ({"threshold": 21.0}, None),
    "worst": ({"rounded_to": 2.0, "offset": "worst"}, EDGES),
    "noise": ({"rounded_to": 2.0, "noise_after": edp.GaussianNoise(1.0)}, None),
}


def amounts():
    rng = np.random.default_rng(7)
    c = rng.gamma(2.0, 0.2, (30, 3)) * (rng.random((30, 3)) < 0.7)
    c[:, 2] = 0.6 + 0.1 * rng.standard_normal(30)
    y = 20.0 + rng.standard_normal(30) + c.sum(axis=1)
    return edp.Responses.from_arrays(y, contribution=c)


@pytest.fixture(scope="module")
def audit():
    return edp.audit(amounts(), epsilon=EPSILON, **QUICK)


def of_two(audit, edges):
    """Return everybody's risk over two databases by brute force, (draw, individual, epsilon)."""
    found = []
    for person in range(3):
        p, q = (
            np.diff(d.cdf(edges), prepend=0.0, append=1.0).reshape(-1, edges.size + 1)
            for d in audit.source.coupling.pair(person)
        )
        p, q = ((m[:, :, None] * m[:, None]).reshape(len(m), 1, -1) for m in (p, q))
        both = np.maximum(p - GROWTH * q, 0.0).sum(-1), np.maximum(q - GROWTH * p, 0.0).sum(-1)
        found.append(np.maximum(*both))
    return np.stack(found, axis=1)


@pytest.mark.full
@pytest.mark.parametrize("rule", RULES)
def test_bounds_are_of_what_is_published(audit, rule):
    options, edges = RULES[rule]
    published = audit.released(**options, progressbar=False)
    two = published.compose(2, progressbar=False)
    whole = audit.compose(2, progressbar=False)
    most = two.delta.to_numpy().reshape(-1, EPSILON.size)
    assert (two.delta <= whole.delta + 1e-9).all()
    below = two.tree["lower_bounds"]
    lower = below["delta"].to_numpy().reshape(most.shape)
    assert (two.tree["composition"]["delta_lower"] <= two.delta).all()
    assert (lower <= most + 1e-12).all()
    assert (two.band()["lower"] <= whole.band()["upper"]).all()
    if edges is None:
        return
    truth = of_two(audit, edges)
    if rule == "worst":  # over all offsets, of which some are taken
        truth = np.max(
            [of_two(audit, edges + place) for place in np.arange(0.0, 2.0, 0.25)], axis=0
        )
    largest = truth.max(axis=1)
    assert (lower <= largest + 1e-9).all()
    assert (most >= largest - 1e-9).all()
    own = below["individual_delta"].transpose("chain", "draw", "individual", "epsilon")
    people = below["individual"].to_numpy()
    assert (own.to_numpy().reshape(-1, 3, EPSILON.size) <= truth[:, people] + 1e-9).all()
    least = two.tree["composition"]["delta_lower"].to_numpy().reshape(most.shape)
    assert (least <= largest + 1e-9).all()
    total = 1.0 - np.prod(1.0 - truth, axis=1)
    assert (below["total_risk"].to_numpy().reshape(total.shape) <= total + 1e-9).all()
    if rule != "worst":  # every bin is known
        np.testing.assert_allclose(most, largest, atol=2e-3)
        np.testing.assert_allclose(least, largest, atol=2e-3)
        # with what is known of whole answers alone a target would pass for missed
        assert (whole.tree["lower_bounds"]["delta"].to_numpy().reshape(most.shape) > largest).any()


@pytest.mark.full
def test_the_number_of_releases_lies_between_its_bounds(audit):
    published = audit.released(rounded_to=2.0, progressbar=False)
    truth = of_two(audit, EDGES).max(axis=1)[:, 1]
    found = edp.releases_until(
        published, epsilon=0.1, delta=float(np.median(truth)), progressbar=False
    )
    two = truth <= float(np.median(truth))
    assert (found["at_most"].to_numpy().ravel()[two] >= 2).all()
    assert (found["releases"].to_numpy().ravel()[~two] < 2).all()
    assert (found["releases"] <= found["at_most"]).all()
    worst = audit.released(rounded_to=2.0, offset="worst", progressbar=False)
    safe = edp.releases_until(worst, epsilon=0.1, delta=0.2, progressbar=False)
    assert (safe["at_most"] == 4096).all()  # nothing says that any number is too many


def test_losses_of_bins_are_those_of_their_masses(audit):
    published = audit.released(rounded_to=2.0, progressbar=False).source.coupling
    rows = np.arange(20)
    losses = published.losses(2, rows)
    assert isinstance(losses, BinLosses)
    for mass, mixture in zip(
        (losses.under_p, losses.under_q), audit.source.coupling.pair(2), strict=True
    ):
        truth = np.diff(mixture.cdf(EDGES), prepend=0.0, append=1.0).reshape(20, -1)
        for row, one in zip(mass, truth, strict=True):
            np.testing.assert_allclose(row[row > 1e-9], one[one > 1e-9], rtol=1e-6)


def test_a_bin_that_tells_everything_is_a_risk_at_every_epsilon():
    losses = BinLosses(np.array([[0.7, 0.3, 0.0]]), np.array([[0.0, 0.9, 0.1]]))
    upper, lower = composed([losses], [2], EPSILON)
    truth = [max(0.91, 0.19 + max(0.0, 0.81 - np.exp(e) * 0.09)) for e in EPSILON]
    np.testing.assert_allclose(upper[0], truth, atol=1e-6)
    np.testing.assert_allclose(lower[0], truth, atol=1e-6)
    one, nothing = composed([AtMost(losses)], [2], EPSILON)
    np.testing.assert_allclose(one, upper)
    assert (nothing == 0.0).all()
    assert AtMost(losses).parts() == []
