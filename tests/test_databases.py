import datetime as dt
import warnings
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr

from edp_bayes import queries
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.noise import LaplaceNoise
from edp_bayes.responses.databases import Databases
from edp_bayes.utils import labels

pytestmark = [
    pytest.mark.filterwarnings("error"),
    pytest.mark.filterwarnings("ignore:.*are tied:edp_bayes.exceptions.EdpBayesWarning"),
    pytest.mark.filterwarnings("ignore:shares of :edp_bayes.exceptions.EdpBayesWarning"),
    pytest.mark.filterwarnings("ignore:.*repeat another:edp_bayes.exceptions.EdpBayesWarning"),
]


def make_table(n=24, m=6, records=400, seed=3):
    rng = np.random.default_rng(seed)
    database = np.concatenate([np.repeat(np.arange(n), 2), rng.integers(n, size=records - 2 * n)])
    individual = np.concatenate([np.tile([0, 1], n), rng.integers(m, size=records - 2 * n)])
    start = dt.datetime(2024, 1, 1)
    return pd.DataFrame(
        {
            "week": [start + dt.timedelta(weeks=int(k)) for k in database],
            "client": [f"c{k}" for k in individual],
            "site": individual % 2,
            "amount": rng.normal(50.0, 9.0, size=records),
            "paid": rng.random(records) < 0.4,
        }
    ).sample(frac=1.0, random_state=1)


TABLE = make_table()
KEYS = {"database": "week", "individual": "client"}


def from_duckdb(table):
    return duckdb.from_arrow(pa.Table.from_pandas(table, preserve_index=False))


def write_csv(table, folder):
    table.to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def write_parquet(table, folder):
    table.to_parquet(folder / "t.parquet", index=False)
    return str(folder / "t.parquet")


FORMS = {
    "pandas": lambda table, folder: table,
    "polars": lambda table, folder: pl.from_pandas(table),
    "polars lazy": lambda table, folder: pl.from_pandas(table).lazy(),
    "pyarrow": lambda table, folder: pa.Table.from_pandas(table, preserve_index=False),
    "duckdb": lambda table, folder: from_duckdb(table),
    "csv": lambda table, folder: write_csv(table, folder),
    "parquet": lambda table, folder: write_parquet(table, folder),
}


def brute_force(table, function, *, database, individual):
    """Responses and contributions by plain loops over a pandas table."""
    keys = (
        table[list(individual)].apply(tuple, axis=1)
        if len(individual) > 1
        else table[individual[0]]
    )
    databases, individuals = sorted(table[database].unique()), sorted(keys.unique())
    response, contribution = [], np.zeros((len(databases), len(individuals)))
    for j, d in enumerate(databases):
        mine = table[database] == d
        response.append(function(table[mine]))
        for i, person in enumerate(individuals):
            if (keys[mine] == person).any():
                contribution[j, i] = response[-1] - function(table[mine & (keys != person)])
    return databases, individuals, np.array(response), contribution


def assert_same(found, expected, rtol=1e-10):
    databases, individuals, response, contribution = expected
    assert found.individual.tolist() == individuals
    np.testing.assert_array_equal(found.database, np.array(databases, dtype=found.database.dtype))
    np.testing.assert_allclose(found.response, response, rtol=rtol)
    scale = np.abs(response).max()
    np.testing.assert_allclose(found.contribution.toarray(), contribution, atol=rtol * scale)


@pytest.mark.full
@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_table_gives_the_brute_force_responses(form, tmp_path):
    databases = Databases.from_table(FORMS[form](TABLE, tmp_path), **KEYS)
    assert (databases.n_databases, databases.n_individuals) == (24, 6)
    expected = brute_force(
        TABLE, lambda frame: frame["amount"].mean(), database="week", individual=["client"]
    )
    assert_same(databases.respond(queries.Mean("amount")), expected)
    expected = brute_force(TABLE, len, database="week", individual=["client"])
    assert_same(databases.respond(queries.Count()), expected)
    expected = brute_force(
        TABLE, lambda frame: frame["paid"].mean(), database="week", individual=["client"]
    )
    assert_same(databases.respond(queries.Proportion("paid")), expected)


def test_every_kind_of_table_has_the_same_fingerprint(tmp_path):
    found = {
        Databases.from_table(form(TABLE, tmp_path), **KEYS)
        .respond(queries.Sum("amount"))
        .fingerprint
        for form in FORMS.values()
    }
    assert len(found) == 1


def test_dates_are_labels_in_order_of_time():
    responses = Databases.from_table(TABLE, **KEYS).respond(queries.Count())
    assert responses.database.dtype.kind == "M"
    assert (np.diff(responses.database) > np.timedelta64(0, "D")).all()
    assert responses.response.sum() == len(TABLE)


@pytest.mark.parametrize("form", FORMS)
def test_compound_keys_are_tuples(form, tmp_path):
    table = FORMS[form](TABLE, tmp_path)
    databases = Databases.from_table(table, database=["week"], individual=("site", "client"))
    expected = brute_force(
        TABLE, lambda frame: frame["amount"].sum(), database="week", individual=["site", "client"]
    )
    responses = databases.respond(queries.Sum("amount"))
    assert_same(responses, expected)
    assert responses.index_of((1, "c3")) == responses.individual.tolist().index((1, "c3"))


def test_a_compound_database_key():
    table = TABLE.assign(month=TABLE["week"].dt.month, day=TABLE["week"].dt.day)
    found = Databases.from_table(table, database=("month", "day"), individual="client")
    assert found.database[0] == (1, 1)
    np.testing.assert_array_equal(
        found.respond(queries.Sum("amount")).response,
        Databases.from_table(table, **KEYS).respond(queries.Sum("amount")).response,
    )


@pytest.mark.parametrize(
    "keys",
    [
        pd.Series(["b", "a", "c"], dtype="category"),
        pd.Series([2, 1, 3], dtype="Int8"),
        pd.Series([2, 1, 3], dtype="uint64"),
        pd.Series([0.5, -0.5, 2.0]),
        pd.Series([dt.date(2024, 1, 2), dt.date(2024, 1, 1), dt.date(2024, 1, 3)]),
        pd.Series(pd.to_datetime(["2024-01-02", "2024-01-01", "2024-01-03"], utc=True)),
        pd.Series(["b", "a", "c"], dtype=object),
    ],
    ids=str,
)
def test_keys_of_many_types_are_sorted(keys):
    table = pd.DataFrame({"d": np.repeat(np.arange(20), 3), "x": np.arange(60.0) ** 2})
    table["i"] = pd.concat([keys] * 20, ignore_index=True)
    for form in (table, pl.from_pandas(table)):
        responses = Databases.from_table(form, database="d", individual="i").respond(queries.Sum())
        first = responses.contribution.toarray()[0]
        np.testing.assert_array_equal(first, [1.0, 0.0, 4.0])
        assert responses.index_of(keys[0] if keys.dtype != "category" else "b") == 1


def test_zero_has_one_spelling():
    table = pd.DataFrame({"d": np.repeat(np.arange(20), 3), "i": [0.0, -0.0, 1.0] * 20})
    table["x"] = np.arange(60.0)
    assert Databases.from_table(table, database="d", individual="i").n_individuals == 2


def test_presence_counts_databases_even_without_a_contribution():
    table = TABLE.assign(amount=TABLE["amount"].where(TABLE["client"] != "c0", 0.0))
    responses = Databases.from_table(table, **KEYS).respond(queries.Sum("amount"))
    assert responses.presence[0] == 24
    assert responses.contribution_of("c0").max() == 0.0
    assert np.diff(responses.contribution.indptr)[0] == 0


def test_a_table_changed_later_does_not_matter():
    table = TABLE.copy()
    databases = Databases.from_table(table, **KEYS)
    expected = databases.respond(queries.Sum("amount")).fingerprint
    table.loc[:, "amount"] = 0.0
    table["client"] = "x"
    assert databases.respond(queries.Sum("amount")).fingerprint == expected


def test_the_order_of_a_lazy_table_does_not_matter():
    relation = from_duckdb(TABLE)
    shuffled = relation.query("r", "select * from r order by random()")
    responses = Databases.from_table(shuffled, **KEYS).respond(queries.Sum("amount"))
    expected = Databases.from_table(TABLE, **KEYS).respond(queries.Sum("amount"))
    assert responses.fingerprint == expected.fingerprint


def test_noise_is_kept_and_not_drawn():
    databases = Databases.from_table(TABLE, **KEYS)
    noisy = databases.respond(queries.Sum("amount"), noise=LaplaceNoise(3.0))
    assert noisy.noise == LaplaceNoise(3.0)
    assert noisy.fingerprint == databases.respond(queries.Sum("amount")).fingerprint


# Bad tables


def with_value(column, row, value):
    table = TABLE.reset_index(drop=True)
    table[column] = table[column].astype(object if isinstance(value, str | None) else float)
    table.loc[row, column] = value
    return table


@pytest.mark.parametrize("form", ["pandas", "polars", "pyarrow", "duckdb", "csv", "parquet"])
def test_missing_keys_are_counted(form, tmp_path):
    table = TABLE.reset_index(drop=True)
    table.loc[[3, 7], "client"] = None
    with pytest.raises(InvalidInputError, match=r"key column 'client' has 2 missing value\(s\)"):
        Databases.from_table(FORMS[form](table, tmp_path), **KEYS)


@pytest.mark.parametrize("form", ["pandas", "polars", "pyarrow", "duckdb", "csv", "parquet"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_not_finite_names_its_place(form, value, tmp_path):
    table = TABLE.reset_index(drop=True)
    table.loc[5, "amount"] = value
    week, client = table.loc[5, "week"].date(), table.loc[5, "client"]
    databases = Databases.from_table(FORMS[form](table, tmp_path), **KEYS)
    message = rf"column 'amount' has .* in database {week}.*, individual '{client}' \(1 of 400"
    with pytest.raises(InvalidInputError, match=message):
        databases.respond(queries.Mean("amount"))


@pytest.mark.parametrize("form", ["pandas", "polars", "polars lazy", "duckdb", "csv"])
def test_unknown_columns_are_named(form, tmp_path):
    table = FORMS[form](TABLE, tmp_path)
    known = "the columns are week, client, site, amount, paid"
    with pytest.raises(InvalidInputError, match=f"no column 'person'; {known}"):
        Databases.from_table(table, database="week", individual="person")
    with pytest.raises(InvalidInputError, match=f"needs a column 'kwh'; {known}"):
        Databases.from_table(table, **KEYS).respond(queries.Sum("kwh"))


@pytest.mark.parametrize("form", ["pandas", "polars", "pyarrow", "duckdb", "csv"])
def test_text_is_not_a_number(form, tmp_path):
    databases = Databases.from_table(
        FORMS[form](TABLE, tmp_path), database="week", individual="site"
    )
    with pytest.raises(InputTypeError, match="'client' must be numeric, found values of type Str"):
        databases.respond(queries.Sum("client"))


@pytest.mark.parametrize(
    "form", ["pandas", "polars", "polars lazy", "pyarrow", "duckdb", "parquet"]
)
def test_an_empty_table(form, tmp_path):
    with pytest.raises(InvalidInputError, match="no records"):
        Databases.from_table(FORMS[form](TABLE.iloc[:0], tmp_path), **KEYS)


def test_tables_without_enough_databases_or_individuals():
    few = TABLE[TABLE["week"] < dt.datetime(2024, 2, 1)]
    with pytest.raises(InvalidInputError, match="at least 8 databases are needed, found 5"):
        Databases.from_table(few, **KEYS)
    alone = TABLE[TABLE["client"] == "c0"]
    with pytest.raises(InvalidInputError, match="2 individuals are needed, found only 'c0'"):
        Databases.from_table(alone, **KEYS)


@pytest.mark.parametrize(
    ("table", "keys", "error", "message"),
    [
        ([1, 2], KEYS, InputTypeError, "dataframe that Narwhals supports.*found list"),
        (None, KEYS, InputTypeError, "found NoneType"),
        (TABLE, {"database": 3, "individual": "client"}, InputTypeError, "database must be a name"),
        (TABLE, {"database": [], "individual": "client"}, InvalidInputError, "at least one key"),
        (TABLE, {"database": "week", "individual": ["site"] * 2}, InvalidInputError, "each once"),
        (TABLE, {"database": "week", "individual": "week"}, InvalidInputError, "'week' cannot be"),
    ],
)
def test_arguments_that_cannot_be_used(table, keys, error, message):
    with pytest.raises(error, match=message):
        Databases.from_table(table, **keys)


def test_a_column_of_lists_is_no_key():
    table = pa.table({"d": np.repeat(np.arange(20), 2), "i": [[1], [2]] * 20})
    with pytest.raises(InputTypeError, match=r"column 'i' of type List.* cannot be a key"):
        Databases.from_table(table, database="d", individual="i")


@pytest.mark.parametrize("query", [None, 3, "mean:amount", "amount"])
def test_a_query_must_be_a_query(query):
    with pytest.raises(InputTypeError, match=r"edp_bayes\.queries or a callable, found"):
        Databases.from_table(TABLE, **KEYS).respond(query)


# Files


def test_a_half_written_parquet_file_is_named(tmp_path):
    path = Path(write_parquet(TABLE, tmp_path))
    whole = path.read_bytes()
    for size in (0, 3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(InvalidInputError, match=r"cannot read .*t\.parquet"):
            Databases.from_table(path, **KEYS)


def test_a_half_written_csv_file_is_named(tmp_path):
    path = write_csv(TABLE, tmp_path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:50], lines[50].rsplit(",", 2)[0]]))
    with pytest.raises(InvalidInputError, match=r"cannot read .*t\.csv.*Expected 5 columns, got 3"):
        Databases.from_table(path, **KEYS)
    path.write_text("")
    with pytest.raises(InvalidInputError, match=r"cannot read .*t\.csv"):
        Databases.from_table(path, **KEYS)


def test_files_that_are_not_there_or_of_another_format(tmp_path):
    with pytest.raises(InvalidInputError, match=r"cannot read .*none\.csv"):
        Databases.from_table(tmp_path / "none.csv", **KEYS)
    with pytest.raises(InvalidInputError, match=r"format of .*t\.doc: its name must end in"):
        Databases.from_table(tmp_path / "t.doc", **KEYS)
    (tmp_path / "text.parquet").write_text("week,client\n")
    with pytest.raises(InvalidInputError, match=r"cannot read .*text\.parquet"):
        Databases.from_table(tmp_path / "text.parquet", **KEYS)


def test_a_client_may_be_called_na(tmp_path):
    table = TABLE.replace({"client": {"c0": "NA", "c1": "null"}})
    with pytest.warns(EdpBayesWarning, match="look like damage: 'null'"):
        databases = Databases.from_table(write_csv(table, tmp_path), **KEYS)
    assert set(databases.individual) == {"NA", "null", "c2", "c3", "c4", "c5"}


@pytest.mark.full
def test_a_callable_gets_a_frame_of_the_tables_own_library(tmp_path):
    expected = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "polars lazy": pl.DataFrame,
        "pyarrow": pa.Table,
        "duckdb": pa.Table,
        "csv": pd.DataFrame,
        "parquet": pd.DataFrame,
    }
    for form, kind in expected.items():
        seen = []

        def spread(frame, seen=seen):
            seen.append(
                (
                    type(frame),
                    set(
                        map(
                            str,
                            frame.columns
                            if hasattr(frame, "iloc") or isinstance(frame, pl.DataFrame)
                            else frame.column_names,
                        )
                    ),
                )
            )
            return float(np.ptp(np.asarray(frame["amount"])))

        responses = Databases.from_table(FORMS[form](TABLE, tmp_path), **KEYS).respond(spread)
        assert {frame for frame, _ in seen} == {kind}
        assert seen[0][1] == set(TABLE.columns)
        assert len(seen) == 24 + responses.presence.sum()
        reference = brute_force(
            TABLE, lambda frame: np.ptp(frame["amount"]), database="week", individual=["client"]
        )
        assert_same(responses, reference)


# xarray


def make_array(seed=1, name="rain"):
    rng = np.random.default_rng(seed)
    values = rng.gamma(2.0, size=(25, 4, 3))
    values[rng.random(values.shape) < 0.2] = np.nan
    values[:, 1, 2] = np.nan
    return xr.DataArray(
        values,
        dims=("year", "lat", "lon"),
        coords={"year": np.arange(2024, 1999, -1), "lat": [3.5, 1.5, 2.5, 0.5]},
        name=name,
    )


QUERIES = [
    queries.Count(),
    queries.Sum(),
    queries.Mean(),
    queries.Variance(),
    queries.Quantile(None, 0.3),
    queries.Proportion(None, ">", 1.5),
]


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_an_array_gives_what_its_long_table_gives(query):
    array = make_array()
    table = array.to_dataframe().reset_index().dropna()
    from_array = Databases.from_xarray(array, database="year", individual=("lat", "lon"))
    from_table = Databases.from_table(table, database="year", individual=("lat", "lon"))
    found, expected = from_array.respond(query), from_table.respond(query)
    assert found.individual.tolist() == expected.individual.tolist()
    assert found.n_individuals == 11
    np.testing.assert_array_equal(found.presence, expected.presence)
    np.testing.assert_array_equal(found.database, np.arange(2000, 2025))
    np.testing.assert_allclose(found.response, expected.response, rtol=1e-13)
    np.testing.assert_allclose(
        found.contribution.toarray(), expected.contribution.toarray(), rtol=1e-9, atol=1e-13
    )


@pytest.mark.parametrize(("name", "column"), [("rain", "rain"), (None, "value"), ("lat", "value")])
def test_the_value_column_is_named_after_the_array(name, column):
    array = make_array(name=name)
    databases = Databases.from_xarray(array, database="year", individual=("lat", "lon"))
    assert databases.columns == (column,)
    responses = databases.respond(queries.Mean(column))
    assert responses.query == f"mean:{column}"
    frames = []

    def mean(frame):
        frames.append(frame)
        return frame[column].mean()

    rerun = databases.respond(mean, workers=1)
    assert list(frames[0].columns) == ["year", "lat", "lon", column]
    assert set(frames[0]["year"]) == {2000}
    first = frames[0].set_index(["lat", "lon"])[column]
    assert first.loc[(0.5, 1)] == array.sel(year=2000, lat=0.5, lon=1).item()
    np.testing.assert_allclose(rerun.response, responses.response, rtol=1e-13)


def test_one_dimension_of_individuals_and_dates():
    days = np.datetime64("2024-01-01") + np.arange(30)
    array = xr.DataArray(
        np.random.default_rng(0).normal(size=(3, 30)),
        dims=("client", "day"),
        coords={"client": ["b", "a", "c"], "day": days.astype("datetime64[ns]")},
    )
    responses = Databases.from_xarray(array, database="day", individual="client").respond(
        queries.Sum()
    )
    assert responses.individual.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(responses.contribution_of("b"), array.values[0])
    np.testing.assert_array_equal(responses.database, days)


def test_arrays_that_cannot_be_used():
    array = make_array()
    keys = {"database": "year", "individual": ("lat", "lon")}
    empty, infinite = array.copy(), array.copy()
    empty[24] = np.nan
    infinite[23, 0, 1] = -np.inf
    doubled = array.assign_coords(lat=[1.0, 2.0, 1.0, 3.0])
    for bad, changes, message in [
        (array, {"individual": "lat"}, "dimension 'lon' belongs neither to"),
        (array, {"database": "month"}, "no dimension 'month'; the dimensions are 'year', 'lat'"),
        (array, {"database": "lat"}, "'lat' cannot be a key of databases and of individuals"),
        (empty, {}, "database 2000 has no value at all"),
        (infinite, {}, r"value -inf in database 2001, individual \(3\.5, 1\)"),
        (doubled, {}, r"coordinate 'lat' labels must be distinct, found 1\.0 2 times"),
        (array[:7], {}, "at least 8 databases are needed, found 7"),
        (array[:, :1, :1].fillna(2.0), {}, "2 individuals are needed, found only"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            Databases.from_xarray(bad, **keys | changes)
    with pytest.raises(InputTypeError, match=r"xarray\.DataArray, found Dataset"):
        Databases.from_xarray(array.to_dataset(), **keys)
    with pytest.raises(InputTypeError, match="array must be numeric"):
        Databases.from_xarray(array.astype(str), **keys)


def test_an_array_changed_later_does_not_matter():
    array = make_array()
    databases = Databases.from_xarray(array, database="year", individual=("lat", "lon"))
    expected = databases.respond(queries.Sum()).fingerprint
    array[:] = 0.0
    assert databases.respond(queries.Sum()).fingerprint == expected


# Subsamples


def subsamples(table=TABLE, **changes):
    arguments = {"individual": "client", "size": 3, "count": 40, "random_seed": 5}
    return Databases.subsamples(table, **arguments | changes)


@pytest.mark.parametrize("form", FORMS)
def test_subsamples_hold_whole_individuals_and_do_not_depend_on_the_library(form, tmp_path):
    responses = subsamples(FORMS[form](TABLE, tmp_path)).respond(queries.Sum("amount"))
    owned = TABLE.groupby("client")["amount"].sum()
    drawn = responses.contribution.toarray() != 0
    np.testing.assert_array_equal(drawn.sum(axis=1), 3)
    np.testing.assert_allclose(
        responses.contribution.toarray(), np.where(drawn, owned.to_numpy(), 0.0), rtol=1e-12
    )
    np.testing.assert_allclose(responses.response, drawn @ owned.to_numpy(), rtol=1e-12)
    expected = subsamples().respond(queries.Sum("amount"))
    np.testing.assert_array_equal(drawn, expected.contribution.toarray() != 0)


def test_subsamples_of_shuffled_rows_are_the_same():
    again = subsamples(TABLE.sample(frac=1.0, random_state=9)).respond(queries.Mean("amount"))
    np.testing.assert_allclose(
        again.response, subsamples().respond(queries.Mean("amount")).response
    )


def test_subsamples_follow_their_seed_and_extend():
    base = subsamples().respond(queries.Sum("amount")).response
    longer = subsamples(count=50).respond(queries.Sum("amount")).response
    other = subsamples(random_seed=6).respond(queries.Sum("amount")).response
    np.testing.assert_array_equal(longer[:40], base)
    assert not np.array_equal(other, base)


def test_subsamples_draw_every_individual_equally_often():
    table = pd.DataFrame({"i": np.arange(10), "x": np.arange(10.0) ** 2})
    presence = subsamples(table, individual="i", size=4, count=5000).respond(queries.Sum()).presence
    # Binomial(5000, 0.4): six standard deviations are 208.
    np.testing.assert_allclose(presence, 2000, atol=208)


def test_individuals_that_no_subset_drew_are_left_out():
    table = pd.DataFrame({"i": np.arange(1000), "x": np.arange(1000.0)})
    databases = subsamples(table, individual="i", size=2, count=20)
    assert databases.n_individuals <= 40
    assert (databases.respond(queries.Sum()).presence > 0).all()


def test_a_callable_on_subsamples():
    found = subsamples().respond(lambda frame: frame["amount"].sum(), progressbar=False)
    expected = subsamples().respond(queries.Sum("amount"))
    np.testing.assert_allclose(found.response, expected.response, rtol=1e-12)
    np.testing.assert_allclose(
        found.contribution.toarray(), expected.contribution.toarray(), rtol=1e-9
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 6}, "size must be below the number of individuals, 6, found 6"),
        ({"size": 0}, "size must be at least 1"),
        ({"count": 7}, "at least 8 databases are needed, found 7"),
        ({"individual": "who"}, "no column 'who'"),
        ({"random_seed": -1}, "random_seed must not be negative"),
    ],
)
def test_subsamples_that_cannot_be_drawn(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        subsamples(**changes)


# Size


@pytest.mark.full
def test_a_million_possible_individuals_follow_the_records():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "week": rng.integers(78, size=780_000),
            "client": rng.integers(1_000_000, size=780_000),
            "amount": rng.gamma(2.0, size=780_000),
        }
    )
    responses = Databases.from_table(table, database="week", individual="client").respond(
        queries.Sum("amount")
    )
    assert responses.contribution.nnz == len(table.drop_duplicates(["week", "client"]))
    np.testing.assert_allclose(
        responses.response, table.groupby("week")["amount"].sum(), rtol=1e-12
    )
    np.testing.assert_allclose(
        responses.contribution.sum(axis=0), table.groupby("client")["amount"].sum(), rtol=1e-12
    )


def test_daily_precipitation_of_the_globe(data_dir):
    with np.load(data_dir / "gpcp_daily_mm.npz") as file:
        array = xr.DataArray(
            file["daily_mm"],
            dims=("day", "lat", "lon"),
            coords={name: file[name] for name in ("day", "lat", "lon")},
        )
    databases = Databases.from_xarray(array, database="day", individual=("lat", "lon"))
    responses = databases.respond(queries.Mean())
    flat = array.values.astype(float).reshape(61, -1)
    there = ~np.isnan(flat)
    assert responses.n_individuals == 10_368
    assert sorted(set(responses.presence.tolist())) == sorted(set(there.sum(axis=0).tolist()))
    np.testing.assert_allclose(responses.response, np.nanmean(flat, axis=1), rtol=1e-12)
    place = responses.index_of((-88.75, 1.25))
    assert responses.individual[place] == (-88.75, 1.25)
    cell = array.sel(lat=-88.75, lon=1.25).values.astype(float)
    size = there.sum(axis=1)
    expected = (cell - responses.response) / (size - 1)
    np.testing.assert_allclose(
        responses.contribution_of((-88.75, 1.25)), np.nan_to_num(expected), rtol=1e-9
    )


def test_keys_of_a_csv_file_keep_their_leading_zeros(tmp_path):
    rng = np.random.default_rng(5)
    who = ["007", "7", "12"]
    rows = [f"{week},{name},{rng.random()}" for week in range(1, 21) for name in who]
    path = tmp_path / "padded.csv"
    path.write_text("\n".join(["week,client,amount", *rows]))
    databases = Databases.from_table(path, database="week", individual="client")
    responses = databases.respond(queries.Sum("amount"), progressbar=False)
    assert sorted(responses.individual.tolist()) == ["007", "12", "7"]
    assert responses.database.tolist() == list(range(1, 21))


@pytest.mark.parametrize(
    "who",
    [
        ["1.1", "1.10", "1.2", "1.20", "7"],
        ["1e2", "100", "2e1", "20", "3"],
        ["true", "TRUE", "True", "1", "0"],
        ["+7", "7", "0", "-0", "8"],
        [f"894902000012345{k:05d}" for k in range(5)],
    ],
)
def test_keys_of_a_csv_file_that_are_one_number_stay_apart(tmp_path, who):
    rng = np.random.default_rng(5)
    months = [f"{year}.{month}" for year in (2023, 2024) for month in range(1, 13)]
    rows = [f"{month},{name},{rng.random()}" for month in months for name in who]
    path = tmp_path / "spelt.csv"
    path.write_text("\n".join(["month,client,amount", *rows]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "3 individuals may be 1")  # By case alone.
        databases = Databases.from_table(path, database="month", individual="client")
    responses = databases.respond(queries.Sum("amount"), progressbar=False)
    assert set(responses.individual.tolist()) == set(who)
    assert responses.database.tolist() == months
    assert (responses.presence == 24).all()


def test_numbers_that_are_keys_of_a_csv_file_stay_numbers(tmp_path):
    rows = [f"{year},{lat},{year}.10" for year in range(2000, 2010) for lat in ("42.5", "-0.5")]
    path = tmp_path / "places.csv"
    path.write_text("\n".join(["year,lat,amount", *rows]))
    databases = Databases.from_table(path, database="year", individual="lat")
    assert databases.individual.tolist() == [-0.5, 42.5]
    assert databases.database.tolist() == list(range(2000, 2010))


def weekly(names):
    rng = np.random.default_rng(6)
    return pd.DataFrame(
        [(name, who, rng.random()) for name in names for who in "ab"],
        columns=["week", "client", "amount"],
    )


def test_text_with_numbers_is_in_the_order_of_the_numbers():
    names = [f"week {k}" for k in range(1, 25)]
    databases = Databases.from_table(weekly(names[::-1]), database="week", individual="client")
    responses = databases.respond(queries.Sum("amount"), progressbar=False)
    assert responses.database.tolist() == names


def test_dates_whose_text_is_not_in_the_order_of_time_are_doubted():
    days = pd.date_range("2024-01-25", periods=24, freq="7D")
    for form, doubted in (("%d/%m/%Y", True), ("%Y-%m-%d", False)):
        table = weekly([day.strftime(form) for day in days])
        databases = Databases.from_table(table, database="week", individual="client")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            responses = databases.respond(queries.Sum("amount"), progressbar=False)
        assert any("not that of time" in doubt for doubt in responses.warnings) == doubted


@pytest.mark.parametrize("mark", [";", "\t"])
def test_another_separator_is_named_where_lines_are_not_alike(tmp_path, mark):
    path = tmp_path / "records.csv"
    path.write_text(mark.join(["week", "client", "amount"]) + "\n" + mark.join("12") + "\n")
    with pytest.raises(InvalidInputError, match=r"separator=.* \(--separator\) may be meant"):
        Databases.from_table(path, database="week", individual="client")


def test_a_callable_that_wants_a_generator_is_told_so():
    databases = Databases.from_table(
        pd.DataFrame({"week": np.repeat(np.arange(10), 2), "client": np.tile([0, 1], 10)}),
        database="week",
        individual="client",
    )
    with pytest.raises(InvalidInputError, match="takes a generator needs samples="):
        databases.respond(lambda frame, rng: rng.normal(), progressbar=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("week,person\n1,Zo\xeb\n", "column 'person' of .* is not UTF-8; save the file as UTF-8"),
        ("week,p\xe9rson\n1,5\n", "the column names of .* are not UTF-8"),
        ("week;person;x\n1;2\n", r"separator=';' \(--separator\) may be meant"),
    ],
)
def test_csv_files_in_another_form_are_refused_with_what_would_be_right(tmp_path, text, message):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidInputError, match=message):
        Databases.from_table(path, database="week", individual="person")


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        (dt.datetime(2024, 1, 1), "2024-01-01"),
        (dt.date(2024, 1, 1), "2024-01-01"),
        (np.datetime64("2024-01-01", "us"), "2024-01-01"),
        (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "2024-01-01 00:00:00+00:00"),
        ((dt.datetime(2024, 1, 1, 6), "a"), "(2024-01-01 06:00:00, 'a')"),
        (pd.NaT, "NaT"),
        (("a",), "('a',)"),
    ],
)
def test_dates_are_shown_as_dates(label, shown):
    assert labels.show(label) == shown


@pytest.mark.parametrize(
    ("texts", "disorder"),
    [
        (["9 May 2024", "Apr 08 2024"], True),
        (["09-Apr-2024", "April 8, 2024"], True),
        (["Apr 08 2024", "9 May 2024"], False),
        (["Apr 08 2024", "9 Feb 2024"], True),
        (["31/12/2024", "01/01/2025"], True),
        (["01/2022", "01/2023", "02/2022"], True),
        (["01/2024", "02/2024", "03/2024"], False),
        (["Q1 2024", "Q2 2023"], True),
        (["W01-2024", "W02-2024"], False),
        (["Apr", "Aug", "Dec", "Feb"], True),
        (["Jan", "Feb", "Mar"], False),
        (["Mayor 5", "Mayor 6"], False),
        (["2024-04-08", "2024-12-31"], False),
    ],
)
def test_dates_whose_text_is_not_in_order(texts, disorder):
    assert labels.look_like_dates_in_disorder(labels.as_objects(texts)) is disorder


MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_ordered_categories_keep_their_order_as_keys(library):
    frame = pl.DataFrame(
        {"month": MONTHS[::-1] * 2, "who": ["a"] * 12 + ["b"] * 12, "x": np.arange(24.0)}
    ).with_columns(pl.col("month").cast(pl.Enum([*MONTHS, "never"])))
    table = {"polars": frame, "pandas": frame.to_pandas(), "arrow": frame.to_arrow()}[library]
    databases = Databases.from_table(table, database="month", individual="who")
    assert databases.database.tolist() == MONTHS
    with pytest.warns(EdpBayesWarning, match="only 12 databases"):
        responses = databases.respond(queries.Sum("x"))
    np.testing.assert_array_equal(responses.response, 34.0 - 2.0 * np.arange(12))


def test_weeks_of_an_array_are_sorted_by_their_numbers():
    weeks = [f"week {k}" for k in range(12, 0, -1)]
    array = xr.DataArray(np.ones((12, 3)), {"week": weeks, "who": list("abc")}, ("week", "who"))
    databases = Databases.from_xarray(array, database="week", individual="who")
    assert databases.database.tolist() == weeks[::-1]


def test_periods_are_the_time_at_which_they_begin():
    days = pd.date_range("2024-01-01", periods=10, freq="W-MON")
    table = pd.DataFrame({"week": np.repeat(days.to_period("W"), 2), "who": list("ab") * 10})
    databases = Databases.from_table(table, database="week", individual="who")
    np.testing.assert_array_equal(databases.database, days.to_numpy().astype("M8[us]"))


def test_a_column_name_that_is_no_text_does_not_spoil_a_message():
    table = pd.DataFrame({"week": np.arange(40) // 2, "who": ["a", "b"] * 20, 0: 1.0})
    with pytest.raises(InvalidInputError, match="'wek'; the columns are week, who, 0"):
        Databases.from_table(table, database="wek", individual="who")
    databases = Databases.from_table(table, database="week", individual="who")
    with pytest.raises(InvalidInputError, match="'x'; the columns are week, who, 0"):
        databases.respond(queries.Sum("x"))


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (dt.date(2024, 1, 2), True),
        ("2024-01-02", True),
        (pd.Timestamp("2024-01-02"), True),
        (dt.datetime(2024, 1, 2, 12), False),
        (pd.Timestamp("2024-01-02", tz="Europe/Rome"), False),
    ],
)
def test_only_the_same_day_is_found_among_days(asked, found):
    days = labels.as_labels(np.array(["2024-01-01", "2024-01-02"], dtype="M8[D]"), "day")
    assert labels.positions_of(days).get(labels.lookup_key(asked, days)) == (1 if found else None)


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ([np.array([1, 2]), np.array([3, 4])], InputTypeError, "must be hashable"),
        ({"a", "b"}, InputTypeError, "must be a sequence"),
        (np.ma.array([1, 2], mask=[0, 1]), InvalidInputError, "masked value at position 1"),
    ],
)
def test_labels_that_cannot_be_used(names, error, message):
    with pytest.raises(error, match=message):
        labels.refuse_duplicates(labels.as_labels(names, "individual"), "individual")
