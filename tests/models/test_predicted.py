"""The full posterior replicates who is present and what they contribute, beside the response."""

import numpy as np
import pytest
import xarray as xr

import edp_bayes as edp
from edp_bayes.models.predicted import predicted_by
from edp_bayes.models.sampling import SamplerSettings, sample_nuts
from tests.models.test_to_mixture import world

QUICK = {"draws": 150, "tune": 200, "chains": 2, "random_seed": 1, "progressbar": False}
NAMES = ("present", "contribution")


@pytest.fixture(scope="module")
def audit():
    model = edp.FullPosterior(edp.FiniteMixture())
    return edp.audit(world(), epsilon=[0.1], model=model, **QUICK)


@pytest.mark.full
def test_the_trace_holds_presence_and_contributions_observed_and_predicted(audit, tmp_path):
    responses, trace = world(), audit.trace
    predicted, observed = trace["posterior_predictive"], trace["observed_data"]
    assert predicted["present"].dims == ("chain", "draw", "database", "individual")
    assert predicted["contribution"].dims == ("chain", "draw", "record")
    for name in NAMES:  # who it was, and which record, stands beside both
        for dim in observed[name].dims:
            xr.testing.assert_equal(observed[name][dim], predicted[name][dim])
    c = responses.contribution.toarray()
    np.testing.assert_array_equal(observed["present"], c != 0.0)
    rows, people = (trace["constant_data"][f"record_{of}"] for of in ("database", "individual"))
    np.testing.assert_array_equal(observed["contribution"], c[rows, people])
    # as often as they were, and as much, within what chance leaves of 30 databases
    share = predicted["present"].mean(("chain", "draw", "database"))
    np.testing.assert_allclose(share, (c != 0.0).mean(axis=0), atol=0.1)
    assert float(share[0]) == 1.0
    away = predicted["contribution"].mean(("chain", "draw")) - observed["contribution"]
    assert float(away.std()) == pytest.approx(0.3, abs=0.1)
    loaded = edp.load(audit.save(tmp_path / "audit.nc"))
    np.testing.assert_array_equal(loaded.trace["observed_data"]["present"], observed["present"])


@pytest.mark.full
def test_under_pseudonyms_nobodys_presence_and_contributions_are_kept(audit):
    hidden = audit.with_pseudonyms()
    assert not set(NAMES) & set(hidden.trace["observed_data"].data_vars)
    assert all(not set(NAMES) & set(group.data_vars) for group in hidden.tree.children.values())
    assert "constant_data" not in hidden.tree.children


@pytest.mark.full
def test_without_parameters_there_is_none_of_them():
    model = edp.FullPosterior(edp.FiniteMixture())
    few = edp.audit(world(), epsilon=[0.1], model=model, keep_parameters=False, **QUICK)
    assert "posterior_predictive" not in few.trace.children
    assert list(few.trace["observed_data"].data_vars) == ["response"]


@pytest.mark.full
def test_no_more_numbers_are_predicted_than_asked_for():
    built = edp.FullPosterior(edp.FiniteMixture()).build(world())
    settings = SamplerSettings(**{**QUICK, "draws": 10, "tune": 30}, sampler="nutpie")
    tree = sample_nuts(built, settings)
    size = 20 * (30 * 4 + world().contribution.nnz)
    assert predicted_by(built, tree, NAMES, settings, size - 1) is None
    found = predicted_by(built, tree, NAMES, settings, size)
    assert set(found.data_vars) == set(NAMES)
    again = predicted_by(built, tree, NAMES, settings, size)
    np.testing.assert_array_equal(again["contribution"], found["contribution"])
    assert found["present"].dtype == np.int8
