"""One PyMC model of the response and of all contributions, and couplings from its draws."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, logit
from scipy.stats import norm

import edp_bayes as edp
from edp_bayes.coupling.curves import moments_without
from edp_bayes.coupling.parts import taken
from edp_bayes.coupling.stacked import pick
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.models.contributions import CONTRIBUTIONS

QUICK = {"draws": 60, "tune": 200, "chains": 2, "random_seed": 1, "progressbar": False}
EPSILON = np.array([0.05, 0.3])


def world(people=4, n=30, seed=1):
    """Return responses to which the first person always contributes, and the last one never."""
    rng = np.random.default_rng(seed)
    c = rng.normal(1.0, 0.3, (n, people)) * (rng.random((n, people)) < 0.5)
    c[:, 0], c[:, -1] = rng.normal(0.5, 0.1, n), 0.0
    c[:, 1] *= -1.0
    c[:, 2] *= 2.5  # of more than half a standard deviation of the responses
    return edp.Responses.from_arrays(20.0 + 2.0 * rng.standard_normal(n) + c.sum(1), contribution=c)


@pytest.fixture(scope="module")
def audit():
    model = edp.FullPosterior(edp.FiniteMixture(components=2))
    return edp.audit(world(), epsilon=EPSILON, model=model, **QUICK)


def likelihood_of(responses, values):
    """Return the log likelihood of presence and contributions by its formulas, in numpy."""
    y = responses.response
    unit, mean = y.std(ddof=1), y.mean()
    c = responses.contribution.toarray()
    w = values["weights"]
    mu, v = (values["locations"] - mean) / unit, (values["scales"] / unit) ** 2
    here = c != 0.0
    size = np.sqrt((c**2).sum(axis=0) / np.maximum(here.sum(axis=0), 1)) / unit
    total = 0.0
    for i in range(responses.n_individuals):
        a, b, tau = values["intercept"][i], values["slope"][i], values["spread"][i]
        rho = values["presence"][i]
        m, s2 = np.array(
            [moments_without.py_func(*part, a, b, tau**2) for part in zip(mu, v, rho, strict=True)]
        ).T
        # of two components log odds are a line in the places of these
        place = 2.0 * np.tanh(mu / 2.0)
        odds = logit(rho)
        tilt = (odds[1] - odds[0]) / (place[1] - place[0])
        for j in range(y.size):
            z, rest = (y[j] - mean) / unit, (y[j] - c[j, i] - mean) / unit
            if size[i] > 0.5 and not here[:, i].all():
                sd = np.sqrt((1.0 + b) ** 2 * s2 + tau**2)
                absent = w @ ((1.0 - rho) * norm.pdf(z, m, np.sqrt(s2)))
                present = w @ (rho * norm.pdf(z, m + a + b * m, sd))
                there = present / (absent + present)
            else:
                there = expit(odds[0] + tilt * (2.0 * np.tanh(rest / 2.0) - place[0]))
            total += np.log(there if here[j, i] else 1.0 - there)
            if here[j, i]:
                total += norm.logpdf(c[j, i], unit * (a + b * rest), unit * tau)
    return total


def test_there_are_people_of_both_kinds():
    responses = world()
    c = responses.contribution.toarray()
    size = np.sqrt((c**2).sum(axis=0) / np.maximum((c != 0).sum(axis=0), 1))
    assert (size > 0.5 * responses.response.std(ddof=1)).tolist() == [False, False, True, False]


@pytest.mark.parametrize("seed", range(4))
def test_the_likelihood_is_that_of_its_formula(seed):
    responses = world()
    model = edp.FullPosterior(edp.FiniteMixture(components=2)).build(responses)
    rng = np.random.default_rng(seed)
    point = {
        name: value + rng.normal(0.0, 0.4, np.shape(value))
        for name, value in model.initial_point().items()
    }
    names = ("weights", "locations", "scales", *CONTRIBUTIONS)
    logs = model.logp([model["present"], model["contribution"]], sum=False)
    named = model.replace_rvs_by_values([model[name] for name in names])
    function = model.compile_fn([*logs, *named], inputs=model.value_vars, on_unused_input="ignore")
    drawn = function(point)[2:]
    found = sum(float(np.sum(part)) for part in function(point)[:2])
    values = dict(zip(names, drawn, strict=True))
    unit, mean = responses.response.std(ddof=1), responses.response.mean()
    rho, intercept, slope, spread = (values.pop(name) for name in CONTRIBUTIONS)
    values |= {
        "presence": np.where(rho > 1.0 - 1e-12, 1.0 - 1e-13, rho),
        "intercept": (intercept + slope * mean) / unit,
        "slope": slope,
        "spread": spread / unit,
    }
    assert found == pytest.approx(likelihood_of(responses, values), rel=1e-6)


@pytest.mark.full
def test_the_densities_with_and_without_are_of_the_same_draw(audit):
    """Adding what is contributed to p_i gives p, draw by draw, in mean and variance."""
    parameters = audit.tree["parameters"].to_dataset().stack(sample=("chain", "draw"))
    mean = (parameters["weights"] * parameters["locations"]).sum("component")
    for person in audit.individuals["individual"][:3]:
        p, q = audit.source.coupling.pair(int(person))
        found = (p.weights * p.locations).sum(-1).ravel()
        np.testing.assert_allclose(found, mean.to_numpy(), rtol=1e-9)
        assert not np.allclose((q.weights * q.locations).sum(-1).ravel(), found)


def test_dims_name_who_and_what_can_be_predicted():
    import pymc as pm

    responses = world()
    model = edp.FullPosterior(edp.FiniteMixture(components=2)).build(responses)
    assert model.named_vars_to_dims[CONTRIBUTIONS[0]] == ("individual", "component")
    assert list(model.coords["individual"]) == responses.individual.tolist()
    with model, pytest.warns(UserWarning, match="Potentials"):  # the smooth floors
        drawn = pm.sample_prior_predictive(20, random_seed=1)
    assert drawn["prior_predictive"]["present"].dims == (
        "chain", "draw", "database", "individual",
    )  # fmt: skip
    assert np.isfinite(drawn["prior_predictive"]["contribution"]).all()


@pytest.mark.full
def test_people_known_well_have_the_risk_that_empirical_bayes_gives_them():
    """With many databases the pools hardly matter, and both posteriors are about the truth."""
    responses = world(n=150)
    audits = [
        edp.audit(responses, epsilon=EPSILON, model=model, **QUICK)
        for model in (
            edp.FiniteMixture(components=1),
            edp.FullPosterior(edp.FiniteMixture(components=1)),
        )
    ]
    empirical, full = (
        a.individual_delta.mean(("chain", "draw")).sortby("individual") for a in audits
    )
    np.testing.assert_allclose(full[:, :3], empirical[:, :3], atol=0.03)


@pytest.mark.full
def test_a_new_individual_and_the_parameters_stay(audit):
    assert 0.0 < float(audit.new_individual()["exceeds"].max()) <= 0.2
    names = set(audit.tree["parameters"].data_vars)
    assert {*CONTRIBUTIONS, "size_middle", "presence_between"} <= names


def users_model(responses):
    """Return a household: two people who come together or not at all, and one on their own."""
    import pymc as pm
    import pytensor.tensor as pt

    c = responses.contribution.toarray()
    with pm.Model() as model:
        mu = pm.Normal("mu", 20.0, 5.0, shape=1)
        sd = pm.HalfNormal("sd", 3.0, shape=1)
        pm.Deterministic("weights", pt.ones(1))
        pm.Normal("y", mu, sd, observed=responses.response)
        home = pm.Beta("home", 1.0, 1.0)
        other = pm.Beta("other", 1.0, 1.0)
        pm.Bernoulli("seen", home, observed=(c[:, 0] != 0).astype(int))
        pm.Bernoulli("seen_other", other, observed=(c[:, 2] != 0).astype(int))
        pm.Deterministic("rho", pt.stack([home, home, other]))
        level = pm.Normal("level", 1.0, 1.0, shape=3)
        spread = pm.HalfNormal("residual", 1.0, shape=3)
        for i in range(3):
            own = c[c[:, i] != 0, i]
            pm.Normal(f"c{i}", level[i], spread[i], observed=own)
        pm.Deterministic("flat", pt.zeros(3))
    return model


def household():
    rng = np.random.default_rng(3)
    home, other = rng.random(60) < 0.5, rng.random(60) < 0.8
    c = np.stack([home, home, other], axis=1) * rng.normal(1.0, 0.1, (60, 3))
    return edp.Responses.from_arrays(20.0 + rng.standard_normal(60) + c.sum(1), contribution=c)


NAMES = ("rho", "level", "flat", "residual")


@pytest.mark.full
def test_contributions_of_a_users_model_are_those_of_the_audit():
    responses = household()
    model = edp.PyMCMixture(users_model, locations="mu", scales="sd", contributions=NAMES)
    audit = edp.audit(responses, epsilon=EPSILON, model=model, **QUICK)
    draws = audit.source.coupling.contributions(np.array([0, 2]))
    parameters = audit.tree["parameters"].to_dataset().stack(sample=("chain", "draw"))
    np.testing.assert_array_equal(draws.presence[:, 0, 0], parameters["home"])
    np.testing.assert_array_equal(draws.intercept[:, 1], parameters["level"][2])
    # the model says nothing of an individual not in the sample
    assert float(audit.new_individual()["exceeds"].max()) == 0.0


@pytest.mark.full
@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("rho", "level", "flat", "nothing"), "nothing not found among"),
        (("mu", "level", "flat", "residual"), r"mu must have the shape \(3,\) or \(3, 1\)"),
        (("level", "level", "flat", "residual"), "level must be between 0 and 1"),
    ],
)
def test_what_is_no_contribution_is_refused_by_name(names, message):
    model = edp.PyMCMixture(users_model, locations="mu", scales="sd", contributions=names)
    with pytest.raises(InvalidInputError, match=message):
        edp.audit(household(), epsilon=EPSILON, model=model, **QUICK)
    with pytest.raises(InputTypeError, match="names of presence, intercept, slope and spread"):
        edp.PyMCMixture(users_model, contributions=("rho", "level"))


@pytest.mark.full
def test_some_of_the_draws_and_of_the_people_are_as_among_all(audit):
    coupling = audit.source.coupling
    everybody = coupling.curves(np.arange(coupling.n_individuals), EPSILON)
    some = np.array([1, 3])
    np.testing.assert_array_equal(
        taken(coupling, some).curves(np.arange(2), EPSILON), everybody[:, some]
    )
    rows = np.array([0, 7, 50])
    np.testing.assert_array_equal(
        pick(coupling, rows).curves(np.arange(coupling.n_individuals), EPSILON), everybody[rows]
    )
    np.testing.assert_array_equal(
        pick(coupling, rows).new_individual(EPSILON), coupling.new_individual(EPSILON)[rows]
    )


def test_what_it_has_no_likelihood_for_is_refused():
    rng = np.random.default_rng(1)
    several = edp.Responses.from_arrays(
        rng.normal(size=80), contribution=rng.normal(size=(80, 3)), samples=2
    )
    with pytest.raises(InvalidInputError, match="takes one response a database, found 2 samples"):
        edp.FullPosterior().build(several)
    crowd = edp.Responses.from_arrays(
        rng.normal(size=10), contribution=sp.csc_array((10, 3000), dtype=float)
    )
    with pytest.raises(InvalidInputError, match="at most 2,000 individuals, found 3,000"):
        edp.FullPosterior().build(crowd)
    with pytest.raises(InvalidInputError, match="takes Gaussian components"):
        edp.FullPosterior(edp.FiniteMixture(kernel="laplace"))
    with pytest.raises(InvalidInputError, match="whose variables are weights, locations and sca"):
        edp.FullPosterior(edp.PyMCMixture(users_model, locations="mu"))
    with pytest.raises(InputTypeError, match="density must be"):
        edp.FullPosterior(edp.SmoothedBootstrap())


@pytest.mark.parametrize(
    "model",
    [
        edp.FullPosterior(),
        edp.PyMCMixture(users_model, locations="mu", scales="sd", contributions=NAMES),
    ],
    ids=["full", "user's"],
)
def test_what_an_adversary_knows_is_refused(model):
    dated = household().replaced(database=np.arange(1960, 2020))
    with pytest.raises(InvalidInputError, match="draws contributions, and these have no regress"):
        edp.audit(dated, epsilon=EPSILON, model=model, adversary=edp.Adversary(past=1), **QUICK)


def test_the_response_may_have_a_model_of_ones_own():
    import pymc as pm
    import pytensor.tensor as pt

    def normal(responses):
        with pm.Model() as model:
            mu = pm.Normal("locations", 20.0, 5.0, shape=1)
            sd = pm.HalfNormal("scales", 3.0, shape=1)
            pm.Deterministic("weights", pt.ones(1))
            pm.Normal("y", mu, sd, observed=responses.response)
        return model

    model = edp.FullPosterior(edp.PyMCMixture(normal)).build(world())
    assert [v.name for v in model.observed_RVs] == ["y", "present", "contribution"]
    assert np.isfinite(model.compile_logp()(model.initial_point()))


def test_a_prior_may_be_another():
    import pymc as pm

    priors = {"size_middle": pm.Normal.dist(3.0, 0.01), "presence_between": pm.Gamma.dist(2, 2)}
    model = edp.FullPosterior(edp.FiniteMixture(), priors=priors)
    assert repr(model).startswith("FullPosterior(FiniteMixture(), size_middle ~ Normal(3, 0.01), ")
    for _ in range(2):
        built = model.build(world())
        draws = pm.draw(built["size_middle"], 200, random_seed=1)
        assert np.abs(draws - 3.0).max() < 0.1
        assert np.isfinite(built.compile_logp()(built.initial_point()))
    with pytest.raises(
        InvalidInputError, match="no parameter 'size', whose prior could be given: ther"
    ):
        edp.FullPosterior(priors={"size": pm.Normal.dist()})
    with pytest.raises(InputTypeError, match="the prior of size_middle must be a distribution"):
        edp.FullPosterior(priors={"size_middle": 3.0})
    with pytest.raises(InvalidInputError, match="must be of one number, found 1 dim"):
        edp.FullPosterior(priors={"size_middle": pm.Normal.dist(shape=2)})


@pytest.mark.full
def test_the_distribution_without_a_dominant_individual_is_drawn_apart():
    rng = np.random.default_rng(2)
    c = rng.normal(2.0, [5.0, 0.1, 0.1], (40, 3))
    responses = edp.Responses.from_arrays(rng.normal(size=40) + c.sum(axis=1), contribution=c)
    density = edp.FiniteMixture(components=1)
    full, empirical = (
        edp.audit(responses, epsilon=EPSILON, model=model, **QUICK)
        for model in (edp.FullPosterior(density), density)
    )
    (person,) = full.source.coupling.without
    assert responses.individual[person] == 0
    risks = [
        a.individual_delta.mean(("chain", "draw")).sel(individual=0) for a in (full, empirical)
    ]
    np.testing.assert_allclose(*risks, atol=0.03)
