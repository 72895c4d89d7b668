"""Atoms in the PyMC models: their shares are variables, and an audit takes their draws."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import beta

import edp_bayes as edp

EPSILON = np.array([0.05, 0.3])
MODELS = (
    edp.DirichletProcessMixture(components=2),
    edp.FiniteMixture(components=2),
    edp.FullPosterior(edp.FiniteMixture()),
    edp.SmoothedBootstrap(),
)


def world(n=60):
    """Return revenue that is 0 in a quarter of the weeks; person 1 alone makes some of it."""
    rng = np.random.default_rng(4)
    closed = rng.random(n) < 0.25
    c = np.where(closed[:, None], 0.0, rng.normal(0.5, 0.1, (n, 3)))
    y = np.where(closed, 0.0, 10.0 + rng.standard_normal(n)) + c.sum(axis=1)
    alone = np.flatnonzero(closed)[:3]
    c[alone, 1] = y[alone] = 0.4
    return edp.Responses.from_arrays(y, contribution=c, atoms=[0.0])


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_shares_of_atoms_are_in_the_graph_and_observed(model):
    responses = world()
    built = model.build(responses)
    seen = int((responses.response == 0.0).sum())
    assert built.coords["answer"] == ("0", "other")
    assert built.named_vars_to_dims["atom_share"] == ("answer",)
    observed = {variable.name for variable in built.observed_RVs}
    assert {"response", "atom_count"} <= observed
    assert built["atom_count_data"].get_value().tolist() == [seen, 60 - seen]
    assert built["response_data"].get_value().shape == (60 - seen,)


@pytest.mark.full
def test_nothing_else_hangs_on_the_shares():
    built = edp.FiniteMixture().build(world())
    point = built.initial_point()
    own = [built["atom_share"], built["atom_count"]]
    rest = [v for v in built.basic_RVs if v.name not in ("atom_share", "atom_count")]
    logs = [built.compile_logp(part)(point) for part in (own, [*rest, *built.potentials], None)]
    assert logs[2] == pytest.approx(logs[0] + logs[1], rel=1e-9)


def test_answers_without_atoms_have_no_shares():
    built = edp.FiniteMixture().build(world().replaced(atoms=None))
    assert "atom_share" not in built.named_vars


@pytest.mark.full
def test_the_trace_names_shares_and_is_the_audit():
    """By Gibbs sampling they are drawn apart, from the same Dirichlet distribution."""
    responses, model = world(), edp.DirichletProcessMixture()
    audit = edp.audit(responses, epsilon=EPSILON, draws=250, random_seed=3, progressbar=False)
    share = audit.trace["posterior"]["atom_share"]
    assert share.dims == ("chain", "draw", "answer")
    count = float((responses.response == 0.0).sum())
    known = beta(count + 0.5, 60 - count + 0.5)
    assert float(share.sel(answer="0").mean()) == pytest.approx(known.mean(), abs=0.01)
    drawn = model.to_mixture(audit.trace, responses, random_seed=3)
    assert_risks_are_those_of(audit, drawn)
    again = edp.audit_trace(
        audit.trace, responses, epsilon=EPSILON, random_seed=3, progressbar=False
    )
    xr.testing.assert_allclose(again.individual_delta, audit.individual_delta)


def assert_risks_are_those_of(audit, drawn):
    for person in audit.individual_delta["individual"].to_numpy().tolist():
        known = audit.individual_delta.sel(individual=person).transpose("chain", "draw", "epsilon")
        np.testing.assert_allclose(drawn.risk(person, epsilon=EPSILON), known, rtol=1e-12)


def test_draws_of_shares_are_the_atoms_of_the_risk():
    """Who never changes an atom risks w_0 times the risk of the density."""
    responses, model = world(), edp.FiniteMixture()
    audit = edp.audit(responses, epsilon=EPSILON, model=model, draws=50, random_seed=3,
        progressbar=False)  # fmt: skip
    posterior = audit.trace["posterior"].to_dataset()
    share = xr.DataArray([0.9, 0.1], dims="answer").broadcast_like(posterior["atom_share"])
    fixed = posterior.assign(atom_share=share.transpose("chain", "draw", "answer"))
    drawn = model.to_mixture(fixed, responses, random_seed=3)
    risks = drawn.risk(1, epsilon=EPSILON)
    p, p_i = drawn.pair(1)
    density = np.maximum(
        edp.hockey_stick(p, p_i, epsilon=EPSILON), edp.hockey_stick(p_i, p, epsilon=EPSILON)
    )
    assert (risks > 0.1 * density).all()  # in three of them the answer without 1 is the atom
    assert (risks < 0.1 + 0.1 * density).any()
    with pytest.raises(edp.InvalidInputError, match="atom_share must be shares of 0, other"):
        model.to_mixture(posterior.assign(atom_share=2.0 * share), responses)


@pytest.mark.full
@pytest.mark.parametrize("model", [edp.FiniteMixture(), edp.FullPosterior(edp.FiniteMixture())])
def test_nuts_draws_the_shares_and_the_audit_takes_them(model):
    responses = world()
    audit = edp.audit(
        responses, epsilon=EPSILON, model=model, sampler="pymc", cores=1, draws=200, tune=300,
        chains=2, random_seed=1, progressbar=False,
    )  # fmt: skip
    share = audit.trace["posterior"]["atom_share"].sel(answer="0")
    count = float((responses.response == 0.0).sum())
    known = beta(count + 0.5, 60 - count + 0.5)
    assert float(share.mean()) == pytest.approx(known.mean(), abs=0.02)
    assert float(share.std()) == pytest.approx(known.std(), rel=0.3)
    assert_risks_are_those_of(audit, model.to_mixture(audit.trace, responses, random_seed=1))
    gibbs = edp.audit(responses, epsilon=EPSILON, model=edp.FiniteMixture(), random_seed=1,
        draws=500, progressbar=False)  # fmt: skip
    np.testing.assert_allclose(
        audit.delta.mean(("chain", "draw")), gibbs.delta.mean(("chain", "draw")), atol=0.02
    )
