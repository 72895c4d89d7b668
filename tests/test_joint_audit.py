"""Several queries published together: what joins, what is revealed, and what an audit says."""

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.responses.dependence import linear_dependence

QUICK = {"random_seed": 1, "progressbar": False}
FEW = {"draws": 100, "chains": 2, "tune": 500, "keep": 3, **QUICK}
MODEL = edp.DirichletProcessMixture(thin=10)


def of(response, contribution, query, **options):
    return edp.Responses.from_arrays(response, contribution=contribution, query=query, **options)


def shop(n=40, m=4, seed=1):
    """Return revenue and orders of a shop, whose other customers are many."""
    rng = np.random.default_rng(seed)
    price, count = rng.gamma(4.0, 0.5, (n, m)), 1.0 + rng.poisson(1.0, (n, m))
    total = rng.normal(50.0, 5.0, n)
    revenue = of(total + price.sum(axis=1), price, "revenue")
    return revenue, of(0.5 * total + rng.normal(0, 2.0, n) + count.sum(axis=1), count, "orders")


# What joins


def test_databases_that_differ_are_named():
    revenue, orders = shop()
    other = orders.replaced(database=np.array([*range(39), 99]))
    with pytest.raises(InvalidInputError, match=r"database 39 is in revenue .* database 99"):
        edp.Responses.join(revenue, other)


def test_individuals_that_differ_are_named():
    revenue, orders = shop()
    other = orders.replaced(individual=np.array([0, 1, 2, 7]))
    with pytest.raises(InvalidInputError, match="individual 3 is in revenue and not in orders"):
        edp.Responses.join(revenue, other)


def test_one_query_and_more_than_five_are_refused_and_why():
    revenue, _ = shop()
    with pytest.raises(InvalidInputError, match="audit a single query on its own"):
        edp.Responses.join(revenue)
    with pytest.raises(InvalidInputError, match=r"at most 5 .* found 6: a density in more"):
        edp.Responses.join(*[revenue] * 6)


def test_what_is_no_responses_is_refused():
    with pytest.raises(InputTypeError, match="one by one"):
        edp.Responses.join(list(shop()))


def test_samples_and_laplace_noise_are_refused_with_what_works():
    revenue, orders = shop()
    noisy = orders.replaced(noise=edp.LaplaceNoise(1.0))
    with pytest.raises(InvalidInputError, match="takes Gaussian noise"):
        edp.Responses.join(revenue, noisy)
    rng = np.random.default_rng(1)
    several = of(rng.normal(size=80), rng.normal(size=(80, 4)), "sampled", samples=2)
    with pytest.raises(InvalidInputError, match="one response a database"):
        edp.Responses.join(revenue, several)


def test_the_order_of_rows_and_columns_does_not_matter():
    revenue, orders = shop()
    rows, columns = np.random.default_rng(2).permutation(40), np.array([2, 0, 3, 1])
    mixed = orders.replaced(
        response=orders.response[rows],
        contribution=orders.contribution.tocsr()[rows].tocsc()[:, columns],
        database=orders.database[rows],
        individual=orders.individual[columns],
        presence=orders.presence[columns],
    )
    plain, again = (edp.Responses.join(revenue, one) for one in (orders, mixed))
    assert again.fingerprint == plain.fingerprint
    assert np.array_equal(again.entries.value, plain.entries.value)


def test_contributions_to_either_query_are_presence():
    one, two = np.zeros((20, 1)), np.zeros((20, 1))
    one[:3], two[2:5] = 1.0, 2.0
    y = np.random.default_rng(1).normal(size=(2, 20))
    both = edp.Responses.join(of(y[0], one, "one"), of(y[1], two, "two"))
    database, value = both.entries.of(0)
    assert database.tolist() == [0, 1, 2, 3, 4]
    assert value.tolist() == [[1, 0], [1, 0], [1, 2], [0, 2], [0, 2]]


# Linear dependence


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e6])
def test_a_query_that_follows_from_another_is_left_out_and_said(scale):
    revenue, orders = shop()
    y, c = revenue.response, revenue.contribution
    again = of(scale * y + 7.0 * scale, scale * c, "again")
    found = linear_dependence(edp.Responses.join(revenue, again, orders))
    assert found.kept == (0, 2)
    assert not found.revealed
    assert found.warnings[0].startswith("again follows from the other answers")


@pytest.mark.full
@pytest.mark.parametrize("away", [3e-7, 1e-3])
def test_nearly_the_same_is_not_the_same(away):
    revenue, both = nearly_twice(away)
    assert linear_dependence(both).kept == (0, 1)
    audit = edp.audit(both, epsilon=[0.1], model=MODEL, **FEW)
    one = edp.audit(revenue, epsilon=[0.1], model=MODEL, **FEW)
    assert float(audit.delta.mean()) == pytest.approx(float(one.delta.mean()), rel=0.2)


def test_what_differs_by_less_than_numbers_can_tell_is_refused():
    with pytest.raises(InvalidInputError, match="revenue - close varies by 8e-10 standard deviat"):
        edp.audit(nearly_twice(1e-9)[1], epsilon=[0.1], model=MODEL, **FEW)


def nearly_twice(away):
    revenue, _ = shop()
    noise = np.random.default_rng(3).normal(size=40)
    y = revenue.response + away * revenue.response.std() * noise
    return revenue, edp.Responses.join(revenue, of(y, revenue.contribution, "close"))


@pytest.mark.full
@pytest.mark.parametrize("present", [40, 5])
def test_sum_and_sum_without_reveal_whoever_is_left_out(present):
    revenue, _ = shop()
    c = revenue.contribution.toarray()
    c[present:, 0] = 0.0
    total = of(revenue.response, c, "sum")
    left = c.copy()
    left[:, 0] = 0.0
    rest = of(revenue.response - c[:, 0], left, "sum without 0")
    audit = edp.audit(
        edp.Responses.join(total, rest), epsilon=[0.1, 2.0], model=MODEL, individuals=[0], **FEW
    )
    risk = audit.individual_delta.sel(individual=0)
    share = present / 40
    assert "sum - sum without 0" in " ".join(audit.warnings)
    assert np.allclose(audit.direction.sel(individual=0), np.array([1.0, -1.0]) / np.sqrt(2.0))
    if present == 40:
        assert float(audit.band("total_risk")["lower"].min()) == 1.0
        assert (risk == 1.0).all()
        assert float(audit.upper().min()) == 1.0
    else:
        # at every epsilon the posterior of the share of databases in which they are
        assert (risk.isel(epsilon=0) == risk.isel(epsilon=1)).all()
        low, high = risk.quantile([0.05, 0.95], ("chain", "draw")).values[:, 0]
        assert low < share < high


@pytest.mark.full
def test_a_constant_total_reveals_who_is_missing_from_it():
    rng = np.random.default_rng(4)
    y = rng.normal(50.0, 5.0, 40)
    one, two = np.ones((40, 2)), np.ones((40, 2))
    two[:, 1] = -1.0  # the second one moves both answers so that their sum stays
    both = edp.Responses.join(of(y, one, "yes"), of(100.0 - y, two, "no"))
    found = linear_dependence(both)
    assert found.kept == (0,)
    assert [(one.individual, one.databases) for one in found.revealed] == [(0, 40)]
    assert "yes + no is the same in all databases, and not without individual" in found.warnings[0]
    audit = edp.audit(both, epsilon=[0.1], model=MODEL, **FEW)
    assert (audit.individual_delta.sel(individual=0) == 1.0).all()
    assert float(audit.individual_delta.sel(individual=1).max()) < 1.0


@pytest.mark.full
@pytest.mark.parametrize("share", [0.0, 1e-9, 1e-6])
@pytest.mark.parametrize("queries", [2, 3])
def test_who_alone_makes_answers_vary_is_revealed_though_the_answers_depend(queries, share):
    rng = np.random.default_rng(1)
    rest, own, c = (
        rng.normal(50.0, 5.0, 40),
        rng.normal(3.0, 1.0, 40),
        rng.normal(1.0, 0.2, (40, 3)),
    )
    yes, nothing = np.zeros((40, 3)), np.zeros((40, 3))
    yes[:, 0] = own
    varying = 7.0 + own + share * rng.standard_normal(40)
    second = 100.0 - own if share == 0.0 else 100.0 + rng.standard_normal(40)
    answers = [of(varying, yes, "yes"), of(second, nothing, "no")]
    answers += [of(rest + c.sum(axis=1), c, "sum")][: queries - 2]
    audit = edp.audit(edp.Responses.join(*answers), epsilon=[0.1], model=MODEL, **FEW)
    assert float(audit.individual_delta.sel(individual=0).min()) > 0.9999
    assert float(audit.individual_delta.sel(individual=1).max()) < 0.5


@pytest.mark.full
@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("model", [MODEL, edp.DirichletProcessMixture()], ids=["four", "many"])
def test_an_answer_of_two_values_exposes_nobody_who_is_not_in_it(model, turn):
    """Components do not collapse on its values, in whichever order the queries are joined."""
    rng = np.random.default_rng(1)
    rest, c = rng.normal(50.0, 5.0, 40), rng.normal(1.0, 0.2, (40, 3))
    here = np.zeros((40, 3))
    here[:20, 0] = 1.0
    answers = [of(rest + c.sum(axis=1), c, "sum"), of(here[:, 0], here, "count")][::turn]
    audit = edp.audit(edp.Responses.join(*answers), epsilon=[0.1], model=model, **FEW)
    risk = audit.individual_delta.mean(("chain", "draw")).isel(epsilon=0)
    alone = edp.audit(answers[0 if turn == 1 else 1], epsilon=[0.1], model=model, **FEW)
    expected = alone.individual_delta.mean(("chain", "draw")).isel(epsilon=0)
    assert 0.4 < float(risk.sel(individual=0)) < 0.6
    for person in (1, 2):
        assert float(risk.sel(individual=person)) < 1.5 * float(expected.sel(individual=person))


# Known answers


@pytest.mark.full
@pytest.mark.parametrize(("sigma", "truth"), [(3.0, 0.115), (1.0, 0.357), (0.25, 0.918)])
def test_sum_and_noisy_sum_without(sigma, truth):
    rng = np.random.default_rng(1)
    rest, c = rng.normal(50.0, 5.0, 60), rng.normal(1.0, 0.2, (60, 4))
    without = c.copy()
    without[:, 0] = 0.0
    both = edp.Responses.join(
        of(rest + c[:, 0], c, "sum"), of(rest + rng.normal(0.0, sigma, 60), without, "sum without")
    )
    audit = edp.audit(both, epsilon=[0.1], model=MODEL, **FEW)
    assert audit.direction["individual"][0] == 0
    band = audit.band("individual_delta", kind="pointwise", prob=0.95).isel(individual=0)
    assert float(band["upper"].item()) >= truth
    assert float(band["median"].item()) > 0.6 * truth
    weights = audit.direction.isel(individual=0).to_numpy()
    if sigma < 3.0:
        assert weights[0] / weights[1] == pytest.approx(-1.0, abs=0.25)


@pytest.mark.full
def test_the_near_end_of_the_series_is_one():
    rng = np.random.default_rng(2)
    rest, c = rng.normal(50.0, 5.0, 60), rng.normal(1.0, 0.2, (60, 2))
    without = c.copy()
    without[:, 0] = 0.0
    both = edp.Responses.join(
        of(rest + c[:, 0], c, "sum"), of(rest + rng.normal(0.0, 0.1, 60), without, "sum without")
    )
    audit = edp.audit(both, epsilon=[0.1], model=MODEL, **FEW)
    assert float(audit.upper().item()) >= 0.998
    assert float(audit.delta.median()) > 0.95


@pytest.mark.full
def test_whoever_is_exposed_in_few_databases_is_not_pooled_away():
    rng = np.random.default_rng(3)
    c = np.where(rng.random((40, 30)) < 0.5, rng.gamma(4.0, 0.25, (40, 30)), 0.0)
    c[:, 0] = 0.0
    c[rng.permutation(40)[:5], 0] = 100.0
    count = (c > 0).astype(float)
    noise = rng.normal(size=(2, 40))
    both = edp.Responses.join(
        of(c.sum(axis=1) + noise[0], c, "sum"), of(count.sum(axis=1) + noise[1], count, "count")
    )
    audit = edp.audit(both, epsilon=[0.5], model=MODEL, **FEW)
    assert audit.direction["individual"][0] == 0
    assert float(audit.upper().item()) >= 0.125
    assert audit.checks.loc["individuals", "passed"]


@pytest.mark.full
def test_known_gaussian_noise_hides():
    revenue, orders = shop()
    noise = edp.GaussianNoise(20.0)
    hidden = [part.replaced(noise=noise) for part in (revenue, orders)]
    plain, noisy = (
        edp.audit(edp.Responses.join(*parts), epsilon=[0.1], model=MODEL, **FEW)
        for parts in ((revenue, orders), hidden)
    )
    assert float(noisy.delta.median()) < 0.5 * float(plain.delta.median())


# What comes back


@pytest.fixture(scope="module", params=[MODEL, edp.SmoothedBootstrap()], ids=["mixture", "kernel"])
def audit(request):
    both = edp.Responses.join(*shop())
    return edp.audit(both, epsilon=[0.1, 0.5, 1.0], model=request.param, **FEW)


@pytest.mark.full
def test_together_they_tell_no_less_than_each(audit):
    revenue, orders = shop()
    model = MODEL if "Dirichlet" in audit.settings["model"] else edp.SmoothedBootstrap("gaussian")
    for part in (revenue, orders):
        alone = edp.audit(part, epsilon=[0.1], model=model, **FEW)
        joint = audit.delta.sel(epsilon=0.1).median()
        assert float(joint) > 0.85 * float(alone.delta.median())


def test_bands_allow_for_the_errors_of_the_integrals(audit):
    error = audit.integration_error["delta"]
    assert 0.0 < float(error.mean()) < 0.02
    band = audit.band(kind="pointwise", prob=0.9)
    raw = audit.delta.quantile(0.95, ("chain", "draw"))
    assert (band["upper"] >= raw).all()
    assert (band["lower"] <= band["median"]).all()
    lower = audit.epsilon_at(0.1)["lower"]
    assert (lower <= audit.epsilon_at(0.1)).all()
    assert (audit.delta <= audit.total_risk + 1e-12).all()
    assert (audit.total_risk <= audit.total_risk_bound + 1e-12).all()


def test_tests_and_guesses_allow_for_the_errors_of_the_integrals(audit):
    first = (audit.delta + audit.integration_error["delta"]).clip(0.0, 1.0)[..., 0]
    growth = np.exp(0.1)
    # the most that delta at zero can be, given what it is at most at the first epsilon
    most = first + (1.0 - first) * (growth - 1.0) / (1.0 + growth)
    np.testing.assert_allclose(audit.advantage(), most)
    np.testing.assert_allclose(
        audit.membership_probability(prior=0.5)["guessed"], 0.5 * (1.0 + most)
    )


@pytest.mark.full
def test_a_direction_is_a_unit_combination_of_the_queries(audit):
    assert audit.direction.dims == ("individual", "query")
    assert audit.direction["query"].to_numpy().tolist() == ["revenue", "orders"]
    assert np.allclose((audit.direction**2).sum("query"), 1.0)
    assert audit.summary().attrs["direction"] == audit.direction_of(0)
    assert "orders" in audit.direction_of(0)


@pytest.mark.full
def test_it_is_saved_and_loaded(audit, tmp_path):
    again = edp.load(audit.save(tmp_path / "audit.nc"))
    assert isinstance(again, edp.JointAudit)
    assert again.summary().equals(audit.summary())
    assert again.settings["fingerprint"] == edp.Responses.join(*shop()).fingerprint
    hidden = audit.with_pseudonyms(key="a key of sixteen")
    assert isinstance(hidden, edp.JointAudit)
    assert np.array_equal(hidden.direction, audit.direction)


@pytest.mark.full
def test_it_is_reported_and_plotted(audit, tmp_path):
    text = audit.report(tmp_path / "audit.html").read_text()
    assert "The answers are published together" in text
    assert audit.direction_of(0).split(" x ")[-1] in text
    for plot in (
        audit.plot_delta,
        audit.plot_total_risk,
        audit.plot_density,
        audit.plot_individuals,
    ):
        assert type(plot(backend="none")).__name__ == "PlotCollection"


def test_what_needs_one_answer_is_refused(audit):
    with pytest.raises(InvalidInputError, match="audit each query on its own"):
        audit.interval_level(0.1)
    with pytest.raises(InvalidInputError, match="audit each query on its own"):
        audit.new_individual()
    with pytest.raises(InputTypeError, match="rounded_to of several queries must be a mapping"):
        audit.released(rounded_to=1.0)
    with pytest.raises(InvalidInputError, match="delta must be above 0"):
        audit.epsilon_at(0.0)
    assert audit.joint_mixture.dimensions == 2


def test_checks_name_the_query(audit):
    said = audit.checks["sentence"]
    assert all(said[name].startswith(("revenue: ", "orders: ")) for name in ("trend", "ties"))
    assert said["distribution"].partition(":")[0] in (
        "revenue",
        "orders",
        "orders and revenue together",
    )


@pytest.mark.full
def test_the_same_seed_gives_the_same_numbers_whatever_the_blocks(audit, monkeypatch):
    model = MODEL if "Dirichlet" in audit.settings["model"] else edp.SmoothedBootstrap()
    monkeypatch.setattr("edp_bayes.auditing.evaluation.ESTIMATED_NUMBERS", 1)
    again = edp.audit(
        edp.Responses.join(*shop()), epsilon=[0.1, 0.5, 1.0], model=model, cores=1, **FEW
    )
    assert np.array_equal(again.delta, audit.delta)
    assert np.allclose(again.total_risk, audit.total_risk, rtol=1e-12)


@pytest.mark.full
def test_databases_that_depend_on_each_other_establish_nothing():
    revenue, orders = shop()
    rising = revenue.replaced(response=revenue.response + 3.0 * np.arange(40.0))
    found = edp.audit(
        edp.Responses.join(rising, orders), epsilon=[0.1], model=edp.SmoothedBootstrap(), **FEW
    )
    assert "revenue: " in found.withheld
