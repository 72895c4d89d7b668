"""Risks from several queries: who is integrated, by blocks, and never below those of one answer."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joint_cases import EPSILON, MODELS, joint_coupling, joint_responses
from test_evaluation import same

import edp_bayes as edp
from edp_bayes.auditing.evaluation import evaluate
from edp_bayes.coupling.contributions.posterior import STEEPEST
from edp_bayes.coupling.contributions.several import _flatten
from edp_bayes.coupling.curves.each_answer import answer_curves
from edp_bayes.coupling.views.some_individuals import taken
from edp_bayes.distributions.multivariate import NormalMixture, Units
from edp_bayes.exceptions import InvalidInputError

PEOPLE = 300


@pytest.fixture(scope="module", params=MODELS)
def coupling(request):
    return joint_coupling(request.param, people=PEOPLE)


@pytest.fixture(scope="module")
def risks(coupling):
    return evaluate(coupling, EPSILON, progressbar=False)


def test_who_is_not_integrated_changes_nothing_of_delta(coupling, risks):
    found = evaluate(coupling, EPSILON, progressbar=False, exact_up_to=1)
    # but where it is next to nothing
    for ours, theirs in zip(
        (found.delta, *found.errors.delta), (risks.delta, *risks.errors.delta), strict=True
    ):
        seen = theirs > 1e-6
        assert np.array_equal(ours[seen], theirs[seen])
    assert (found.delta >= risks.delta).all()
    assert (found.delta[risks.delta <= 1e-6] <= 1e-6).all()
    assert (found.total_risk >= risks.total_risk).all()
    # what is said to be bounded is all that is added
    for part, whole in ((found, risks), (found.errors, risks.errors)):
        most = whole.total_risk_bound + found.bounded + 1e-12
        assert (part.total_risk_bound <= most).all()
    assert (found.bounded > 0.0).any()
    # lower ends leave out whoever is bounded
    assert (found.least_total_risk <= risks.least_total_risk + 1e-12).all()
    assert not risks.bounded.any()


@pytest.mark.full
def test_few_are_integrated_for_the_largest_risk(coupling):
    light = coupling.with_floor(EPSILON, integrated=False).curves(np.arange(PEOPLE), EPSILON)
    plain = coupling.with_floor(EPSILON, integrated=True)
    whole = plain.curves(np.arange(PEOPLE), EPSILON)
    integrated = (whole.value[..., 0] > 0.0).sum(), ((light.value[..., 0] > 0.0) & ~light.bounded)
    assert integrated[1].sum() < 0.2 * integrated[0]
    # bounds are bounds, and all others are as they were
    assert (light.value >= whole.value - 3.0 * whole.error).all()
    assert np.array_equal(light.value[~light.bounded], whole.value[~light.bounded])
    floor = plain.floor[:, None]
    assert (np.where(light.bounded[..., None], light.value, 0.0) <= floor).all()


def test_a_part_of_the_individuals_has_the_same_bits(coupling):
    some = np.array([0, 1, 2, 7, 200])
    part, whole = taken(coupling, some), coupling.curves(some, EPSILON)
    found = part.curves(np.arange(some.size), EPSILON)
    assert np.array_equal(found.value, whole.value)
    assert np.array_equal(found.error, whole.error)
    assert "secret" not in repr(vars(part.responses))


@pytest.mark.full
def test_larger_populations_are_bounded_and_it_is_said():
    both = joint_responses(people=200)
    options = {"epsilon": EPSILON, "draws": 25, "chains": 2, "random_seed": 1, "tune": 100}
    options |= {"progressbar": False, "model": edp.DirichletProcessMixture(components=4)}
    exact, bounded = (edp.audit(both, exact_up_to=k, **options) for k in (200, 199))
    assert "bounded" not in exact.settings
    assert min(bounded.settings["bounded"].values()) > 0.0
    assert np.array_equal(exact.delta, bounded.delta)
    assert (bounded.total_risk >= exact.total_risk).all()
    # each keeps ten individuals; of those that both keep the lower bounds are the same
    first, second = (
        audit.tree["lower_bounds"].to_dataset()["individual_delta"] for audit in (exact, bounded)
    )
    both_keep = np.intersect1d(first["individual"], second["individual"])
    assert both_keep.size >= 5
    assert first.sel(individual=both_keep).equals(second.sel(individual=both_keep))
    for audit in (exact, bounded):
        assert (audit.tree["lower_bounds"].to_dataset()["delta"] <= audit.delta).all()


# Lemma 2: all answers together tell no less than each


@pytest.mark.full
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("noise", [None, edp.GaussianNoise(0.5)], ids=["plain", "noise"])
def test_all_answers_tell_no_less_than_each_in_every_draw(model, noise):
    coupling = joint_coupling(model, people=12, noise=noise)
    everybody = np.arange(12)
    joint = coupling.curves(everybody, EPSILON).value
    for i in everybody:
        p, q = coupling.pair(i)
        for row in coupling.units.factor:
            line = row / np.linalg.norm(row)
            left, right = (part.along(line, coupling.noise) for part in (p, q))
            for e, epsilon in enumerate(EPSILON):
                alone = edp.hockey_stick(left, right, epsilon=epsilon)
                other = edp.hockey_stick(right, left, epsilon=epsilon)
                # what joint convexity bounds by 1e-6 is not looked for
                assert (joint[:, i, e] >= np.maximum(alone, other) - 1e-6).all()


def test_correlated_answers_tell_no_less_than_their_most_telling_combination():
    coupling = joint_coupling(people=12, draws=5)
    # contributions raise both answers, and all else moves them apart
    w, mu, _ = coupling.mixture
    covariance = np.array([[1.0, -0.9], [-0.9, 1.0]])
    normal = NormalMixture(
        np.ones_like(w[:, :1]), np.zeros_like(mu[:, :1]), np.tile(covariance, (len(w), 1, 1, 1))
    )
    coupling = replace(coupling, mixture=normal)
    open_ = [i for i in range(12) if i not in coupling.without]
    found = coupling.curves(np.array(open_), EPSILON)
    assert len(open_) > 5
    for column, i in enumerate(open_):
        p, q = coupling.line(i)
        pairs = ((p, q), (q, p))
        best = np.max([edp.hockey_stick(*pair, epsilon=EPSILON) for pair in pairs], axis=0)
        told = found.value[:, column] + 4.0 * found.error[:, column]
        # what joint convexity bounds by 1e-6 is not looked for
        assert (told >= best - 1e-6).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_an_answer_on_its_own_is_its_coordinate(seed, d):
    rng = np.random.default_rng(seed)
    root = np.tril(rng.normal(size=(d, d)), -1) + np.diag(rng.uniform(0.5, 2.0, d))
    units = Units(rng.normal(size=d), root)
    covariances = np.array([[np.eye(d), 0.3 * np.eye(d)]])
    p = NormalMixture(np.array([[0.6, 0.4]]), rng.normal(size=(1, 2, d)), covariances)
    q = p._replace(locations=p.locations + 0.3 * rng.normal(size=(1, 2, d)))
    found = answer_curves(p, q, units, np.zeros((d, d)), EPSILON)[0]
    plain = [part.in_units(units) for part in (p, q)]
    exact = np.zeros(EPSILON.size)
    for a in range(d):
        left, right = (
            edp.Mixture(
                part.weights[0], part.locations[0, :, a], np.sqrt(part.covariances[0, :, a, a])
            )
            for part in plain
        )
        for e, epsilon in enumerate(EPSILON):
            both = [
                edp.hockey_stick(*pair, epsilon=epsilon) for pair in ((left, right), (right, left))
            ]
            exact[e] = max(exact[e], *both)
    assert np.allclose(found, exact, atol=1e-9)


# Stores and executors


@pytest.mark.full
def test_a_store_continues_with_the_same_bits(tmp_path, monkeypatch):
    both = joint_responses(people=200)
    options = {"epsilon": EPSILON, "draws": 25, "chains": 2, "random_seed": 1, "tune": 100}
    options |= {"progressbar": False, "model": edp.DirichletProcessMixture(components=4)}
    plain, path = edp.audit(both, **options), tmp_path / "store"

    def killed(*ignored, **also):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("edp_bayes.auditing.query.riskiest", killed)
        with pytest.raises(KeyboardInterrupt):
            edp.audit(both, store=path, **options)
    assert sorted(part.name for part in path.glob("block-*")) == [
        "block-000000.npz",
        "block-000001.npz",
    ]
    (path / "block-000001.npz").unlink()
    asked = []
    from edp_bayes.auditing.executors.base import Work

    evaluated = Work.evaluate

    def counted(self, members):
        asked.append(members[0])
        return evaluated(self, members)

    monkeypatch.setattr(Work, "evaluate", counted)
    again = edp.audit(both, store=path, **options)
    assert asked == [128]
    for name in ("delta", "total_risk", "individual_delta"):
        assert getattr(again, name).equals(getattr(plain, name)), name
    assert not path.exists()


def test_a_store_of_another_joint_audit_is_refused(tmp_path):
    options = {"epsilon": EPSILON, "draws": 25, "chains": 2, "random_seed": 1, "progressbar": False}
    options |= {"model": edp.SmoothedBootstrap(), "store": tmp_path / "store", "keep_store": True}
    edp.audit(joint_responses(people=4), **options)
    with pytest.raises(InvalidInputError, match="fingerprint of the data"):
        edp.audit(joint_responses(people=4, seed=6), **options)


@pytest.mark.full
def test_threads_give_the_same_bits(coupling, risks):
    from edp_bayes.auditing.executors.base import running

    with running(3) as run:
        found = evaluate(coupling, EPSILON, progressbar=False, run=run)
    same(risks, found)


@given(st.integers(1, 4), st.integers(0, 10_000), st.floats(0.1, 30.0))
@settings(deadline=None, max_examples=100)
def test_an_individual_never_takes_nearly_all_of_a_direction(d, seed, size):
    slope = size * np.random.default_rng(seed).standard_normal((d, d))
    require_something_left(slope)


def test_nor_where_no_pivot_is_small():
    # pivots of the Cholesky factor are 0.15, the least singular value is 0.0075
    require_something_left(np.array([[0.15, 3.0], [0.0, 0.15]]) - np.eye(2))


def require_something_left(slope):
    d = len(slope)
    flat = slope.copy()
    _flatten(flat, np.empty((d, d)), np.empty((d, d)), d)
    left = np.eye(d) + flat
    assert np.linalg.svd(left, compute_uv=False).min() >= 1.0 - STEEPEST - 1e-9
    assert np.linalg.det(left) > 0.0
    if np.linalg.norm(slope) < STEEPEST:
        np.testing.assert_array_equal(flat, slope)
