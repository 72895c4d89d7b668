"""A dominant individual's p_i that is what is left of p: the check says so, and withholds."""

import warnings

import numpy as np
import xarray as xr

import edp_bayes as edp

LEAD = ("chain", "draw")
NAMES = ("presence", "amount", "slope", "spread")


def world(n=60):
    """Return responses of variance 4 + 25, of which individual 0 has 25."""
    rng = np.random.default_rng(1)
    c = rng.normal(2.0, [5.0, 0.1], (n, 2))
    return edp.Responses.from_arrays(rng.normal(0.0, 2.0, n) + c.sum(axis=1), contribution=c)


def draws(responses, share):
    """Return draws of a normal response about its mean, and of contributions.

    Those of individual 0 have a share of its variance.
    """
    rng, size = np.random.default_rng(2), (2, 50)
    y = responses.response
    spread = np.sqrt(share) * y.std()
    own = np.broadcast_to([spread, 0.1], (*size, 2))
    return xr.Dataset(
        {
            "weights": ((*LEAD, "component"), np.ones((*size, 1))),
            "locations": ((*LEAD, "component"), y.mean() + rng.normal(0.0, 0.1, (*size, 1))),
            "scales": ((*LEAD, "component"), np.full((*size, 1), y.std())),
            "presence": ((*LEAD, "individual"), np.ones((*size, 2))),
            "amount": ((*LEAD, "individual"), np.full((*size, 2), 2.0)),
            "slope": ((*LEAD, "individual"), np.zeros((*size, 2))),
            "spread": ((*LEAD, "individual"), own),
        }
    )


def audited(responses, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        return edp.audit_trace(
            draws(responses, options.pop("share", 0.86)),
            responses,
            epsilon=[0.1, 0.5],
            random_seed=1,
            progressbar=False,
            **options,
        )


def test_what_is_left_of_p_withholds():
    found = audited(world())
    assert found.checks.loc["dominant", "statistic"] == 1
    assert not found.checks.loc["dominant", "passed"]
    said = found.checks.loc["dominant", "sentence"]
    assert said.startswith("Individual 0 has at least 50% of the variance of the response")
    assert said in found.warnings
    assert found.withheld is not None


def test_of_a_model_that_draws_the_rest_nothing_is_said():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        found = edp.audit(world(), epsilon=[0.1], draws=100, random_seed=1, progressbar=False)
    assert "dominant" not in found.checks.index
    assert "without" in found.tree.children


def test_contributions_of_a_model_pass_as_long_as_all_of_them_is_taken():
    responses = world()
    assert "dominant" not in audited(responses, contributions=NAMES).checks.index
    more = audited(responses, contributions=NAMES, share=0.95)
    assert not more.checks.loc["dominant", "passed"]
