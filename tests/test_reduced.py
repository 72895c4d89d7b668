"""Contributions of those who can matter: all others are bounded, never lost."""

import copy
import pickle
import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import edp_bayes as edp
from edp_bayes import Databases, queries
from edp_bayes.auditing.evaluation import evaluate
from edp_bayes.auditing.rounded import rounded_coupling
from edp_bayes.coupling.contributions.exposure import raw_exposure
from edp_bayes.coupling.contributions.posterior import ContributionDraws, ContributionPosterior
from edp_bayes.coupling.curves.reduced import reduced_curves
from edp_bayes.coupling.regression import RegressionCoupling
from edp_bayes.coupling.views.some_draws import pick
from edp_bayes.coupling.views.some_individuals import taken
from edp_bayes.distributions.mixtures import Mixture, flat_draws
from edp_bayes.exceptions import EdpBayesWarning, InvalidInputError
from edp_bayes.models import Stacked
from edp_bayes.models.sampling import SamplerSettings
from tests.command_line import printed

EPSILON = np.array([0.05, 0.3, 1.0])
KEYS = {"database": "week", "individual": "client"}
SLACK = 1e-9  # what an evaluated curve may be too high by where components are narrow
MODELS = {
    "mixture": edp.DirichletProcessMixture(components=6),
    "bootstrap": edp.SmoothedBootstrap(),
    "laplace": edp.SmoothedBootstrap(kernel="laplace"),
    "stacked": Stacked([edp.SmoothedBootstrap(), edp.DirichletProcessMixture(components=6)]),
}


def population(seed, *, people=60, databases=24):
    """People of all sizes and presences, one of whom is exposed, and several seen once."""
    rng = np.random.default_rng(seed)
    presence = rng.choice([0.05, 0.3, 1.0], people, p=[0.5, 0.3, 0.2])
    size = rng.lognormal(-1.0, rng.choice([0.3, 1.5]), people)
    c = size * rng.gamma(2.0, 0.5, (databases, people))
    c[rng.random((databases, people)) >= presence] = np.nan
    c[rng.integers(databases), 0] = 30.0
    c[:, 1] = rng.normal(5.0, 1.0, databases)  # one owns a record in every database
    return c


def databases_of(c):
    names = [f"p{k:03}" for k in range(c.shape[1])]
    array = xr.DataArray(c, dims=("week", "client"), coords={"client": names}, name="amount")
    return Databases.from_xarray(array, **KEYS)


def quiet(action, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        return action(*arguments, **options)


def both(seed, collect=20, **options):
    found = databases_of(population(seed, **options))
    query = queries.Sum("amount")
    return found.respond(query), found.respond(query, collect=collect)


def records():
    """Records of many people, with amounts from a hundredth to thousands."""
    rng = np.random.default_rng(5)
    client = np.concatenate([np.tile([0, 1], 20), rng.zipf(1.4, 700) % 40])
    week = np.concatenate([np.repeat(np.arange(20), 2), rng.integers(20, size=700)])
    amount = rng.normal(5.0, 3.0, 740) * 10.0 ** rng.integers(-2, 3, 740)
    amount[rng.random(740) < 0.05] = 0.0
    return pd.DataFrame({"week": week, "client": [f"c{k}" for k in client], "amount": amount})


TABLE = records()


def dask_table(table):
    return pytest.importorskip("dask.dataframe").from_pandas(table, npartitions=2)


def ibis_table(table):
    return pytest.importorskip("ibis").memtable(pa.Table.from_pandas(table))


ENGINES = {
    "pyarrow": lambda table: pa.Table.from_pandas(table, preserve_index=False),
    "polars": lambda table: pl.from_pandas(table).lazy(),
    "duckdb": lambda table: duckdb.from_arrow(pa.Table.from_pandas(table, preserve_index=False)),
    "ibis": ibis_table,
    "dask": pytest.param(dask_table, marks=pytest.mark.full),
}


@pytest.fixture(autouse=True)
def one_thread():
    with pytest.importorskip("dask").config.set(scheduler="synchronous"):
        yield


@pytest.mark.full
@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("query", [queries.Sum("amount"), queries.Count()], ids=str)
def test_every_engine_gives_the_same_bits(engine, query):
    expected = Databases.from_table(TABLE, **KEYS).respond(query, collect=12)
    shuffled = TABLE.sample(frac=1.0, random_state=3)
    found = quiet(Databases.from_table(engine(shuffled), **KEYS).respond, query, collect=12)
    assert (
        0 < found.collected.nnz < Databases.from_table(TABLE, **KEYS).respond(query).collected.nnz
    )
    assert found.fingerprint == expected.fingerprint
    np.testing.assert_array_equal(found.presence, expected.presence)
    assert 0 < (~found.reduced).sum() <= 12


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("every", ["week", "month"])
def test_periods_of_days_and_records_without_an_individual(engine, every):
    days = pd.date_range("2024-01-01", periods=300, freq="D")
    table = TABLE.assign(day=np.random.default_rng(1).choice(days, len(TABLE)))
    table.loc[::50, "client"] = None
    options = {"database": "day", "individual": "client", "database_every": every}
    whole = quiet(Databases.from_table, table, **options, missing="pool")
    expected = quiet(whole.respond, queries.Sum("amount"), collect=10)
    lazy = quiet(Databases.from_table, ENGINES[engine](table), **options, missing="pool")
    found = quiet(lazy.respond, queries.Sum("amount"), collect=10)
    assert found.individual[-1] == "(missing)"
    assert not found.reduced[-1]
    assert found.fingerprint == expected.fingerprint


def test_compound_keys():
    table = TABLE.assign(shop=np.random.default_rng(1).integers(3, size=len(TABLE)))
    keys = {"database": "week", "individual": ["client", "shop"]}
    found, expected = (
        quiet(Databases.from_table(form, **keys).respond, queries.Sum("amount"), collect=25)
        for form in (ENGINES["duckdb"](table), table)
    )
    assert found.fingerprint == expected.fingerprint


@pytest.mark.parametrize("engine", [None, "polars"])
def test_collecting_everybody_is_what_it_was(engine):
    databases = Databases.from_table(TABLE if engine is None else ENGINES[engine](TABLE), **KEYS)
    expected = quiet(databases.respond, queries.Sum("amount"))
    for collect in (databases.n_individuals, 10**9):
        found = quiet(databases.respond, queries.Sum("amount"), collect=collect)
        assert found.remainder is None
        assert found.fingerprint == expected.fingerprint
    fewer = quiet(databases.respond, queries.Sum("amount"), collect=5)
    assert fewer.fingerprint != expected.fingerprint
    np.testing.assert_array_equal(fewer.response, expected.response)
    np.testing.assert_array_equal(fewer.largest_contribution, expected.largest_contribution)
    np.testing.assert_array_equal(fewer.presence, expected.presence)
    np.testing.assert_allclose(fewer.variance_without, expected.variance_without, rtol=1e-12)
    assert (fewer.collected != expected.contribution)[:, ~fewer.reduced].nnz == 0


def test_too_many_pairs_are_reduced_by_default_and_said(monkeypatch):
    monkeypatch.setattr("edp_bayes.records.engine.MOST_PAIRS", 100)
    monkeypatch.setattr("edp_bayes.responses.databases.MOST_PAIRS", 100)
    monkeypatch.setattr("edp_bayes.responses.databases.DEFAULT", 12)
    lazy = Databases.from_table(ENGINES["duckdb"](TABLE), **KEYS)
    with pytest.warns(EdpBayesWarning, match=r"pairs of a database .* more than 100: the contrib"):
        found = lazy.respond(queries.Sum("amount"))
    assert found.reduced.sum() == lazy.n_individuals - (~found.reduced).sum() > 0
    assert any("the risks of all others are bounded" in said for said in found.warnings)
    assert quiet(lazy.respond, queries.Sum("amount"), collect=10**9).remainder is None
    assert quiet(lazy.respond, queries.Mean("amount")).remainder is None


@pytest.mark.parametrize(
    ("query", "collect", "match"),
    [
        (queries.Mean("amount"), 5, r"collect is for Count and Sum.*mean:amount needs"),
        (queries.Quantile("amount", 0.5), 5, "collect is for Count and Sum"),
        (queries.Sum("amount"), 0, "collect must be"),
        (len, 5, "collect is for Count and Sum.*len needs"),
        (queries.Sum("price"), 5, "needs a column 'price'"),
    ],
)
def test_what_cannot_be_reduced(query, collect, match):
    with pytest.raises(InvalidInputError, match=match):
        Databases.from_table(TABLE, **KEYS).respond(query, collect=collect)


def test_people_who_are_all_alike_are_told_apart_by_nothing():
    table = pd.DataFrame({"week": np.repeat(np.arange(20), 30), "client": [*range(30)] * 20})
    table = pd.concat([table, table.iloc[:3], table.iloc[40:41]])
    with pytest.raises(InvalidInputError, match=r"2[0-9] individuals are alike|collect more"):
        Databases.from_table(table, **KEYS).respond(queries.Count(), collect=1)


def test_who_is_not_collected_is_taken_for_nobody():
    full, responses = both(3)
    for use in (
        lambda: responses.contribution.data,
        lambda: responses.contribution[:, [0]],
        lambda: responses.contribution_of(responses.individual[responses.reduced][0]),
        lambda: edp.plugin.empirical_privacy(responses, epsilon=EPSILON),
        lambda: edp.Responses.join(responses, responses),
        lambda: edp.noise.calibrate(responses, epsilon=0.5, delta=0.1),
    ):
        with pytest.raises(InvalidInputError, match=r"not collected"):
            use()
    for again in (copy.copy(responses), pickle.loads(pickle.dumps(responses.remainder))):
        assert again is not None
    assert responses.replaced(query="x").fingerprint == responses.fingerprint
    assert full.remainder is None


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_hyperparameters_are_those_of_the_full_collection(seed):
    full, reduced = (ContributionPosterior.fit(one, 1) for one in both(seed, collect=5))
    assert full.pool.presence == reduced.pool.presence
    for name in ("always", "middle", "between", "negative"):
        assert getattr(reduced.pool, name) == pytest.approx(getattr(full.pool, name), rel=1e-9)
    assert reduced.pool.spread.relative == pytest.approx(full.pool.spread.relative, rel=1e-9)
    for name in ("presence_a", "presence_b", "degrees", "squares", "mean", "factor", "centre"):
        scale = np.abs(getattr(full, name)).max()
        np.testing.assert_allclose(
            getattr(reduced, name), getattr(full, name), rtol=1e-7, atol=1e-9 * scale
        )
    people = np.arange(full.centre.size)
    for one, other in zip(full.draw(people, 20), reduced.draw(people, 20), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-9)


def test_exposure_of_the_others_is_not_below_what_it_is():
    full, reduced = both(4)
    exact, found = raw_exposure(full, EPSILON), raw_exposure(reduced, EPSILON)
    np.testing.assert_allclose(found[~reduced.reduced], exact[~reduced.reduced], rtol=1e-9)
    assert (found >= exact * (1.0 - 1e-9) - 1e-15).all()


def fits(model, seed, **options):
    how = SamplerSettings(draws=13, tune=30, chains=2, random_seed=1, progressbar=False)
    return [quiet(model.fit, one, how).coupling for one in both(seed, **options)]


@pytest.mark.full
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@given(seed=st.integers(0, 2**20), collect=st.sampled_from([5, 10, 40]))
@settings(derandomize=True, deadline=None, max_examples=4)
def test_bounds_are_above_the_risk_and_all_others_keep_theirs(model, seed, collect):
    full, reduced = fits(model, seed, collect=collect)
    people = np.arange(full.n_individuals)
    exact, found = full.curves(people, EPSILON), reduced.curves(people, EPSILON)
    some = reduced.reduced
    assert 0 < some.sum() < people.size
    np.testing.assert_allclose(found[:, ~some], exact[:, ~some], rtol=1e-6, atol=1e-12)
    assert (found[:, some] >= exact[:, some] - SLACK).all()
    assert (found <= 1.0).all()


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_sums_and_the_largest_are_above_those_of_the_full_collection(seed):
    full, reduced = fits(MODELS["mixture"], seed, collect=10)
    copies = np.random.default_rng(3).integers(0, full.n_individuals, full.n_draws)
    exact = evaluate(full, EPSILON, progressbar=False, copies=copies)
    for exact_up_to in (10, 1000):
        found = evaluate(
            reduced, EPSILON, progressbar=False, copies=copies, exact_up_to=exact_up_to
        )
        for name in ("delta", "total_risk", "total_risk_bound", "copied"):
            assert (getattr(found, name) >= getattr(exact, name) - SLACK).all(), name
        assert (found.least_delta <= exact.delta + 1e-9).all()
        assert (found.least_total_risk <= exact.total_risk + 1e-9).all()
        assert (found.least_total_risk > 0.0).any()
        assert (found.delta == np.maximum(found.evaluated, found.reduced)).all()
        assert not reduced.reduced[found.who[found.top > 0.0]].any()


@pytest.mark.full
@given(seed=st.integers(0, 2**20))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_no_way_of_being_present_passes_the_bound(seed):
    """Random mixtures, contributions of any size, and presence spread over components anyhow."""
    rng = np.random.default_rng(seed)
    draws, people, size = 3, 20, int(rng.integers(1, 6))
    weights = rng.dirichlet(np.full(size, 0.5), draws)
    scales = rng.choice([0.05, 0.5, 1.0], (draws, size))
    mixture = Mixture(weights[None], rng.normal(0, 1.5, (1, draws, size)), scales[None])
    noise = edp.GaussianNoise(float(rng.choice([0.1, 1.0]))) if rng.random() < 0.5 else None
    shape = (draws, people)
    rho = np.minimum(rng.choice([0.01, 0.1, 0.6, 1.0], shape), 1.0)
    spread = 10.0 ** rng.uniform(-3, 0.5, shape)
    moves = [rng.normal(size=shape) * 10.0 ** rng.uniform(-3, 0.5, shape)]
    moves += [np.maximum(rng.normal(size=shape) * rng.choice([0.0, 0.3], shape), -0.9), spread]
    active = rng.random((draws, size)) < 0.7
    free = active[:, None] & (rho[..., None] < 1.0)
    mass = (weights * active).sum(axis=1)[:, None]
    spread_out = rng.dirichlet(np.full(size, 0.3), shape) * active[:, None]
    spread_out /= np.maximum(spread_out.sum(axis=2, keepdims=True), 1e-300)
    share = spread_out * (rho * mass)[..., None] / weights[:, None]
    presence = np.where(free, np.minimum(share, 1.0 - 1e-9), rho[..., None])
    coupling = RegressionCoupling(mixture, None, noise=noise)
    exact, found = np.empty((2, *shape, 3))
    coupling._from_mixture(ContributionDraws(presence, *moves), EPSILON, exact)
    reduced_curves(
        flat_draws(mixture),
        active,
        ContributionDraws(rho[..., None], *moves),
        EPSILON,
        noise_scale=0.0 if noise is None else noise.scale,
        out=found,
    )
    assert (found >= exact - SLACK).all(), float((exact - found).max())


def test_a_block_is_taken_and_draws_are_picked_bit_for_bit():
    for name in ("mixture", "bootstrap", "stacked"):
        _, coupling = fits(MODELS[name], 2, collect=10)
        whole = coupling.curves(np.arange(coupling.n_individuals), EPSILON)
        members = np.array([1, 3, 5, 8, 20, 40])
        part = taken(coupling, members)
        np.testing.assert_array_equal(part.curves(np.arange(6), EPSILON), whole[:, members])
        assert (part.reduced == coupling.reduced[members]).all()
        if name != "stacked":
            rows = np.array([1, 4, 9])
            some = pick(coupling, rows).curves(np.arange(coupling.n_individuals), EPSILON)
            np.testing.assert_array_equal(some, whole[rows])


@pytest.fixture(scope="module")
def audits():
    options = {"epsilon": EPSILON, "draws": 40, "tune": 50, "random_seed": 1}
    options |= {"model": MODELS["mixture"], "progressbar": False, "keep": 25}
    return [quiet(edp.audit, one, **options) for one in both(6)]


@pytest.mark.full
def test_a_result_says_who_was_bounded_and_by_how_much(audits, tmp_path):
    full, reduced = audits
    count = reduced.settings["reduced"]["individuals"]
    assert count == reduced.settings["individuals"] - 20
    most = reduced.settings["reduced"]["each_at_most"]
    assert list(most) == [str(e) for e in EPSILON]
    said = next(said for said in reduced.warnings if "bounded, not evaluated" in said)
    assert said.startswith(f"{count} individuals were bounded, not evaluated")
    assert "reduced" not in full.settings
    assert reduced.individual_delta.sizes["individual"] == 20
    for name in ("delta", "total_risk", "total_risk_bound"):
        assert (getattr(reduced, name) >= getattr(full, name) - SLACK).all()
        lower, upper = (audit.band(name, kind="pointwise", prob=0.9) for audit in (full, reduced))
        assert (lower["lower"] >= upper["lower"] - 1e-6).all() or name == "total_risk_bound"
    assert (reduced.epsilon_at(0.2) >= full.epsilon_at(0.2) - 1e-2).all()
    largest = reduced.individuals["signed_contribution"].to_numpy()
    np.testing.assert_array_equal(largest, full.individuals["signed_contribution"].to_numpy())
    again = edp.load(reduced.save(tmp_path / "audit.nc"))
    assert again.settings["reduced"] == reduced.settings["reduced"]
    page = reduced.report(tmp_path / "report.html").read_text()
    assert "bounded, not evaluated" in page


LATER = {
    "compose": lambda audit: audit.compose(3),
    "released": lambda audit: audit.released(rounded_to=1.0),
    "noise": lambda audit: edp.noise.calibrate(audit, epsilon=0.5, delta=0.1),
}


@pytest.mark.parametrize("use", LATER.values(), ids=LATER)
def test_what_needs_all_contributions_later_says_so(audits, use):
    with pytest.raises(InvalidInputError, match="not collected"):
        use(audits[1])


@pytest.mark.full
def test_an_audit_refuses_adversaries_and_names_it_cannot_evaluate():
    _, responses = both(6)
    name = responses.individual[responses.reduced][0]
    options = {"epsilon": [0.5], "progressbar": False, "draws": 10, "tune": 10}
    with pytest.raises(InvalidInputError, match=f"{name}.*not collected.*only bounded"):
        edp.audit(responses, individuals=[name], **options)
    with pytest.raises(InvalidInputError, match="an audit against an adversary needs"):
        edp.audit(responses, adversary=edp.Adversary(past=1), **options)
    laplace = edp.FiniteMixture(components=1, kernel="laplace")
    with pytest.raises(InvalidInputError, match="Gaussian kernels alone"):
        quiet(edp.audit, responses, model=laplace, random_seed=1, chains=1, **options)


NOISES = (
    None,
    edp.GaussianNoise(5.0),
    pytest.param(edp.LaplaceNoise(5.0), marks=pytest.mark.full),
)


@pytest.mark.full
@pytest.mark.parametrize("noise", NOISES, ids=["rounded", "gaussian", "laplace"])
def test_rounded_answers_and_noise_are_bounded_too(noise):
    counted = Databases.from_table(TABLE, **KEYS)
    query = queries.Count() if noise is None else queries.Sum("amount")
    how = SamplerSettings(draws=6, tune=20, chains=2, random_seed=1, progressbar=False)
    curves = []
    for collect in (None, 12):
        one = quiet(counted.respond, query, collect=collect, noise=noise)
        coupling = quiet(MODELS["mixture"].fit, one, how).coupling
        if noise is None:
            assert one.step == 1.0
            coupling = rounded_coupling(coupling, one)
        # Integrals with Laplace noise are slow: some are enough.
        people = np.arange(0, one.n_individuals, 8 if isinstance(noise, edp.LaplaceNoise) else 1)
        curves.append(coupling.curves(people, EPSILON))
    exact, found = curves
    same = ~one.reduced[people]
    np.testing.assert_allclose(found[:, same], exact[:, same], atol=1e-9)
    assert (found >= exact - SLACK).all()
    if not isinstance(noise, edp.LaplaceNoise):
        evaluate(coupling, EPSILON, progressbar=False)


@pytest.mark.full
def test_the_command_line_collects_some(tmp_path, capsys):
    TABLE.to_csv(tmp_path / "records.csv", index=False)
    out = tmp_path / "out"
    text = printed(
        capsys, "audit", tmp_path / "records.csv", "--verbose", "--database", "week",
        "--individual", "client",
        "--query", "sum:amount", "--collect", "12", "--model", "bootstrap", "--draws", "30",
        "--epsilon", "0.1,0.5", "--seed", "1", "--out", out,
    )  # fmt: skip
    assert "bounded, not evaluated" in " ".join(text.split())
    assert edp.load(out / "audit.nc").settings["reduced"]["individuals"] > 0
