"""Arguments of pymc.sample reach it from every audit that NUTS draws for."""

import numpy as np
import pymc as pm
import pytest

import edp_bayes as edp
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.models.sampling import SamplerSettings, sample_nuts

QUICK = {"epsilon": [0.1], "draws": 50, "tune": 50, "chains": 2, "random_seed": 1}
QUICK |= {"progressbar": False, "cores": 1}
TREND = edp.Adversary(trend=True)

pytestmark = pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")


def one(seed=1, query="one"):
    rng = np.random.default_rng(7)
    c = rng.gamma(2.0, 0.1, (25, 2))
    y = np.random.default_rng(seed).normal(10.0, 1.0, 25) + c.sum(axis=1)
    return edp.Responses.from_arrays(y, contribution=c, query=query)


def both():
    return edp.Responses.join(one(), one(2, "other"))


CASES = {
    "mixture": (one, edp.FiniteMixture(), None, {"rate": 2.0}, 1),
    "Dirichlet process": (one, edp.DirichletProcessMixture(components=2), None, {"rate": 2.0}, 1),
    "given the trend": (one, edp.FiniteMixture(), TREND, {"rate": 2.0, "coefficients": [0.1]}, 2),
    "full posterior": (one, edp.FullPosterior(edp.FiniteMixture()), None, {"size_middle": -1.0}, 1),
    "a model of one's own": (one, edp.PyMCMixture(edp.FiniteMixture().build), None, {"rate": 2}, 1),
    "joint": (both, edp.FiniteMixture(), None, {"rate": 2.0}, 1),
    "joint given the trend": (
        both, edp.FiniteMixture(), TREND, {"rate": 2.0, "coefficients": [[0.1, 0.1]]}, 2,
    ),
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("library", ["nutpie", "pymc"])
def test_every_fit_by_nuts_has_the_arguments_asked_for(case, library, monkeypatch):
    """They are looked at on their way to PyMC, which draws."""
    responses, model, adversary, starts, fits = CASES[case]
    asked, sample = [], pm.sample

    def seen(**options):
        asked.append(options)
        return sample(**options)

    monkeypatch.setattr(pm, "sample", seen)
    audit = edp.audit(
        responses(),
        model=model,
        adversary=adversary,
        nuts_sampler=library,
        nuts_sampler_kwargs={"max_treedepth": 3},
        initvals=starts,
        backend="numba",
        **QUICK,
    )
    assert audit.settings["sampler"] == library
    assert len(asked) == fits
    assert {options["nuts_sampler"] for options in asked} == {library}
    assert {options["backend"] for options in asked} == {"numba"}
    assert asked[0]["initvals"] == starts
    assert asked[-1]["initvals"].items() <= starts.items()
    assert "coefficients" not in asked[-1]["initvals"]
    depth = audit.tree["sample_stats"]["depth" if library == "nutpie" else "tree_depth"]
    assert int(depth.max()) <= 3


@pytest.mark.parametrize("case", CASES)
def test_where_sampling_starts_is_a_variable_of_the_model(case):
    responses, model, adversary, _, _ = CASES[case]
    with pytest.raises(
        InvalidInputError, match=r"initvals must be of variables of the model, .*'x'"
    ):
        edp.audit(
            responses(), model=model, adversary=adversary, sampler="pymc", initvals={"x": 1.0},
            **QUICK,
        )  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("library", ["nutpie", "pymc"])
def test_sampling_starts_where_it_is_asked_to(library):
    with pm.Model() as model:
        pm.Normal("x", 0.0, 1000.0)
    options = {"initvals": {"x": 5000.0}, "nuts_sampler": library}
    settings = SamplerSettings(
        draws=2, tune=1, chains=2, cores=1, random_seed=1, progressbar=False, sample_kwargs=options
    )
    found = sample_nuts(model, settings)["posterior"]["x"]
    assert float(abs(found - 5000.0).max()) < 500.0


def test_the_library_has_its_name_in_pymc_too():
    named = SamplerSettings(random_seed=1, sample_kwargs={"nuts_sampler": "pymc"})
    assert named == SamplerSettings(random_seed=1, sampler="pymc")
    with pytest.raises(InvalidInputError, match=r"sampler and nuts_sampler are the same: .*'nutpi"):
        SamplerSettings(sampler="nutpie", sample_kwargs={"nuts_sampler": "pymc"})
    with pytest.raises(
        InvalidInputError, match=r"nuts_sampler must be one of nutpie, pymc, .*gibbs"
    ):
        SamplerSettings(sample_kwargs={"nuts_sampler": "gibbs"})


@pytest.mark.full
@pytest.mark.parametrize("name", ["nuts", "nuts_sampler_kwargs"])
def test_an_acceptance_rate_may_be_among_the_options_of_nuts(name):
    with pm.Model() as model:
        pm.Normal("x")
    settings = SamplerSettings(
        draws=300, tune=500, chains=2, cores=1, random_seed=1, progressbar=False, sampler="pymc",
        sample_kwargs={name: {"target_accept": 0.6}},
    )  # fmt: skip
    rate = sample_nuts(model, settings.accepting(0.99))["sample_stats"]["acceptance_rate"]
    assert 0.45 < float(rate.mean()) < 0.85
    assert settings.accepting(0.99).sample_kwargs == settings.sample_kwargs


def test_starts_of_variables_that_a_later_model_lacks_are_left_out():
    starts = {"rate": 1.0, "growth": 0.1}
    of_all = SamplerSettings(sample_kwargs={"initvals": starts})
    of_each = SamplerSettings(sample_kwargs={"initvals": [starts, None]})
    assert of_all.starting_without(["growth"]).sample_kwargs == {"initvals": {"rate": 1.0}}
    assert of_each.starting_without(["growth"]).sample_kwargs == {"initvals": [{"rate": 1.0}, None]}
    assert of_all.starting_without().sample_kwargs == {}
    assert of_all.sample_kwargs == {"initvals": starts}


def odd(locations=2, spread=2):
    """Return a builder of a model whose variables have some numbers of values."""

    def build(responses):
        with pm.Model() as model:
            pm.Dirichlet("weights", np.ones(2))
            pm.Normal("locations", 10.0, 1.0, shape=locations)
            pm.HalfNormal("scales", 2.0, shape=2)
            for name in ("presence", "amount", "slope"):
                pm.Uniform(name, shape=responses.n_individuals)
            pm.Deterministic("spread", pm.HalfNormal("raw", shape=2 * spread)[::2])
        return model

    return build


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (odd(locations=3), r"one value for each component, found the shapes weights \(2,\), loc"),
        (odd(spread=3), r"spread must have the shape \(2,\) of the individuals, found \(3,\)"),
    ],
)
def test_shapes_are_refused_before_anything_is_drawn(monkeypatch, build, message):
    monkeypatch.setattr(pm, "sample", lambda **_: pytest.fail("was drawn"))
    own = ("presence", "amount", "slope", "spread")
    with pytest.raises(InvalidInputError, match=message):
        edp.audit(one(), model=edp.PyMCMixture(build, contributions=own), sampler="pymc", **QUICK)


@pytest.mark.full
def test_what_was_drawn_is_not_lost_by_a_later_error(monkeypatch):
    from edp_bayes.auditing import query

    def fails(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(query, "evaluate", fails)
    with pytest.raises(KeyboardInterrupt) as caught:
        edp.audit(one(), model=edp.FiniteMixture(), sampler="pymc", **QUICK)
    (draws,) = caught.value.draws
    assert "attribute draws" in caught.value.__notes__[0]
    monkeypatch.undo()
    audit = edp.audit_trace(draws, one(), epsilon=[0.1], random_seed=1, progressbar=False)
    assert audit.delta.sizes["draw"] == 50


@pytest.mark.parametrize("value", [0.1, [0.1, 0.2, 0.3], [[0.1, 0.2]]])
def test_an_initial_value_of_another_shape_is_refused(value):
    with pytest.raises(InvalidInputError, match=r"initial value of offset must have its shape"):
        edp.audit(
            one(), model=edp.FiniteMixture(components=2), sampler="pymc",
            initvals=[None, {"offset": value}], **QUICK,
        )  # fmt: skip
