"""`epsilon_at`: the bracket of every draw, from the grid alone and from the fit."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import edp_bayes as edp
import edp_bayes.statistical_privacy as sp
from edp_bayes.auditing.epsilon_at import CoupledCurves
from edp_bayes.auditing.evaluation import evaluate
from edp_bayes.coupling.views.some_draws import curves_by_draw
from edp_bayes.results.epsilon_at import ACCURACY, bracket
from edp_bayes.statistical_privacy import LaplaceNoise

TARGETS = [0.05, 0.01, 0.001]
COARSE = [0.1, 0.5, 1.0]


@pytest.fixture(scope="module")
def responses():
    rng = np.random.default_rng(3)
    c = rng.gamma(2.0, 0.05, (40, 110)) * (rng.random((40, 110)) < rng.uniform(0.1, 1.0, 110))
    c[:, 4] = rng.gamma(2.0, 0.2, 40)
    return edp.Responses.from_arrays(20.0 + rng.standard_normal(40) + c.sum(axis=1), contribution=c)


def audited(responses, model, epsilon):
    return edp.audit(
        responses,
        epsilon=epsilon,
        model=model,
        draws=20,
        chains=2,
        random_seed=1,
        progressbar=False,
    )


@pytest.fixture(scope="module", params=["laplace bootstrap", "default"])
def pair(request, responses):
    model = edp.SmoothedBootstrap() if request.param == "laplace bootstrap" else None
    return [audited(responses, model, grid) for grid in (COARSE, np.linspace(0.0, 1.0, 401))]


def loaded(audit):
    return type(audit)(audit.tree)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
@pytest.mark.parametrize("target", TARGETS)
def test_a_coarse_grid_gives_the_epsilon_of_a_fine_one(pair, target):
    coarse, fine = (audit.epsilon_at(target) for audit in pair)
    inside = (fine > 0.1) & (fine < 1.0)
    assert inside.any()
    np.testing.assert_allclose(coarse.where(inside), fine.where(inside), rtol=3e-3)
    # never less than is certain
    assert (coarse.where(inside, np.inf) >= fine["lower"] - 1e-12).all()
    narrow = (coarse - coarse["lower"] <= 1.01 * ACCURACY * coarse) | ~inside
    assert narrow.all()
    np.testing.assert_array_equal(np.isinf(coarse), fine > 1.0)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
def test_without_its_fit_an_audit_brackets_what_it_has_with_it(pair, tmp_path):
    audit = pair[0]
    again = edp.load(audit.save(tmp_path / "audit.nc"))
    for target in TARGETS:
        known, grid_alone = audit.epsilon_at(target), again.epsilon_at(target)
        assert (grid_alone["lower"] <= known + 1e-12).all()
        assert (known["lower"] <= grid_alone + 1e-12).all()
        below = audit.delta.isel(epsilon=0) <= target
        assert (grid_alone.where(below, 0.1) == 0.1).all()
        assert (grid_alone["lower"].where(below, 0.0) == 0.0).all()
        assert (known.where(below, 0.0) <= 0.1).all()


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
@pytest.mark.parametrize("target", [0.6, 0.2, 0.05])
def test_left_of_the_grid_it_is_that_of_a_fine_one_whoever_is_the_riskiest(pair, target):
    fine = pair[1].epsilon_at(target)
    late = audited_late(pair[0])
    found = late.epsilon_at(target)
    inside = fine < 0.9
    assert (fine < 0.5).any()
    np.testing.assert_allclose(found.where(inside), fine.where(inside), rtol=3e-3)
    assert (found.where(inside, np.inf) >= fine["lower"] - 1e-12).all()
    assert ((found - found["lower"] <= 1.01 * ACCURACY * found) | ~inside).all()


def audited_late(audit):
    """Return the audit as if its grid had begun at its last value but one."""
    coupling, late = audit.source.coupling, np.array(COARSE[1:])
    risks = evaluate(coupling, late, progressbar=False)
    tree = xr.DataTree.from_dict(
        {"posterior": audit.tree["posterior"].to_dataset().sel(epsilon=late)}
    )
    return type(audit)(tree, CoupledCurves(coupling, late, risks))


@pytest.mark.full
def test_who_is_riskiest_left_of_the_grid_is_found_among_everybody(responses):
    """Thirty risky there are hidden by eight that are riskier on the grid, and rarely come."""
    rng = np.random.default_rng(5)
    c = np.zeros((40, 130))
    c[:, :100] = rng.gamma(2.0, 0.02, (40, 100))
    c[:, 100:] = 0.4
    c[:, 110:118] = np.where(rng.random((40, 8)) < 0.15, 6.0, 0.0)
    data = edp.Responses.from_arrays(responses.response + c.sum(axis=1), contribution=c)
    model = edp.SmoothedBootstrap()
    late, fine = (audited(data, model, grid) for grid in ([1.0, 1.5], np.linspace(0.0, 1.5, 601)))
    np.testing.assert_allclose(late.epsilon_at(0.2), fine.epsilon_at(0.2), rtol=3e-3, atol=3e-3)
    assert any(late.source._joined.values())


@pytest.mark.full
def test_draws_that_cannot_be_picked_end_at_the_grid(pair):
    class Own:
        def __init__(self, coupling):
            self.coupling = coupling

        def __getattr__(self, name):
            return getattr(self.coupling, name)

    source = pair[0].source
    own = CoupledCurves(Own(source.coupling), source.epsilon, source.risks, source.bootstrap)
    found = type(pair[0])(pair[0].tree, own).epsilon_at(0.1)
    left = pair[0].delta.isel(epsilon=0) <= 0.1
    assert left.any()
    assert (found.where(left, 0.1) <= 0.1).all()
    assert (found >= pair[0].epsilon_at(0.1)["lower"]).all()


def test_epsilons_of_each_draw_give_what_the_same_give_for_all(pair):
    coupling = pair[0].source.coupling
    rng, people = np.random.default_rng(2), np.arange(0, 110, 9)
    own = np.sort(rng.uniform(0.0, 1.0, (coupling.n_draws, 2)), axis=1)
    found = np.concatenate(
        [curves_by_draw(coupling, people, own[:, k].copy()) for k in range(2)], axis=2
    )
    for row in range(0, coupling.n_draws, 13):
        np.testing.assert_allclose(
            found[row], coupling.curves(people, own[row])[row], rtol=1e-9, atol=1e-13
        )


def test_at_zero_it_is_the_largest_log_ratio(responses):
    audit = audited(responses, edp.SmoothedBootstrap(), COARSE)
    end = audit.epsilon_at(0.0).to_numpy().ravel()
    coupling = audit.source.coupling
    for draw in range(0, end.size, 17):
        around = np.array([end[draw] * (1.0 - 1e-3), end[draw] * (1.0 + 1e-9)])
        risk = coupling.curves(np.arange(coupling.n_individuals), around)[draw].max(axis=0)
        assert risk[0] > 0.0
        assert risk[1] == 0.0


@pytest.mark.full
def test_of_bandwidths_that_vary_it_is_a_bound(responses):
    few = edp.Responses.from_arrays(
        responses.response, contribution=responses.contribution[:, :5].toarray()
    )
    audit = edp.audit(
        few,
        epsilon=[0.5, 1.0],
        model=edp.SmoothedBootstrap(variable=True),
        draws=10,
        chains=2,
        random_seed=1,
        progressbar=False,
    )
    end = audit.epsilon_at(0.0).to_numpy().ravel()
    coupling = audit.source.coupling
    for draw in (0, 7, 19):
        assert coupling.curves(np.arange(5), end[draw : draw + 1])[draw].max() <= 1e-12


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
def test_at_zero_it_says_why_there_is_none(responses, pair):
    normal = audited(responses, edp.SmoothedBootstrap(kernel="gaussian"), [0.1])
    with pytest.raises(edp.InvalidInputError, match="above zero at every epsilon"):
        normal.epsilon_at(0.0)
    with pytest.raises(edp.InvalidInputError, match="loaded or made without"):
        loaded(pair[0]).epsilon_at(0.0)


def test_a_property_audit_solves_its_exact_curve():
    audit = edp.audit_property(
        9000, 10_000, epsilon=[0.05, 0.1, 0.2], draws=100, random_seed=1, progressbar=False
    )
    for target in (1e-2, 1e-4):
        exact = sp.epsilon_at(target, 10_000, audit.prob.isel(property=0).to_numpy())
        found = audit.epsilon_at(target)
        np.testing.assert_allclose(found, exact, rtol=2e-3)
        assert (found >= exact * (1.0 - 1e-4)).all()
    assert float(audit.epsilon_at(1e-4).median()) == pytest.approx(0.0813, abs=3e-4)
    with pytest.raises(edp.InvalidInputError, match="some answers give an entry away"):
        audit.epsilon_at(0.0)


@pytest.mark.full
def test_noise_on_a_property_query_bounds_its_ratio():
    audit = edp.audit_property(
        103,
        1000,
        epsilon=[0.05, 0.2],
        mechanism=LaplaceNoise(0.01),
        draws=100,
        random_seed=1,
        progressbar=False,
    )
    np.testing.assert_allclose(audit.epsilon_at(0.0), 0.1, rtol=1e-9)
    exact = sp.epsilon_at(
        0.01, 1000, audit.prob.isel(property=0, draw=slice(3)).to_numpy(),
        mechanism=LaplaceNoise(0.01),
    )  # fmt: skip
    np.testing.assert_allclose(audit.epsilon_at(0.01).isel(draw=slice(3)), exact, rtol=2e-3)


@pytest.mark.full
def test_a_mechanism_audit_solves_from_its_posterior():
    rng = np.random.default_rng(1)
    answers = [rng.random(2000) < share for share in (0.75, 0.25)]
    options = {"draws": 100, "random_seed": 1, "progressbar": False}
    coarse = edp.audit_mechanism(*answers, epsilon=[0.5, 2.0], **options)
    fine = edp.audit_mechanism(*answers, epsilon=np.linspace(0.0, 2.0, 2001), **options)
    for target in (0.6, 0.3, 0.01):
        np.testing.assert_allclose(
            coarse.epsilon_at(target), fine.epsilon_at(target), rtol=2e-3, atol=2e-3
        )
    end = coarse.epsilon_at(0.0)
    np.testing.assert_allclose(end, coarse.local_epsilon, rtol=5e-3)
    risk, _ = coarse.source.between(end.to_numpy().ravel()[:1, None], 0, 0.1, np.array([0]))
    assert risk.item() <= 1e-12
    normal = edp.audit_mechanism(
        rng.normal(size=300), rng.normal(size=300), epsilon=[0.5], **options
    )
    with pytest.raises(edp.InvalidInputError, match="of continuous outcomes the tails"):
        normal.epsilon_at(0.0)


def test_a_verification_knows_where_delta_is_zero():
    rng = np.random.default_rng(1)
    contribution = rng.gamma(2.0, 0.1, (30, 4))
    response = rng.normal(10.0, 1.0, 30) + contribution.sum(axis=1)
    data = edp.Responses.from_arrays(response, contribution=contribution)
    model = edp.noise.FixedBandwidth(0.6)
    found = edp.noise.verify(data, edp.LaplaceNoise(1.0), epsilon=[0.1, 0.5], model=model)
    np.testing.assert_array_equal(found.epsilon_at(0.0), found.log_ratio)


@pytest.mark.full
@given(data=st.data(), target=st.floats(1e-3, 0.9))
@settings(max_examples=200, deadline=None)
def test_a_bracket_holds_the_crossing_of_any_convex_curve(data, target):
    """Curves are maxima of weight - share exp(epsilon), as hockey-stick integrals are."""
    lines = data.draw(
        st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(1e-3, 1.0)), min_size=1, max_size=5)
    )
    grid = np.unique(data.draw(st.lists(st.floats(0.0, 3.0), min_size=1, max_size=6)))

    def curve(epsilon):
        values = [p - q * np.exp(epsilon) for p, q in lines]
        return np.maximum(np.max(values, axis=0), 0.0)

    lower, upper = (ends[0] for ends in bracket(grid, curve(grid)[None], target))
    truth = max(max(np.log(max((p - target) / q, 1e-300)) for p, q in lines), 0.0)
    assert lower <= max(truth, 0.0) + 1e-9
    assert upper >= min(truth, upper) - 1e-9
    if np.isfinite(upper):
        assert curve(upper) <= target + 1e-9
    else:
        assert truth > grid[-1] - 1e-9


@pytest.mark.full
def test_joint_draws_of_several_pairs_are_pooled_beside_the_grid():
    def respond(x, size, rng):
        return rng.integers(0, 4, size) * (rng.random(size) < 0.5) + (rng.random(size) < x)

    pairs = [(0.1, 0.6), (0.2, 0.7), (0.3, 0.5)]
    options = {"size": 500, "draws": 50, "random_seed": 1, "progressbar": False}
    coarse = edp.audit_mechanisms(respond, pairs, epsilon=[0.2, 2.0], **options)
    fine = edp.audit_mechanisms(respond, pairs, epsilon=np.linspace(0.0, 2.0, 81), **options)
    for target in (0.4, 0.2):
        found, close = (
            audit.epsilon_at(target).quantile([0.1, 0.5, 0.9], method="inverted_cdf")
            for audit in (coarse, fine)
        )
        np.testing.assert_allclose(found, close, rtol=0.05, atol=0.01)
        wide = loaded(coarse).epsilon_at(target)
        assert (coarse.epsilon_at(target) <= wide).all()
        assert (coarse.epsilon_at(target) < wide).any()
    with pytest.raises(edp.InvalidInputError, match="of several pairs"):
        coarse.epsilon_at(0.0)


def test_without_their_fit_several_pairs_end_at_the_grid():
    curves = xr.DataArray(np.array([0.5, 0.2, 0.1]), dims="epsilon")
    wide = bracket(np.array([0.1, 0.5, 1.0]), curves.to_numpy()[None], 0.3, convex=False)
    assert [ends.item() for ends in wide] == pytest.approx([0.1, 0.5])
