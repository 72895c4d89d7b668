"""One PyMC model of the response and of all contributions, and couplings from its draws."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, logit
from scipy.stats import norm

import edp_bayes as edp
from edp_bayes.coupling.views.some_draws import pick
from edp_bayes.coupling.views.some_individuals import taken
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
        m = (mu - rho * a) / (1.0 + rho * b)
        explained = rho * tau**2 + rho * (1.0 - rho) * (a + b * m) ** 2
        # what is left of the variance, at least a tenth of it, by a floor that has no edge
        kept = 0.1 + np.logaddexp(0.0, 20.0 * (0.9 - explained / v)) / 20.0
        s2 = v * kept / (1.0 - rho + rho * (1.0 + b) ** 2)
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


@pytest.mark.full
def test_floors_have_no_edge_and_the_limits_that_they_had():
    """A sampler that follows the gradient diverges at edges."""
    from pytensor.graph.traversal import ancestors
    from pytensor.tensor.elemwise import Elemwise

    from edp_bayes.models.contribution_model import _above

    distance = np.array([-40.0, -3.0, 0.0, 0.5, 0.9, 40.0])
    found = _above(-0.9 + distance, -0.9).eval()
    np.testing.assert_allclose(found, -0.9 + np.maximum(distance, 0.0), atol=np.log(2.0) / 20.0)
    np.testing.assert_allclose(found[[0, 1, 4, 5]], [-0.9, -0.9, 0.0, 39.1], atol=1e-9)
    built = edp.FullPosterior(edp.FiniteMixture(components=2)).build(world())
    steps = (v.owner.op for v in ancestors(built.logp(sum=False)) if v.owner is not None)
    # not the largest of several terms, which a sum of exponentials starts from
    kinds = {type(op.scalar_op).__name__ for op in steps if isinstance(op, Elemwise)}
    assert "Softplus" in kinds
    assert not {kind for kind in kinds if "Maximum" in kind or "Minimum" in kind}


def test_there_are_people_of_both_kinds():
    responses = world()
    c = responses.contribution.toarray()
    size = np.sqrt((c**2).sum(axis=0) / np.maximum((c != 0).sum(axis=0), 1))
    assert (size > 0.5 * responses.response.std(ddof=1)).tolist() == [False, False, True, False]


@pytest.mark.full
@pytest.mark.usefixtures("quickly_compiled")
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


@pytest.mark.usefixtures("quickly_compiled")
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
        edp.FullPosterior(edp.PyMCMixture(users_model)),
        edp.PyMCMixture(users_model, locations="mu", scales="sd", contributions=NAMES),
    ],
    ids=["full", "user's"],
)
def test_what_an_adversary_knows_is_refused_beside_a_model_of_ones_own(model):
    dated = household().replaced(database=np.arange(1960, 2020))
    with pytest.raises(InvalidInputError, match="draws contributions, and these have no regress"):
        edp.audit(dated, epsilon=EPSILON, model=model, adversary=edp.Adversary(past=1), **QUICK)


def monthly(seed=1, n=60, people=5):
    """Return a series with a season, where the first one has a larger season of their own."""
    rng = np.random.default_rng(seed)
    season = np.sin(2.0 * np.pi * np.arange(n) / 12.0)
    rest = np.zeros(n)
    for t in range(n):
        rest[t] = 0.5 * rest[t - 1] + rng.standard_normal()
    c = rng.normal(np.linspace(0.2, 1.0, people), 0.15, (n, people))
    c[:, 0] += 0.6 * season
    c[:, 2:] *= rng.random((n, people - 2)) < 0.6
    return edp.Responses.from_arrays(
        50.0 + rest + season + c.sum(axis=1), contribution=c, additive=True
    ).replaced(database=np.arange(n))


KNOWN = edp.Adversary(past=1, season=12)


def given_likelihood_of(responses, regression, values):
    """Return the log likelihood of presence and contributions at the database in question."""
    known = regression.known
    y, c = known.responses.response, known.responses.contribution.toarray()
    own, n = regression.units, y.size
    u = (y - own.centre) / own.spread - regression.design @ values["coefficients"]
    in_question = own.centre + own.spread * (u - u.mean() + regression.place)
    y_mode = regression.adjusted(*regression.mode).response
    unit, mean = y_mode.std(ddof=1), y_mode.mean()
    x, away = (part / known.design.std(axis=0) for part in (known.design, known.target))
    x, away = x - x.mean(axis=0), away - x.mean(axis=0)
    change = values["change_between"] * values["change_own"] * values["spread"][:, None]
    here, total = c != 0.0, 0.0
    place = own.centre + own.spread * (values["locations"] - u.mean() + regression.place)
    place = 2.0 * np.tanh((place - mean) / unit / 2.0)
    share = here.mean(axis=0)
    for i in np.flatnonzero(here.sum(axis=0) < n):
        before = np.append(0.0, here[:-1, i] - share[i])
        again = values["again"][i]
        odds = logit(values["presence"][i])
        tilt = (odds[1] - odds[0]) / (place[1] - place[0])
        common = values["presence_change"]
        usual = odds[0] - tilt * place[0] - away @ common - again * (here[-1, i] - share[i])
        rest = in_question - np.where(here[:, i], c[:, i] - (x - away) @ change[i], 0.0)
        bent = 2.0 * np.tanh((rest - mean) / unit / 2.0)
        there = expit(usual + x @ common + again * before + tilt * bent)
        total += np.log(np.where(here[:, i], there, 1.0 - there)).sum()
    for i in range(c.shape[1]):
        moved = c[here[:, i], i] - (x[here[:, i]] - away) @ change[i]
        rest = in_question[here[:, i]] - moved
        middle = values["intercept"][i] + values["slope"][i] * rest
        total += norm.logpdf(moved, middle, values["spread"][i]).sum()
    return total


@pytest.mark.full
@pytest.mark.usefixtures("quickly_compiled")
@pytest.mark.parametrize("seed", range(2))
def test_given_an_adversary_the_likelihood_is_that_of_its_formula(seed):
    from edp_bayes.models.regression import Regression

    responses = monthly(people=4)
    c = 0.3 * responses.contribution.toarray()  # nobody makes components of their own
    responses = responses.replaced(contribution=sp.csc_array(c))
    regression = Regression.of(KNOWN.given(responses))
    model = edp.FullPosterior(edp.FiniteMixture(components=2)).build(responses, adversary=KNOWN)
    rng = np.random.default_rng(seed)
    point = {
        name: value + rng.normal(0.0, 0.4, np.shape(value))
        for name, value in model.initial_point().items()
    }
    names = (
        *("locations", "coefficients", *CONTRIBUTIONS),
        *("change_between", "change_own", "presence_change"),
        *("again_middle", "again_between", "again_own"),
    )
    logs = model.logp([model["present"], model["contribution"]], sum=False)
    named = model.replace_rvs_by_values([model[name] for name in names])
    function = model.compile_fn([*logs, *named], inputs=model.value_vars, on_unused_input="ignore")
    outputs = function(point)
    found = sum(float(np.sum(part)) for part in outputs[:2])
    values = dict(zip(names, outputs[2:], strict=True))
    for name in ("presence", "intercept", "slope", "spread"):
        values[name] = values.pop(f"contribution_{name}")
    values["again"] = np.zeros(4)
    values["again"][2:] = values["again_middle"] + values["again_between"] * values["again_own"]
    always = 2 * (regression.known.responses.n_databases * np.log1p(np.exp(-30.0)))
    wanted = given_likelihood_of(responses, regression, values) - always
    assert found == pytest.approx(wanted, rel=1e-6)


@pytest.mark.full
def test_given_an_adversary_it_is_still_one_model_with_named_dims():
    responses = monthly()
    model = edp.FullPosterior(edp.FiniteMixture(components=2)).build(responses, adversary=KNOWN)
    assert [v.name for v in model.observed_RVs] == ["response", "present", "contribution"]
    dims = model.named_vars_to_dims
    assert dims["coefficients"] == ("term",)
    assert dims["change_own"] == ("individual", "predictor")
    assert dims["regressors"] == ("database", "term")
    # the first database serves as a lag alone
    assert list(model.coords["database"]) == list(range(1, 60))
    assert list(model.coords["sometimes"]) == [2, 3, 4]
    assert np.isfinite(model.compile_logp()(model.initial_point()))
    growing = edp.Adversary(trend=True, changing_scale=True)
    model = edp.FullPosterior(edp.FiniteMixture()).build(responses, adversary=growing, at=30)
    assert list(model.coords["predictor"]) == ["scale"]
    assert "growth" in model.named_vars
    assert np.isfinite(model.compile_logp()(model.initial_point()))


@pytest.mark.full
def test_given_an_adversary_limits_are_those_of_empirical_bayes():
    """Two people always there: in a series with a season only the pools are known otherwise."""
    density, responses = edp.FiniteMixture(components=1), monthly(people=2)
    options = {**QUICK, "draws": 400, "tune": 400, "adversary": KNOWN}
    empirical, full = (
        edp.audit(responses, epsilon=EPSILON, model=model, **options)
        for model in (density, edp.FullPosterior(density))
    )
    assert full.settings["against"] == empirical.settings["against"]
    np.testing.assert_allclose(full.upper("delta"), empirical.upper("delta"), rtol=0.08)
    means = [
        a.individual_delta.mean(("chain", "draw")).sortby("individual") for a in (full, empirical)
    ]
    np.testing.assert_allclose(*means, atol=0.015)


@pytest.mark.full
def test_the_next_database_is_predicted():
    """What follows a posterior: its response, who comes, and what they contribute."""
    import pymc as pm

    responses = monthly(people=3)
    model = edp.FullPosterior(edp.FiniteMixture()).build(responses, adversary=KNOWN)
    with model:
        draws = pm.sample(200, tune=300, chains=2, random_seed=1, progressbar=False)
        pm.set_data(
            {
                "regressors": model["regressors_next"].get_value()[None],
                "predictors": model["predictors_next"].get_value()[None],
                "present_before": model["present_before_next"].get_value()[None],
                "response_data": [responses.response.mean()],
                "present_data": np.zeros((1, 3), dtype=np.int64),
                "record_database": np.zeros(3, dtype=np.int64),
                "record_individual": np.arange(3),
                "contribution_data": np.zeros(3),
            },
            coords={"database": ["next"], "record": np.arange(3)},
        )
        # the smooth floors are of parameters, on which they have acted already
        with pytest.warns(UserWarning, match="Potentials"):
            found = pm.sample_posterior_predictive(
                draws,
                var_names=["response", "present", "contribution"],
                predictions=True,
                random_seed=1,
                progressbar=False,
            )["predictions"]
    assert found["response"].dims == ("chain", "draw", "database")
    assert list(found["database"]) == ["next"]
    # of the series' own: 0.5 of the last residual, the season of its first month, all that is given
    c = responses.contribution.toarray()
    season = np.sin(2.0 * np.pi * np.arange(60) / 12.0)
    rest = responses.response - season - c.sum(axis=1) - 50.0
    expected = 50.0 + 0.5 * rest[-1] + 0.2 + 0.6 + 0.6 * 1.0
    assert float(found["response"].mean()) == pytest.approx(expected, abs=0.6)
    assert 0.9 < float(found["response"].std()) < 1.7
    present = found["present"].mean(("chain", "draw")).squeeze()
    assert present[:2].to_numpy() == pytest.approx(1.0)
    assert 0.3 < float(present[2]) < 0.9
    amounts = found["contribution"].mean(("chain", "draw"))
    np.testing.assert_allclose(amounts, [0.2, 0.6, 1.0], atol=0.15)


@pytest.mark.full
def test_whoever_was_there_is_there_again_in_spells():
    """Presence in spells goes on: those who were in the last database are likely in the next."""
    rng = np.random.default_rng(4)
    here = np.zeros((60, 4), dtype=bool)
    here[0] = True, True, False, False
    for t in range(1, 60):
        stays = np.where(here[t - 1], 0.93, 0.07)
        here[t] = rng.random(4) < stays
    here[-4:] = True, True, False, False
    c = here * rng.normal(0.5, 0.1, here.shape)
    y = 20.0 + rng.standard_normal(60) + c.sum(axis=1)
    responses = edp.Responses.from_arrays(y, contribution=c).replaced(database=np.arange(60))
    model = edp.FullPosterior(edp.FiniteMixture(components=1))
    audit = edp.audit(
        responses, epsilon=EPSILON, model=model, adversary=edp.Adversary(trend=True), **QUICK
    )
    presence = audit.tree["parameters"]["contribution_presence"].mean(
        ("chain", "draw", "component")
    )
    assert (presence[:2] > 0.75).all()
    assert (presence[2:] < 0.3).all()


@pytest.mark.full
def test_presence_and_contributions_are_predicted_out_of_sample():
    """Given who may come, and the rest of new databases, both follow the parameters."""
    import pymc as pm

    responses = world()
    model = edp.FullPosterior(edp.FiniteMixture()).build(responses)
    people = responses.n_individuals
    names = ("contribution_intercept", "contribution_slope", "contribution_spread")
    # the rest of a new database is its response with no contributions
    new = {
        "response_data": np.array([15.0, 25.0]),
        "present_data": np.zeros((2, people), dtype=np.int64),
        "record_database": np.repeat([0, 1], people),
        "record_individual": np.tile(np.arange(people), 2),
        "contribution_data": np.zeros(2 * people),
    }
    model = pm.do(
        model, {"log_size": np.zeros(people), "steepness": np.array([0.5, 0.0, 0.0, 0.0])}
    )
    with model:
        pm.set_data(new, coords={"database": ["a", "b"], "record": np.arange(2 * people)})
    drawn = pm.draw([model["contribution"], *(model[n] for n in names)], 3000, random_seed=2)
    amounts, a, b, tau = (part.reshape(3000, -1, people) for part in drawn)
    middle = a + b * new["response_data"][:, None]
    scores = (amounts - middle) / tau
    assert np.abs(scores.mean(axis=0)).max() < 5.0 / np.sqrt(3000)
    np.testing.assert_allclose(scores.std(axis=0), 1.0, rtol=0.08)
    present = pm.draw(model["present"], 50, random_seed=3)
    assert present.shape == (50, 2, people)
    assert (present[..., 0] == 1).all()  # always there, and so predicted


@pytest.mark.full
@pytest.mark.usefixtures("quickly_compiled")
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


@pytest.mark.full
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
