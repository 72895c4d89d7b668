"""Which library runs NUTS: the one that is named, or what PyMC would take of those installed."""

import importlib
import sys
from dataclasses import replace
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.models import SamplerSettings, sampling
from edp_bayes.models.finite_mixture import FiniteMixture
from edp_bayes.models.rest import draw_rest
from edp_bayes.results import recording

QUICK = {"draws": 40, "tune": 80, "chains": 2, "random_seed": 1, "progressbar": False}


def responses():
    rng = np.random.default_rng(1)
    c = rng.gamma(2.0, 0.1, (30, 2))
    return edp.Responses.from_arrays(rng.normal(10.0, 1.0, 30) + c.sum(axis=1), contribution=c)


def two_queries():
    rng, first = np.random.default_rng(2), responses()
    other = first.replaced(response=first.response + rng.normal(0.0, 1.0, 30), query="other")
    return edp.Responses.join(first, other)


@pytest.fixture
def without_nutpie(monkeypatch):
    """Simulate an installation without the extra nuts."""
    importlib.import_module("pymc")  # which looks for nutpie once, and other tests need it
    monkeypatch.setitem(sys.modules, "nutpie", None)

    def version(name):
        if name == "nutpie":
            raise PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(recording, "version", version)
    monkeypatch.setattr(recording, "_version", recording._version.__wrapped__)


def pretend(monkeypatch, name):
    """Simulate a package that is installed."""
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sampling, "version", lambda package: f"9 of {package}")


@pytest.mark.parametrize(
    ("name", "brings"),
    [
        ("nutpie", r"pip install 'edp_bayes\[nuts\]'"),
        ("numpyro", r"pip install 'edp_bayes\[numpyro\]'"),
        ("blackjax", r"pip install 'edp_bayes\[blackjax\]'"),
    ],
)
def test_a_sampler_that_is_missing_says_what_brings_it(name, brings, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(edp.InvalidInputError, match=f"sampler = '{name}' needs.*{brings}; or"):
        SamplerSettings(sampler=name)
    with pytest.raises(edp.InvalidInputError, match=brings):
        edp.audit(responses(), epsilon=0.1, sampler=name, **QUICK)


def test_without_a_name_nuts_is_that_of_nutpie_or_of_pymc(monkeypatch):
    pretend(monkeypatch, "nutpie")
    assert SamplerSettings().nuts == "nutpie"
    monkeypatch.setitem(sys.modules, "nutpie", None)
    assert SamplerSettings().nuts == "pymc"
    assert SamplerSettings(sampler="pymc").nuts == "pymc"


@pytest.mark.usefixtures("without_nutpie")
def test_gibbs_sampling_needs_no_nutpie():
    audit = edp.audit(responses(), epsilon=[0.1], **QUICK)
    assert audit.settings["sampler"] == "gibbs"
    assert "nutpie" not in audit.settings["versions"]
    assert audit.settings["versions"]["pymc"] == "1.0"


@pytest.mark.usefixtures("without_nutpie")
@pytest.mark.parametrize("sampler", [None, pytest.param("pymc", marks=pytest.mark.full)])
def test_a_model_of_ones_own_is_drawn_by_pymc_without_nutpie(sampler):
    own = edp.PyMCMixture(FiniteMixture(components=1).build)
    audit = edp.audit(responses(), epsilon=[0.1], model=own, sampler=sampler, cores=1, **QUICK)
    assert audit.settings["sampler"] == "pymc"
    assert "sample_stats" in audit.tree.children
    assert "Drawn by NUTS (PyMC)" in audit.describe()


@pytest.mark.parametrize("name", ["numpyro", "blackjax"])
def test_samplers_on_jax_are_handed_to_pymc(name, monkeypatch):
    import pymc as pm

    pretend(monkeypatch, name)
    asked = {}

    def sample(**options):
        asked.update(options)
        raise ValueError("enough")

    monkeypatch.setattr(pm, "sample", sample)
    settings = SamplerSettings(
        sampler=name,
        sample_kwargs={"nuts": {"max_tree_depth": 5}},
        **{**QUICK, "progressbar": True},
    )
    with pm.Model() as model:
        pm.Normal("x")
    with pytest.raises(edp.SamplingError, match="enough"):
        sampling.sample_nuts(model, settings)
    assert asked["nuts_sampler"] == name
    assert asked["nuts"] == {"chain_method": "vectorized", "max_tree_depth": 5}
    assert asked["target_accept"] == 0.95
    # BlackJAX fails where it is to show the progress of vectorised chains
    assert asked["progressbar"] == (name == "numpyro")
    assert settings.sample_kwargs == {"nuts": {"max_tree_depth": 5}}


def test_a_sampler_that_pymc_cannot_work_with_says_so(monkeypatch):
    import pymc as pm

    def sample(**options):
        raise TypeError("unexpected keyword argument 'progress_bar'")

    with pm.Model() as model:
        pm.Normal("x")
    monkeypatch.setattr(pm, "sample", sample)
    with pytest.raises(TypeError, match="progress_bar"):
        sampling.sample_nuts(model, SamplerSettings(sampler="pymc", **QUICK))
    pretend(monkeypatch, "blackjax")
    with pytest.raises(
        edp.SamplingError, match=r"blackjax 9 of blackjax cannot.*bayes\[blackjax\]'"
    ):
        sampling.sample_nuts(model, SamplerSettings(sampler="blackjax", **QUICK))


ON_JAX = {
    "one component": (edp.FiniteMixture(), responses, 500),
    "Laplace kernels": (edp.FiniteMixture(2, kernel="laplace"), responses, 500),
    "Dirichlet process": (edp.DirichletProcessMixture(components=3), responses, 500),
    "full posterior": (edp.FullPosterior(edp.FiniteMixture()), responses, 100),
    "two queries": (edp.FiniteMixture(), two_queries, 300),
}


@cache
def drawn(case, sampler):
    """Return the draws of delta by a sampler, a row for each chain."""
    model, data, draws = ON_JAX[case]
    # progress is shown as it is by default
    options = {**QUICK, "draws": draws, "tune": draws, "sampler": sampler, "progressbar": True}
    audit = edp.audit(data(), epsilon=[0.1], model=model, **options)
    assert audit.settings["sampler"] == sampler
    assert "Drawn by NUTS" in audit.describe()
    assert int(audit.tree["sample_stats"]["diverging"].sum()) < 0.05 * draws
    return audit.delta.squeeze("epsilon").transpose("chain", "draw").to_numpy()


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["numpyro", "blackjax"])
@pytest.mark.parametrize("case", ON_JAX)
def test_samplers_on_jax_draw_the_risks_that_pymc_draws(case, name):
    """Within four Monte Carlo errors of the mean and of the deviation of delta."""
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed: {sampling.PACKAGES[name]}")
    from arviz_stats.base import array_stats

    found, known = drawn(case, name), drawn(case, "pymc")
    assert found.shape == known.shape
    for method, statistic in (("mean", np.mean), ("sd", np.std)):
        errors = [array_stats.mcse(part, method=method) for part in (found, known)]
        assert abs(statistic(found) - statistic(known)) < 4.0 * np.hypot(*errors)


@pytest.mark.full
@pytest.mark.parametrize("name", ["nutpie", "numpyro", "blackjax"])
def test_every_sampler_draws_the_same_posterior(name):
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed: {sampling.PACKAGES[name]}")
    model, options = FiniteMixture(components=1), {**QUICK, "draws": 500, "tune": 500}
    found, known = (
        edp.audit(responses(), epsilon=[0.1], model=model, sampler=one, **options)
        for one in (name, "gibbs")
    )
    assert found.settings["sampler"] == name
    assert name in found.settings["versions"]
    spread = float(known.delta.std())
    assert abs(float(found.delta.mean() - known.delta.mean())) < 0.3 * spread


@pytest.mark.full
def test_the_rests_of_two_individuals_have_random_numbers_of_their_own():
    """Drawn with one seed their errors would go together."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=(30, 1))
    responses = edp.Responses.from_arrays(y[:, 0] + 1.0, contribution=np.ones((30, 1)))
    settings = SamplerSettings(draws=20, tune=20, chains=1, random_seed=1, sampler="pymc", cores=1)
    quiet = replace(settings, progressbar=False)
    one, again, other = (
        draw_rest(edp.FiniteMixture(components=1), responses, quiet, y, f"without {name}").locations
        for name in ("Ann", "Ann", "Ben")
    )
    np.testing.assert_array_equal(one, again)
    assert (one != other).all()
