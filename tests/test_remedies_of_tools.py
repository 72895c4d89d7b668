"""What messages of noise, planning and black-box audits advise is done, and helps."""

import re
import warnings

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.noise import FixedBandwidth, LaplaceNoise, NoiseDistribution, NoNoise
from tests.noise.conftest import make_responses

PLUG_IN = FixedBandwidth(0.6)
QUICK = {"draws": 20, "chains": 2, "random_seed": 1, "progressbar": False}


def noise_for(source, **asked):
    """Return noise, with whatever is warned of it."""
    options = {"epsilon": 0.05, "method": "laplace"} | asked
    if isinstance(source, edp.Responses):
        options = {"model": PLUG_IN} | options
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = edp.noise.calibrate(source, **options)
    return found, " ".join(str(w.message) for w in caught)


# What is asked for, what is advised, and what is then asked for instead.
METHODS = {
    "pure only": (
        {"method": "bottleneck", "delta": 0.001},
        "use method='laplace' (--method), 'gaussian' or 'optimal' for delta = 0.001",
        [{"method": name, "delta": 0.001} for name in ("laplace", "gaussian")],
    ),
    "gaussian": (
        {"method": "gaussian"},
        "give a delta or use method='laplace' (--method)",
        [{"method": "gaussian", "delta": 0.001}, {"method": "laplace"}],
    ),
    "shape": (
        {"method": "laplace", "objective": "variance"},
        "ask for 'optimal', or leave it out",
        [{"method": "optimal", "objective": "variance", "spacing": 8.0}, {"method": "laplace"}],
    ),
    "small delta": (
        {"delta": 1e-300},
        "delta must be 0, or at least",
        [{"delta": 0.0}, {"delta": 1e-6}],
    ),
    "too fine": (
        {"method": "optimal", "spacing": 1e-5},
        "use method='laplace' (--method) or a larger spacing",
        [{"method": "laplace"}, {"method": "optimal", "spacing": 8.0}],
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("case", METHODS)
def test_noise_of_another_method_or_size_is_found_as_advised(case):
    given, advice, better = METHODS[case]
    data = make_responses()
    with pytest.raises(edp.InvalidInputError, match=re.escape(advice)):
        noise_for(data, **given)
    for asked in better:
        assert noise_for(data, **asked)[0].mean_absolute > 0.0


def test_a_smaller_epsilon_is_not_advised_where_the_spacing_is_given():
    for epsilon in (0.05, 0.02):
        with pytest.raises(edp.InvalidInputError) as error:
            noise_for(make_responses(), epsilon=epsilon, method="optimal", spacing=1e-5)
        assert "epsilon" not in str(error.value)


def test_noise_that_the_published_construction_lacks_is_proved_by_the_bottleneck():
    data = make_responses()
    _, said = noise_for(data, method="hausdorff")
    assert "use method='bottleneck' for a guarantee" in said
    found, said = noise_for(data, method="bottleneck")
    assert found.mean_absolute > 0.0
    assert "guarantee" not in said


def test_capped_contributions_and_other_methods_need_less_noise():
    dominated = make_responses(dominated=True)
    large, said = noise_for(dominated)
    assert "cap or leave out such contributions" in said
    capped = np.minimum(dominated.contribution.toarray(), 0.5)
    rest = dominated.response - dominated.contribution.toarray().sum(axis=1)
    answers = {
        "capped": edp.Responses.from_arrays(rest + capped.sum(axis=1), contribution=capped),
        "left out": edp.Responses.from_arrays(
            rest + capped[:, 1:].sum(axis=1), contribution=capped[:, 1:]
        ),
    }
    for data in answers.values():
        assert noise_for(data)[0].mean_absolute < large.mean_absolute / 2
    proved, said = noise_for(dominated, method="bottleneck")
    assert "method='laplace' (--method) or 'optimal' may need far less" in said
    assert large.mean_absolute < proved.mean_absolute


@pytest.mark.full
def test_a_rounded_or_transformed_answer_is_put_right_as_advised():
    data = make_responses()
    rounded = data.replaced(response=np.round(data.response), step=1.0)
    with pytest.raises(edp.InvalidInputError) as error:
        noise_for(rounded)
    assert "responses.replaced(step=None)" in str(error.value)
    assert noise_for(rounded.replaced(step=None))[0].mean_absolute > 0.0
    audit = edp.audit(rounded, epsilon=[0.5], model=edp.SmoothedBootstrap(), **QUICK)
    (call,) = re.findall(r"audit(\.released\(.*?\)\))", str(error.value))
    after = eval(f"audit{call}", {"audit": audit, "LaplaceNoise": LaplaceNoise, "scale": 2.0})
    assert float(after.delta.mean()) < float(audit.delta.mean())
    logged = data.replaced(transform="log")
    with pytest.raises(edp.InvalidInputError, match=r"responses\.replaced\(transform=None\)"):
        noise_for(logged)
    assert noise_for(logged.replaced(transform=None))[0].mean_absolute > 0.0


def test_an_audit_is_calibrated_for_with_what_it_is_said_to_need():
    data = make_responses()
    audit = edp.audit(data, epsilon=[0.5], model=edp.SmoothedBootstrap(), **QUICK)
    with pytest.raises(edp.InvalidInputError, match=r"made from, as responses="):
        noise_for(audit)
    with pytest.raises(edp.InvalidInputError, match=r"or give most_draws= for fewer draws"):
        noise_for(audit, responses=data, draws=10)
    assert noise_for(audit, responses=data, most_draws=4)[0].mean_absolute > 0.0


def test_a_smaller_target_of_a_tradeoff_is_small_enough():
    data = make_responses()
    few, more = (
        edp.noise.tradeoff(data, epsilon=grid, method="laplace", model=PLUG_IN)
        for grid in ([0.1], [0.01, 0.1])
    )
    with pytest.raises(edp.InvalidInputError, match="give tradeoff a smaller one"):
        few.least_noise(epsilon=0.05)
    assert more.least_noise(epsilon=0.05).mean_absolute > few.noises[0].mean_absolute


def test_noise_that_opendp_cannot_draw_is_drawn_by_the_samplers_named():
    noise = NoiseDistribution((NoNoise(), LaplaceNoise(2.0)), (0.25, 0.75))
    with pytest.raises(edp.InvalidInputError, match="use sampler='auto' or 'exact' for"):
        edp.noise.release(1.0, noise, sampler="opendp")
    for sampler in ("auto", "exact"):
        assert np.isfinite(edp.noise.release(1.0, noise, sampler=sampler))


def test_plans_that_are_refused_are_made_as_advised():
    data = make_responses(n=40)
    options = {"width": 0.9, "epsilon": 0.1, "prob": 0.5, "repetitions": 2, "draws": 20}
    options |= {"random_seed": 1, "progressbar": False}
    model = edp.FiniteMixture(components=2)
    with pytest.raises(edp.InvalidInputError) as error:
        edp.plan(data, most=30, model=model, **options)
    (most,) = re.findall(r"most must be at least (\d+),", str(error.value))
    assert edp.plan(data, most=int(most), model=model, **options).sizes[0] == 40
    with pytest.raises(edp.InvalidInputError) as error:
        edp.plan(data, model=model, most=40, **{**options, "prob": 0.95, "draws": 5})
    (draws,) = re.findall(r"draws must be at least (\d+),", str(error.value))
    enough = {**options, "prob": 0.95, "draws": int(draws)}
    assert edp.plan(data, model=model, most=40, **enough).sizes[0] == 40


def test_few_outcomes_of_several_columns_are_told_apart_by_a_stated_statistic():
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(30, 2)), 1.0 + rng.normal(size=(30, 2))
    options = {"epsilon": [0.1], "random_seed": 1, "draws": 50, "chains": 2}
    with pytest.raises(edp.InvalidInputError, match=r"state one by statistic="):
        edp.audit_mechanism(first, second, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        found = edp.audit_mechanism(
            first, second, statistic=lambda rows: rows.sum(axis=1), **options
        )
    assert np.isfinite(found.delta).all()


def test_plans_against_an_adversary_are_made_without_what_they_refuse():
    data = make_responses(n=40)
    rounded = data.replaced(response=np.round(data.response), step=1.0)
    options = {"width": 0.9, "epsilon": 0.1, "prob": 0.5, "repetitions": 2, "draws": 20}
    options |= {"random_seed": 1, "progressbar": False, "most": 40}
    options["model"] = edp.FiniteMixture(components=2)
    trend = edp.Adversary(trend=True)
    with pytest.raises(edp.InvalidInputError, match=r"or with .*responses\.replaced\(step=None\)"):
        edp.plan(rounded, adversary=trend, **options)
    plain = edp.plan(rounded.replaced(step=None), adversary=trend, **options)
    assert plain.sizes[0] == 40
    assert edp.plan(rounded, **options).sizes[0] == 40
    with pytest.raises(edp.InvalidInputError, match="without changing_scale=True"):
        edp.plan(data, adversary=edp.Adversary(trend=True, changing_scale=True), **options)
    assert edp.plan(data, adversary=trend, **options).sizes[0] == 40
