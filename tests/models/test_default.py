"""The model of an audit that names none, by the sampler that it names."""

import numpy as np
import pytest
import scipy.sparse as sp

import edp_bayes as edp
from edp_bayes.models.default import FULL_UP_TO, model_of_sampler

FULL, MIXTURE = edp.FullPosterior(), edp.DirichletProcessMixture()


def responses(people=3, samples=1):
    rng = np.random.default_rng(1)
    c = rng.gamma(2.0, 0.1, (20 * samples, people))
    y = rng.normal(10.0, 1.0, 20 * samples) + c.sum(axis=1)
    return edp.Responses.from_arrays(y, contribution=c, samples=samples)


@pytest.mark.parametrize("sampler", ["nutpie", "pymc", "numpyro", "blackjax"])
def test_a_sampler_of_nuts_draws_all_of_it(sampler):
    assert model_of_sampler(None, sampler, responses()) == (FULL, ())


@pytest.mark.parametrize("sampler", [None, "gibbs"])
def test_without_one_the_default_stays(sampler):
    assert model_of_sampler(None, sampler, responses()) == (MIXTURE, ())


def test_a_model_that_is_named_is_taken():
    bootstrap = edp.SmoothedBootstrap()
    assert model_of_sampler(MIXTURE, "nutpie", responses()) == (MIXTURE, ())
    assert model_of_sampler(bootstrap, "pymc", responses()) == (bootstrap, ())
    with pytest.raises(edp.InputTypeError, match="model must be a density model"):
        model_of_sampler("full", "pymc", responses())


def test_what_is_not_drawn_is_said():
    crowd = edp.Responses.from_arrays(
        responses().response, contribution=sp.csc_array((20, FULL_UP_TO + 1), dtype=float)
    )
    found, (said,) = model_of_sampler(None, "pymc", crowd)
    assert found == MIXTURE
    assert "there are 101 individuals, and beyond 100 all of it is drawn by" in said
    found, (said,) = model_of_sampler(None, "pymc", responses(samples=2))
    assert found == MIXTURE
    assert "there are 2 samples of each response" in said


def test_of_several_queries_the_answers_alone_are_drawn():
    first = responses()
    joint = edp.Responses.join(first, first.replaced(response=first.response**2))
    assert model_of_sampler(None, "pymc", joint) == (MIXTURE, ())


@pytest.mark.full
def test_an_audit_draws_all_of_it_or_says_so():
    quick = {"draws": 40, "tune": 80, "chains": 2, "random_seed": 1, "progressbar": False}
    audit = edp.audit(responses(), epsilon=0.1, sampler="pymc", cores=1, **quick)
    assert audit.settings["contributions"] == "full Bayes"
    assert audit.settings["model"] == "FullPosterior()"
    crowd = responses(people=FULL_UP_TO + 1)
    with pytest.warns(edp.EdpBayesWarning, match="NUTS drew the response alone"):
        audit = edp.audit(crowd, epsilon=0.1, sampler="pymc", cores=1, **quick)
    assert audit.settings["model"] == "DirichletProcessMixture()"
