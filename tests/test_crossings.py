"""`epsilon_at`: the bracket of every draw, from the grid alone and from the fit."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import edp_bayes as edp
import edp_bayes.statistical_privacy as sp
from edp_bayes.results.crossings import ACCURACY, bracket
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
        draws=50,
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


@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
def test_without_its_fit_an_audit_brackets_what_it_has_with_it(pair, tmp_path):
    audit = pair[0]
    again = edp.load_audit(audit.save(tmp_path / "audit.nc"))
    for target in TARGETS:
        known, grid_alone = audit.epsilon_at(target), again.epsilon_at(target)
        assert (grid_alone["lower"] <= known + 1e-12).all()
        assert (known["lower"] <= grid_alone + 1e-12).all()
        below = audit.delta.isel(epsilon=0) <= target
        assert (grid_alone.where(below, 0.1) == 0.1).all()
        assert (grid_alone["lower"].where(below, 0.0) == 0.0).all()
        assert (known.where(below, 0.0) <= 0.1).all()


def test_few_individuals_are_all_looked_at_below_the_grid(responses):
    few = edp.Responses.from_arrays(
        responses.response, contribution=responses.contribution[:, :10].toarray()
    )
    late = audited(few, edp.SmoothedBootstrap(), [0.4, 1.0])
    fine = audited(few, edp.SmoothedBootstrap(), np.linspace(0.0, 1.0, 801))
    for target in (0.05, 0.3):
        np.testing.assert_allclose(
            late.epsilon_at(target), fine.epsilon_at(target), rtol=3e-3, atol=2e-3
        )
    assert (late.epsilon_at(0.9) == 0.0).all()


def test_many_individuals_are_bounded_below_the_grid(pair):
    coarse, fine = (audit.epsilon_at(0.2) for audit in pair)
    assert (coarse < 0.1).any()
    assert (coarse >= fine["lower"] - 1e-12).all()
    assert (coarse["lower"] <= fine + 1e-12).all()
    assert ((coarse <= 0.1) == (pair[0].delta.isel(epsilon=0) <= 0.2)).all()


def test_at_zero_it_is_the_largest_log_ratio(responses):
    audit = audited(responses, edp.SmoothedBootstrap(), COARSE)
    end = audit.epsilon_at(0.0).to_numpy().ravel()
    coupling = audit.source.coupling
    for draw in range(0, end.size, 17):
        around = np.array([end[draw] * (1.0 - 1e-3), end[draw] * (1.0 + 1e-9)])
        risk = coupling.curves(np.arange(coupling.n_individuals), around)[draw].max(axis=0)
        assert risk[0] > 0.0
        assert risk[1] == 0.0


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
    risk, _ = coarse.source.between(end.to_numpy().ravel()[:1], 0, 0.1, np.array([0]))
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


def test_several_pairs_end_at_the_grid():
    curves = xr.DataArray(np.array([0.5, 0.2, 0.1]), dims="epsilon")
    wide = bracket(np.array([0.1, 0.5, 1.0]), curves.to_numpy()[None], 0.3, convex=False)
    assert [ends.item() for ends in wide] == pytest.approx([0.1, 0.5])
