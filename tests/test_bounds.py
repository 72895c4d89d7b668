"""Upper bounds for those who hardly matter in a large population, against their exact risks."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import edp_bayes as edp
from edp_bayes.auditing.evaluation import BELOW, evaluate
from edp_bayes.coupling.base import FLOOR
from edp_bayes.coupling.contributions.posterior import ContributionDraws
from edp_bayes.coupling.curves.bounds import bound_curves
from edp_bayes.coupling.curves.one_answer import coupled_curves, pair_components
from edp_bayes.coupling.pilots import FIRST, LEAST, SHARE, largest_of_pilots
from edp_bayes.coupling.views.published import ReleasedCoupling
from edp_bayes.coupling.views.some_draws import pick
from edp_bayes.distributions.published import Published
from edp_bayes.divergence import gaussian
from edp_bayes.divergence.released.curves import released_curves
from edp_bayes.models import Stacked
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.report.sections.records import assumptions

EPSILON = np.array([0.05, 0.3, 1.0])
MODELS = {
    "mixture": edp.DirichletProcessMixture(components=6),
    "stacked": Stacked([edp.SmoothedBootstrap(), edp.DirichletProcessMixture(components=6)]),
}


@pytest.fixture(scope="module")
def responses():
    """Six hundred individuals, rare but for one who is always there, and one far larger."""
    rng = np.random.default_rng(11)
    c = rng.lognormal(-4.0, 1.0, (40, 600)) * (rng.random((40, 600)) < 0.03)
    c[:, 1], c[:6, 2] = 0.1, 3.0
    y = 10.0 + rng.standard_normal(40) + c.sum(axis=1)
    return edp.Responses.from_arrays(y, contribution=sp.csc_array(c))


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS)
def coupling(request, responses):
    how = SamplerSettings(draws=15, tune=50, chains=2, random_seed=1, progressbar=False)
    return request.param.fit(responses, how).coupling


@pytest.mark.full
def test_bounds_are_above_the_risk_and_all_others_keep_theirs(coupling):
    everybody = np.arange(coupling.n_individuals)
    bounded = coupling.bounded(EPSILON)
    exact, found = coupling.curves(everybody, EPSILON), bounded.curves(everybody, EPSILON)
    changed = found != exact
    assert 0.0 < changed.mean() < 1.0
    assert (found >= exact - FLOOR).all()
    assert (found <= np.maximum(exact, bounded.floor[:, None]))[changed].all()


@pytest.mark.full
def test_what_is_bounded_changes_no_more_than_is_said(coupling):
    copies = np.random.default_rng(3).integers(0, coupling.n_individuals, coupling.n_draws)
    exact = evaluate(coupling, EPSILON, progressbar=False, copies=copies)
    found = evaluate(coupling, EPSILON, progressbar=False, copies=copies, exact_up_to=100)
    np.testing.assert_array_equal(found.delta, exact.delta)
    assert (found.floor <= np.maximum(SHARE * exact.delta, LEAST)).all()
    assert (found.least_delta <= exact.delta).all()
    for low, true, high in (
        (found.least_total_risk, exact.total_risk, found.total_risk),
        (found.total_risk_bound - found.bounded, exact.total_risk_bound, found.total_risk_bound),
    ):
        assert (low <= true + 1e-12).all()
        assert (true <= high + 1e-12).all()
    assert (found.highest >= exact.highest - FLOOR).all()
    assert (found.mean >= exact.mean - FLOOR).all()
    assert found.bounded.max() > 0.0
    assert not exact.bounded.any()


@pytest.fixture(scope="module")
def rounded(responses):
    """The coupling of the same answers rounded to a quarter."""
    how = SamplerSettings(draws=15, tune=50, chains=2, random_seed=1, progressbar=False)
    coupling = MODELS["mixture"].fit(responses, how).coupling
    return ReleasedCoupling(coupling, Published(rounded_to=0.25, offset=0.0))


@pytest.mark.full
def test_what_is_left_of_a_bounded_risk_is_bounded(rounded):
    everybody = np.arange(rounded.n_individuals)
    bounded = rounded.bounded(EPSILON)
    exact, found = rounded.curves(everybody, EPSILON), bounded.curves(everybody, EPSILON)
    changed = found != exact
    assert 0.0 < changed.mean() < 1.0
    assert (found >= exact - FLOOR).all()
    assert (found <= np.maximum(exact, bounded.floor[:, None]) + 1e-15).all()
    rows = np.arange(0, rounded.n_draws, 3)
    picked = pick(bounded, rows).curves(everybody, EPSILON)
    np.testing.assert_allclose(picked, exact[rows], rtol=0.0, atol=1e-14)


@pytest.mark.full
def test_the_largest_risk_alone_is_the_largest_of_all(coupling):
    require_the_largest(coupling)


@pytest.mark.full
def test_so_is_that_of_rounded_answers(rounded):
    require_the_largest(rounded)


@pytest.fixture(scope="module")
def alike():
    """The coupling of a count of nine hundred individuals, of whom many may be the riskiest."""
    present = np.random.default_rng(4).random((40, 900)) < 0.6
    responses = edp.Responses.from_arrays(present.sum(axis=1), contribution=1.0 * present)
    how = SamplerSettings(draws=15, tune=50, chains=2, random_seed=1, progressbar=False)
    full = MODELS["mixture"].fit(responses.replaced(step=None), how).coupling
    return ReleasedCoupling(full, Published(rounded_to=1.0, offset=0.0))


@pytest.mark.full
def test_close_distributions_below_the_largest_are_not_added_up(alike, monkeypatch):
    from edp_bayes.divergence.released import curves as module

    bounded = alike.bounded(EPSILON, BELOW)
    everybody = np.arange(alike.n_individuals)
    drawn = bounded.full.centred(everybody)
    found, done = bounded.full.without_integrals(everybody, EPSILON, drawn)
    needless = done & (found <= bounded.floor[:, None]).all(axis=2)
    assert 0.2 < needless.mean() < 1.0
    added = []

    def counted(p, *arguments, **options):
        added.append(len(p))
        return released_curves(p, *arguments, **options)

    monkeypatch.setattr(module, "released_curves", counted)
    bounded.curves(everybody, EPSILON)
    assert sum(added) == (~needless).sum()


def test_the_largest_risk_among_the_pilots_is_found_by_bounds(alike):
    for coupling in (alike.full, alike):
        exact = coupling.curves(coupling.pilots, EPSILON)
        largest, found = exact.max(axis=1), largest_of_pilots(coupling, EPSILON)
        assert (largest > exact[:, :FIRST].max(axis=1))[:, 0].mean() > 0.5
        counts = largest > LEAST
        np.testing.assert_allclose(found[counts], largest[counts], rtol=0.0, atol=1e-15)
        assert (found <= largest).all()


def require_the_largest(coupling):
    exact = evaluate(coupling, EPSILON, progressbar=False)
    found = evaluate(coupling, EPSILON, progressbar=False, only_largest=True)
    np.testing.assert_allclose(found.delta, exact.delta, rtol=0.0, atol=1e-15)
    np.testing.assert_array_equal(found.least_delta, found.delta)
    assert (found.total_risk >= exact.total_risk - 1e-12).all()
    assert (found.least_total_risk <= exact.total_risk + 1e-12).all()
    assert (found.highest >= exact.highest - FLOOR).all()
    assert found.bounded.max() > 0.0


@pytest.mark.full
def test_an_audit_of_the_largest_risk_alone(responses):
    options = {"epsilon": EPSILON, "draws": 25, "random_seed": 1, "progressbar": False}
    contribution = responses.contribution.copy()
    contribution.data = contribution.data.round(2)
    rest = np.random.default_rng(2).normal(10.0, 1.0, 40).round(2)
    answers = (rest + contribution.sum(axis=1)).round(2)
    rounded = edp.Responses.from_arrays(answers, contribution=contribution, step=0.01)
    exact = edp.audit(rounded, **options)
    found = edp.audit(rounded, only_largest=True, **options)
    np.testing.assert_allclose(found.delta, exact.delta, rtol=0.0, atol=LEAST)
    limits = [one.verdict(epsilon=0.3, delta=0.1).limit for one in (found, exact)]
    assert limits[0] == pytest.approx(limits[1], abs=1e-15)
    assert (found.total_risk >= exact.total_risk - 1e-12).all()
    assert "bounded" in found.settings


def test_of_many_epsilons_bounds_by_cells_are_tight_and_above():
    """Of pairs in draws of their own, each with a floor somewhat above its risk."""
    rng, epsilon = np.random.default_rng(3), np.linspace(0.002, 0.1, 50)
    pairs, k = 400, 5
    base = np.stack(
        [
            rng.dirichlet(np.full(k, 0.7), pairs),
            rng.standard_normal((pairs, k)),
            rng.lognormal(0.0, 0.3, (pairs, k)),
        ],
        axis=1,
    )
    size = 0.1 * rng.standard_normal((3, pairs, 1))
    contributions = ContributionDraws(
        rng.beta(1.0, 1.0, (pairs, 1, k)), size[0], 0.1 * size[1], np.abs(size[2])
    )
    exact, close = np.zeros((pairs, 1, 50)), np.zeros((pairs, 1), dtype=bool)
    coupled_curves(
        base, contributions, epsilon, noise_scale=0.0, floor=FLOOR, out=exact, close=close
    )
    assert close.mean() > 0.95
    served = []
    for by_cells in (False, True):
        out, done = np.zeros_like(exact), np.zeros_like(close)
        floor = np.maximum(1.3 * exact[:, 0], LEAST)
        bound_curves(
            base, contributions, epsilon, noise_scale=0.0, floor=floor, out=out, done=done,
            by_cells=by_cells,
        )  # fmt: skip
        some = done & close
        assert (out[some] >= exact[some] - FLOOR).all()
        assert (out <= floor[:, None]).all()
        assert not out[~done].any()
        served.append(done.mean())
    assert served[1] > served[0] + 0.1


def test_small_populations_are_exact(coupling):
    exact = evaluate(coupling, EPSILON, progressbar=False)
    found = evaluate(coupling, EPSILON, progressbar=False, exact_up_to=coupling.n_individuals)
    np.testing.assert_array_equal(found.total_risk, exact.total_risk)
    assert not found.floor.any()


@pytest.mark.full
def test_noise_and_kernels_without_closed_forms_stay_exact(responses):
    how = SamplerSettings(draws=10, tune=20, chains=2, random_seed=1, progressbar=False)
    model = edp.DirichletProcessMixture(components=3, kernel="laplace")
    coupling = model.fit(responses, how).coupling
    assert coupling.bounded(EPSILON) is coupling


@pytest.mark.full
def test_an_audit_says_what_bounds_change(responses):
    options = {"epsilon": EPSILON, "draws": 25, "random_seed": 1, "progressbar": False}
    exact = edp.audit(responses, **options)
    found = edp.audit(responses, exact_up_to=100, **options)
    assert "bounded" not in exact.settings
    assert any("upper bound" in line for line in assumptions(found, "query"))
    assert not any("upper bound" in line for line in assumptions(exact, "query"))
    most = found.settings["bounded"]
    excess = (found.total_risk - exact.total_risk).max(("chain", "draw")).to_numpy()
    assert excess.max() > 0.0
    assert (excess <= np.array(list(most.values())) + 1e-12).all()
    np.testing.assert_array_equal(found.delta, exact.delta)
    # those kept are the same, those of next to no risk in another order
    shown = found.individual_delta.sel(individual=exact.individual_delta["individual"])
    np.testing.assert_array_equal(shown, exact.individual_delta)
    low, high = (
        part.to_dataset()["total_risk"]
        for part in (found.tree["lower_bounds"], exact.tree["lower_bounds"])
    )
    assert (low <= high + 1e-12).all()


def test_exact_up_to_is_a_number_of_individuals(responses):
    with pytest.raises(edp.exceptions.InvalidInputError, match="exact_up_to"):
        edp.audit(responses, epsilon=EPSILON, exact_up_to=0)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.floats(-6.0, 1.0),
    noise=st.sampled_from([0.0, 0.3]),
)
def test_a_bound_is_above_the_integral(seed, size, noise):
    """Of any mixture, presence by component and contribution, against the general integrator."""
    rng = np.random.default_rng(seed)
    base = np.stack(
        [rng.dirichlet(np.full(5, 0.4)), 2.0 * rng.standard_normal(5), rng.lognormal(-1.0, 1.0, 5)]
    )[None]
    rho = rng.beta(0.5, 5.0, (1, 1, 5))
    a, b, spread = (10.0**size * rng.standard_normal((1, 1)) for _ in range(3))
    b, spread = np.clip(0.3 * b, -0.9, 0.9), np.abs(spread)
    out, done = np.zeros((1, 1, 3)), np.zeros((1, 1), dtype=bool)
    bound_curves(
        base,
        ContributionDraws(rho, a, b, spread),
        EPSILON,
        noise_scale=noise,
        floor=np.ones((1, 3)),
        out=out,
        done=done,
    )
    assert done.all()
    (g, q), rho = pair_components(base, rho[0], a[0], b[0], spread[0], unit=1.0)[0], rho[0, 0]
    w = base[0, 0]
    scale = [np.hypot(part[1], noise) for part in (q, g)]
    pw, pm = np.r_[(1.0 - rho) * w, rho * w], np.r_[q[0], g[0]]
    ps, qs = np.concatenate(scale), np.r_[scale[0], scale[0]]
    exact = gaussian.curves(
        *(part[None] for part in (pw, pm, ps)),
        *(part[None, None] for part in (pw, np.r_[q[0], q[0]], qs)),
        EPSILON,
    )
    assert (out >= exact - FLOOR).all()
