"""How draws of a PyMC model become p and p_i: those of an audit, draw by draw."""

import numpy as np
import pytest
import xarray as xr

import edp_bayes as edp
from edp_bayes.models.contributions import CONTRIBUTIONS
from edp_bayes.models.sampling import SamplerSettings, sample_nuts

EPSILON = np.array([0.05, 0.3])
QUICK = {"draws": 30, "tune": 100, "chains": 2, "random_seed": 1, "progressbar": False}


def world(people=4, n=30):
    """Return responses to which the first person always contributes, the others sometimes."""
    rng = np.random.default_rng(1)
    c = rng.normal(1.0, 0.3, (n, people)) * (rng.random((n, people)) < 0.5)
    c[:, 0] = rng.normal(0.5, 0.1, n)
    return edp.Responses.from_arrays(
        20.0 + 2.0 * rng.standard_normal(n) + c.sum(1), contribution=c, additive=True
    )


def posterior(responses, chains=2, draws=25, components=2):
    """Return draws of a model of the response and of contributions, at random."""
    rng = np.random.default_rng(2)
    lead, people = (chains, draws), responses.n_individuals
    share = rng.uniform(0.2, 0.8, lead)
    parts = {
        "weights": np.stack([share, 1.0 - share], axis=-1),
        "locations": responses.response.mean() + rng.normal(0.0, 1.0, (*lead, components)),
        "scales": rng.uniform(1.5, 2.5, (*lead, components)),
    }
    own = {
        "contribution_presence": rng.uniform(0.3, 1.0, (*lead, people, components)),
        "contribution_intercept": rng.normal(1.0, 0.2, (*lead, people)),
        "contribution_slope": rng.normal(0.0, 0.05, (*lead, people)),
        "contribution_spread": rng.uniform(0.1, 0.3, (*lead, people)),
    }
    dims = ("chain", "draw")
    return xr.Dataset(
        {name: ((*dims, "component"), values) for name, values in parts.items()}
        | {
            name: ((*dims, "individual", "component")[: values.ndim], values)
            for name, values in own.items()
        },
        coords={"individual": responses.individual},
    )


def risk(p, q):
    """Return the risk of a pair, draw by draw."""
    return np.maximum(
        edp.hockey_stick(p, q, epsilon=EPSILON), edp.hockey_stick(q, p, epsilon=EPSILON)
    )


def assert_risks_are_those_of(audit, drawn):
    for person in audit.individual_delta["individual"].to_numpy().tolist():
        known = audit.individual_delta.sel(individual=person).transpose("chain", "draw", "epsilon")
        np.testing.assert_allclose(risk(*drawn.pair(person)), known, rtol=1e-9, atol=1e-12)


def test_a_pair_of_named_contributions_is_that_of_the_audit_and_of_its_formula():
    responses = world()
    draws = posterior(responses)
    model = edp.PyMCMixture(edp.FiniteMixture().build, contributions=CONTRIBUTIONS)
    drawn = model.to_mixture(draws, responses)
    audit = edp.audit_trace(
        draws, responses, epsilon=EPSILON, contributions=CONTRIBUTIONS, random_seed=5,
        progressbar=False,
    )  # fmt: skip
    assert_risks_are_those_of(audit, drawn)
    np.testing.assert_array_equal(drawn.mixture.locations, draws["locations"])
    # what is taken out of a component and added back has its mean: docs/models/contributions.md
    p, p_i = drawn.pair(1)
    rho, a, b = (draws[name].sel(individual=1).to_numpy() for name in CONTRIBUTIONS[:3])
    a, b = a[..., None], b[..., None]
    middle = (draws["locations"].to_numpy() - rho * a) / (1.0 + rho * b)
    np.testing.assert_allclose(p_i.locations, np.tile(middle, 2), rtol=1e-12)
    np.testing.assert_allclose(p.locations[..., 2:], middle + a + b * middle, rtol=1e-12)
    np.testing.assert_allclose(p.weights[..., 2:], rho * draws["weights"], rtol=1e-12)


@pytest.mark.parametrize(
    "model", [edp.FiniteMixture(components=2), edp.DirichletProcessMixture(components=2)]
)
def test_contributions_known_by_empirical_bayes_are_those_of_the_seed(model):
    responses = world()
    draws = posterior(responses)
    audit = edp.audit_trace(draws, responses, epsilon=EPSILON, random_seed=5, progressbar=False)
    assert_risks_are_those_of(audit, model.to_mixture(draws, responses, random_seed=5))
    other = model.to_mixture(draws, responses, random_seed=6)
    known = audit.individual_delta.sel(individual=1).transpose("chain", "draw", "epsilon")
    assert not np.allclose(risk(*other.pair(1)), known)


@pytest.mark.full
def test_draws_of_the_full_posterior_are_its_audit():
    """A user who builds, samples and couples has the numbers of the audit, to rounding."""
    responses, model = world(), edp.FullPosterior(edp.FiniteMixture(components=2))
    audit = edp.audit(responses, epsilon=EPSILON, model=model, **QUICK)
    assert_risks_are_those_of(audit, model.to_mixture(audit.trace, responses))


@pytest.mark.full
def test_given_an_adversary_draws_of_the_full_posterior_are_its_audit():
    responses = world(n=40).replaced(database=np.arange(40))
    model, known = edp.FullPosterior(edp.FiniteMixture()), edp.Adversary(past=1, trend=True)
    audit = edp.audit(responses, epsilon=EPSILON, model=model, adversary=known, **QUICK)
    draws = audit.tree["parameters"].to_dataset()
    drawn = model.to_mixture(draws, responses, adversary=known)
    assert_risks_are_those_of(audit, drawn)
    assert drawn.in_question is not None
    np.testing.assert_array_equal(drawn.mixture.scales, audit.tree["mixture"]["scales"])
    with pytest.raises(edp.InvalidInputError, match="posterior must have dims chain and draw"):
        model.to_mixture(draws.isel(chain=0, drop=True), responses, adversary=known)


@pytest.mark.full
@pytest.mark.parametrize("growing", [False, True])
def test_given_an_adversary_the_trace_of_a_mixture_is_its_audit(growing):
    """The density is drawn again, and the trace has its draws beside those of the regression."""
    responses = world(n=40).replaced(database=np.arange(40))
    known = edp.Adversary(past=1, trend=True, changing_scale=growing)
    audit = edp.audit(
        responses, epsilon=EPSILON, adversary=known, draws=30, random_seed=3, progressbar=False
    )
    drawn = edp.DirichletProcessMixture().to_mixture(
        audit.trace, responses, adversary=known, random_seed=3
    )
    assert_risks_are_those_of(audit, drawn)
    np.testing.assert_array_equal(drawn.mixture.scales, audit.tree["mixture"]["scales"])
    assert drawn.in_question is not None
    np.testing.assert_array_equal(
        drawn.in_question.next_response.locations, audit.tree["mixture"]["locations"]
    )
    with pytest.raises(edp.InvalidInputError, match="of the regression named coefficients"):
        edp.DirichletProcessMixture().to_mixture(
            audit.trace["posterior"].to_dataset().drop_vars(["coefficients", "shift"]),
            responses, adversary=known,
        )  # fmt: skip
    with pytest.raises(edp.InvalidInputError, match="coefficients must be"):
        edp.DirichletProcessMixture().to_mixture(
            audit.trace, responses, adversary=edp.Adversary(past=2, season=12)
        )


@pytest.mark.full
def test_who_builds_samples_and_couples_twice_has_the_audit_given_an_adversary():
    responses = world(n=40).replaced(database=np.arange(40))
    known, model = edp.Adversary(past=1, trend=True), edp.FiniteMixture(components=2)
    audit = edp.audit(
        responses, epsilon=EPSILON, adversary=known, model=model, sampler="pymc", cores=1, **QUICK
    )
    settings = SamplerSettings(sampler="pymc", cores=1, **QUICK)
    joint = sample_nuts(model.build(responses, adversary=known), settings)
    first = model.to_mixture(joint, responses, adversary=known)
    alone = sample_nuts(model.build(first.responses), settings)
    drawn = model.to_mixture(alone, responses, adversary=known, joint=joint, random_seed=1)
    assert_risks_are_those_of(audit, drawn)
    assert_risks_are_those_of(
        audit, model.to_mixture(audit.trace, responses, adversary=known, random_seed=1)
    )
    with pytest.raises(edp.InvalidInputError, match="give adversary=, too"):
        model.to_mixture(alone, responses, joint=joint)


def test_given_an_adversary_a_mixture_is_that_of_the_database_in_question():
    responses = world(n=40).replaced(database=np.arange(40))
    known, model = edp.Adversary(trend=True), edp.FiniteMixture(components=2)
    built = model.build(responses, adversary=known)
    rng = np.random.default_rng(3)
    lead = ("chain", "draw")
    draws = xr.Dataset({
        "weights": ((*lead, "component"), np.full((1, 20, 2), 0.5)),
        "locations": ((*lead, "component"), rng.normal(0.0, 0.5, (1, 20, 2))),
        "scales": ((*lead, "component"), rng.uniform(0.5, 1.0, (1, 20, 2))),
        "coefficients": ((*lead, "term"), rng.normal(0.0, 0.1, (1, 20, len(built.coords["term"])))),
    })  # fmt: skip
    drawn = model.to_mixture(draws, responses, adversary=known, random_seed=1)
    unit = drawn.mixture.scales / draws["scales"].to_numpy()
    np.testing.assert_allclose(unit, unit[0, 0, 0], rtol=1e-12)
    assert unit[0, 0, 0] == pytest.approx(responses.response.std(), rel=0.1)
    assert 0.0 < risk(*drawn.pair(0)).max() < 1.0


def test_draws_that_are_no_draws_of_the_model_are_refused():
    responses = world()
    draws, model = posterior(responses), edp.FullPosterior(edp.FiniteMixture(components=2))
    with pytest.raises(edp.InputTypeError, match="with a group posterior, or that group"):
        model.to_mixture({"weights": 1.0}, responses)
    with pytest.raises(edp.InvalidInputError, match="of contributions named contribution_presence"):
        model.to_mixture(draws[["weights", "locations", "scales"]], responses)
    with pytest.raises(edp.InvalidInputError, match="unknown individual 'nobody'"):
        edp.FiniteMixture().to_mixture(draws, responses).pair("nobody")
    others = xr.DataTree.from_dict({
        "posterior": draws,
        "observed_data": xr.Dataset({"response": ("database", responses.response + 1.0)}),
    })  # fmt: skip
    with pytest.raises(edp.InvalidInputError, match=r"draws are of \d+ other responses"):
        edp.FiniteMixture().to_mixture(others, responses)
    dated = responses.replaced(database=np.arange(30))
    with pytest.raises(edp.InvalidInputError, match="draws contributions, and these have no reg"):
        edp.FullPosterior(edp.PyMCMixture(edp.FiniteMixture().build)).to_mixture(
            draws, dated, adversary=edp.Adversary(past=1)
        )


def test_of_a_dominant_individual_draws_apart_are_needed():
    rng = np.random.default_rng(2)
    c = rng.normal(2.0, [5.0, 0.1, 0.1], (40, 3))
    responses = edp.Responses.from_arrays(rng.normal(size=40) + c.sum(axis=1), contribution=c)
    model = edp.FullPosterior(edp.FiniteMixture())
    names = {
        "size_middle": 0.0, "size_between": 1.0, "angle_middle": 0.0, "angle_between": 0.5,
    }  # fmt: skip
    draws = posterior(responses).assign(
        {name: (("chain", "draw"), np.full((2, 25), value)) for name, value in names.items()}
    )
    drawn = model.to_mixture(draws, responses)
    with pytest.raises(edp.InvalidInputError, match="individual 0 has at least half the variance"):
        drawn.pair(0)
    assert risk(*drawn.pair(1)).shape == (2, 25, 2)


@pytest.mark.full
def test_nuts_draws_the_rest_of_a_dominant_individual_as_gibbs_sampling_does():
    """Their contribution taken out of p gave 0.14 in the place of 0.32 at epsilon = 1."""
    rng = np.random.default_rng(3)
    c = rng.normal(2.0, [5.0, 0.1, 0.1], (40, 3))
    c[:, 0] *= rng.random(40) < 0.6
    responses = edp.Responses.from_arrays(2.0 * rng.normal(size=40) + c.sum(axis=1), contribution=c)
    model = edp.FiniteMixture(components=2)
    asked = {"epsilon": [0.05, 0.3, 1.0], "random_seed": 1, "progressbar": False, "model": model}
    gibbs = edp.audit(responses, draws=500, **asked)
    nuts = edp.audit(responses, draws=250, tune=400, sampler="pymc", cores=1, **asked)
    assert nuts.tree["without"]["position"].to_numpy().tolist() == [0]
    for part in ("delta", "total_risk"):
        found, expected = (
            getattr(audit, part).mean(("chain", "draw")).to_numpy() for audit in (nuts, gibbs)
        )
        np.testing.assert_allclose(found, expected, atol=0.02)
    with pytest.raises(edp.InvalidInputError, match="individual 0 has at least half the variance"):
        model.to_mixture(nuts.trace, responses).pair(0)


def test_the_risk_at_one_epsilon_has_no_axis_of_epsilon():
    responses = world()
    drawn = edp.FiniteMixture().to_mixture(posterior(responses), responses)
    one, p, p_i = drawn.risk(1, epsilon=0.3), *drawn.pair(1)
    assert one.shape == (2, 25)
    np.testing.assert_array_equal(one, drawn.risk(1, epsilon=EPSILON)[..., 1])
    directions = (edp.hockey_stick(*pair, epsilon=0.3) for pair in ((p, p_i), (p_i, p)))
    np.testing.assert_allclose(one, np.maximum(*directions), rtol=1e-9)


def test_individuals_are_known_by_their_dim_wherever_it_stands():
    """With as many components as individuals no shape tells one from the other."""
    responses = world(people=2)
    draws = posterior(responses)
    model = edp.PyMCMixture(edp.FiniteMixture().build, contributions=CONTRIBUTIONS)
    known, turned = (
        model.to_mixture(found, responses).risk(1, epsilon=EPSILON)
        for found in (draws, draws.transpose("component", "individual", "draw", "chain"))
    )
    np.testing.assert_array_equal(turned, known)


def test_the_group_posterior_of_a_tree_is_taken_as_it_is():
    responses = world()
    groups = {
        "posterior": posterior(responses),
        "prior": posterior(responses),
        "observed_data": xr.Dataset({"response": ("database", responses.response)}),
    }
    tree, model = xr.DataTree.from_dict(groups), edp.FiniteMixture()
    known = model.to_mixture(tree, responses).risk(1, epsilon=EPSILON)
    for found in (tree["posterior"], tree["posterior"].copy(), xr.DataTree(groups["posterior"])):
        np.testing.assert_array_equal(
            model.to_mixture(found, responses).risk(1, epsilon=EPSILON), known
        )
    # what stands beside it in its tree counts
    others = responses.replaced(response=responses.response + 1.0)
    with pytest.raises(edp.InvalidInputError, match="draws are of 30 other responses"):
        model.to_mixture(tree["posterior"], others)
    with pytest.raises(edp.InputTypeError, match=r"found DataTree$"):
        model.to_mixture(tree["prior"], responses)
    del tree["posterior"]
    with pytest.raises(edp.InputTypeError, match="with the groups prior, observed_data"):
        model.to_mixture(tree, responses)
