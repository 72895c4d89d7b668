"""Keys that are missing, bad or look alike, records that repeat, ties, and the order of rows."""

import unicodedata
import warnings
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_bayes import queries
from edp_bayes.exceptions import EdpBayesWarning, InvalidInputError
from edp_bayes.responses.databases import Databases
from tests.command_line import refused

KEYS = {"database": "week", "individual": "who"}
SHARP, COMBINED = "Andr\u00e9", unicodedata.normalize("NFD", "Andr\u00e9")


def make(n=20, **columns):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "week": np.repeat(np.arange(n), 4),
            "who": list("abcd") * n,
            "x": rng.normal(50.0, 9.0, 4 * n),
            "y": rng.normal(size=4 * n),
        }
    )
    return table.assign(**columns)


def respond(query, table, **options):
    return Databases.from_table(table, **KEYS, **options).respond(query)


def said(query, table, **options):
    """The warnings of ours that are raised, which must be those that stand in the responses."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        responses = respond(query, table, **options)
    assert sorted(str(each.message) for each in caught) == sorted(responses.warnings)
    return " ".join(responses.warnings)


FORMS = {
    "pandas": lambda table, folder: table,
    "polars": lambda table, folder: pl.from_pandas(table),
    "arrow": lambda table, folder: pa.Table.from_pandas(table, preserve_index=False),
    "duckdb": lambda table, folder: duckdb.from_arrow(
        pa.Table.from_pandas(table, preserve_index=False)
    ),
    "csv": lambda table, folder: table.to_csv(folder / "t.csv", index=False) or folder / "t.csv",
    "parquet": lambda table, folder: (
        table.to_parquet(folder / "t.parquet", index=False) or folder / "t.parquet"
    ),
}

# The order of the rows

ORDERED = [
    queries.Count(),
    queries.Sum("x"),
    queries.Mean("x"),
    queries.Variance("x"),
    queries.Quantile("x", 0.3),
    queries.Slope("y", "x"),
    queries.Proportion("x", ">", 50.0),
]


def many_records(seed, library="pandas"):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-8, 9, 600)
    table = pd.DataFrame(
        {
            "week": np.concatenate([np.repeat(np.arange(10), 6), rng.integers(0, 10, 540)]),
            "who": np.concatenate([np.tile(np.repeat([0, 1], 3), 10), rng.integers(0, 9, 540)]),
            "x": np.round(rng.normal(size=600) * scale, int(rng.integers(1, 12))),
            "y": rng.normal(size=600),
        }
    )
    return table


def assert_same_bits(found, expected):
    assert found.response.tobytes() == expected.response.tobytes()
    for part in ("data", "indices", "indptr"):
        ours, theirs = getattr(found.contribution, part), getattr(expected.contribution, part)
        assert ours.tobytes() == theirs.tobytes()
    assert found.fingerprint == expected.fingerprint


@pytest.mark.full
@pytest.mark.parametrize("query", ORDERED, ids=str)
@pytest.mark.filterwarnings("ignore::edp_bayes.exceptions.EdpBayesWarning")
@given(seed=st.integers(0, 2**31))
@settings(derandomize=True, deadline=None, max_examples=25)
def test_any_order_of_the_rows_gives_the_same_bits(query, seed):
    table = many_records(seed)
    expected = respond(query, table)
    for k in range(2):
        assert_same_bits(respond(query, table.sample(frac=1.0, random_state=k)), expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("query", ORDERED[1:4], ids=str)
def test_any_library_and_order_gives_the_same_bits(form, query, tmp_path):
    table = many_records(7)
    found = respond(query, FORMS[form](table.sample(frac=1.0, random_state=3), tmp_path))
    assert_same_bits(found, respond(query, table))


def test_the_order_of_decimals_and_of_subsamples_does_not_matter():
    table = many_records(3)
    table["x"] = [Decimal(repr(value)) for value in table["x"]]
    shuffled = table.sample(frac=1.0, random_state=1)
    assert_same_bits(respond(queries.Mean("x"), shuffled), respond(queries.Mean("x"), table))
    drawn = {"individual": "who", "size": 4, "count": 20, "random_seed": 1}
    assert_same_bits(
        Databases.subsamples(shuffled, **drawn).respond(queries.Mean("y")),
        Databases.subsamples(table, **drawn).respond(queries.Mean("y")),
    )


# Missing keys


@pytest.mark.parametrize("form", FORMS)
def test_missing_individuals_are_refused_dropped_or_pooled(form, tmp_path):
    table = make()
    lost = [1, 2, 9, 30]
    table.loc[lost, "who"] = None
    source = FORMS[form](table, tmp_path)
    with pytest.raises(InvalidInputError, match=r"4 missing value\(s\) in 80.*missing='drop'") as e:
        respond(queries.Sum("x"), source)
    for words in ("--missing drop", "what is audited is not what is published", "missing='pool'"):
        assert words in str(e.value)
    assert "whose risk is that of all of them together" in str(e.value)

    kept = table.drop(index=lost)
    assert "4 of 80 records lack an individual in 'who' and are left out" in said(
        queries.Sum("x"), source, missing="drop"
    )
    dropped = respond(queries.Sum("x"), source, missing="drop")
    assert_same_bits(dropped, respond(queries.Sum("x"), kept))

    assert "are pooled as '(missing)'" in said(queries.Sum("x"), source, missing="pool")
    pooled = respond(queries.Sum("x"), source, missing="pool")
    np.testing.assert_allclose(pooled.response, table.groupby("week")["x"].sum(), rtol=1e-12)
    expected = table.loc[lost].groupby("week")["x"].sum().reindex(range(20), fill_value=0.0)
    np.testing.assert_allclose(pooled.contribution_of("(missing)"), expected, rtol=1e-12)
    assert pooled.individual.tolist() == ["a", "b", "c", "d", "(missing)"]


def test_missing_parts_of_numbers_and_compound_keys_are_one_individual():
    table = make(who=np.tile([1.0, 2.0, 3.0, np.nan], 20), town=["n", "s", None, "s"] * 20)
    found = Databases.from_table(table, database="week", individual=("town", "who"), missing="pool")
    assert found.individual.tolist() == [("n", 1.0), ("s", 2.0), ("(missing)", "(missing)")]
    responses = found.respond(queries.Sum("x"))
    both = table["x"].to_numpy().reshape(20, 4)[:, 2:].sum(axis=1)
    np.testing.assert_allclose(responses.contribution_of(("(missing)", "(missing)")), both)
    assert respond(queries.Sum("x"), table, missing="pool").individual.tolist()[-1] == "(missing)"


def test_missing_keys_that_cannot_be_helped():
    table = make()
    with pytest.raises(InvalidInputError, match="missing must be one of error, drop, pool"):
        respond(queries.Count(), table, missing="ignore")
    table.loc[0, "who"], table.loc[1, "who"] = None, "(missing)"
    with pytest.raises(InvalidInputError, match="'\\(missing\\)', which is an individual of 'who'"):
        respond(queries.Count(), table, missing="pool")
    with pytest.raises(InvalidInputError, match="no record has an individual"):
        respond(queries.Count(), make(who=pd.Series([None] * 80, dtype=object)), missing="drop")
    late = make(week=np.where(np.arange(80) == 3, np.nan, np.arange(80) // 4))
    with pytest.raises(InvalidInputError, match=r"'week' has 1 missing value.*needs a database"):
        respond(queries.Count(), late, missing="drop")


def test_a_callable_sees_only_the_records_that_are_kept():
    table = make()
    table.loc[::7, "who"] = None
    fast = respond(queries.Sum("x"), table, missing="drop")
    slow = respond(lambda frame: frame["x"].sum(), table, missing="drop")
    np.testing.assert_allclose(slow.response, fast.response, rtol=1e-12)
    np.testing.assert_allclose(slow.contribution.toarray(), fast.contribution.toarray(), atol=1e-10)


# Bad keys


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([1, "1"], "key column 'who' mixes values of type int and str"),
        ([1.5, "1.5"], "mixes values of type float and str"),
        ([10**5000, 10**4999], "integers of more than 64 bits: give such keys as text"),
        ([2**70, 2**70 + 1], "integers of more than 64 bits"),
        ([2.0**53, 2.0**53 + 2], "floats so large that two whole numbers may be one: give such"),
        (np.array([2**24, 2**24 + 2], np.float32), "floats so large"),
    ],
    ids=range(6),
)
def test_keys_that_cannot_be_told_apart_are_refused_in_our_words(keys, message):
    kind = keys.dtype if isinstance(keys, np.ndarray) else None
    who = pd.Series([*keys] * 40, dtype=kind or (float if keys[0] == 2.0**53 else object))
    with pytest.raises(InvalidInputError, match=message):
        respond(queries.Sum("x"), make(who=who))
    if not isinstance(keys, np.ndarray) and isinstance(keys[1], str):
        with pytest.raises(InvalidInputError, match="mixes values"):
            respond(
                queries.Sum("x"),
                pl.from_pandas(make()[["week", "x"]]).with_columns(
                    who=pl.Series([*keys] * 40, dtype=pl.Object)
                ),
            )


@pytest.mark.parametrize("form", FORMS)
def test_long_keys_and_large_integers_are_kept_apart(form, tmp_path):
    long = make(who=["9" * 5000, "8" * 5000, "7" * 4999, "x" + "1" * 5000] * 20)
    found = Databases.from_table(FORMS[form](long, tmp_path), **KEYS)
    assert [label[:2] for label in found.individual] == ["77", "88", "99", "x1"]
    large = make(who=(2**53 + np.arange(4)).tolist() * 20)
    found = Databases.from_table(FORMS[form](large, tmp_path), **KEYS)
    assert found.individual.tolist() == [2**53 + k for k in range(4)]


def test_integers_beyond_64_bits_in_a_file_are_text(tmp_path):
    make(who=[str(3 * 10**20 + k) for k in (0, 10**18, 2, 3)] * 20).to_csv(
        tmp_path / "t.csv", index=False
    )
    found = Databases.from_table(tmp_path / "t.csv", **KEYS)
    assert found.individual[0] == "300000000000000000000"
    assert found.n_individuals == 4


def test_a_long_key_is_short_in_a_message():
    table = make(who=["9" * 5000, *"bcd"] * 20)
    table.loc[0, "x"] = np.nan
    with pytest.raises(InvalidInputError, match=r"individual '9+\.\.\. ") as error:
        respond(queries.Sum("x"), table)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "folder.csv", "folder.parquet"])
def test_a_file_that_is_not_there_is_said_in_our_words(tmp_path, capsys, name):
    words = f"cannot read {tmp_path / name}: there is no such file"
    if name.startswith("folder"):
        (tmp_path / name).mkdir()
        words = f"{tmp_path / name} must hold files whose names end in .parquet, .pq, .csv, .tsv"
    with pytest.raises(InvalidInputError) as error:
        Databases.from_table(tmp_path / name, **KEYS)
    assert str(error.value).startswith(words)
    line = refused(
        capsys,
        *("audit", tmp_path / name, "--verbose", "--database", "week", "--individual", "who"),
        *("--query", "count", "--out", tmp_path / "out"),
    )
    assert line.startswith(f"edp-bayes: {words}")


# Individuals that look alike


@pytest.mark.parametrize(
    ("first", "second"), [(SHARP, COMBINED), ("a", "a "), ("a", " a"), ("a\t", "a")]
)
def test_one_individual_in_two_spellings_is_said(first, second):
    table = make(who=[first, second, "c", "d"] * 20)
    text = said(queries.Sum("x"), table)
    assert "2 individuals may be 1: " in text
    assert repr(first) in text
    assert repr(second) in text
    assert "(50.0% of the records) differ by" in text
    assert "bring such keys to one case" in text
    pair = make(town="n").assign(who=[first, second, "c", "d"] * 20)
    with pytest.warns(EdpBayesWarning, match="2 individuals may be 1"):
        Databases.from_table(pair, database="week", individual=("town", "who"))


def test_a_spelling_without_a_twin_is_no_matter():
    assert said(queries.Sum("x"), make(who=["a ", COMBINED, "c", "D"] * 20)) == ""


def test_names_in_these_warnings_can_be_hidden():
    responses = respond(queries.Sum("x"), make(who=["ann", "ann ", "c", "d"] * 20))
    (sentence,) = responses.warnings
    assert "ann" not in sentence.naming(lambda label: "X")
    doubled = pd.concat([make(who=["ann", "bob"] * 40), make(who=["ann", "bob"] * 40)])
    (sentence,) = respond(queries.Sum("x"), doubled).warnings
    assert "ann" in sentence
    assert "ann" not in sentence.naming(lambda label: "X")


# Records that repeat


@pytest.mark.parametrize("form", FORMS)
def test_repeated_records_are_said_with_an_example(form, tmp_path):
    table = make()[["week", "who", "x"]]
    table = pd.concat([table, table.iloc[[5, 6]], table.iloc[[6]]])
    text = said(queries.Sum("x"), FORMS[form](table, tmp_path))
    assert "3 record(s) repeat another one exactly, as of individual 'b' in database 1" in text
    assert "give each record a number of its own" in text


def test_records_that_differ_in_any_column_repeat_nothing():
    table = pd.concat([make()] * 2).assign(number=np.arange(160), items=[[1]] * 160)
    assert said(queries.Sum("x"), table) == ""
    assert "repeat" not in said(queries.Count(), table.iloc[:-7])
    twice = pd.concat([make()] * 2)
    assert "80 record(s) repeat" in said(queries.Sum("x"), twice)
    assert "73 record(s) repeat" in said(queries.Count(), twice.iloc[:-7])


def test_of_a_file_with_more_columns_only_wholesale_copies_are_said(tmp_path):
    some = pd.concat([make(), make().iloc[:5]]).assign(z=1)
    assert said(queries.Sum("x"), FORMS["csv"](some, tmp_path)) == ""
    whole = pd.concat([make(), make()]).assign(z=1)
    text = said(queries.Sum("x"), FORMS["csv"](whole, tmp_path))
    assert "80 record(s) repeat another one in every column that is read" in text


def test_the_time_of_a_record_tells_it_apart():
    table = make(200, x=7.0, week=pd.date_range("2024-01-01", periods=800, freq="7h"))
    assert "repeat" not in said(queries.Sum("x"), table, database_every="week")
    twice = pd.concat([table, table.iloc[[0]]])
    assert "1 record(s) repeat" in said(queries.Sum("x"), twice, database_every="week")


# Ties


@pytest.mark.parametrize("level", [0.5, 0.9, 0.0, 1.0])
def test_a_quantile_among_ties_is_said(level):
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"week": np.repeat(np.arange(30), 40), "who": np.tile(range(40), 30)})
    query = queries.Quantile("x", level)
    assert "many records share" not in said(query, table.assign(x=rng.normal(size=1200)))
    coarse = np.repeat(rng.integers(0, 3, 30), 40) + 5 * rng.integers(0, 2, 1200) * (level == 0.5)
    coarse = coarse if level != 0.5 else np.repeat(np.arange(30) % 4, 40)
    text = said(query, table.assign(x=coarse.astype(float)))
    assert f"quantile:x:{level} stands at values that many records share, such as " in text
    assert "record the values more finely" in text


# The text of a query


def test_a_median_is_the_quantile_of_one_half():
    assert queries.parse("median:amount") == queries.Quantile("amount", 0.5)
    assert queries.parse(" Median ") == queries.Quantile(None, 0.5)
    assert str(queries.parse("median:amount")) == "quantile:amount:0.5"
    with pytest.raises(InvalidInputError, match="median:COLUMN"):
        queries.parse("middle:amount")
