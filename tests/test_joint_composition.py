"""Releases of several queries over fresh databases against closed forms and brute force."""

import warnings

import numpy as np
import pytest
from joint_cases import joint_coupling, joint_responses

import edp_bayes as edp
from edp_bayes.coupling.joint import JointCoupling
from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.divergence.any_pair.components import GAUSSIAN, rows
from edp_bayes.divergence.composition.pairs import ExactLosses, composed, curves
from edp_bayes.divergence.composition.screening import ORDERS
from edp_bayes.divergence.joint.losses import point_losses
from edp_bayes.divergence.joint.points import digital_shifts
from edp_bayes.divergence.shifts import gaussian_shift
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.releases.composing import JointSource, bounds, composed_risks

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
