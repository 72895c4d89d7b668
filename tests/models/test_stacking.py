"""The stacked model: whose draws it takes, in what proportion, and under which coupling."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

import edp_bayes as edp
from edp_bayes.coupling.views.some_draws import pick, stack_couplings
from edp_bayes.diagnostics import check_draws
from edp_bayes.models import (
    BaseMeasure,
    DirichletProcessMixture,
    FiniteMixture,
    SamplerSettings,
    Stacked,
)
from edp_bayes.models.leave_one_out import leave_one_out, stacking_weights
from edp_bayes.models.stacking import apportion

EPSILON = np.array([0.0, 0.05, 0.3])
QUICK = {"draws": 40, "tune": 100, "chains": 2, "random_seed": 3, "progressbar": False}
SETTINGS = SamplerSettings(**QUICK)
BOOTSTRAP = edp.SmoothedBootstrap(kernel="gaussian")
BARE = edp.SmoothedBootstrap()
ONE_RATE = BaseMeasure(scale_shape=None)  # so that every member has some weight
MEMBERS = (
    BOOTSTRAP,
    DirichletProcessMixture(base_measure=ONE_RATE),
    FiniteMixture(base_measure=ONE_RATE),
)
NOISES = {"quiet": None, "gaussian": edp.GaussianNoise(0.3), "laplace": edp.LaplaceNoise(0.3)}


def make_responses(n=30, seed=5, noise=None):
    rng = np.random.default_rng(seed)
    c = rng.gamma(2.0, 0.05, (n, 9)) * (rng.random((n, 9)) < 0.6)
    c[:, 2] = 0.5 + 0.1 * rng.standard_normal(n)
    y = np.where(rng.random(n) < 0.4, rng.normal(-1.2, 0.4, n), rng.normal(1.0, 0.7, n))
    whole = edp.Responses.from_arrays(y + c.sum(axis=1), contribution=sp.csc_array(c))
    return edp.Responses(
        whole.response,
        whole.contribution,
        whole.individual,
        whole.database,
        whole.presence,
        noise=noise,
    )


@pytest.fixture(scope="module")
def responses():
    return make_responses()


@pytest.fixture(scope="module")
def fits(responses):
    return [model.fit(responses, SETTINGS) for model in MEMBERS]


@pytest.fixture(scope="module")
def member():
    return np.random.default_rng(1).integers(0, 3, (2, 40))


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_every_draw_keeps_its_models_coupling(noise, member):
    responses = make_responses(noise=noise)
    short = SamplerSettings(**{**QUICK, "draws": 4})
    couplings = [model.fit(responses, short).coupling for model in MEMBERS]
    member = member[:, :4]
    stacked = stack_couplings(couplings, member)
    people = np.array([2, 0, 5])
    curves = stacked.curves(people, EPSILON)
    whole = [coupling.curves(people, EPSILON) for coupling in couplings]
    for row, k in enumerate(member.ravel()):
        np.testing.assert_allclose(curves[row], whole[k][row], rtol=1e-9, atol=1e-13)
    x = np.linspace(-3.0, 4.0, 7)
    sides = zip(stacked.pair(2), *(coupling.pair(2) for coupling in couplings), strict=True)
    for found, *theirs in sides:
        densities = np.stack([distribution.pdf(x) for distribution in theirs])
        expected = densities[member, np.arange(2)[:, None], np.arange(4)]
        np.testing.assert_allclose(found.pdf(x), expected, rtol=1e-12)
    p, q = stacked.pair(2)
    integral = np.maximum(
        edp.hockey_stick(p, q, epsilon=EPSILON), edp.hockey_stick(q, p, epsilon=EPSILON)
    )
    np.testing.assert_allclose(curves[:, 0].reshape(2, 4, 3), integral, rtol=1e-7, atol=2e-12)


def test_the_distribution_of_the_response_is_each_models_own(fits, member):
    stacked = stack_couplings([fit.coupling for fit in fits], member)
    x = np.linspace(-3.0, 4.0, 9)
    densities = np.stack([fit.mixture.pdf(x) for fit in fits])
    expected = densities[member, np.arange(2)[:, None], np.arange(40)]
    np.testing.assert_allclose(stacked.mixture.pdf(x), expected, rtol=1e-12)
    padded = stacked.mixture.weights[member == 2]
    assert (padded[:, 1:] == 0.0).all()
    assert stacked.mixture.scales.min() >= min(fit.mixture.scales.min() for fit in fits)
    assert (stacked.n_draws, stacked.n_individuals) == (80, 9)


def test_curves_do_not_depend_on_blocks_or_buffers(fits, member):
    stacked = stack_couplings([fit.coupling for fit in fits], member)
    together = stacked.curves(np.arange(9), EPSILON)
    buffer = np.full((80, 4, 3), np.nan)
    first = stacked.curves(np.arange(4), EPSILON, out=buffer)
    assert first is buffer
    np.testing.assert_array_equal(first, together[:, :4])
    np.testing.assert_array_equal(stacked.curves(np.arange(4, 9), EPSILON), together[:, 4:])


def test_whoever_matters_to_one_model_is_evaluated(responses, member):
    """Laplace kernels: the bootstrap leaves out whoever never moves a component by eps."""
    models = (edp.SmoothedBootstrap(), edp.SmoothedBootstrap(bandwidth_spread=0.01))
    couplings = [model.fit(responses, SETTINGS).coupling for model in models]
    stacked = stack_couplings(couplings, member % 2)
    epsilon = np.array([0.65, 0.9])
    people, dropped = stacked.relevant(epsilon)
    rows = [member.ravel() % 2 == k for k in range(2)]
    pairs = list(zip(couplings, rows, strict=True))
    own = [pick(c, np.flatnonzero(r)).relevant(epsilon)[0] for c, r in pairs]
    assert set(people) == set(own[0]) | set(own[1])
    assert 0 < len(own[1]) < len(own[0])
    np.testing.assert_array_equal(dropped, 0.0)
    curves = stacked.curves(np.arange(9), epsilon)
    for coupling, r in pairs:
        np.testing.assert_allclose(
            curves[r], coupling.curves(np.arange(9), epsilon)[r], rtol=1e-9, atol=1e-14
        )


def test_a_stack_inside_a_stack(fits, member):
    couplings = [fit.coupling for fit in fits]
    inner = stack_couplings(couplings[:2], member % 2)
    outer = stack_couplings([inner, couplings[2]], (member == 2).astype(int))
    whole = [coupling.curves(np.arange(9), EPSILON) for coupling in couplings]
    curves = outer.curves(np.arange(9), EPSILON)
    for row, k in enumerate(member.ravel()):
        chosen = 2 if k == 2 else k % 2
        np.testing.assert_allclose(curves[row], whole[chosen][row], rtol=1e-9, atol=1e-13)


def test_other_couplings_are_refused():
    with pytest.raises(edp.InputTypeError, match="picked one by one, found object"):
        pick(object(), np.arange(2))


@settings(derandomize=True, deadline=None)
@given(
    parts=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6).filter(lambda p: sum(p) > 0.01),
    draws=st.integers(1, 1000),
)
def test_draws_are_apportioned_to_within_one(parts, draws):
    weights = np.array(parts) / np.sum(parts)
    counts = apportion(weights, draws)
    assert counts.sum() == draws
    assert (np.abs(counts - weights * draws) < 1.0).all()


def test_weights_proportions_and_scores(responses, fits):
    stacked = Stacked(MEMBERS).fit(responses, SETTINGS)
    pointwise = np.stack(
        [np.asarray(leave_one_out(f.log_likelihood, f.predictive).elpd_i) for f in fits], axis=1
    )
    weights = stacking_weights(pointwise)
    np.testing.assert_array_equal(stacked.attributes["stacking_weights"], weights)
    member = stacked.sample_stats["member"].to_numpy()
    for chain in member:
        np.testing.assert_array_equal(np.bincount(chain, minlength=3), apportion(weights, 40))
    assert (member[0] != member[1]).any()
    np.testing.assert_allclose(stacked.predictive, logsumexp(pointwise, axis=1, b=weights))
    likelihood = np.stack([f.log_likelihood for f in fits])
    expected = likelihood[member, np.arange(2)[:, None], np.arange(40)]
    np.testing.assert_array_equal(stacked.log_likelihood, expected)
    again = Stacked(MEMBERS).fit(responses, SETTINGS)
    np.testing.assert_array_equal(again.sample_stats["member"], member)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
@pytest.mark.parametrize("model", MEMBERS, ids=["bootstrap", "process", "finite"])
def test_a_stack_of_one_is_that_one(model, responses):
    alone = edp.audit(responses, epsilon=EPSILON, model=model, **QUICK)
    stacked = edp.audit(responses, epsilon=EPSILON, model=Stacked([model]), **QUICK)
    for name in ("delta", "total_risk", "total_risk_bound", "individual_delta"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(stacked, name))
    for name in ("weights", "locations", "scales"):
        np.testing.assert_allclose(
            getattr(alone.mixture, name), getattr(stacked.mixture, name), rtol=1e-14
        )
    log_likelihood = [a.tree["log_likelihood"]["response"] for a in (alone, stacked)]
    np.testing.assert_array_equal(*log_likelihood)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
def test_a_stacked_audit_is_made_of_its_models_audits(responses, tmp_path):
    members = MEMBERS[:2]
    audit = edp.audit(responses, epsilon=EPSILON, model=Stacked(members), **QUICK)
    member = audit.tree["sample_stats"]["member"].to_numpy()
    alone = [edp.audit(responses, epsilon=EPSILON, model=m, **QUICK).delta for m in members]
    expected = np.stack(alone)[member, np.arange(2)[:, None], np.arange(40)]
    assert 0 < member.mean() < 1
    np.testing.assert_allclose(audit.delta, expected, rtol=1e-9, atol=1e-13)
    again = edp.load(audit.save(tmp_path / "stacked.nc"))
    np.testing.assert_array_equal(again.delta, audit.delta)
    scores = [a.tree["log_predictive"]["response"] for a in (again, audit)]
    np.testing.assert_array_equal(*scores)
    assert again.settings["stacking_weights"] == audit.settings["stacking_weights"]
    assert len(again.settings["members"]) == 2


@pytest.mark.full
def test_two_clusters_are_for_the_model_that_has_them(responses):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(120) < 0.5, rng.normal(-3.0, 0.4, 120), rng.normal(3.0, 0.4, 120))
    c = np.abs(rng.normal(0.1, 0.02, (120, 1)))
    split = edp.Responses.from_arrays(y, contribution=sp.csc_array(c))
    members = [FiniteMixture(), FiniteMixture(components=2)]
    fitted = Stacked(members).fit(split, SamplerSettings(**{**QUICK, "draws": 300}))
    assert fitted.attributes["stacking_weights"][1] > 0.95


def test_r_hat_sees_chains_that_disagree_and_not_models_that_differ(responses):
    import xarray as xr

    rng = np.random.default_rng(5)
    member = Stacked([BOOTSTRAP, BOOTSTRAP]).fit(
        responses, SamplerSettings(**{**QUICK, "draws": 1000, "chains": 4})
    ).sample_stats["member"].to_numpy()  # fmt: skip
    assert np.bincount(member.ravel()).tolist() == [2000, 2000]
    models = rng.standard_normal((2, 4, 1000)) + np.array([0.0, 5.0])[:, None, None]

    def rhat(values):
        chosen = np.where(member == 0, *values)
        return float(check_draws(xr.DataArray(chosen, dims=("chain", "draw"))).rhat)

    assert rhat(models) < 1.01
    models[1, 0] += 3.0
    assert rhat(models) > 1.05


def test_doubtful_weights_stand_in_the_audit():
    rng = np.random.default_rng(1)
    y = rng.standard_normal(40)
    y[0] = 40.0
    far = edp.Responses.from_arrays(
        y, contribution=sp.csc_array(np.abs(rng.normal(0.2, 0.05, (40, 1))))
    )
    with pytest.warns(edp.EdpBayesWarning, match="stacking weights are doubtful: 1 of 40"):
        audit = edp.audit(
            far,
            epsilon=[0.1],
            model=Stacked([FiniteMixture(), BOOTSTRAP]),
            **{**QUICK, "draws": 300},
        )
    assert any("under FiniteMixture(" in sentence for sentence in audit.warnings)


def test_divergences_are_those_of_the_draws_taken(responses):
    import dataclasses

    import xarray as xr

    class Diverging(DirichletProcessMixture):
        def fit(self, data, sampler):
            flags = np.zeros((2, 40), dtype=bool)
            flags[0] = True
            stats = xr.Dataset({"diverging": (("chain", "draw"), flags)})
            return dataclasses.replace(super().fit(data, sampler), sample_stats=stats)

    stacked = Stacked([Diverging(base_measure=ONE_RATE), BOOTSTRAP]).fit(responses, SETTINGS)
    taken = (stacked.sample_stats["member"] == 0).sum("draw")
    assert stacked.divergences == int(taken[0]) > 0


BAD = {
    "nothing": ([], "at least one model, found none"),
    "one model": (BOOTSTRAP, "must be a list of density models"),
    "text": (["dpm"], "every model must be a density model such as .*found 'dpm'"),
    "a class": ([FiniteMixture], "every model must be a density model"),
    "kernels": (
        [edp.SmoothedBootstrap(kernel="laplace"), FiniteMixture(kernel="gaussian")],
        "must have the same kernel.*found gaussian and laplace.*kernel=",
    ),
}


@pytest.mark.parametrize(("models", "message"), BAD.values(), ids=BAD)
def test_bad_stacks_are_named(models, message):
    with pytest.raises((edp.InvalidInputError, edp.InputTypeError), match=message):
        Stacked(models)


def test_models_that_leave_the_kernel_open_take_a_common_one():
    """Gaussian where only the defaults differ, else the one that was asked for."""
    bootstrap, mixture = edp.SmoothedBootstrap, DirichletProcessMixture
    kernels = {
        (mixture(), bootstrap()): "gaussian",
        (bootstrap(), bootstrap(variable=True)): "laplace",
        (mixture(), bootstrap(kernel="laplace")): "laplace",
        (mixture(kernel="gaussian"), bootstrap()): "gaussian",
        (bootstrap(), mixture(), FiniteMixture(kernel="laplace")): "laplace",
    }
    for models, kernel in kernels.items():
        stacked = Stacked(models)
        assert {stacked.kernel, *(model.kernel for model in stacked.models)} == {kernel}
        assert Stacked(stacked.models).models == stacked.models
    variable = Stacked([mixture(), bootstrap(variable=True)]).models[1]
    assert variable == bootstrap(kernel="gaussian", variable=True)


def test_a_default_kernel_survives_copies():
    for model in (pickle.loads(pickle.dumps(BARE)), replace(BARE)):
        assert Stacked([model, FiniteMixture()]).kernel == "gaussian"


@pytest.mark.full
def test_the_obvious_stack_is_audited_and_saved(responses, tmp_path):
    model = Stacked([DirichletProcessMixture(), edp.SmoothedBootstrap()])
    audit = edp.audit(responses, epsilon=EPSILON, model=model, **QUICK)
    members = "DirichletProcessMixture(), SmoothedBootstrap(kernel='gaussian')"
    assert audit.settings["model"] == f"Stacked(models=({members}))"
    alone = edp.audit(responses, epsilon=EPSILON, model=BARE, **QUICK)
    for found in (audit, alone):
        again = edp.load(found.save(tmp_path / "audit.nc"))
        assert again.mixture.kernel == found.mixture.kernel


def test_a_model_that_draws_something_else_is_named(responses):
    class Half(FiniteMixture):
        def fit(self, data, sampler):
            return super().fit(data, SamplerSettings(**{**QUICK, "draws": 20}))

    with pytest.raises(edp.InvalidInputError, match=r"2 of 40; found shape \(2, 20\) from .*Half"):
        Stacked([Half(), BOOTSTRAP]).fit(responses, SETTINGS)
