"""Priors that are given as distributions of PyMC or PreliZ."""

import numpy as np
import preliz as pz
import pymc as pm
import pytest
from scipy import stats

import edp_bayes as edp
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.models.base_measure import BaseMeasure, least_of, narrowest_spread
from edp_bayes.models.dirichlet_process import truncation_bound
from edp_bayes.models.sampling import SamplerSettings

MODELS = [edp.DirichletProcessMixture, edp.FiniteMixture]


def settings(**changes):
    chosen = {"draws": 500, "tune": 500, "chains": 2, "random_seed": 1, "progressbar": False}
    return SamplerSettings(**(chosen | changes))


def world(n=20, seed=1):
    rng = np.random.default_rng(seed)
    c = rng.gamma(2.0, 0.1, (n, 3))
    return edp.Responses.from_arrays(rng.normal(10.0, 2.0, n) + c.sum(axis=1), contribution=c)


@pytest.mark.full
@pytest.mark.parametrize("gamma", [pm.Gamma.dist(3, 4), pz.Gamma(3, 4)], ids=["PyMC", "PreliZ"])
def test_priors_of_the_own_families_are_arguments_that_gibbs_sampling_draws_with(gamma):
    given = edp.DirichletProcessMixture(
        priors={
            "concentration": gamma,
            "rate": gamma,
            "precision": gamma,
            "centre": pm.Normal.dist(0.0, 2.0),
            "variance_share": pm.Beta.dist(2.0, 3.0),
        }
    )
    base = BaseMeasure(
        shape=3.0, rate_shape=3.0, rate_rate=4.0, precision_shape=3.0, precision_rate=4.0,
        location_scale=2.0, scale_shape=2.0,
    )  # fmt: skip
    stated = edp.DirichletProcessMixture(concentration=(3.0, 4.0), base_measure=base)
    assert given == stated
    assert repr(given) == repr(stated)
    one, other = (model.fit(world(), settings()).mixture.locations for model in (given, stated))
    np.testing.assert_array_equal(one, other)


def test_weights_and_one_rate_of_all_components_have_families_of_their_own():
    model = edp.FiniteMixture(
        components=3,
        base_measure=BaseMeasure(scale_shape=None),
        priors={
            "share": pm.Dirichlet.dist([2.0, 2.0, 2.0]),
            "unit_variance": pz.InverseGamma(5.0, 1.0),
        },
    )
    base = BaseMeasure(scale_shape=None, shape=5.0)
    assert model == edp.FiniteMixture(components=3, weight_concentration=2.0, base_measure=base)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("chosen", [None, "gibbs"])
def test_gibbs_sampling_says_which_sampler_takes_another_prior(model, chosen):
    given = model(priors={"rate": pz.HalfNormal(2.0)})
    message = r"Gibbs .* prior given of rate: .* Gamma .* sampler='nutpie' or 'pymc', which take"
    with pytest.raises(InvalidInputError, match=message):
        given.fit(world(), settings(sampler=chosen))


@pytest.mark.full
def test_nuts_draws_the_posterior_of_a_normal_response_with_the_priors_given():
    """By quadrature over the location and the scale of a single component."""
    responses = world(n=8)
    y = responses.response
    priors = {"locations": pm.StudentT.dist(nu=5, mu=8.0, sigma=0.5), "scales": pz.HalfNormal(0.7)}
    model = edp.FiniteMixture(priors=priors)
    fitted = model.fit(responses, settings(draws=2000, sampler="nutpie"))

    mu, sd = np.linspace(4.0, 12.0, 401)[:, None], np.linspace(0.02, 6.0, 600)
    log = stats.t.logpdf(mu, 5, 8.0, 0.5) + stats.halfnorm.logpdf(sd, scale=0.7)
    log = log + stats.norm.logpdf(y[:, None, None], mu, sd).sum(axis=0)
    log -= 0.5 * least_of(narrowest_spread(y[:, None])) / sd**2  # the smooth floor
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    for found, grid in ((fitted.mixture.locations, mu), (fitted.mixture.scales, sd)):
        mean = (weight * grid).sum()
        deviation = np.sqrt((weight * (grid - mean) ** 2).sum())
        assert found.mean() == pytest.approx(mean, abs=0.1 * deviation)
        assert found.std() == pytest.approx(deviation, rel=0.1)

    found = fitted.log_prior
    expected = stats.halfnorm.logpdf(fitted.mixture.scales[..., 0], scale=0.7)
    np.testing.assert_allclose(found["scales"], expected)
    expected = stats.t.logpdf(fitted.mixture.locations[..., 0], 5, 8.0, 0.5)
    np.testing.assert_allclose(found["locations"], expected)
    assert found.attrs["hyperparameters"] == '["locations", "scales"]'


@pytest.mark.full
def test_sensitivity_is_that_to_the_prior_given():
    tight, flat = (
        edp.audit(
            world(),
            epsilon=[0.1],
            model=edp.FiniteMixture(priors={"scales": pm.LogNormal.dist(np.log(0.5), spread)}),
            sampler="nutpie",
            draws=500,
            tune=500,
            random_seed=1,
            progressbar=False,
        )
        for spread in (0.1, 3.0)
    )
    one, other = (
        edp.diagnostics.prior_sensitivity(found, parameters="scales", quantities="delta")
        for found in (tight, flat)
    )
    assert one["prior"].item() > 0.2 > 0.05 > other["prior"].item()
    assert tight.settings["model"] == (
        "FiniteMixture(priors={scales ~ LogNormal(-0.69314718056, 0.1)})"
    )


@pytest.mark.full
@pytest.mark.usefixtures("quickly_compiled")
@pytest.mark.parametrize("model", MODELS)
def test_every_variable_of_the_model_takes_a_prior(model):
    """Those named are the variables, each of one number or of one for each component."""
    priors = {
        "rate": pm.LogNormal.dist(0.0, 0.3),
        "precision": pm.HalfNormal.dist(2.0),
        "centre": pm.StudentT.dist(nu=4, mu=0.0, sigma=1.0),
        "variance_share": pm.Uniform.dist(0.01, 0.9),
        "offset": pm.Laplace.dist(0.0, 1.0),
    }
    if model is edp.DirichletProcessMixture:
        priors["concentration"] = pm.Truncated.dist(pm.Gamma.dist(2, 2), lower=0.2)
    else:
        priors["share"] = pm.Dirichlet.dist([1.0, 2.0])
    built = model(components=2, priors=priors).build(world())
    assert built.named_vars_to_dims["offset"] == built.named_vars_to_dims["weights"]
    drawn = pm.draw([built[name] for name in priors], 400, random_seed=1)
    for (name, prior), values in zip(priors.items(), drawn, strict=True):
        if name == "share":
            np.testing.assert_allclose(values.mean(axis=0), [1 / 3, 2 / 3], atol=0.04)
            continue
        assert values[0].size == (2 if name in ("variance_share", "offset") else 1)
        alone = pm.draw(prior, 400, random_seed=2)
        assert stats.ks_2samp(values.ravel(), alone).pvalue > 1e-3
    assert np.isfinite(built.compile_logp()(built.initial_point()))


@pytest.mark.usefixtures("quickly_compiled")
def test_a_prior_given_for_two_parameters_is_of_two_independent_ones():
    same = pm.HalfNormal.dist(2.0)
    built = edp.FiniteMixture(priors={"rate": same, "precision": same}).build(world())
    rate, precision = pm.draw([built["rate"], built["precision"]], 300, random_seed=1)
    assert abs(stats.spearmanr(rate, precision).statistic) < 0.2


def test_the_truncation_follows_the_prior_of_the_concentration():
    near_five = edp.DirichletProcessMixture(
        kernel="laplace", priors={"concentration": pm.LogNormal.dist(np.log(5.0), 0.001)}
    )
    size = near_five.truncate(20)
    bound = near_five.attributes(world())["truncation_bound"]
    assert bound == pytest.approx(40.0 * (5.0 / 6.0) ** (size - 1), rel=0.01)
    assert size > edp.DirichletProcessMixture().truncate(20)
    wide = edp.DirichletProcessMixture(
        components=8,
        # nearly all of the default prior
        priors={"concentration": pm.Truncated.dist(pm.Gamma.dist(2.0, 2.0), lower=1e-4)},
    )
    found = wide.attributes(world())["truncation_bound"]
    assert found == pytest.approx(truncation_bound((2.0, 2.0), 8, 20), rel=0.1)


@pytest.mark.parametrize(
    ("priors", "error", "message"),
    [
        ({"conc": pm.Gamma.dist(1, 1)}, InvalidInputError, "no parameter 'conc'.* there are conce"),
        ({"stick": pm.Beta.dist(1, 1)}, InvalidInputError, "there is no parameter 'stick'"),
        ({"rate": 3.0}, InputTypeError, "the prior of rate must be a distribution .* found 3.0"),
        ({"rate": pm.Gamma}, InputTypeError, "must be a distribution such as"),
        ({"rate": pz.Gamma()}, InputTypeError, "with its parameters, found Gamma of PreliZ"),
        (
            {"centre": pm.Flat.dist()},
            InvalidInputError,
            "must be a proper distribution that can be",
        ),
        ({"rate": pm.HalfFlat.dist()}, InvalidInputError, "PyMC has no draws of HalfFlat"),
        (
            {"rate": pm.Normal.dist()},
            InvalidInputError,
            "rate is at least 0, .* Normal.0, 1., with",
        ),
        ({"variance_share": pm.HalfNormal.dist()}, InvalidInputError, "is between 0 and 1, and"),
        ({"rate": pm.Poisson.dist(3)}, InvalidInputError, "continuous .* found Poisson"),
        ({"rate": pm.Gamma.dist(2, 2, shape=3)}, InvalidInputError, "of one number, found 1 dim"),
        (
            {"rate": pm.Gamma.dist(pm.Exponential.dist(1.0), 1.0)},
            InvalidInputError,
            "parameters of the prior of rate must be numbers, and some are random",
        ),
        (
            {"rate": pm.CustomDist.dist(1.0, random=lambda a, rng, size: rng.exponential(a, size))},
            InvalidInputError,
            "the prior of rate must have a log density",
        ),
        (
            {"scales": pm.HalfNormal.dist(), "rate": pm.HalfNormal.dist()},
            InvalidInputError,
            "scales with a prior of their own do not depend on rate",
        ),
        (["rate"], InputTypeError, "priors must be distributions by name"),
    ],
)
def test_what_is_no_prior_is_named(priors, error, message):
    with pytest.raises(error, match=message):
        edp.DirichletProcessMixture(priors=priors)


def test_weights_have_as_many_numbers_as_there_are_components():
    with pytest.raises(InvalidInputError, match="prior of share must be of 2 numbers, found 3"):
        edp.FiniteMixture(components=2, priors={"share": pm.Dirichlet.dist(np.ones(3))})
    with pytest.raises(InvalidInputError, match="there is no parameter 'share'"):
        edp.FiniteMixture(priors={"share": pm.Dirichlet.dist(np.ones(1))})


def test_priors_in_units_of_the_response_are_refused_where_residuals_are_modelled():
    model = edp.FiniteMixture(priors={"scales": pm.HalfNormal.dist(2.0)})
    with pytest.raises(InvalidInputError, match="prior of scales is in units of the response"):
        edp.audit(
            world(), epsilon=[0.1], model=model, sampler="nutpie", random_seed=1,
            adversary=edp.Adversary(trend=True), progressbar=False, draws=100, tune=100,
        )  # fmt: skip


def test_the_full_posterior_gives_its_density_the_priors_of_it():
    priors = {"rate": pm.HalfNormal.dist(2.0), "size_middle": pz.Normal(0.0, 1.0)}
    model = edp.FullPosterior(edp.FiniteMixture(), priors=priors)
    assert repr(model) == (
        "FullPosterior(FiniteMixture(priors={rate ~ HalfNormal(0, 2)}), size_middle ~ Normal(0, 1))"
    )
    built = model.build(world())
    assert "HalfNormal" in built.str_repr()
    assert model.priors.keys() == {"size_middle"}
    with pytest.raises(InvalidInputError, match="size_between is at least 0"):
        edp.FullPosterior(priors={"size_between": pm.Normal.dist()})


def test_several_queries_take_the_priors_that_mean_the_same_for_them():
    rng = np.random.default_rng(3)
    c = rng.gamma(2.0, 0.1, (25, 3))
    parts = [
        edp.Responses.from_arrays(
            rng.normal(10.0, 2.0, 25) + factor * c.sum(axis=1), contribution=factor * c
        )
        for factor in (1.0, 2.0)
    ]
    joined = edp.Responses.join(*parts)
    own = edp.FiniteMixture(priors={"scales": pm.HalfNormal.dist(2.0)})
    options = {"epsilon": [0.1], "draws": 100, "tune": 100, "random_seed": 1, "progressbar": False}
    with pytest.raises(InvalidInputError, match=r"a joint audit takes priors of .* one of scales"):
        edp.audit(joined, model=own, sampler="nutpie", **options)
    taken = edp.FiniteMixture(priors={"rate": pm.HalfNormal.dist(2.0)})
    with pytest.raises(InvalidInputError, match=r"Gibbs sampling cannot draw .* given of rate"):
        edp.audit(joined, model=taken, **options)
    built = taken.build(joined)
    assert "rate ~ HalfNormal(0, 2)" in built.str_repr()
