"""First and last periods that the records cover in part alone."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edp_bayes as edp
from edp_bayes import queries
from edp_bayes.data import load_cdnow
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.responses.databases import Databases
from tests.command_line import printed, refused
from tests.table_forms import FORMS


def at(times, seed=1):
    """Records at some times."""
    rng = np.random.default_rng(seed)
    count = len(times)
    return pd.DataFrame(
        {
            "time": times,
            "who": rng.integers(0, 30, count),
            "x": rng.gamma(2.0, 9.0, count).round(2),
        }
    )


def sold(first="2024-01-01", last="2024-12-29", a_day=30, seed=2, zone=None):
    """Sales at random times from the beginning of one day to the end of another."""
    rng = np.random.default_rng(seed)
    begin, end = pd.Timestamp(first, tz=zone), pd.Timestamp(last, tz=zone) + pd.Timedelta(days=1)
    days = (end - begin) / pd.Timedelta(days=1)
    seconds = np.sort(rng.integers(0, int(days * 86400), int(a_day * days)))
    return at(begin + pd.to_timedelta(seconds, unit="s"), seed)


def read(table, every="week", **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = Databases.from_table(
            table, database="time", individual="who", database_every=every, **options
        )
    return found, " ".join(str(each.message) for each in caught)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_an_extract_from_saturday_to_friday_has_two_partial_weeks(form, zone, tmp_path):
    if zone is not None and form in ("csv", "duckdb"):
        pytest.skip("a time of a CSV file or of DuckDB has no zone of its own")
    table = sold("2024-03-09", "2024-11-15", zone=zone)
    source = FORMS[form](table, tmp_path)
    kept, words = read(source)
    assert "2 periods of 'time' look cut off, the first, 2024-03-04" in words
    assert "its records begin on Saturday, 2024-03-09 and the last, 2024-11-11" in words
    assert "its records end on Friday, 2024-11-15. Partial periods widen" in words
    assert "partial='drop' (--partial drop) leaves them out" in words
    inner = pd.to_datetime(["2024-03-11", "2024-11-11"]).tz_localize(zone)
    whole = table[table["time"].between(*inner)]
    dropped, words = read(source, partial="drop")
    assert "Partial periods are left out" in words
    assert dropped.n_databases == kept.n_databases - 2
    expected, words = read(whole)
    assert words == ""
    found = dropped.respond(queries.Sum("x"))
    assert found.fingerprint == expected.respond(queries.Sum("x")).fingerprint
    assert found.partial.choice == "drop"
    assert expected.respond(queries.Count(), step=None).partial is None


@pytest.mark.parametrize("collect", [None, 5])
@pytest.mark.parametrize("form", FORMS)
def test_who_is_only_in_a_partial_period_is_dropped_with_it(form, collect, tmp_path):
    table = sold("2024-03-09", "2024-11-17")
    table.loc[table.index[:3], "who"] = [97, 98, 99]
    source = FORMS[form](table, tmp_path)
    dropped, _ = read(source, partial="drop")
    assert dropped.individual.tolist() == list(range(30))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        responses = dropped.respond(queries.Sum("x"), collect=collect)
    weeks = table[table["time"] >= "2024-03-11"]
    sums = weeks.groupby(weeks["time"].dt.to_period("W"))["x"].sum()
    np.testing.assert_allclose(responses.response, sums, rtol=1e-12)


@pytest.mark.parametrize("missing", ["drop", "pool"])
@pytest.mark.parametrize("form", FORMS)
def test_it_goes_together_with_missing_individuals(form, missing, tmp_path):
    table = sold("2024-03-09", "2024-11-17")
    table["who"] = table["who"].astype("Int64")
    table.loc[table.index[::7], "who"] = None
    source = FORMS[form](table, tmp_path)
    found, words = read(source, partial="drop", missing=missing)
    assert "1 period of 'time' looks cut off, the first, 2024-03-04" in words
    weeks = table[table["time"] >= "2024-03-11"]
    weeks = weeks if missing == "pool" else weeks.dropna()
    responses = found.respond(queries.Count())
    counts = weeks.groupby(weeks["time"].dt.to_period("W")).size()
    np.testing.assert_array_equal(responses.response, counts)


@pytest.mark.parametrize("form", ["pandas", "lazy polars", "duckdb", "parquet"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_days_and_hours_are_cut_off_by_the_clock(form, zone, tmp_path):
    if zone is not None and form == "duckdb":
        pytest.skip("a time of DuckDB has no zone of its own")
    table = sold("2024-03-01", "2024-04-20", a_day=200, zone=zone)
    inside = table["time"].dt.tz_localize(None).between("2024-03-01 13:00", "2024-04-20 10:30")
    source = FORMS[form](table[inside], tmp_path)
    kept, words = read(source, "day")
    assert "its records begin 13." in words
    assert "hours after it does" in words
    assert "hours before it does" in words
    dropped, _ = read(source, "day", partial="drop")
    assert dropped.n_databases == kept.n_databases - 2
    assert "cut off" not in read(FORMS[form](table, tmp_path), "day")[1]
    minutes = pd.date_range("2024-03-01 05:40", "2024-03-04 05:10", freq="min", tz=zone)
    source = FORMS[form](at(minutes), tmp_path)
    kept, words = read(source, "hour")
    assert "its records begin 40.0 minutes after it does" in words
    assert "its records end 50.0 minutes before it does" in words
    assert read(source, "hour", partial="drop")[0].n_databases == kept.n_databases - 2


@pytest.mark.parametrize("every", ["week", "month", "quarter"])
@pytest.mark.parametrize(
    "times",
    [
        sold("2021-01-01", "2023-12-31", a_day=5)["time"],
        pd.bdate_range("2021-01-04", "2023-12-29").repeat(3),
        pd.bdate_range("2021-01-04", "2023-12-29", freq="C", holidays=["2022-04-15"]).repeat(3),
        pd.date_range("2021-01-04", "2023-12-25", freq="7D").repeat(5),
        pd.date_range("2021-01-01", "2023-12-01", freq="MS").repeat(9),
        pd.date_range("2021-01-31", "2023-12-31", freq="ME").repeat(9),
    ],
    ids=["every day", "business days", "holidays", "weekly", "first of month", "last of month"],
)
def test_an_end_within_a_usual_gap_is_no_cut(every, times):
    if every == "week" and len(set(pd.DatetimeIndex(times).day)) < 7:
        pytest.skip("most weeks have no record")
    if every == "week":
        times = [time for time in times if time >= pd.Timestamp("2021-01-04")]
    assert "cut off" not in read(at(pd.DatetimeIndex(times)), every)[1]


@pytest.mark.parametrize(
    ("times", "every", "told"),
    [
        (pd.bdate_range("2021-01-12", "2023-12-29").repeat(3), "month", "Tuesday, 2021-01-12"),
        (pd.bdate_range("2021-01-04", "2023-12-28").repeat(3), "week", "Thursday, 2023-12-28"),
        (pd.date_range("2021-01-18", periods=150, freq="7D"), "month", "Monday, 2021-01-18"),
        (pd.date_range("2021-02-01", "2023-12-01", freq="MS"), "quarter", "Monday, 2021-02-01"),
        (pd.date_range("2012-01-01", "2023-11-01", freq="MS"), "year", "Wednesday, 2023-11-01"),
        (pd.date_range("2012-01-01", "2023-08-20"), "year", "Sunday, 2023-08-20"),
    ],
    ids=range(6),
)
def test_an_end_beyond_a_usual_gap_is_a_cut(times, every, told):
    words = read(at(times.repeat(4)), every)[1]
    assert "1 period of 'time' looks cut off" in words
    assert told in words


@given(st.integers(0, 6), st.integers(0, 6), st.integers(10, 40), st.integers(0, 2**31))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_of_daily_records_every_missing_day_is_seen(late, early, weeks, seed):
    first = pd.Timestamp("2024-01-01") + pd.Timedelta(days=late)
    last = pd.Timestamp("2023-12-31") + pd.Timedelta(days=7 * weeks - early)
    words = read(sold(first, last, a_day=40, seed=seed))[1]
    assert ("its records begin on" in words) == (late > 0)
    assert ("its records end on" in words) == (early > 0)


def test_sparse_records_raise_few_false_alarms():
    """Records at random times, the ends whole: measured 0.02 to 0.05 for both ends together."""
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(100):
        weeks, a_week = rng.integers(30, 80), rng.integers(2, 12)
        seconds = np.sort(rng.integers(0, weeks * 604800, a_week * weeks))
        times = pd.Timestamp("2024-01-01") + pd.to_timedelta(seconds, unit="s")
        alarms += "cut off" in read(at(times))[1]
    assert alarms <= 8


# Keys without days in them


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["week", "number", "code", "text"])
def test_few_records_at_an_end_are_said_where_no_days_are_known(form, kind, tmp_path):
    table = sold("2024-03-10", "2024-11-12")
    week = table["time"].dt.to_period("W").dt.start_time
    iso = week.dt.isocalendar()
    table["time"] = {
        "week": week,
        "number": (week - week.min()).dt.days // 7,
        "code": (100 * iso["year"] + iso["week"]).astype("int64"),
        "text": iso["year"].astype(str) + "-W" + iso["week"].astype(str).str.zfill(2),
    }[kind]
    source = FORMS[form](table, tmp_path)
    kept, words = read(source, None)
    assert "2 periods of 'time' look cut off" in words
    assert "records where the 8 after it have 2" in words
    assert "records where the 8 before it have 2" in words
    dropped, words = read(source, None, partial="drop")
    assert dropped.n_databases == kept.n_databases - 2
    assert dropped.database.tolist() == kept.database.tolist()[1:-1]
    found = dropped.respond(queries.Count()).response
    np.testing.assert_array_equal(found, kept.respond(queries.Count()).response[1:-1])


def test_a_trend_and_labels_that_are_no_periods_are_no_cut():
    growing = np.repeat(np.arange(40), (20 * 1.3 ** np.arange(40)).astype(int))
    assert "cut off" not in read(at(growing), None)[1]
    shops = np.repeat([f"shop {name}" for name in "abcdefghij"], [2, *[300] * 9])
    assert "cut off" not in read(at(shops), None)[1]


def test_zeros_between_stay_and_are_no_neighbours():
    table = sold("2024-03-09", "2024-11-17")
    table = table[~table["time"].between("2024-06-03", "2024-06-17")]
    found, words = read(table, empty="zero", partial="drop")
    assert "2 of 37 periods of 'time' have no record (2024-06-03, 2024-06-10)" not in words
    assert "2 of 36 periods of 'time' have no record (2024-06-03, 2024-06-10)" in words
    assert found.n_databases == 36


# What is said of the adversary and in results


def cdnow():
    table = load_cdnow()
    return table[table["date"].between("1997-04-05", "1998-06-26")]


def audited(responses, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return edp.audit(
            responses,
            epsilon=[0.01],
            model=edp.SmoothedBootstrap(),
            draws=100,
            chains=2,
            random_seed=1,
            progressbar=False,
            **options,
        )


@pytest.mark.full
def test_a_cut_extract_understates_the_risk_and_is_said():
    def responses(table, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Databases.from_table(
                table, database="date", individual="customer", database_every="week", **options
            ).respond(queries.Sum("dollars"))

    kept, dropped = responses(cdnow()), responses(cdnow(), partial="drop")
    assert any("2 periods of 'date' look cut off" in said for said in kept.warnings)
    risk = [float(audited(each).delta.mean()) for each in (kept, dropped)]
    assert risk[0] < risk[1]


@pytest.mark.full
def test_the_last_period_serves_as_lag_1_not_unseen():
    responses = read(sold("2024-01-01", "2024-11-15"))[0].respond(queries.Sum("x"))
    words = "The last period, 2024-11-11, is cut off, and is lag 1 of the next database"
    past = edp.Adversary(past=2)
    found = audited(responses, adversary=past)
    assert any(said.startswith(words) for said in found.warnings)
    assert found.settings["partial"] == "keep (last 2024-11-11)"
    here = audited(responses, adversary=past, at=responses.database[-1])
    assert any("The database in question, 2024-11-11, is cut off" in said for said in here.warnings)
    before = audited(responses, adversary=past, at=responses.database[-2])
    assert not any("lag 1" in said for said in before.warnings)
    dropped = read(sold("2024-01-01", "2024-11-15"), partial="drop")[0].respond(queries.Sum("x"))
    found = audited(dropped, adversary=past)
    assert not any(said.startswith("The last period") for said in found.warnings)
    assert found.settings["partial"] == "drop (last 2024-11-11)"


@pytest.mark.full
def test_the_choice_is_one_of_two_and_stands_in_every_command(capsys, tmp_path):
    table = sold("2024-03-09", "2024-11-15")
    with pytest.raises(InvalidInputError, match="partial must be one of keep, drop"):
        read(table, partial="weeks")
    table.to_parquet(tmp_path / "t.parquet")
    words = [
        "audit",
        tmp_path / "t.parquet",
        "--verbose",
        "--database",
        "time",
        "--individual",
        "who",
    ]
    words += ["--database-every", "week", "--query", "sum:x", "--epsilon", "0.5", "--no-past"]
    words += ["--model", "bootstrap", "--draws", 10, "--chains", 2, "--seed", 1]
    assert "--partial must be" in refused(
        capsys, *words, "--out", tmp_path / "out", "--partial", "weeks"
    )
    out = printed(capsys, *words, "--out", tmp_path / "out", "--partial", "drop")
    assert "2 periods of 'time' look cut off" in " ".join(out.split())
    assert "35 databases" in out
    noise = ["noise", tmp_path / "out" / "audit.nc", "--epsilon", "2", "--method", "bottleneck"]
    noise += ["--out", tmp_path / "noise.json"]
    assert "Written to" in printed(capsys, *noise)
    assert "not those of the audit" in refused(capsys, *noise, "--partial", "keep")


@pytest.mark.parametrize("form", ["pandas", "lazy polars", "duckdb"])
@pytest.mark.parametrize("written", ["%d.%m.%Y", "unix"])
def test_dates_that_are_read_from_text_or_numbers_are_cut_off_too(form, written, tmp_path):
    table = sold("2024-03-09", "2024-11-15")
    expected = read(table, partial="drop")[0].respond(queries.Sum("x"))
    days = table["time"].dt.strftime("%d.%m.%Y")
    seconds = table["time"].astype("datetime64[s]").astype("int64")
    changed = table.assign(time=seconds if written == "unix" else days)
    source = FORMS[form](changed, tmp_path)
    found, words = read(source, partial="drop", date_format=written)
    assert "2 periods of 'time' look cut off" in words
    responses = found.respond(queries.Sum("x"))
    np.testing.assert_array_equal(responses.response, expected.response)
    assert responses.n_databases == 35
