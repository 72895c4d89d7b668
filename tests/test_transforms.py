"""Answers modelled on another scale: what changes, what must not, and what is refused."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csc_array

import edp_bayes as edp
from edp_bayes.distributions.noise import LaplaceNoise
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.interval.response_intervals import interval_quantities
from edp_bayes.responses.transforms import NAMES, Pair, named, transform_of

Array = NDArray[np.float64]

FAST: dict[str, Any] = {"draws": 60, "tune": 200, "random_seed": 3, "progressbar": False}
CUBE = (np.cbrt, lambda x: x**3)
FALLING = (lambda y: -np.log(y), lambda x: np.exp(-x))
SCALES = (*NAMES, "cbrt", "falling", "arcsinh")  # every process must know a test by one name


def shares(seed: int, n: int = 60, m: int = 5) -> tuple[Array, Array]:
    """Return lognormal totals and contributions that are shares of them."""
    rng = np.random.default_rng(seed)
    y = np.exp(rng.normal(3.0, 0.5, n))
    c = y[:, None] * rng.uniform(0.01, 0.08, m) * (rng.random((n, m)) < 0.8)
    return y, c


def proportions(seed: int, n: int = 60) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    y = 1.0 / (1.0 + np.exp(-rng.normal(2.0, 0.6, n)))
    return y, np.column_stack([0.2 * (1.0 - y), np.where(rng.random(n) < 0.5, 0.01 * y, 0.0)])


def by_hand(name: str, y: Array, c: Array) -> tuple[Array, Array]:
    """Return answers on a scale and differences there, in formulas of the test's own."""
    if name == "log":
        return np.log(y), -np.log1p(-c / y[:, None])
    if name == "sqrt":
        return np.sqrt(y), c / (np.sqrt(y)[:, None] + np.sqrt(y[:, None] - c))
    odds = np.log1p(c / (1.0 - y[:, None])) - np.log1p(-c / y[:, None])
    return np.log(y) - np.log1p(-y), odds


@functools.cache
def audit_of(name: str | None, **options: Any) -> Any:
    y, c = shares(1)
    responses = edp.Responses.from_arrays(y, contribution=c, transform=name)
    return edp.audit(responses, epsilon=[0.05, 0.3], **FAST, **options)


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_an_audit_is_that_of_responses_transformed_by_hand(name: str) -> None:
    y, c = proportions(2) if name == "logit" else shares(2)
    moved, differences = by_hand(name, y, c)
    ours = edp.Responses.from_arrays(y, contribution=c, transform=name)
    hand = edp.Responses.from_arrays(moved, contribution=differences)
    for model in (edp.DirichletProcessMixture(), edp.SmoothedBootstrap()):
        first, second = (
            edp.audit(data, epsilon=[0.05, 0.3], model=model, **FAST) for data in (ours, hand)
        )
        for part in ("delta", "total_risk", "individual_delta"):
            np.testing.assert_array_equal(
                first.tree["posterior"][part], second.tree["posterior"][part]
            )
        np.testing.assert_array_equal(first.mixture.locations, second.mixture.locations)
    # only the fingerprint and what is said of the scale tell them apart
    assert first.settings["fingerprint"] != second.settings["fingerprint"]
    assert (first.transform, second.transform) == (name, "")


def test_differences_keep_the_digits_that_subtraction_loses() -> None:
    y, c = np.array([1e6, 2e6] * 10), np.full((20, 1), 1e-9)
    found = edp.Responses.from_arrays(y, contribution=c, transform="log", step=None).on_scale
    np.testing.assert_allclose(found.collected.data, 1e-9 / y, rtol=1e-12)


@pytest.mark.full
def test_a_decreasing_pair_is_the_mirror_and_no_risk_changes() -> None:
    y, c = shares(3)
    model = edp.SmoothedBootstrap(kernel="gaussian")
    falling, rising = (
        edp.audit(
            edp.Responses.from_arrays(y, contribution=c, transform=scale),
            epsilon=[0.1],
            model=model,
            **FAST,
        )
        for scale in (FALLING, "log")
    )
    np.testing.assert_allclose(falling.delta, rising.delta, rtol=1e-6, atol=1e-12)


@pytest.mark.full
def test_the_audit_option_is_the_option_of_responses() -> None:
    y, c = shares(1)
    asked = edp.audit(
        edp.Responses.from_arrays(y, contribution=c), epsilon=[0.05, 0.3], transform="log", **FAST
    )
    np.testing.assert_array_equal(asked.delta, audit_of("log").delta)
    assert asked.settings["fingerprint"] == audit_of("log").settings["fingerprint"]


@pytest.mark.full
@pytest.mark.parametrize(
    "adversary",
    [
        edp.Adversary(past=2, trend=True),
        edp.Adversary(past=1, changing_scale=True),
    ],
    ids=["past", "scale"],
)
def test_an_adversary_sees_lags_of_transformed_answers(adversary: edp.Adversary) -> None:
    y, c = shares(4)
    moved, differences = by_hand("log", y, c)
    ours = edp.Responses.from_arrays(y, contribution=c, transform="log")
    hand = edp.Responses.from_arrays(moved, contribution=differences)
    first, second = (
        edp.audit(data, epsilon=[0.05], adversary=adversary, **FAST) for data in (ours, hand)
    )
    np.testing.assert_array_equal(first.delta, second.delta)
    known = adversary.given(ours)
    np.testing.assert_allclose(
        known.regressors[0].values,
        moved[adversary.past - 1 : -1] - moved.mean(),
    )
    for name in ("released", "less_insiders"):
        np.testing.assert_array_equal(first.tree["known"][name], moved)


@pytest.mark.full
def test_insiders_are_subtracted_before_the_scale_is_changed() -> None:
    y, c = shares(5)
    ours = edp.Responses.from_arrays(
        y, contribution=c, individual=list("abcde"), additive=True, transform="log"
    )
    rest, others = y - c[:, 0] - c[:, 3], c[:, [1, 2, 4]]
    moved, differences = by_hand("log", rest, others)
    hand = edp.Responses.from_arrays(moved, contribution=differences, individual=list("bce"))
    known = edp.Adversary(insiders=["a", "d"]).given(ours).responses
    np.testing.assert_allclose(known.response, moved, rtol=1e-12)
    np.testing.assert_allclose(known.collected.toarray(), differences, rtol=1e-9, atol=1e-15)
    first, second = (
        edp.audit(data, epsilon=[0.1], adversary=who, **FAST)
        for data, who in ((ours, edp.Adversary(insiders=["a", "d"])), (hand, edp.Adversary()))
    )
    np.testing.assert_allclose(first.delta, second.delta, rtol=1e-6, atol=1e-10)


def test_insiders_who_make_up_more_than_half_leave_a_rest_that_is_on_the_scale() -> None:
    y, c = shares(6)
    c[:, 0] = 0.7 * y
    ours = edp.Responses.from_arrays(y, contribution=c, additive=True, transform="log")
    known = edp.Adversary(insiders=[0]).given(ours).responses
    np.testing.assert_allclose(known.response, np.log(0.3 * y), rtol=1e-12)
    c[:, 0] = y - c[:, 1:].sum(axis=1)
    c[7, 0] = y[7] - c[7, 1]
    c[7, 2:] = 0.0
    told = edp.Responses.from_arrays(y, contribution=c, additive=True, transform="log")
    with pytest.raises(InvalidInputError, match=r"less what insiders .* database 7"):
        edp.Adversary(insiders=[0]).given(told)


@pytest.mark.full
def test_the_own_contribution_is_told_on_the_scale_too() -> None:
    y, c = shares(7)
    ours = edp.Responses.from_arrays(y, contribution=c, additive=True, transform="log")
    found = edp.audit(ours, epsilon=[0.1], adversary=edp.Adversary(own=True), **FAST)
    assert found.own
    assert found.transform == "log"


def limits(scale: str | None, seed: int, kind: str) -> Array:
    """Return upper limits of a fixed share of a lognormal total, or of a proportion near 1."""
    rng = np.random.default_rng(seed)
    n = 100
    if kind == "total":
        y = np.exp(rng.normal(0.0, 1.0, n))
        c = (1.0 - np.exp(-0.15)) * y
    else:
        odds = rng.normal(3.0, 1.0, n)
        y, c = 1.0 / (1.0 + np.exp(-odds)), 1.0 / (1.0 + np.exp(-odds))
        c = y - 1.0 / (1.0 + np.exp(-(odds - 0.5)))
    responses = edp.Responses.from_arrays(y, contribution=c, transform=scale)
    found = edp.audit(
        responses, epsilon=[0.05, 0.2, 0.5], draws=250, random_seed=seed, progressbar=False
    )
    return found.upper("delta").to_numpy()


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "scale", "shift"), [("total", "log", 0.15), ("share", "logit", 0.5)]
)
def test_limits_fall_towards_the_truth_and_not_below_it(
    kind: str, scale: str, shift: float
) -> None:
    from scipy.special import ndtr

    grid = np.array([0.05, 0.2, 0.5])
    truth = ndtr(shift / 2 - grid / shift) - np.exp(grid) * ndtr(-shift / 2 - grid / shift)
    found = np.array([limits(scale, seed, kind) for seed in range(4)])
    own = np.array([limits(None, seed, kind) for seed in range(4)])
    assert (found >= truth).all()
    assert (np.median(found, axis=0) < 0.75 * np.median(own, axis=0)).all()


# round trips, refusals


@given(
    values=st.lists(st.floats(1e-6, 1e6), min_size=8, max_size=30, unique=True),
    share=st.floats(1e-9, 0.9),
    name=st.sampled_from([*NAMES, "pair"]),
)
@settings(max_examples=200, deadline=None)
def test_round_trips_and_differences(values: list[float], share: float, name: str) -> None:
    scale = transform_of(CUBE if name == "pair" else name)
    assert scale is not None
    y = np.array(values)
    y = y / (y + 1.0) if name == "logit" else y
    np.testing.assert_allclose(scale.inverse(scale.forward(y)), y, rtol=1e-9)
    c = share * y
    expected = scale.forward(y) - scale.forward(y - c)
    size = np.abs(scale.forward(y)) + np.abs(scale.forward(y - c)) + 1.0
    np.testing.assert_array_less(np.abs(scale.difference(y, c) - expected), 1e-12 * size + 1e-9)
    assert (np.sign(scale.difference(y, c)) >= 0.0).all()


@pytest.mark.parametrize("scale", [*NAMES, CUBE, FALLING, (np.arcsinh, np.sinh)], ids=SCALES)
def test_the_slope_is_the_derivative(scale: Any) -> None:
    found = transform_of(scale)
    assert found is not None
    y = np.linspace(0.2, 0.9, 12)
    h = 1e-5
    slope = np.abs(found.forward(y + h) - found.forward(y - h)) / (2 * h)
    np.testing.assert_allclose(found.log_slope(y), np.log(slope), atol=1e-6)


def refused(scale: Any, y: Array, c: Array, **options: Any) -> str:
    with pytest.raises(InvalidInputError) as error:
        edp.Responses.from_arrays(y, contribution=c, transform=scale, **options)
    return str(error.value)


def test_answers_at_the_edge_are_refused_by_name() -> None:
    y, _ = shares(8)
    weeks = [f"week {k}" for k in range(y.size)]
    for scale, value in (("log", 0.0), ("sqrt", -1.0), ("logit", 1.0), ("logit", 0.0)):
        low = y.copy() if scale != "logit" else y / (y + 1.0)
        low[4] = value
        said = refused(scale, low, np.zeros((y.size, 1)), database=weeks)
        assert "'week 4'" in said
        assert f"is {value:g} (1 of 60 answers)" in said
        assert "another transform" in said
        assert "atom" in said


def test_answers_without_an_individual_at_the_edge_are_refused_by_name() -> None:
    y, c = shares(9)
    c[5, 1], c[6, 2], c[7, 2] = y[5], 2 * y[6], y[7]
    said = refused("log", y, c, individual=["ann", "bob", "cyd", "dan", "eve"])
    assert "without individual 'bob' the answer of database 5 is 0" in said
    assert "2 of 5 individuals" in said
    # a root has a value at 0
    c[6, 2] = 0.0
    assert edp.Responses.from_arrays(y, contribution=c, transform="sqrt").on_scale is not None


def test_what_is_modelled_on_the_answers_own_scale_is_refused() -> None:
    y, c = shares(10)
    assert "step" in refused("log", np.round(y), np.round(c), step=1.0)
    assert "noise" in refused("log", y, c, noise=LaplaceNoise(1.0))
    responses = edp.Responses.from_arrays(y, contribution=c, transform="log")
    plain = edp.Responses.from_arrays(y, contribution=c)
    with pytest.raises(InvalidInputError, match="joined queries"):
        edp.Responses.join(plain, responses)
    with pytest.raises(InvalidInputError, match="joint audit"):
        edp.audit(edp.Responses.join(plain, plain), epsilon=[0.1], transform="log")
    with pytest.raises(InvalidInputError, match="noise is added to the answer"):
        edp.noise.calibrate(responses, epsilon=0.5)
    audit = audit_of("log")
    with pytest.raises(InvalidInputError, match="noise is added to the answer"):
        edp.noise.calibrate(audit, epsilon=0.5, responses=plain)
    with pytest.raises(InvalidInputError, match="without transform"):
        audit.released(rounded_to=1.0, progressbar=False)


def test_the_way_out_of_noise_is_a_way() -> None:
    y, c = shares(10)
    responses = edp.Responses.from_arrays(y, contribution=c, transform="log")
    plain = responses.replaced(transform=None)
    assert plain.fingerprint == edp.Responses.from_arrays(y, contribution=c).fingerprint


def test_contributions_that_were_not_collected_are_refused() -> None:
    import pandas as pd

    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "week": np.repeat(np.arange(20), 3),
            "client": ["a", "b", "c"] * 20,
            "kwh": rng.gamma(2.0, [9.0, 1.0, 0.1], (20, 3)).ravel(),
        }
    )
    databases = edp.Databases.from_table(table, database="week", individual="client")
    found = databases.respond(edp.queries.Sum("kwh"), transform="log")
    assert str(found.scale) == "log"
    np.testing.assert_allclose(found.on_scale.response, np.log(found.response))
    with pytest.raises(InvalidInputError, match="contributions of everybody"):
        databases.respond(edp.queries.Sum("kwh"), collect=2, transform="log")
    some = table[rng.random(60) < 0.8]
    databases = edp.Databases.from_table(some, database="week", individual="client")
    with pytest.raises(InvalidInputError, match="rounded to a grid of step 1"):
        databases.respond(edp.queries.Count(), transform="sqrt")


@pytest.mark.parametrize(
    ("scale", "what"),
    [
        ((np.round, np.asarray), "strictly monotone"),
        ((lambda y: np.clip(y, 0.0, 20.0), lambda x: x), "strictly monotone"),
        ((lambda y: (y - 20.0) ** 2, lambda x: x), "strictly monotone"),
        ((np.log, np.expm1), "inverse of the first"),
        ((lambda y: np.log(y - 10.0), lambda x: np.exp(x) + 10.0), "finite number"),
        ((lambda y: y[:3], lambda x: x), "shape"),
    ],
)
def test_pairs_that_lose_or_miss_something_are_refused(scale: Any, what: str) -> None:
    assert what in refused(scale, *shares(11))


def test_what_is_no_transform_is_refused() -> None:
    y, c = shares(11)
    with pytest.raises(InvalidInputError, match="log, logit, sqrt or a pair"):
        edp.Responses.from_arrays(y, contribution=c, transform="ln")
    for wrong in (np.log, (np.log,), 3.0):
        with pytest.raises(InputTypeError, match="pair of functions"):
            edp.Responses.from_arrays(y, contribution=c, transform=wrong)
    with pytest.raises(InputTypeError, match="take and return an array"):
        edp.Responses.from_arrays(y, contribution=c, transform=(lambda y: "much", np.exp))


# what keeps it


def test_derived_responses_keep_the_transform_and_the_fingerprint_tells() -> None:
    y, c = shares(12)
    plain = edp.Responses.from_arrays(y, contribution=c)
    found = {
        name: edp.Responses.from_arrays(y, contribution=c, transform=scale).fingerprint
        for name, scale in {
            "log": "log", "sqrt": "sqrt", "cube": CUBE, "sinh": (np.arcsinh, np.sinh), "none": None
        }.items()
    }  # fmt: skip
    assert len(set(found.values())) == 5
    assert found["none"] == plain.fingerprint
    changed = plain.replaced(transform="log")
    assert changed.fingerprint == found["log"]
    assert str(changed.replaced(query="other").scale) == "log"
    assert "transform log" in repr(changed)
    assert changed.on_scale.scale is None
    assert changed.on_scale.on_scale is changed.on_scale


def test_contributions_that_are_zero_stay_sparse() -> None:
    y, c = shares(12)
    c[:, 2] = 0.0
    responses = edp.Responses(
        response=y,
        contribution=csc_array(c),
        individual=np.arange(5),
        database=np.arange(60),
        presence=np.full(5, 60),
        transform="log",
    )
    assert responses.on_scale.collected.nnz == np.count_nonzero(c)
    np.testing.assert_array_equal(responses.on_scale.presence, responses.presence)


@pytest.mark.full
def test_a_store_is_of_one_scale(tmp_path: Any) -> None:
    y, c = shares(1)
    plain = edp.Responses.from_arrays(y, contribution=c)
    options = {**FAST, "store": tmp_path / "store", "keep_store": True}
    first = edp.audit(plain, epsilon=[0.05, 0.3], transform="log", **options)
    again = edp.audit(plain, epsilon=[0.05, 0.3], transform="log", **options)
    np.testing.assert_array_equal(first.delta, again.delta)
    np.testing.assert_array_equal(first.delta, audit_of("log").delta)
    with pytest.raises(InvalidInputError, match="fingerprint"):
        edp.audit(plain, epsilon=[0.05, 0.3], **options)


@pytest.mark.full
def test_a_saved_audit_keeps_its_scale(tmp_path: Any) -> None:
    audit = audit_of("log")
    again = edp.load(audit.save(tmp_path / "audit.nc"))
    assert again.transform == "log"
    assert again.scaled("sum") == "log of sum"
    np.testing.assert_array_equal(again.tree["answers"]["response"], shares(1)[0])
    again.summary()
    with pytest.raises(InvalidInputError, match="noise is added"):
        edp.noise.calibrate(again, epsilon=0.5, responses=edp.Responses.from_arrays(*shares(1)))


def test_contributions_are_told_as_they_were_made() -> None:
    _, c = shares(1)
    about = audit_of("log").individuals
    np.testing.assert_allclose(about["largest_contribution"], np.abs(c).max(axis=0))
    assert "adjusted_contribution" not in about


def test_scores_are_those_of_the_answer() -> None:
    y, c = shares(1)
    log, hand = (
        edp.audit(
            edp.Responses.from_arrays(values, contribution=parts, transform=scale),
            epsilon=[0.1],
            model=edp.SmoothedBootstrap(),
            **FAST,
        )
        for values, parts, scale in ((y, c, "log"), (*by_hand("log", y, c), None))
    )
    for group, dims in (
        ("log_likelihood", ("chain", "draw", "database")),
        ("log_predictive", ("database",)),
    ):
        ours, theirs = (one.tree[group]["response"].transpose(*dims) for one in (log, hand))
        np.testing.assert_allclose(ours, theirs.to_numpy() - np.log(y), rtol=1e-12)


def test_a_root_of_an_answer_of_zero_has_no_score_of_the_answer() -> None:
    y, c = shares(1)
    y[3], c[3] = 0.0, 0.0
    found = edp.audit(
        edp.Responses.from_arrays(y, contribution=c, transform="sqrt"), epsilon=[0.1], **FAST
    )
    assert np.isfinite(found.tree["log_likelihood"]["response"]).all()
    assert found.settings["scores"] == "on the modelled scale"


@pytest.mark.full
@pytest.mark.parametrize("name", ["log", "sqrt"])
def test_intervals_are_those_of_the_answer(name: str) -> None:
    """Shares of draws of the answer itself, counted."""
    audit, scale = audit_of(name), named(name)
    assert scale is not None
    widths = np.array([0.05, 0.3, 1.5])
    draws = scale.inverse(audit.mixture.sample(20_000, np.random.default_rng(1)))
    middle = np.median(draws, axis=-1)[..., None]
    level = audit.interval_level(widths).transpose("chain", "draw", "width")
    for k, width in enumerate(widths):
        inside = (np.abs(draws - middle) < width * middle).mean(axis=-1)
        np.testing.assert_allclose(level.isel(width=k).mean(), inside.mean(), atol=3e-3)
    assert "interval_level[0.05]" in str(audit.summary().index.tolist())


@pytest.mark.full
def test_intervals_on_the_own_scale_are_the_same_as_ever() -> None:
    mixture = audit_of(None).mixture
    found = interval_quantities(mixture, [0.1])

    class Same(Pair):
        pass

    same = interval_quantities(mixture, [0.1], transform=Same(lambda y: y, lambda x: x))
    np.testing.assert_allclose(found["interval_level"], same["interval_level"], rtol=1e-9)


@pytest.mark.full
def test_an_audit_of_a_pair_says_what_it_does_not_keep() -> None:
    y, c = shares(1)
    audit = edp.audit(
        edp.Responses.from_arrays(y, contribution=c, transform=(np.cbrt, lambda x: x**3)),
        epsilon=[0.1],
        **FAST,
    )
    assert audit.transform == "pair cbrt"
    assert audit.scaled("sum") == "cbrt of sum"
    with pytest.raises(InvalidInputError, match="does not keep"):
        audit.interval_level(0.1)
    assert not any("interval" in str(row) for row in audit.summary().index)


@pytest.mark.full
def test_models_fitted_alone_are_fitted_on_the_scale() -> None:
    from edp_bayes.models.sampling import SamplerSettings

    y, c = shares(1)
    ours = edp.Responses.from_arrays(y, contribution=c, transform="log")
    few = SamplerSettings(draws=40, tune=20, chains=1, random_seed=1, progressbar=False)
    for model in (
        edp.DirichletProcessMixture(),
        edp.FiniteMixture(),
        edp.SmoothedBootstrap(),
        edp.Stacked([edp.FiniteMixture(components=1), edp.SmoothedBootstrap()]),
    ):
        first, second = (model.fit(data, few) for data in (ours, ours.on_scale))
        np.testing.assert_array_equal(first.mixture.locations, second.mixture.locations)
    built = edp.DirichletProcessMixture().build(ours)
    other = edp.DirichletProcessMixture().build(ours.on_scale)
    assert built.point_logps() == other.point_logps()


@pytest.mark.full
def test_plans_and_leakage_follow_the_scale() -> None:
    y, c = shares(1, n=40)
    ours = edp.Responses.from_arrays(y, contribution=c, additive=True, transform="log")
    first, second = (
        edp.plan(
            data, width=0.5, epsilon=0.1, prob=0.9, repetitions=2, draws=40, random_seed=1,
            progressbar=False,
        )
        for data in (ours, ours.on_scale)
    )  # fmt: skip
    np.testing.assert_array_equal(first.widths, second.widths)
    told = edp.leakage(
        ours, epsilon=0.1, past=[0, 1], insiders=None, random_seed=1, progressbar=False
    )
    plain = edp.leakage(
        ours.on_scale, epsilon=0.1, past=[0, 1], insiders=None, random_seed=1, progressbar=False
    )
    np.testing.assert_array_equal(told.past, plain.past)


def test_point_estimates_follow_the_scale() -> None:
    from edp_bayes.plugin import empirical_privacy

    y, c = shares(1)
    ours = edp.Responses.from_arrays(y, contribution=c, transform="log")
    options: dict[str, Any] = {"epsilon": [0.1], "density": "fixed", "kernel": "gaussian"}
    first, second = (empirical_privacy(data, **options) for data in (ours, ours.on_scale))
    np.testing.assert_array_equal(first.delta, second.delta)


@pytest.mark.full
def test_fresh_databases_compose_on_any_scale() -> None:
    y, c = shares(1)
    hand = edp.audit(
        edp.Responses.from_arrays(*by_hand("log", y, c)[:1], contribution=by_hand("log", y, c)[1]),
        epsilon=[0.05, 0.3],
        **FAST,
    )
    ours, theirs = (
        one.compose(3, progressbar=False).delta.to_numpy() for one in (audit_of("log"), hand)
    )
    np.testing.assert_array_equal(ours, theirs)
