"""`edp.noise.calibrate`, the linear program and its dual bound, verify and tradeoff."""

import dataclasses
import warnings

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.noise import (
    FixedBandwidth,
    GaussianNoise,
    LaplaceNoise,
    LatticeNoise,
    NoiseDistribution,
    NoNoise,
    closed_forms,
)
from edp_bayes.noise.certificates.noisy import NoisyCoupling
from edp_bayes.noise.certificates.ratios import certified_log_ratios
from edp_bayes.noise.distribution import as_distribution
from edp_bayes.noise.optimal import lattice_noise as optimal_module
from edp_bayes.noise.optimal.program import SolverError
from edp_bayes.noise.posterior import Posterior, posterior_of
from edp_bayes.noise.scales import exposed
from edp_bayes.plots.noise import plot_noise
from tests.noise.conftest import make_responses

EPSILON = 0.15
SPACING = 0.15  # a coarse lattice, for the sake of time
OPTIMAL = {"method": "optimal", "spacing": SPACING}
COARSE = {"method": "optimal", "spacing": 0.2}


def spaced(method, spacing):
    return {"spacing": spacing} if method == "optimal" else {}


@pytest.fixture(scope="module")
def found(plug_in):
    methods = ("bottleneck", "partial", "laplace", "optimal")
    return {
        name: edp.noise.calibrate(plug_in, epsilon=EPSILON, method=name, **spaced(name, SPACING))
        for name in methods
    }


@pytest.mark.full
def test_every_method_meets_the_target_and_the_order_is_as_expected(plug_in, found):
    for noise in found.values():
        assert noise.record["reached"] == 1.0
        assert certified_log_ratios(plug_in, noise, EPSILON, screen=False).share(EPSILON) == 1.0
    size = {name: noise.mean_absolute for name, noise in found.items()}
    assert size["optimal"] < size["laplace"] < size["bottleneck"]
    assert size["optimal"] < size["partial"] < size["bottleneck"]


def test_brute_force_finds_no_violation_of_the_optimal_noise(plug_in, found):
    from edp_bayes.noise.certificates.densities import NoisyDensities

    distribution = found["optimal"].components[0]
    step = distribution.spacing / 16
    lattice = NoisyDensities(found["optimal"], "laplace", 14.0, step, int(16 / step), 60.0)
    for person in range(plug_in.n_individuals):
        p, q = (lattice(part) for part in plug_in.pair(person))
        assert np.abs(np.log(p / q)).max() <= EPSILON


def test_the_dual_bound_is_below_every_admissible_noise(found):
    record = found["optimal"].record
    assert 0.5 * found["optimal"].mean_absolute < record["lower_bound"]
    assert record["lower_bound"] <= found["optimal"].mean_absolute


def test_less_than_the_bound_cannot_hold(plug_in, found):
    """Scale the optimal noise down until its size is below the bound: it must fail."""
    distribution = found["optimal"].components[0]
    factor = 0.98 * found["optimal"].record["lower_bound"] / found["optimal"].mean_absolute
    smaller = LatticeNoise(
        factor * distribution.spacing,
        distribution.weights,
        left=distribution.left,
        right=distribution.right,
        decay=distribution.decay,
    )
    found_ratio = certified_log_ratios(plug_in, as_distribution(smaller), EPSILON, screen=False)
    assert found_ratio.share(EPSILON) == 0.0


def test_laplace_noise_is_taken_where_the_lattice_is_too_coarse_to_gain(plug_in, found):
    noise = edp.noise.calibrate(plug_in, epsilon=EPSILON, method="optimal", spacing=8.0)
    assert noise.components == found["laplace"].components
    assert noise.record["reached"] == 1.0
    assert noise.record["lower_bound"] <= found["optimal"].mean_absolute


@pytest.fixture(scope="module")
def lopsided(plug_in):
    return edp.noise.calibrate(plug_in, epsilon=EPSILON, symmetric=False, **OPTIMAL)


@pytest.mark.full
def test_noise_that_may_be_lopsided_is_smaller(lopsided, found):
    assert lopsided.mean_absolute <= found["optimal"].mean_absolute * 1.001
    assert found["optimal"].mean == pytest.approx(0.0, abs=1e-9)


@pytest.mark.full
def test_the_least_variance_has_less_variance(plug_in, found):
    noise = edp.noise.calibrate(plug_in, epsilon=EPSILON, objective="variance", **OPTIMAL)
    # A search ends where nothing gains one per cent.
    assert noise.variance < found["optimal"].variance * 1.01
    assert noise.mean_absolute >= found["optimal"].mean_absolute * 0.999


@pytest.mark.full
def test_objectives_differ_by_more_where_noise_may_be_lopsided(plug_in, lopsided):
    noise = edp.noise.calibrate(
        plug_in, epsilon=EPSILON, objective="variance", symmetric=False, **OPTIMAL
    )
    assert noise.variance < 0.99 * lopsided.variance
    assert noise.mean_absolute > 1.01 * lopsided.mean_absolute


@pytest.mark.full
def test_assurance_is_reached_under_the_posterior(bootstrap):
    noise = edp.noise.calibrate(bootstrap, epsilon=0.3, prob=0.8, **COARSE)
    certified = certified_log_ratios(bootstrap, noise, 0.3)
    assert 0.8 <= certified.share(0.3) < 1.0
    assert noise.record["reached"] == certified.share(0.3)
    everywhere = edp.noise.calibrate(bootstrap, epsilon=0.3, prob=0.99, **COARSE)
    assert everywhere.mean_absolute > noise.mean_absolute


@pytest.mark.full
def test_gaussian_mixtures_with_residual_spread_are_protected(mixture):
    noise = edp.noise.calibrate(mixture, epsilon=0.8, prob=0.7, **COARSE)
    assert certified_log_ratios(mixture, noise, 0.8).share(0.8) >= 0.7
    laplace = edp.noise.calibrate(mixture, epsilon=0.8, method="laplace", prob=0.7)
    assert laplace.record["reached"] >= 0.7
    less = NoiseDistribution((LaplaceNoise(0.99 * laplace.mean_absolute),))
    assert certified_log_ratios(mixture, less, 0.8).share(0.8) < 0.7
    assert noise.mean_absolute < laplace.mean_absolute


@pytest.mark.full
@pytest.mark.parametrize("method", ["laplace", "gaussian", "optimal"])
def test_a_delta_above_zero_is_met(plug_in, method):
    delta = 2e-3
    options = {"epsilon": EPSILON, "delta": delta, "method": method, **spaced(method, 0.1)}
    noise = edp.noise.calibrate(plug_in, **options)
    check = edp.noise.verify(plug_in, noise, epsilon=[EPSILON])
    assert check.delta[0, 0, 0] + check.error[0] <= delta
    assert check.delta[0, 0, 0] >= 0.9 * delta  # and not by much more than asked
    assert check.probability(epsilon=EPSILON, delta=delta) == 1.0


def test_those_at_risk_in_a_single_draw_are_not_left_out(bootstrap):
    everybody = np.arange(bootstrap.n_individuals)
    risk = bootstrap.coupling.curves(everybody, np.array([EPSILON]))[..., 0]
    # one individual is above delta in a single draw
    person = int(risk.min(axis=0).argmin())
    delta = float(np.sort(risk[:, person])[-2:].mean())
    assert (risk[:, person] > delta).sum() == 1
    largest, people = exposed(bootstrap, EPSILON, delta)
    assert set(people) == {i for i in everybody if risk[:, i].max() > delta}
    np.testing.assert_array_equal(largest, risk.max(axis=1))


def test_exact_integrals_agree_with_those_of_the_audit(responses):
    """Known noise in the responses, audited, is the same noise verified afterwards."""
    model = edp.SmoothedBootstrap(kernel="gaussian")
    options = {"draws": 5, "chains": 2, "random_seed": 1, "progressbar": False}
    grid = [0.05, 0.2]
    for noise in (LaplaceNoise(0.7), GaussianNoise(0.4)):
        noisy = dataclasses.replace(responses, noise=noise)
        fitted = model.fit(responses, edp.models.SamplerSettings(**options))
        direct = dataclasses.replace(fitted.coupling, responses=noisy)
        everybody = np.arange(responses.n_individuals)
        expected = direct.curves(everybody, np.array(grid)).max(axis=1)
        check = edp.noise.verify(responses, noise, epsilon=grid, model=model, **options)
        np.testing.assert_allclose(
            check.delta.to_numpy().reshape(expected.shape), expected, rtol=1e-7, atol=1e-11
        )


def test_quadrature_agrees_with_exact_integrals_within_its_bound(plug_in):
    """Lattice noise that is a fine image of Laplace noise, and mixed with that very noise."""
    spacing, scale = 0.02, 0.5
    k = np.arange(-400, 401)
    decay = np.exp(-spacing / scale)
    weights = decay ** np.abs(k)
    tail = weights[-1] * decay / (1 - decay)
    total = weights.sum() + 2 * tail
    image = LatticeNoise(spacing, weights / total, left=tail / total, right=tail / total,
                         decay=decay)  # fmt: skip
    grid = np.array([0.02, 0.1])
    everybody = np.arange(plug_in.n_individuals)
    rough = NoisyCoupling(plug_in, as_distribution(image))
    exact = NoisyCoupling(plug_in, as_distribution(LaplaceNoise(scale)))
    a, b = rough.curves(everybody, grid), exact.curves(everybody, grid)
    assert b.max() > 1e-3
    # the image differs from the distribution itself by about (spacing / scale)^2 / 12
    np.testing.assert_allclose(a, b, atol=2e-4 * b.max() + max(rough.errors.values()))


def test_verification_counts_draws(bootstrap, tmp_path):
    check = edp.noise.verify(bootstrap, LaplaceNoise(0.5), epsilon=[0.1, 0.4])
    assert check.delta.size == 2 * bootstrap.n_draws
    expected = (check.delta[..., 1] <= 1e-3).mean()
    assert check.probability(epsilon=0.4, delta=1e-3) == expected
    assert check.probability(epsilon=0.4) == (check.log_ratio <= 0.4).mean()
    band = check.band(prob=0.9)
    assert (band["lower"] <= band["median"]).all()
    assert (band["median"] <= band["upper"]).all()
    riskiest = check.individuals["mean"].sum("epsilon")
    assert check.riskiest(3)[0] == riskiest["individual"].to_numpy()[riskiest.to_numpy().argmax()]
    assert "delta[0.4]" in check.summary().index
    again = edp.load(check.save(tmp_path / "check.nc"))
    assert (again.delta == check.delta).all()
    assert again.noise.components == check.noise.components
    assert check.plot(backend="none") is not None
    with pytest.raises(InvalidInputError, match="one of"):
        check.probability(epsilon=0.2, delta=1e-3)
    for delta in (-1.0, 1.0, 2.0):
        with pytest.raises(InvalidInputError, match=r"delta must lie in \[0, 1\)"):
            check.probability(epsilon=0.4, delta=delta)
    with pytest.raises(InvalidInputError, match="epsilon must not be negative"):
        check.probability(epsilon=-1.0)


def test_a_target_already_met_needs_no_noise(plug_in):
    noise = edp.noise.calibrate(plug_in, epsilon=5.0)
    assert noise.atom == 1.0
    assert noise.record["message"].startswith("No noise is needed")


def test_a_dominating_individual_is_named():
    data = make_responses(dominated=True)
    with pytest.warns(EdpBayesWarning, match="Individual 0 contributes up to"):
        noise = edp.noise.calibrate(
            data, epsilon=0.5, method="laplace", model=edp.noise.FixedBandwidth(0.6)
        )
    assert "cap or leave out" in noise.record["message"]


BAD = {
    "zero": ({"epsilon": 0.0}, "greater than 0"),
    "negative": ({"epsilon": -1.0}, "greater than 0"),
    "delta": ({"delta": 1.0}, "delta must be 0, or at least 1e-09 and below 1"),
    "tiny delta": ({"delta": 1e-13}, "not distinguished from zero"),
    "large": ({"epsilon": 701.0}, "at most 700"),
    "prob": ({"prob": 1.0}, "prob must lie strictly between"),
    "method": ({"method": "magic"}, "method must be one of"),
    "objective": ({"objective": "size"}, "objective must be one of"),
    "gaussian": ({"method": "gaussian"}, "Gaussian noise is made for delta above 0"),
    "pure": ({"method": "partial", "delta": 0.1}, "made for delta = 0"),
    "spacing": ({"method": "optimal", "spacing": 0.0}, "spacing must be greater than 0"),
    "a lattice": ({"spacing": 0.1}, r"spacing=0.1 is for method='optimal'.*is 'laplace'"),
    "lopsided": (
        {"method": "bottleneck", "objective": "variance", "symmetric": False},
        "objective='variance', symmetric=False is for method='optimal'",
    ),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_bad_targets_are_refused(plug_in, options, message):
    with pytest.raises(InvalidInputError, match=message):
        edp.noise.calibrate(plug_in, **{"epsilon": 0.1, **options})


@pytest.mark.parametrize("epsilon", [0.3, pytest.param(1.0, marks=pytest.mark.full)])
def test_optimal_noise_for_a_constant_contribution(epsilon):
    """Under normal kernels its tails meet epsilon exactly: they need room for a lower target."""
    y = 10.0 + np.random.default_rng(5).normal(size=15)
    data = edp.Responses.from_arrays(y, contribution=np.ones((15, 1)))
    source = posterior_of(data, model=FixedBandwidth(0.5, "gaussian"))
    noise = edp.noise.calibrate(source, epsilon=epsilon, method="optimal")
    assert certified_log_ratios(source, noise, epsilon).largest[0] <= epsilon
    assert noise.mean_absolute <= 1.0 / epsilon * (1.0 + 1e-9)
    assert noise.record["lower_bound"] <= noise.mean_absolute


def test_noise_too_small_for_a_lattice_is_refused():
    with pytest.raises(InvalidInputError, match="too fine beside responses"):
        edp.noise.calibrate(
            make_responses(m=1),
            epsilon=690.0,
            method="optimal",
            model=FixedBandwidth(0.01, "gaussian"),
        )


@pytest.mark.parametrize("method", ["optimal", "laplace", "bottleneck"])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_nobody_contributes_and_no_noise_is_needed(kernel, method):
    y = np.random.default_rng(5).normal(size=15)
    data = edp.Responses.from_arrays(y, contribution=np.zeros((15, 2)))
    noise = edp.noise.calibrate(data, epsilon=0.3, method=method, model=FixedBandwidth(0.5, kernel))
    assert noise.atom == 1.0


def test_noise_is_never_larger_than_what_is_proved(plug_in):
    for epsilon in (1e-4, 30.0):
        least = edp.noise.calibrate(plug_in, epsilon=epsilon, method="laplace")
        proved = edp.noise.calibrate(plug_in, epsilon=epsilon, method="bottleneck")
        assert least.mean_absolute <= proved.mean_absolute * (1.0 + 1e-9)


def test_a_delta_below_what_integrals_tell_from_zero_is_not_certified():
    source = posterior_of(make_responses(), model=FixedBandwidth(0.6, "gaussian"))
    check = edp.noise.verify(source, GaussianNoise(20.0), epsilon=[0.5], progressbar=False)
    assert check.delta[0, 0, 0] == 0.0
    assert np.isinf(check.log_ratio[0, 0])
    assert [check.probability(epsilon=0.5, delta=delta) for delta in (1e-13, 1e-11)] == [0.0, 1.0]


def test_a_solver_that_fails_is_an_error(plug_in, monkeypatch):
    import scipy.optimize

    real = scipy.optimize.linprog
    monkeypatch.setattr(
        scipy.optimize,
        "linprog",
        lambda *a, **k: real(*a, **{**k, "options": {"maxiter": 1, "presolve": False}}),
    )
    with pytest.raises(SolverError, match="status 1"):
        edp.noise.calibrate(plug_in, epsilon=EPSILON, method="optimal")


def test_sources_that_cannot_be_used(responses, bootstrap):
    with pytest.raises(InputTypeError, match="responses or an audit are needed"):
        edp.noise.calibrate([1.0, 2.0], epsilon=0.1)
    noisy = dataclasses.replace(responses, noise=LaplaceNoise(1.0))
    with pytest.raises(InvalidInputError, match="already carry"):
        edp.noise.calibrate(noisy, epsilon=0.1)
    settings = edp.models.SamplerSettings(draws=10, chains=1, random_seed=1, progressbar=False)
    fitted = edp.SmoothedBootstrap().fit(noisy, settings)
    for ask in (edp.noise.calibrate, edp.noise.verify):
        arguments = () if ask is edp.noise.calibrate else (LaplaceNoise(1.0),)
        epsilon = [0.1] if arguments else 0.1
        with pytest.raises(InvalidInputError, match="already carry"):
            ask(fitted, *arguments, epsilon=epsilon, responses=noisy)
    with pytest.raises(InputTypeError, match="density model"):
        edp.noise.calibrate(responses, epsilon=0.1, model="bootstrap")
    assert isinstance(bootstrap, Posterior)


def test_an_audit_needs_its_own_responses(responses):
    options = {"draws": 10, "chains": 2, "random_seed": 3, "progressbar": False}
    audit = edp.audit(responses, epsilon=[0.1], model=edp.SmoothedBootstrap(), **options)
    with pytest.raises(InvalidInputError, match="give the responses"):
        posterior_of(audit)
    with pytest.raises(InvalidInputError, match="not those of the audit"):
        posterior_of(audit, responses=make_responses(seed=8))
    noise = edp.noise.calibrate(audit, epsilon=0.2, method="laplace", responses=responses)
    assert noise.record["draws"] == 20
    with pytest.raises(InvalidInputError, match="draws is for responses, which are fitted"):
        edp.noise.calibrate(audit, epsilon=0.2, responses=responses, draws=5)
    few = edp.noise.calibrate(
        audit, epsilon=0.2, method="laplace", responses=responses, most_draws=4
    )
    assert few.record["draws"] == 4


def test_the_audit_of_a_stacked_model_is_refused(responses):
    options = {"draws": 10, "chains": 2, "random_seed": 3, "progressbar": False}
    model = edp.models.Stacked([edp.SmoothedBootstrap(), edp.SmoothedBootstrap(variable=True)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        audit = edp.audit(responses, epsilon=[0.1], model=model, **options)
    with pytest.raises(InvalidInputError, match=r"give the responses .* model=Stacked\("):
        posterior_of(audit, responses=responses)


def test_bands_of_a_tradeoff_have_an_end_where_some_draws_have_none(plug_in):
    curve = edp.noise.tradeoff(plug_in, epsilon=[0.2], method="laplace")
    reached = np.repeat([0.1, np.inf], [95, 5])[:, None]
    curve = dataclasses.replace(curve, reached=reached)
    for prob, ends in ((0.8, [0.1, 0.1, 0.1]), (0.98, [0.1, 0.1, np.inf])):
        band = curve.band(prob=prob).isel(epsilon=0)
        assert [float(band[end]) for end in ("lower", "median", "upper")] == ends


def test_tradeoff_offers_points(plug_in):
    curve = edp.noise.tradeoff(plug_in, epsilon=[0.05, 0.1, 0.2], method="laplace")
    assert (np.diff(curve.error) < 0).all()
    assert curve.least_noise(epsilon=0.15) is curve.noises[1]
    assert curve.best_privacy(float(curve.error[1])) is curve.noises[1]
    band = curve.band(prob=0.9)
    lower, middle, upper = (band[end].to_numpy() for end in ("lower", "median", "upper"))
    assert (lower <= middle).all()
    assert (upper <= curve.epsilon).all()
    assert curve.plot(backend="none") is not None
    for bad in (lambda: curve.least_noise(epsilon=0.01), lambda: curve.best_privacy(1e-6)):
        with pytest.raises(InvalidInputError, match="no target"):
            bad()


@pytest.mark.parametrize("backend", ["none", "matplotlib"])
def test_noise_is_drawn(backend, found):
    for noise in (found["optimal"], NoiseDistribution((NoNoise(), LaplaceNoise(1.0)), (0.3, 0.7))):
        assert plot_noise(noise, backend=backend).backend == backend
    with pytest.raises(InvalidInputError, match="visual must be one of"):
        plot_noise(found["optimal"], backend=backend, visuals={"banner": False})


def test_nothing_heavy_is_imported_with_the_package():
    import subprocess
    import sys

    heavy = ("scipy", "numba", "pymc", "xarray", "matplotlib")
    code = f"import sys, edp_bayes.noise; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
    assert optimal_module.REACH > 1


@pytest.mark.full
def test_the_climate_divisions_need_what_is_written(data_dir):
    with np.load(data_dir / "us_climate_divisions_annual_mm.npz") as stored:
        values = stored["annual_mm"][-41:]
    y, m = values.mean(axis=1), values.shape[1]
    data = edp.Responses.from_arrays(y, (values.sum(axis=1)[:, None] - values) / (m - 1))
    posterior = posterior_of(data, model=edp.noise.FixedBandwidth(30.9))
    size = {
        name: edp.noise.calibrate(posterior, epsilon=0.1, method=name).mean_absolute
        for name in ("bottleneck", "partial")
    }
    assert size["bottleneck"] == pytest.approx(65.8, abs=0.05)
    assert size["partial"] == pytest.approx(51.2, abs=0.05)
    noise = edp.noise.calibrate(posterior, epsilon=0.1, method="optimal", spacing=3.0)
    assert noise.record["reached"] == 1.0
    assert 24.0 < noise.record["lower_bound"] <= noise.mean_absolute < 28.5


@pytest.mark.full
def test_a_draw_that_the_tails_alone_do_not_protect_is_left_out():
    rng = np.random.default_rng(2)
    c = rng.gamma(2.0, 0.08, (12, 6)) * (rng.random((12, 6)) < 0.7)
    c[:, 0] = 0.0
    c[:2, 0] = rng.gamma(1.0, 1.0, 2)
    data = edp.Responses.from_arrays(20.0 + rng.standard_normal(12) + c.sum(1), contribution=c)
    posterior = posterior_of(
        data,
        model=edp.FiniteMixture(components=1),
        draws=10,
        chains=2,
        tune=100,
        random_seed=2,
        progressbar=False,
    )
    scales = closed_forms.laplace_scales(posterior, 1.0)
    size = closed_forms.bottleneck(scales, 0.95).mean_absolute
    hopeless = optimal_module._hopeless(posterior, 1.0, size, np.arange(6))
    assert hopeless.sum() == 1
    assert scales[hopeless] > size
    noise = edp.noise.calibrate(posterior, epsilon=1.0, method="optimal", prob=0.95)
    assert noise.record["reached"] == 0.95
    assert noise.mean_absolute < size


@pytest.mark.parametrize("model", [edp.SmoothedBootstrap, "bootstrap"])
def test_only_a_model_that_was_made_is_taken(responses, model):
    with pytest.raises(InputTypeError, match="model must be a density model such as"):
        posterior_of(responses, model=model)
