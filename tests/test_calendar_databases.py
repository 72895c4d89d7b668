"""Databases by the calendar: periods, their labels, those without records, keys too fine."""

import datetime as dt
import json
import warnings
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edp_bayes as edp
from edp_bayes import queries
from edp_bayes.cli import main
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.records.periods import EVERY
from edp_bayes.responses.databases import Databases
from tests.command_line import printed, refused

BERLIN = ZoneInfo("Europe/Berlin")
FREQUENCY = {"day": "D", "week": "W-SUN", "month": "M", "quarter": "Q", "year": "Y"}


def purchases(start="2023-01-02 00:30", count=4000, hours=2.37, zone=None, seed=1):
    """Purchases at times that all differ."""
    rng = np.random.default_rng(seed)
    times = pd.Timestamp(start) + pd.to_timedelta(np.arange(count) * hours * 3600, unit="s")
    times = times.round("s")
    return pd.DataFrame(
        {
            "time": times if zone is None else times.tz_localize("UTC").tz_convert(zone),
            "client": rng.integers(0, 40, count),
            "amount": rng.gamma(2.0, 9.0, count).round(2),
        }
    )


def by(every, table, **options):
    return Databases.from_table(
        table, database="time", individual="client", database_every=every, **options
    )


def hours_of(count=60, zone="Europe/Berlin", start="2024-10-26 12:00"):
    """Two records in every hour over the end of summer time."""
    times = pd.date_range(start, periods=2 * count, freq="30min", tz=zone)
    return pd.DataFrame({"time": times, "client": [1, 2] * count, "x": np.arange(2.0 * count)})


# Periods


@pytest.mark.parametrize("every", FREQUENCY)
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York", "Asia/Kolkata"])
def test_periods_are_those_of_the_local_calendar(every, zone):
    count = {"year": 36000, "quarter": 12000}.get(every, 4000)
    table = purchases(zone=zone, count=count)
    if every == "day":
        table = table.iloc[:900]
    found = by(every, table).respond(queries.Sum("amount"))
    local = table["time"] if zone is None else table["time"].dt.tz_localize(None)
    start = local.dt.to_period(FREQUENCY[every]).dt.start_time
    expected = table["amount"].groupby(start).sum()
    np.testing.assert_allclose(found.response, expected.to_numpy(), rtol=1e-12)
    labels = [pd.Timestamp(label) for label in found.database.tolist()]
    assert [label.tz_localize(None) for label in labels] == expected.index.tolist()
    assert all((label.tz is None) == (zone is None) for label in labels)
    if zone is not None:
        assert {label.utcoffset() for label in labels} == {
            label.tz_localize(None).tz_localize(zone).utcoffset() for label in labels
        }


@pytest.mark.parametrize("form", ["pandas", "polars", "arrow", "duckdb", "csv", "parquet"])
def test_every_kind_of_table_has_the_same_weeks(form, tmp_path):
    table = purchases()
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    made = {
        "pandas": lambda: table,
        "polars": lambda: pl.from_pandas(table),
        "arrow": lambda: arrow,
        "duckdb": lambda: duckdb.from_arrow(arrow),
        "csv": lambda: table.to_csv(tmp_path / "t.csv", index=False) or tmp_path / "t.csv",
        "parquet": lambda: table.to_parquet(tmp_path / "t.parquet") or tmp_path / "t.parquet",
    }[form]()
    found = by("week", made).respond(queries.Sum("amount"))
    assert found.fingerprint == by("week", table).respond(queries.Sum("amount")).fingerprint
    assert found.database[0] == np.datetime64("2023-01-02")
    assert {date.weekday() for date in found.database.tolist()} == {0}


def test_dates_have_periods_too():
    days = np.repeat(pd.date_range("2024-01-01", periods=400).date, 2)
    table = pd.DataFrame({"time": days, "client": [1, 2] * 400})
    found = by("month", table)
    assert found.database.tolist()[:2] == [dt.date(2024, 1, 1), dt.date(2024, 2, 1)]


def test_the_hour_that_comes_twice_is_two_databases():
    table = hours_of()
    found = by("hour", table).respond(queries.Sum("x"))
    assert found.n_databases == 60
    np.testing.assert_array_equal(found.response, 4.0 * np.arange(60) + 1.0)
    shown = [str(label) for label in found.database]
    assert "2024-10-27 02:00:00+02:00" in shown
    assert "2024-10-27 02:00:00+01:00" in shown
    # The same where the hours are keys as they stand.
    table["time"] = pd.DatetimeIndex(table["time"][::2]).repeat(2)
    plain = Databases.from_table(table, database="time", individual="client")
    assert plain.respond(queries.Sum("x")).database.tolist() == found.database.tolist()


def test_the_day_on_which_summer_time_ends_is_one_database():
    found = by("day", hours_of(count=240)).respond(queries.Count())
    sizes = dict(zip(map(str, found.database), found.response, strict=True))
    assert sizes["2024-10-27 00:00:00+02:00"] == 50.0
    assert sizes["2024-10-28 00:00:00+01:00"] == 48.0


@given(
    st.sampled_from(["Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kolkata"]),
    st.integers(0, 2**31),
    st.sampled_from(list(EVERY)),
)
@settings(derandomize=True, deadline=None, max_examples=40)
def test_a_period_starts_before_its_times_and_ends_before_the_next(zone, seed, every):
    rng = np.random.default_rng(seed)
    seconds = rng.integers(0, 40 * 366 * 86400, 300)
    times = pd.to_datetime(np.sort(seconds), unit="s", utc=True).tz_convert(zone)
    table = pd.DataFrame({"time": times, "client": np.arange(300) % 2})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        source = by(every, table)._source
    owners = source.owners
    starts = pd.to_datetime([label.timestamp() for label in owners.databases], unit="s", utc=True)
    assert starts.is_monotonic_increasing
    assert starts.is_unique
    assert (starts[owners.database] <= times).all()
    later = np.minimum(owners.database + 1, owners.databases.size - 1)
    assert ((starts[later] > times) | (later == owners.database)).all()
    longest = {"hour": "90min", "day": "25h", "week": "170h", "month": "745h", "quarter": "93D"}
    assert (times - starts[owners.database]).max() <= pd.Timedelta(longest.get(every, "366D"))


def test_periods_need_times_in_one_column():
    table = purchases().assign(text="week 1", shop=1)
    with pytest.raises(InvalidInputError, match="database_every must be one of hour, day, week"):
        by("fortnight", table)
    with pytest.raises(InputTypeError, match="a week needs dates or timestamps: column 'text'"):
        Databases.from_table(table, database="text", individual="client", database_every="week")
    with pytest.raises(InvalidInputError, match="need one key column, found 'shop', 'time'"):
        Databases.from_table(
            table, database=("shop", "time"), individual="client", database_every="week"
        )


# Keys too fine


def test_moments_as_databases_are_said_to_be_before_anything_is_sampled():
    table = purchases(count=5250 * 14 // 10).assign(
        time=lambda t: t["time"].to_numpy()[np.arange(len(t)) * 5250 // len(t)]
    )
    words = "5,250 databases of 1.4 records each: a day, week or month may be meant; give database"
    with pytest.warns(EdpBayesWarning, match=words):
        databases = Databases.from_table(table, database="time", individual="client")
    responses = databases.respond(queries.Sum("amount"))
    assert words in responses.warnings[-1]
    assert databases.too_fine.startswith("5,250 databases")
    assert by("week", table).too_fine == ""


def test_a_warning_of_the_keys_stands_in_the_audit():
    table = purchases(count=60)
    responses = Databases.from_table(table, database="time", individual="client").respond(
        queries.Sum("amount")
    )
    audit = edp.audit(
        responses,
        epsilon=[0.5],
        model=edp.SmoothedBootstrap(),
        draws=15,
        chains=2,
        random_seed=1,
        progressbar=False,
    )
    assert any("60 databases of 1.0 records each" in said for said in audit.warnings)


@pytest.mark.parametrize("key", ["time", "epoch"])
def test_moments_as_databases_are_refused_on_the_command_line(capsys, tmp_path, key):
    table = purchases().assign(epoch=lambda t: t["time"].astype("int64") // 10**9)
    table.to_csv(tmp_path / "t.csv", index=False)
    words = [
        "audit",
        tmp_path / "t.csv",
        "--verbose",
        "--individual",
        "client",
        "--query",
        "sum:amount",
    ]
    words += ["--database", key, "--out", tmp_path / "out"]
    said = refused(capsys, *words)
    assert "4,000 databases of 1.0 records each: a day, week or month may be meant" in said
    assert "give --database-every week" in said
    assert not (tmp_path / "out").exists()


def test_hours_and_days_with_many_records_are_no_moments():
    table = hours_of(count=300, start="2024-11-05")
    many = pd.concat([table.assign(client=k, time=table["time"].dt.floor("h")) for k in range(6)])
    found = Databases.from_table(many, database="time", individual="client")
    assert (found.n_databases, found.too_fine) == (300, "")
    days = table.assign(time=np.repeat(np.arange(300), 2))
    assert Databases.from_table(days, database="time", individual="client").too_fine == ""


# Periods without a record


def without_christmas(**changes):
    table = purchases(count=9000)
    gone = (table["time"] >= "2023-12-25") & (table["time"] < "2024-01-08")
    return table[~gone].assign(**changes)


def test_periods_without_records_are_named_kept_or_refused():
    table = without_christmas()
    words = r"2 of \d+ periods of 'time' have no record \(2023-12-25, 2024-01-01\)"
    with pytest.warns(EdpBayesWarning, match=words + r".*empty='zero' \(--empty zero\)"):
        dropped = by("week", table)
    assert any("have no record" in said for said in dropped.respond(queries.Count()).warnings)
    with pytest.raises(InvalidInputError, match=words):
        by("week", table, empty="error")
    with pytest.warns(EdpBayesWarning, match=words + "; they are databases whose sum and count"):
        kept = by("week", table, empty="zero")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        responses = kept.respond(queries.Sum("amount"))
    assert any("have no record" in said for said in responses.warnings)
    assert kept.n_databases == dropped.n_databases + 2
    place = kept.database.tolist().index(dt.datetime(2023, 12, 25))
    np.testing.assert_array_equal(responses.response[place : place + 2], 0.0)
    others = np.delete(responses.response, [place, place + 1])
    np.testing.assert_array_equal(others, dropped.respond(queries.Sum("amount")).response)
    assert by("week", purchases(count=3969), empty="error").warnings == ()


def weekly_text(form):
    table = without_christmas()
    return table.assign(time=(table["time"].dt.to_period("W").dt.start_time).dt.strftime(form))


def test_dates_as_text_have_gaps_too_and_stay_text():
    table = weekly_text("%Y-%m-%d")
    keys = {"database": "time", "individual": "client"}
    with pytest.warns(EdpBayesWarning, match=r"2 of .*'time' have no record.*2023-12-25"):
        dropped = Databases.from_table(table, **keys)
    with pytest.raises(InvalidInputError, match="have no record"):
        Databases.from_table(table, **keys, empty="error")
    with pytest.warns(EdpBayesWarning, match="they are databases whose sum and count are zero"):
        kept = Databases.from_table(table, **keys, empty="zero")
    assert kept.n_databases == dropped.n_databases + 2
    assert {"2023-12-25", "2024-01-01"} == set(kept.database) - set(dropped.database)
    assert kept.database.tolist() == sorted(kept.database)
    responses = kept.respond(queries.Sum("amount"))
    place = kept.database.tolist().index("2023-12-25")
    np.testing.assert_array_equal(responses.response[place : place + 2], 0.0)


@pytest.mark.parametrize("form", ["%d.%m.%Y", "2023-02-30 %j"])
def test_gaps_of_other_text_are_not_looked_for_but_never_taken_as_filled(form):
    table = weekly_text(form)
    keys = {"database": "time", "individual": "client"}
    assert Databases.from_table(table, **keys).warnings == ()
    for empty in ("zero", "error"):
        with pytest.raises(InvalidInputError, match="periods at regular distances"):
            Databases.from_table(table, **keys, empty=empty)


@pytest.mark.full
def test_every_command_passes_on_what_becomes_of_gaps_and_missing_keys(tmp_path, capsys):
    table = without_christmas()
    table.loc[::50, "client"] = None
    path, out = tmp_path / "purchases.parquet", tmp_path / "out"
    table.to_parquet(path)
    keys = ["--database", "time", "--individual", "client", "--database-every", "week"]
    sizes = ["--draws", "10", "--chains", "2", "--seed", "1", "--model", "bootstrap", "--quiet"]
    words = [
        "audit",
        str(path),
        "--verbose",
        *keys,
        "--query",
        "sum:amount",
        "--epsilon",
        "0.5",
        *sizes,
    ]
    assert main([*words, "--out", str(out)]) == 2
    assert "--missing drop" in capsys.readouterr().err
    assert main([*words, "--out", str(out), "--missing", "pool", "--empty", "error"]) == 2
    assert "have no record" in capsys.readouterr().err
    assert main([*words, "--out", str(out), "--missing", "pool", "--empty", "zero"]) == 0
    found = edp.load(out / "audit.nc")
    assert found.settings["databases"] == by("week", purchases(count=9000)).n_databases
    noise = ["noise", str(out / "audit.nc"), "--epsilon", "2", "--method", "bottleneck", "--quiet"]
    assert main([*noise, "--out", str(tmp_path / "noise.json")]) == 0
    assert main([*noise, "--out", str(tmp_path / "noise.json"), "--empty", "drop"]) == 2


@pytest.mark.parametrize(
    "query",
    [queries.Mean("amount"), queries.Quantile("amount"), queries.Proportion("amount", ">", 1)],
    ids=str,
)
def test_zero_is_no_answer_of_a_mean(query):
    with pytest.warns(EdpBayesWarning, match="have no record"):
        databases = by("week", without_christmas(), empty="zero")
    with pytest.raises(InvalidInputError, match=r"empty='zero' is for sums and counts.*2023-12-25"):
        databases.respond(query)


@pytest.mark.parametrize(
    ("keys", "missing"),
    [
        (np.delete(np.arange(1, 53), 50), [51]),
        (np.delete(np.arange(20, 3000, 10), [7, 100]), [90, 1020]),
        (np.delete(pd.date_range("2024-01-01", periods=60).date, 9), [dt.date(2024, 1, 10)]),
        (np.delete(pd.date_range("2020-01-01", periods=40, freq="MS"), 3), ["2020-04-01"]),
        (np.delete(pd.date_range("2024-01-01", periods=90, freq="h", tz=BERLIN), 5), ["05:00:00"]),
        ([202300 + 100 * year + month for year in range(4) for month in range(1, 13)], []),
        (pd.date_range("2024-01-01", periods=80, freq="B"), []),
        (["a", *map(str, range(50))], []),
        (np.cumsum(np.random.default_rng(1).integers(1, 99, 50)), []),
        (np.delete(np.arange(-120, 120, dtype=np.int8), 9), [-111]),
        (np.r_[-(2**63) + np.arange(9), 2**63 - 1 - np.arange(8, -1, -1)], []),
    ],
    ids=range(11),
)
def test_gaps_of_keys_with_an_evident_step(keys, missing):
    table = pd.DataFrame({"time": np.repeat(np.asarray(keys, dtype=object), 12)})
    if not isinstance(keys, list):
        table["time"] = table["time"].astype(pd.Series(keys).dtype)
    table["client"] = np.arange(len(table)) % 12
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = Databases.from_table(table, database="time", individual="client")
    assert found.n_databases == len(keys)
    assert len(caught) == bool(missing)
    for label in missing:
        assert str(label) in str(caught[0].message)
    options = {"database": "time", "individual": "client", "empty": "zero"}
    if missing:
        with pytest.warns(EdpBayesWarning, match="have no record"):
            filled = Databases.from_table(table, **options)
        assert filled.n_databases == len(keys) + len(missing)
        assert filled.respond(queries.Count()).response.sum() == len(table)
    elif len(keys) != 48 and isinstance(keys, list):
        with pytest.raises(InvalidInputError, match="needs periods at regular distances"):
            Databases.from_table(table, **options)


def test_several_key_columns_say_nothing_of_gaps():
    table = without_christmas(month=lambda t: t["time"].dt.month, year=lambda t: t["time"].dt.year)
    with pytest.raises(InvalidInputError, match="empty='zero' needs one key column"):
        Databases.from_table(table, database=("year", "month"), individual="client", empty="zero")


# On the command line


@pytest.mark.full
def test_noise_reads_the_same_databases_as_the_audit(capsys, tmp_path):
    table = without_christmas()
    table.loc[table.index[:30], "client"] = np.nan
    table["client"] = table["client"].astype("Int64")
    table.to_parquet(tmp_path / "t.parquet")
    words = [
        "audit",
        tmp_path / "t.parquet",
        "--verbose",
        "--database",
        "time",
        "--individual",
        "client",
    ]
    words += ["--query", "sum:amount", "--epsilon", "0.5", "--model", "bootstrap", "--draws", 15]
    words += ["--chains", 2, "--seed", 1, "--out", tmp_path]
    assert "--missing drop" in refused(capsys, *words, "--database-every", "week")
    periods = ["--database-every", "week", "--empty", "zero", "--missing", "drop"]
    said = " ".join(printed(capsys, *words, *periods).split())
    assert "records lack an individual in 'client' and are left out: their contributions" in said
    assert said.index("lack an individual") < said.index("Risk by epsilon")
    source = json.loads(edp.load(tmp_path / "audit.nc").tree.attrs["source"])
    assert source["database_every"] == "week"
    assert (source["empty"], source["missing"]) == ("zero", "drop")
    noise = ["noise", tmp_path / "audit.nc", "--epsilon", "2", "--method", "bottleneck"]
    noise += ["--draws", 4, "--out", tmp_path / "noise.json"]
    assert "Written to" in printed(capsys, *noise)
    assert "not those of the audit" in refused(capsys, *noise, "--empty", "drop")
    assert "not those of the audit" in refused(capsys, *noise, "--database-every", "month")
    assert "--empty must be one of drop, zero, error" in refused(capsys, *noise, "--empty", "none")


def test_a_choice_that_is_none_is_refused_by_its_option(capsys, tmp_path):
    purchases(count=100).to_csv(tmp_path / "t.csv", index=False)
    words = [
        "audit",
        tmp_path / "t.csv",
        "--verbose",
        "--database",
        "time",
        "--individual",
        "client",
    ]
    words += ["--query", "median:amount", "--out", tmp_path / "out"]
    said = refused(capsys, *words, "--database-every", "decade")
    assert "--database-every must be one of hour, day" in said
    assert "--missing must be one of" in refused(capsys, *words, "--missing", "ignore")
    assert main(["audit", "--help"]) == 0
    assert "median:COL" in capsys.readouterr().out
