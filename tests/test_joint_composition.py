"""Releases of several queries over fresh databases against closed forms and brute force."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pytest
from joint_cases import joint_coupling, joint_responses
from scipy import stats
from simulated import filtered, hockey_stick

import edp_bayes as edp
from edp_bayes.coupling.joint import JointCoupling
from edp_bayes.coupling.views.carried_answers import Components
from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.divergence.any_pair.components import GAUSSIAN, rows
from edp_bayes.divergence.composition.pairs import ExactLosses, composed, curves
from edp_bayes.divergence.composition.screening import ORDERS, screen_bounds
from edp_bayes.divergence.joint.losses import point_losses
from edp_bayes.divergence.joint.points import digital_shifts
from edp_bayes.divergence.shifts import gaussian_shift
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.releases.composing import CarriedSource, JointSource, bounds, composed_risks

EPSILON = np.array([0.1, 0.5, 1.0])
DRAWS = 4


def normals(weights, means, covariance):
    """Return the same mixture of normals of one covariance in every draw."""
    k, d = np.shape(means)
    parts = (np.array(weights), np.array(means, float), np.tile(covariance, (k, 1, 1)))
    return NormalMixture(*(np.repeat(part[None], DRAWS, 0) for part in parts)), d


def losses(p, q, d):
    return point_losses(p, q, digital_shifts(DRAWS, d, 1, 0))


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("shift", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("k", [1, 12, 52])
def test_normals_compose_to_a_shift_of_root_k(d, shift, k):
    root = np.tril(np.full((d, d), 0.4)) + np.eye(d)
    direction = root @ np.linspace(1.0, -0.5, d)
    length = np.linalg.norm(np.linspace(1.0, -0.5, d))
    (p, _), (q, _) = (
        normals([1.0], [at], root @ root.T) for at in (direction * shift / length, np.zeros(d))
    )
    upper, lower = composed([losses(p, q, d)], [k], EPSILON)
    exact = gaussian_shift(shift * np.sqrt(k), EPSILON)
    # the rounding is on the safe side, the points have a standard error
    assert (np.abs(upper - exact) < 5e-3).all()
    assert (upper - lower < 8e-3).all()
    assert ((lower <= exact) & (exact <= upper)).mean() > 0.8


@pytest.mark.parametrize("k", [1, 12])
def test_rare_presence_composes_as_in_one_dimension(k):
    rho, shift = 0.1, 2.0
    (p, _), (q, _) = (
        normals(w, m, np.eye(2))
        for w, m in (([0.9, 0.1], [[0.0, 0.0], [1.2, 1.6]]), ([1.0], [[0.0, 0.0]]))
    )
    line = (
        rows(GAUSSIAN, np.array([[1.0 - rho, rho]]), np.array([[0.0, shift]]), 1.0),
        rows(GAUSSIAN, np.ones((1, 1)), np.zeros((1, 1)), 1.0),
    )
    above, below = curves([line], [k], EPSILON)
    upper, lower = composed([losses(p, q, 2)], [k], EPSILON)
    assert ((lower <= above) & (below <= upper)).mean() > 0.8
    assert (upper - lower < 0.02).all()
    # beside as many databases of one answer
    exact = ExactLosses(*(np.repeat(part, DRAWS, 0) for part in line))
    above, below = curves([line], [2 * k], EPSILON)
    upper, lower = composed([losses(p, q, 2), exact], [k, k], EPSILON)
    assert ((lower <= above) & (below <= upper)).mean() > 0.8


@pytest.fixture(scope="module", params=["mixture", "bootstrap"])
def coupling(request):
    return joint_coupling(request.param, people=8, draws=5)


@pytest.mark.full
def test_moments_bound_those_at_points(coupling):
    everybody = np.arange(coupling.n_individuals)
    bound = coupling.log_moments(everybody, ORDERS[:6])
    every = np.arange(coupling.n_draws)
    for i in everybody:
        found = coupling.losses(int(i), every)
        for o, order in enumerate(ORDERS[:6]):
            for weight, sign in ((found.under_p, 1.0), (found.under_q, -1.0)):
                moment = np.log((weight * np.exp(sign * order * found.loss)).sum(axis=1))
                assert (moment <= bound[:, i, o] + 0.02).all()


@pytest.mark.full
def test_one_database_is_the_audit_itself(coupling):
    size, people = coupling.n_draws, coupling.n_individuals
    source = JointSource(coupling, 1, np.arange(people), np.arange(size))
    risks = composed_risks([source], EPSILON, keep=people, progressbar=False)
    plain = coupling.curves(risks.kept, EPSILON)
    middle = 0.5 * (risks.individual + risks.individual_lower)
    assert np.abs(middle - plain.value).max() < 0.01
    within = np.abs(middle - plain.value) <= (
        0.5 * (risks.individual - risks.individual_lower) + 2.0 * plain.error + 1e-6
    )
    assert within.mean() > 0.9
    for _, highest in bounds([source], EPSILON, False, ""):
        assert (highest[:, risks.kept] >= plain.value - 2.0 * plain.error - 1e-6).all()


def test_some_draws_are_those_draws(coupling):
    some = np.array([1, 4, 7])
    part = coupling.picked(some)
    assert isinstance(part, JointCoupling)
    for i in range(3):
        for ours, theirs in zip(part.pair(i), coupling.pair(i), strict=True):
            for one, other in zip(ours, theirs, strict=True):
                assert np.array_equal(
                    one, np.broadcast_to(other, (len(other), *one.shape[1:]))[some]
                )


@pytest.fixture(scope="module")
def audit():
    return edp.audit(
        joint_responses(people=6), epsilon=EPSILON, draws=25, chains=2, tune=200, random_seed=1,
        model=edp.DirichletProcessMixture(components=4), progressbar=False,
    )  # fmt: skip


@pytest.mark.full
def test_an_audit_composes_alone_and_beside_a_single_query(audit, tmp_path):
    year = audit.compose(databases=12, progressbar=False)
    assert (year.delta.mean(("chain", "draw")) >= audit.delta.mean(("chain", "draw"))).all()
    assert (year.band()["lower"] <= year.band()["upper"]).all()
    assert "12 fresh databases" in year.subject[0]
    assert 0.0 < year.settings["gap"] < 0.1
    assert edp.load(year.save(tmp_path / "year.nc")).delta.equals(year.delta)
    single = edp.audit(
        joint_responses(people=6).parts[0], epsilon=EPSILON, draws=25, chains=2, tune=200,
        random_seed=1, progressbar=False,
    )  # fmt: skip
    with pytest.raises(InvalidInputError, match=r"Responses\.join"):
        edp.compose([single, audit], databases=[1, 12], progressbar=False)
    both = edp.compose([single, audit], databases=[1, 12], fresh=True, progressbar=False)
    assert both.databases == 13
    assert (
        both.delta.median(("chain", "draw")) > year.delta.median(("chain", "draw")) - 0.02
    ).all()


@pytest.mark.full
def test_one_release_of_several_queries_has_the_limits_of_the_audit(audit):
    once = audit.compose(databases=1, progressbar=False)
    for name in ("delta", "total_risk", "total_risk_bound", "individual_delta"):
        assert once.upper(name).equals(audit.upper(name))
        own = audit.band(name)
        assert once.band(name)["upper"].equals(own["upper"])
        away = once.band(name)["lower"] - own["lower"]
        assert float(np.abs(away).max()) <= once.settings["gap"]
    assert 0.0 < once.settings["gap"] < 0.1
    few = audit.compose(databases=2, draws=3, progressbar=False)
    assert (few.upper() >= audit.upper()).all()
    other = audit.compose(databases=1, epsilon=[0.2, 0.7], progressbar=False)
    beside = audit.compose(databases=2, epsilon=[0.2, 0.7], draws=3, progressbar=False)
    assert (beside.upper() >= other.tree["part_1"]["delta"].quantile(0.9, ("chain", "draw"))).all()


@pytest.mark.full
def test_what_has_no_fit_is_refused(audit, tmp_path):
    loaded = edp.load(audit.save(tmp_path / "audit.nc"))
    for call in (lambda: loaded.compose(2), lambda: loaded.releases_until(epsilon=0.5, delta=0.1)):
        with pytest.raises(InvalidInputError, match="loaded from a file"):
            call()


@pytest.mark.full
def test_releases_agree_with_compositions(audit):
    target = float(audit.compose(3, progressbar=False).delta.isel(epsilon=-1).median())
    options = {"epsilon": float(EPSILON[-1]), "delta": target, "draws": 10, "progressbar": False}
    found = audit.releases_until(**options)
    assert (found["releases"] <= found["at_most"]).all()
    for databases in (1, 3, 6):
        delta = audit.compose(databases, draws=10, progressbar=False).delta.isel(epsilon=-1)
        # of one release all draws are there
        fits = (delta.sel(draw=found["draw"]) <= target).to_numpy()
        assert (fits == (found["releases"] >= databases).to_numpy()).all()
    assert 0 < (found["releases"] >= 3).mean() < 1


@pytest.mark.full
def test_who_is_revealed_is_revealed_in_any_of_the_databases():
    rng = np.random.default_rng(1)
    y, c = rng.normal(50.0, 5.0, 40), np.zeros((40, 2))
    c[:10, 0], c[:, 1] = 1.0, 0.5
    left = c.copy()
    left[:, 0] = 0.0
    both = edp.Responses.join(
        edp.Responses.from_arrays(y, contribution=c, query="sum"),
        edp.Responses.from_arrays(y - c[:, 0], contribution=left, query="sum without"),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        audit = edp.audit(
            both, epsilon=[0.1], draws=25, chains=2, tune=200, random_seed=1, progressbar=False,
            model=edp.DirichletProcessMixture(components=4), individuals=[0],
        )  # fmt: skip
        year = audit.compose(databases=3, progressbar=False)
    share = audit.individual_delta.sel(individual=0).to_numpy()
    found = year.individual_delta.sel(individual=0).to_numpy()
    assert (found >= 1.0 - (1.0 - share) ** 3 - 1e-9).all()
    # the chance of being revealed alone bounds how many releases there may be
    target = float(np.median(1.0 - (1.0 - share) ** 3))
    until = audit.releases_until(epsilon=0.1, delta=target, draws=50, progressbar=False)
    most = np.log1p(-target) / np.log1p(-share[..., 0])
    assert (until["at_most"].to_numpy() <= most + 1e-6).all()
    assert (until["releases"] > 0).any()


@dataclass(frozen=True)
class OnePair:
    """A coupling of one individual whose contribution is known, in every draw."""

    mixture: NormalMixture
    presence: float
    contribution: np.ndarray
    revealed: Mapping[int, tuple[int, bool]] = MappingProxyType({})
    seed: int = 1
    n_draws: int = DRAWS

    def pair(self, individual):
        w, mu, covariances = self.mixture
        given = NormalMixture(
            np.concatenate([(1.0 - self.presence) * w, self.presence * w], axis=1),
            np.concatenate([mu, mu + self.contribution], axis=1),
            np.concatenate([covariances, covariances], axis=1),
        )
        return given, self.mixture


ONE = ([1.0], [[0.0, 0.0]], [[[1.0, 0.6], [0.6, 2.0]]])
TWO = (
    [0.9, 0.1], [[0.0, 0.0], [30.0, 0.0]],
    [[[9.0, 0.0], [0.0, 4.0]], [[0.01, 0.0], [0.0, 0.04]]],
)  # fmt: skip
TURN = [[[0.3, 0.5], [-0.4, 0.2]]]
PUSH = [[[0.6, 0.0], [0.5, 0.3]], [[0.0, 0.2], [0.1, -0.3]]]


def carried(lags, presence, rest, contribution):
    """Return a source whose contributions carry over, in the units of the answers."""
    whole = NormalMixture(*(np.repeat(np.array(part, float)[None], DRAWS, 0) for part in rest))
    lags = np.repeat(np.array(lags)[None], DRAWS, 0)
    coupling = OnePair(whole, presence, np.array(contribution))
    source = JointSource(coupling, 1, np.zeros(1, dtype=int), np.arange(DRAWS))
    return CarriedSource.of(source, lags)


def upper_curve(source, k):
    """Return the upper curve of k databases, the mean of all draws, and the screen's bound."""
    everywhere = np.arange(DRAWS)
    found, _ = composed([source.losses(0, everywhere)], [k], EPSILON)
    hidden = source.unrevealed(0, everywhere)[:, None] ** k
    screen = screen_bounds([source.screen(np.zeros(1, dtype=int), EPSILON)], [k], EPSILON)
    return (1.0 - hidden * (1.0 - found)).mean(axis=0), screen[:, 0].mean(axis=0)


def by_simulation(lags, presence, rest, contribution, k, size):
    """Return delta by simulation: a filter over presence in the databases that lags reach.

    With the individual e_t + c_t - sum_l B_l c_(t-l), without them e_t.
    """
    rng = np.random.default_rng(1)
    lags, contribution = np.array(lags), np.array(contribution)
    weights, means, covariances = (np.array(part) for part in rest)
    parts = [stats.multivariate_normal(m, c) for m, c in zip(means, covariances, strict=True)]

    def density(x):
        return sum(w * part.pdf(x) for w, part in zip(weights, parts, strict=True))

    def moved(here, state):
        return contribution * here - np.einsum("l,lab,b->a", state, lags, contribution)

    def ratio(e):
        without = np.log(density(e)).sum(axis=1)
        return filtered(e, density, presence, len(lags), moved) - without

    def rests():
        which = rng.choice(weights.size, p=weights, size=(size, k))
        factors = np.linalg.cholesky(covariances)[which]
        return means[which] + np.einsum(
            "...ab,...b->...a", factors, rng.standard_normal((size, k, 2))
        )

    there = contribution * (rng.random((size, k, 1)) < presence)
    later = there.copy()
    for lag, matrix in enumerate(lags, 1):
        later[:, lag:] -= there[:, :-lag] @ matrix.T
    ratios = ratio(rests() + later), ratio(rests())
    return np.array([hockey_stick(*ratios, epsilon) for epsilon in EPSILON])


@pytest.mark.parametrize(
    ("lags", "presence", "rest", "contribution"),
    [
        (TURN, 1.0, ONE, [0.3, 0.1]),
        (TURN, 0.3, ONE, [1.0, -0.5]),
        (PUSH, 0.1, ONE, [1.0, 1.0]),
        (PUSH, 0.1, TWO, [1.0, 0.5]),
        (TURN, 0.5, TWO, [0.5, 0.5]),
    ],
)
def test_contributions_to_several_answers_that_carry_over_are_bounded(
    lags, presence, rest, contribution
):
    k, size = 6, 4_000
    source = carried(lags, presence, rest, contribution)
    upper, screen = upper_curve(source, k)
    truth = by_simulation(lags, presence, rest, contribution, k, size)
    error = 3.0 * np.sqrt(upper * (1.0 - upper) / size)
    assert (truth <= upper + error).all()
    # without the factor a turn that the metric does not shrink would be missed
    assert (upper <= screen + 0.01).all()


def test_carry_over_of_several_answers_are_those_of_one_where_they_do_not_mix():
    """Of two independent answers the individual is in the first alone, with lags of its own."""
    lags = [[[0.6, 0.0], [0.0, 0.0]]]
    rest = ([1.0], [[0.0, 0.0]], [np.eye(2)])
    upper, _ = upper_curve(carried(lags, 0.3, rest, [0.5, 0.0]), 6)
    p, q = (
        rows(GAUSSIAN, np.array([[0.7, 0.3]]), np.array([[0.0, move]]), 1.0)
        for move in (0.5 * 1.6, 0.0)
    )
    exact = curves([(p, q)], [6], EPSILON)[0][0]
    np.testing.assert_allclose(upper, exact, atol=0.012)
    assert (upper > exact - 1e-3).all()


def test_what_carries_over_is_put_together_by_model():
    """Draws of two models, of unlike numbers of components and presence."""
    rng = np.random.default_rng(2)

    def pair(size, always):
        places = rng.normal(size=(2, size, 2))
        covariances = np.tile(np.eye(2), (2, size, 1, 1)) * rng.uniform(0.5, 2.0, (2, size, 1, 1))
        q = NormalMixture(rng.dirichlet(np.ones(size), 2), places, covariances)
        given = q._replace(locations=places + 0.3, covariances=covariances + 0.1)
        if always:
            return given, q
        both = (np.concatenate(part, axis=1) for part in zip(q, given, strict=True))
        p = NormalMixture(*both)
        return p._replace(weights=p.weights * np.repeat([0.6, 0.4], size)), q

    parts = [Components.of(*pair(3, True)), Components.of(*pair(2, False))]
    found = Components.joined([np.array([0, 3]), np.array([1, 2])], parts)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0)
    np.testing.assert_allclose(found.presence[[0, 3]], 1.0)
    np.testing.assert_allclose(found.presence[[1, 2], :2], 0.4)
    assert (found.weights[[1, 2], 2] == 0.0).all()
    there = found.weights > 0.0
    np.testing.assert_allclose(found.move[there], 0.3)
    np.testing.assert_allclose((found.present - found.rest)[there], 0.1)


@pytest.mark.full
@pytest.mark.parametrize(
    "model",
    [None, edp.SmoothedBootstrap(), edp.Stacked([edp.FiniteMixture(), edp.SmoothedBootstrap()])],
)
def test_audits_of_several_queries_that_follow_a_past_have_a_bound(model):
    rng = np.random.default_rng(4)
    given = rng.gamma(20.0, 0.01, (40, 3)) * (rng.random((40, 3)) < [1.0, 0.6, 0.2])
    rest = np.zeros((40, 2))
    for t in range(1, 40):
        rest[t] = rest[t - 1] @ np.array([[-0.5, 0.2], [0.0, 0.3]]) + rng.normal(size=2)
    parts = (
        edp.Responses.from_arrays(rest[:, k] + share.sum(axis=1), contribution=share, query=name)
        for k, (name, share) in enumerate([("a", given), ("b", 1.0 * (given > 0.0))])
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        audit = edp.audit(
            edp.Responses.join(*parts), epsilon=EPSILON, model=model, draws=15, tune=100, chains=2,
            random_seed=1, progressbar=False, adversary=edp.Adversary(past=1),
        )  # fmt: skip
        found, released = (
            edp.compose(audit, databases=5, past=past, progressbar=False)
            for past in ("others", "released")
        )
    assert (found.delta >= released.delta - 1e-9).all()
    assert (found.delta > released.delta).any()
    assert found.settings["carry_over"][0] > 1.2
    assert (found.tree["lower_bounds"]["delta"] == 0.0).all()
