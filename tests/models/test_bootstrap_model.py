"""The smoothed bootstrap as a PyMC model: its likelihood, its dims, and what it predicts."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats

import edp_bayes as edp

N = 15


def responses(samples=1, step=None):
    rng = np.random.default_rng(1)
    y = np.repeat(rng.normal(10.0, 2.0, N), samples)
    y = y + 0.3 * rng.standard_normal(y.size) * (samples > 1)
    y = y if step is None else step * np.round(y / step)
    c = rng.gamma(2.0, 0.3, (y.size, 3)) * np.repeat(rng.random((N, 3)) < 0.6, samples, axis=0)
    return edp.Responses.from_arrays(
        y, contribution=c, samples=samples, step=step, individual=["a", "b", "c"]
    )


def left_out(data, scale, kernel):
    """Return the log density of all responses, each from kernels at those of other databases."""
    family = stats.norm if kernel == "gaussian" else stats.laplace
    distance = -np.abs(data.response[:, None] - data.response)  # the side of small probabilities
    if data.half_step is None:
        density = family.pdf(distance, scale=scale)
    else:
        half = data.half_step[:, None]
        density = family.cdf(distance + half, scale=scale) - family.cdf(
            distance - half, scale=scale
        )
        density /= 2.0 * half
    density[data.cluster[:, None] == data.cluster] = 0.0
    return np.log(density.sum(axis=1) / (data.samples * (N - 1))).mean() * N


@pytest.mark.parametrize("variable", [False, True])
@pytest.mark.parametrize("kernel", ["laplace", "gaussian"])
@pytest.mark.parametrize(("samples", "step"), [(1, None), (2, None), (1, 0.5)])
def test_its_likelihood_is_that_of_each_database_left_out(samples, step, kernel, variable):
    data = responses(samples, step)
    model = edp.SmoothedBootstrap(kernel=kernel, variable=variable)
    built, (middle, _) = model.build(data), model._scale(data)
    likelihood = built.observed_RVs or built.potentials
    density = built.compile_fn(
        built.logp(likelihood),
        inputs=built.value_vars,
        on_unused_input="ignore",
        mode="FAST_COMPILE",
    )
    ratios = np.broadcast_to(model._held_out(data), 2 * data.response.shape)
    point = built.initial_point()
    for h in middle * np.array([0.1, 0.6, 3.0]):
        point["bandwidth_log__"] = np.log(h)
        wanted = left_out(data, h * ratios, kernel)
        # PyMC's logarithm of the normal distribution function has nine digits
        digits = 1e-8 if step and kernel == "gaussian" else 1e-10
        assert float(density(point)) == pytest.approx(wanted, rel=digits)


@pytest.mark.full
def test_weights_have_no_part_in_the_likelihood_whose_gradient_is_finite():
    import pytensor

    built = edp.SmoothedBootstrap(kernel="gaussian").build(responses())
    slopes = pytensor.grad(built.logp(built.observed_RVs), built.value_vars)
    weights, bandwidth = built.compile_fn(
        slopes, inputs=built.value_vars, on_unused_input="ignore", mode="FAST_COMPILE"
    )(built.initial_point())
    np.testing.assert_array_equal(weights, 0.0)
    assert np.isfinite(bandwidth)
    assert bandwidth != 0.0


@pytest.mark.parametrize("variable", [False, True])
@pytest.mark.parametrize("samples", [1, 2])
def test_every_variable_names_its_dims(samples, variable):
    data = responses(samples)
    model = edp.SmoothedBootstrap(variable=variable).build(data)
    shapes = {name: model[name].type.ndim for name in model.named_vars if name != "response"}
    without = {n for n, k in shapes.items() if k and not model.named_vars_to_dims.get(n)}
    assert not without
    assert model.named_vars_to_dims["weights"] == ("component",)
    assert list(model.coords["database"]) == data.database.tolist()
    assert [v.name for v in model.observed_RVs] == (["response"] if samples == 1 else [])


def posterior(weights, bandwidth, draws=4000):
    return xr.Dataset({
        "database_weights": (
            ("chain", "draw", "kernel_database"), np.broadcast_to(weights, (1, draws, N)),
        ),
        "bandwidth": (("chain", "draw"), np.full((1, draws), bandwidth)),
    })  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize(("kernel", "variance"), [("gaussian", 1.0), ("laplace", 2.0)])
@pytest.mark.parametrize("variable", [False, True])
def test_it_predicts_the_next_database_and_each_from_all_others(kernel, variance, variable):
    data = responses()
    y, weights = data.response, np.full(N, 0.2 / (N - 1))
    weights[3] = 0.8
    bootstrap = edp.SmoothedBootstrap(kernel=kernel, variable=variable)
    model, draws, options = bootstrap.build(data), posterior(weights, 0.5), {"random_seed": 1}
    with model:
        seen = pm.sample_posterior_predictive(draws, progressbar=False, **options)
        assert seen["posterior_predictive"]["response"].dims == ("chain", "draw", "database")
        names = ("others", "bandwidth_ratios") if variable else ("others",)
        new = {name: model[f"{name}_next"].get_value()[None] for name in names}
        pm.set_data({"response_data": [y.mean()], **new}, coords={"database": ["next"]})
        found = pm.sample_posterior_predictive(
            draws, predictions=True, progressbar=False, **options
        )["predictions"]["response"]
    spread = 0.5 * bootstrap._scale(data)[1]
    mean = weights @ y
    deviation = np.sqrt(weights @ (variance * spread**2 + (y - mean) ** 2))
    assert float(found.mean()) == pytest.approx(mean, abs=4.0 * deviation / np.sqrt(4000))
    assert float(found.std()) == pytest.approx(deviation, rel=0.1)
    replicated = seen["posterior_predictive"]["response"].mean(("chain", "draw"))
    others = (y.sum() - y) / (N - 1)
    np.testing.assert_allclose(replicated, others, atol=4.5 * y.std() * 1.2 / np.sqrt(4000))


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_its_draws_have_the_risks_of_an_audit(kernel):
    data, model = responses(), edp.SmoothedBootstrap(kernel=kernel)
    epsilon = [0.05, 0.3]
    audit = edp.audit(
        data, epsilon=epsilon, model=model, draws=30, random_seed=1, progressbar=False
    )
    draws = audit.tree["mixture"].to_dataset()[["weights", "locations", "scales"]]
    drawn = model.to_mixture(draws, data)
    for person in ("a", "b", "c"):
        p, q = drawn.pair(person)
        risk = np.maximum(*(edp.hockey_stick(*both, epsilon=epsilon) for both in ((p, q), (q, p))))
        known = audit.individual_delta.sel(individual=person).transpose("chain", "draw", "epsilon")
        np.testing.assert_allclose(risk, known, rtol=1e-9, atol=1e-12)
    fewer = draws.isel(component=slice(3)) if "component" in draws.dims else draws
    with pytest.raises(edp.InvalidInputError, match="sum to 1"):
        model.to_mixture(fewer, data)


def test_given_what_an_adversary_knows_there_is_no_model():
    with pytest.raises(edp.InvalidInputError, match="kernels would lie at residuals"):
        edp.SmoothedBootstrap().build(responses(), adversary=edp.Adversary(past=1))
