"""The response given what is known: Gibbs sampling, its PyMC twin and an oracle."""

from __future__ import annotations

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.models import BaseMeasure
from edp_bayes.models.base import fit_as_asked
from edp_bayes.models.regression import Regression
from edp_bayes.models.sampling import SamplerSettings

N = 80


def series(seed, coefficient=0.6, trend=1.5, growth=0.0, n=N):
    """Return an autoregressive series with a trend and innovations whose scale may grow."""
    rng = np.random.default_rng(seed)
    z = np.linspace(-0.5, 0.5, n)
    scale = np.exp(growth * z)
    y = np.zeros(n)
    for t in range(n):
        y[t] = (coefficient * y[t - 1] if t else 0.0) + scale[t] * rng.normal()
    y = 50.0 + y + trend * z
    contribution = 0.3 + 0.05 * rng.standard_normal((n, 3))
    return edp.Responses.from_arrays(
        y + contribution.sum(axis=1), contribution=contribution, additive=True
    )


def fitted(model, responses, *, sampler=None, draws=500, **known):
    regression = Regression.of(edp.Adversary(**known).given(responses))
    settings = SamplerSettings(
        draws=draws, random_seed=1, progressbar=False, sampler=sampler, chains=4
    )
    return regression, fit_as_asked(model, regression, settings)


def test_every_draw_of_the_coefficients_puts_the_next_response_elsewhere():
    bootstrap = edp.SmoothedBootstrap(kernel="gaussian")
    regression, found = fitted(bootstrap, series(3), past=1, trend=True, draws=50)
    hand = found.in_question
    moved = regression.units.spread * ((hand.coefficients - hand.middle) @ regression.target)
    np.testing.assert_allclose(hand.shift, moved, rtol=1e-9)
    assert hand.shift.std() > 0.01


@pytest.mark.full
def test_the_normal_model_agrees_with_a_state_space_model():
    from statsmodels.tsa.statespace.sarimax import SARIMAX

    responses = series(3, n=300)
    regression, found = fitted(
        edp.FiniteMixture(components=1), responses, past=1, trend=True, draws=250
    )
    y = responses.response
    oracle = SARIMAX(y, order=(1, 0, 0), trend="ct").fit(disp=False)
    lag, spread = oracle.params[2], np.sqrt(oracle.params[3])
    coefficients = found.in_question.coefficients
    assert coefficients[..., 0].mean() == pytest.approx(lag, abs=0.5 * oracle.bse[2])
    assert coefficients[..., 0].std() == pytest.approx(oracle.bse[2], rel=0.25)
    assert found.mixture.scales.mean() == pytest.approx(spread, rel=0.05)
    forecast = oracle.get_forecast(1)
    following = found.in_question.next_response
    assert following.locations.mean() == pytest.approx(forecast.predicted_mean[0], abs=0.15)
    assert found.log_likelihood.sum(axis=-1).max() == pytest.approx(oracle.llf, abs=4.0)
    assert regression.known.names == ["lag 1", "trend"]


@pytest.mark.full
@pytest.mark.parametrize("growth", [False, True])
def test_gibbs_and_nuts_draw_one_posterior(growth):
    responses = series(4, growth=1.0 if growth else 0.0)
    known = {"past": 1, "trend": True, "changing_scale": growth}
    model = edp.FiniteMixture(components=1)
    _, gibbs = fitted(model, responses, draws=2000, **known)
    _, nuts = fitted(model, responses, sampler="nutpie", draws=2000, **known)
    epsilon = np.array([0.05, 0.3])
    quantities = []
    for found in (gibbs, nuts):
        hand = found.in_question
        curves = found.coupling.curves(np.arange(2), epsilon).reshape(4, -1, 4)
        quantities.append(
            np.concatenate(
                [
                    hand.coefficients[..., :2],
                    hand.growth[..., None],
                    hand.next_response.locations,
                    found.mixture.scales,
                    curves,
                ],
                axis=-1,
            ).reshape(-1, 9)
        )
    left, right = quantities
    deviation = np.maximum(left.std(axis=0), 1e-12)
    np.testing.assert_allclose(
        left.mean(axis=0) / deviation, right.mean(axis=0) / deviation, atol=0.15
    )
    np.testing.assert_allclose(left.std(axis=0), right.std(axis=0), rtol=0.15, atol=1e-12)


def test_a_growing_scale_is_found_and_taken_to_the_database_in_question():
    responses = series(5, coefficient=0.0, trend=0.0, growth=1.5, n=200)
    _, found = fitted(edp.FiniteMixture(components=1), responses, changing_scale=True)
    assert found.in_question.growth.mean() == pytest.approx(1.5, abs=0.4)
    # the scale at the end of the series, of a middle one of one
    assert found.mixture.scales.mean() == pytest.approx(np.exp(0.75), rel=0.2)
    assert found.in_question.scores.std() == pytest.approx(1.0, abs=0.1)


def test_every_draw_lies_where_the_responses_in_question_do():
    # gamma, the intercept, the trend and the density's own location offset each other
    responses = series(8, coefficient=0.0, growth=-1.0, n=50)
    _, found = fitted(
        edp.DirichletProcessMixture(), responses, trend=True, changing_scale=True, draws=100
    )
    p, hand = found.mixture, found.in_question.responses.response
    mean = (p.weights * p.locations).sum(axis=-1)
    assert mean.mean() == pytest.approx(hand.mean(), abs=0.5 * hand.std())
    assert mean.std() < 0.4 * hand.std()
    # where the next response lies does not follow from that
    following = found.in_question.next_response
    np.testing.assert_allclose(
        following.locations - p.locations,
        np.broadcast_to(found.in_question.shift[..., None], p.locations.shape),
    )


def test_the_risk_does_not_depend_on_where_the_database_lies():
    responses = series(6)
    moved = responses.replaced(response=responses.response + 1e3)
    curves = []
    for data in (responses, moved):
        _, found = fitted(edp.DirichletProcessMixture(), data, past=2, trend=True, draws=50)
        curves.append(found.coupling.curves(np.arange(3), np.array([0.1, 0.5])))
    np.testing.assert_allclose(curves[0], curves[1], atol=1e-6)


@pytest.mark.parametrize(
    "model", [edp.DirichletProcessMixture(), edp.SmoothedBootstrap(kernel="gaussian")]
)
def test_scores_of_residuals_are_normal(model):
    _, found = fitted(model, series(7), past=1, trend=True, draws=100)
    scores = found.in_question.scores
    assert abs(scores.mean()) < 0.1
    assert scores.std() == pytest.approx(1.0, abs=0.15)
    assert abs(np.corrcoef(scores[1:], scores[:-1])[0, 1]) < 0.25


@pytest.mark.full
def test_the_conditional_risk_is_larger_than_the_marginal():
    # innovations of one standard deviation, responses of five thirds of it
    responses = series(8, coefficient=0.8, trend=0.0, n=200)
    known = edp.Adversary(past=1)
    options = {"epsilon": [0.05], "draws": 100, "random_seed": 1, "progressbar": False}
    plain = float(edp.audit(responses, **options).delta.median())
    given = float(edp.audit(responses, adversary=known, **options).delta.median())
    truth = float(edp.hockey_stick(*_normals(0.3, 1.0), epsilon=0.05))
    assert plain < 0.75 * truth < given < 1.3 * truth


MEMBERS = (
    edp.DirichletProcessMixture(base_measure=BaseMeasure(scale_shape=None)),
    edp.SmoothedBootstrap(kernel="gaussian"),
)


@pytest.mark.full
def test_a_stack_is_given_what_its_members_are():
    responses = series(18)
    known = {"past": 1, "trend": True, "draws": 200}
    regression, stack = fitted(edp.Stacked(MEMBERS), responses, **known)
    alone = [fitted(model, responses, **known)[1] for model in MEMBERS]
    member = stack.sample_stats["member"].to_numpy()
    assert set(np.unique(member)) == {0, 1}
    hand = stack.in_question
    everybody, epsilon = np.arange(3), np.array([0.05, 0.3])
    curves = stack.coupling.curves(everybody, epsilon).reshape(*member.shape, 3, 2)
    for k, single in enumerate(alone):
        mine, parts = member == k, single.in_question
        # every draw keeps its own model's coefficients, likelihood, place and risks
        np.testing.assert_array_equal(hand.coefficients[mine], parts.coefficients[mine])
        np.testing.assert_allclose(hand.log_likelihood[mine], parts.log_likelihood[mine], atol=1e-8)
        np.testing.assert_allclose(hand.shift[mine], parts.shift[mine], atol=1e-9)
        np.testing.assert_allclose(
            hand.next_response.mean()[mine], parts.next_response.mean()[mine], atol=1e-8
        )
        own = single.coupling.curves(everybody, epsilon).reshape(*member.shape, 3, 2)
        np.testing.assert_allclose(curves[mine], own[mine], atol=1e-12)
        # members put their densities at one place
        apart = parts.responses.response - hand.responses.response
        assert np.abs(apart).max() < 0.2 * regression.units.spread
    assert hand.scores.std() == pytest.approx(1.0, abs=0.15)


@pytest.mark.full
def test_a_stacked_audit_says_against_whom(tmp_path):
    audit = edp.audit(
        series(14),
        epsilon=[0.1],
        model=edp.Stacked(MEMBERS),
        adversary=edp.Adversary(past=1),
        draws=100,
        random_seed=1,
        progressbar=False,
    )
    again = edp.load(audit.save(tmp_path / "stack.nc"))
    assert again.against == (
        "a person who has seen the last release and knows when each individual was last there"
    )
    assert again.tree["known"]["coefficients"].sizes == {"chain": 4, "draw": 100, "term": 1}


@pytest.mark.full
@pytest.mark.parametrize(
    "model",
    [
        edp.PyMCMixture(edp.FiniteMixture(components=1).build),
        edp.FiniteMixture(components=1, kernel="laplace"),
    ],
    ids=["own", "laplace"],
)
def test_models_drawn_by_nuts_are_given_what_is_known(model):
    responses = series(8, coefficient=0.8, trend=0.0)
    options = {"draws": 150, "tune": 300, "chains": 2, "random_seed": 1, "progressbar": False}
    audit = edp.audit(
        responses, epsilon=[0.05], model=model, adversary=edp.Adversary(past=1), **options
    )
    known = audit.tree["known"]
    y = responses.response
    slope = np.polyfit(y[:-1], y[1:], 1)[0]
    assert float(known["coefficients"].mean()) == pytest.approx(slope, abs=0.08)
    deviation = float(np.sqrt(audit.mixture.variance()).mean())
    assert deviation == pytest.approx(float(known.attrs["spread"]), rel=0.15)
    assert known["score"].std() == pytest.approx(1.0, abs=0.15)
    truth = float(edp.hockey_stick(*_normals(0.3, 1.0), epsilon=0.05))
    assert 0.6 * truth < float(audit.delta.median()) < 1.6 * truth


def _normals(shift, deviation):
    return (
        edp.Mixture(np.ones(1), np.array([place]), np.array([deviation])) for place in (0.0, shift)
    )


@pytest.mark.parametrize("growing", [False, True])
def test_modified_residuals_undo_the_leverage(growing):
    """The leverage is by how much a fitted response follows the response."""
    responses, step = series(21, n=40), 1e-3
    known = edp.Adversary(past=1, trend=True, changing_scale=growing).given(responses)
    regression = Regression.of(known)
    gamma, n = (0.4 if growing else 0.0), len(known.position)
    scale = np.exp(gamma * regression.position)
    ones = np.empty((n, 0)) if growing else np.ones((n, 1))
    x = np.column_stack([regression.design, ones]) / scale[:, None]
    prior = np.zeros(x.shape[1])
    prior[: regression.deviation.size] = 1.0 / regression.deviation
    rows = np.vstack([x, np.diag(prior)])

    def fit(u):
        return np.linalg.lstsq(rows, np.concatenate([u, np.zeros(len(prior))]), rcond=None)[0]

    y = regression.sample[:, 0] / scale
    found = fit(y)
    leverage = np.array(
        [x[t] @ (fit(y + step * (np.arange(n) == t)) - found) / step for t in range(n)]
    )
    beta = found[: regression.deviation.size]
    plain = regression.residuals(beta, gamma)[:, 0]
    expected = (plain - plain.mean()) * np.sqrt((1 - 1 / n) / (1 - leverage))
    np.testing.assert_allclose(
        regression.modified(beta, gamma)[:, 0] - plain.mean(), expected, atol=1e-6
    )


def test_residuals_are_as_far_spread_as_the_innovations():
    """Nine regressors for forty databases take a quarter of the residuals' variance."""
    rng, ratios = np.random.default_rng(22), []
    for _ in range(60):
        y = rng.normal(size=40)
        table = {f"x{k}": rng.normal(size=40) for k in range(9)}
        data = edp.Responses.from_arrays(y, contribution=0.1 * np.ones((40, 1)))
        regression = Regression.of(edp.Adversary(covariates=table).given(data))
        beta, gamma = regression.mode
        ratios.append(
            [
                regression.units.spread**2 * found(beta, gamma).var(ddof=1)
                for found in (regression.modified, regression.residuals)
            ]
        )
    modified, plain = np.mean(ratios, axis=0)
    assert modified == pytest.approx(1.0, abs=0.08)
    assert plain < 0.85


@pytest.mark.parametrize("growing", [False, True])
def test_the_density_is_that_of_one_set_of_residuals(growing):
    """Coefficients, place and growth are those of the joint fit."""
    responses, everybody = series(23), np.arange(3)
    known = edp.Adversary(past=1, trend=True, changing_scale=growing).given(responses)
    regression, model = Regression.of(known), edp.FiniteMixture(components=2)
    settings = SamplerSettings(draws=200, random_seed=1, progressbar=False, chains=2)
    joint, given = model._fit(regression, settings), model.fit_given(regression, settings)
    for name in ("coefficients", "growth", "shift"):
        np.testing.assert_array_equal(
            getattr(given.in_question, name), getattr(joint.in_question, name)
        )
    alone = model.fit(given.in_question.responses, settings)
    growth = given.in_question.growth
    factor = np.exp((growth - growth.mean()) * known.target_position) if growing else 1.0
    np.testing.assert_allclose(
        given.mixture.scales, np.reshape(factor, (*np.shape(factor), 1)) * alone.mixture.scales
    )
    np.testing.assert_allclose(
        given.mixture.mean() - responses.response.mean(),
        factor * (alone.mixture.mean() - given.in_question.responses.response.mean())
        + given.in_question.responses.response.mean()
        - responses.response.mean(),
    )
    if not growing:
        np.testing.assert_array_equal(
            given.coupling.curves(everybody, np.array([0.1])),
            alone.coupling.curves(everybody, np.array([0.1])),
        )


@pytest.mark.full
@pytest.mark.parametrize("growing", [False, True])
def test_new_regressors_give_new_predictions(growing):
    """Out of sample the response lies where the coefficients put it, in its own units."""
    import pymc as pm

    known = edp.Adversary(past=1, trend=True, changing_scale=growing)
    regression = Regression.of(known.given(series(9)))
    model = edp.FiniteMixture().build(regression.known.responses, regression)
    beta = np.array([0.7, 2.0, 0.0][: len(regression.terms)])
    fixed = {"coefficients": beta, "locations": np.array([0.5]), "scales": np.array([0.2])}
    model = pm.do(model, fixed | ({"growth": 1.0} if growing else {}))
    new = {"regressors": np.zeros((2, beta.size)), "response_data": np.zeros(2)}
    new["regressors"][1, :2] = 3.0, 1.0
    if growing:
        new["position"] = np.array([-0.5, 0.5])
    with model:
        pm.set_data(new, coords={"database": ["a", "b"]})
    drawn = pm.draw(model["response"], 4000, random_seed=1)
    units, scale = regression.units, np.exp([-0.5, 0.5]) if growing else np.ones(2)
    middle = units.centre + units.spread * (np.array([0.0, 0.7 * 3.0 + 2.0]) + 0.5 * scale)
    deviation = 0.2 * scale * units.spread
    assert np.abs((drawn.mean(axis=0) - middle) / deviation).max() < 5.0 / np.sqrt(4000)
    np.testing.assert_allclose(drawn.std(axis=0), deviation, rtol=0.05)


@pytest.mark.usefixtures("quickly_compiled")
def test_the_responses_of_a_model_are_data():
    import pymc as pm

    responses = series(9)
    model = edp.DirichletProcessMixture().build(responses)
    assert model.named_vars_to_dims["response_data"] == ("database",)
    before = model.compile_logp()(model.initial_point())
    with model:
        pm.set_data({"response_data": responses.response + 1.0})
    moved = model.compile_logp()(model.initial_point())
    with model:
        pm.set_data({"response_data": responses.response})
    assert model.compile_logp()(model.initial_point()) == before != moved
