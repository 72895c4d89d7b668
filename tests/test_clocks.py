"""Times as text, with offsets, as numbers since 1970: days are those of the clock."""

from __future__ import annotations

import datetime as dt
import warnings
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import edp_bayes as edp
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.records.engine import EngineSource
from edp_bayes.tables import large_files, large_texts
from edp_bayes.tables.clocks import Clock, Offsets, with_offsets, zone_of

BERLIN = "Europe/Berlin"
PERIODS = ("hour", "day", "week", "month")


def moments(zone=BERLIN, days=16, start="2024-03-22"):
    """Return records at odd times of whole local days, over the change to summer time."""
    local = pd.date_range(start, periods=days * 24 + 2, freq="h", tz=zone) + pd.Timedelta("17min")
    local = local[local < pd.Timestamp(start, tz=zone) + pd.DateOffset(days=days)]
    who = [f"c{k % 5}" for k in range(3 * len(local))]
    return pd.DataFrame({"when": local.repeat(3), "who": who, "x": np.arange(len(who)) % 7 + 0.5})


def written(table, form="T%z"):
    """Return times as text: with offsets, as a format, or as numbers."""
    when = table["when"]
    if form == "T%z":
        return table.assign(when=[t.isoformat() for t in when])
    if form.startswith("unix"):
        unit = {"unix": 1, "unix_ms": 1000, "unix_us": 10**6}[form]
        return table.assign(when=[int(t.timestamp() * unit) for t in when])
    return table.assign(when=[t.strftime(form) for t in when])


def respond(source, every, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        databases = edp.Databases.from_table(
            source, database="when", individual="who", database_every=every, **options
        )
        return databases, databases.respond(edp.queries.Sum("x"))


@pytest.fixture(params=["read", "engine"])
def engine(request, monkeypatch):
    if request.param == "engine":
        monkeypatch.setattr(large_texts, "MOST_BYTES", 1)
        monkeypatch.setattr(large_texts, "MOST_COMPRESSED", 1)
        monkeypatch.setattr(large_texts, "BLOCK", 1500)
        monkeypatch.setattr(large_files, "MOST_IN_MEMORY", 1)
    return request.param == "engine"


def place(table, form, tmp_path):
    """Return a table in one of the ways in which records come."""
    if form == "csv":
        path = tmp_path / "a.csv"
        table.to_csv(path, index=False)
        return path
    if form == "several":
        # January's file has one offset, and March's has two.
        for k, rows in table.groupby(np.arange(len(table)) // 300):
            rows.to_csv(tmp_path / f"{k}.csv", index=False)
        return tmp_path
    if form == "frame":
        return table
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("records", pa.Table.from_pandas(table, preserve_index=False))
    connection.execute("create table held as select * from records")
    return connection.table("held")


def local(labels):
    """Return what the clock showed."""
    return [pd.Timestamp(one).tz_localize(None) for one in labels]


@pytest.mark.full
@pytest.mark.parametrize("every", PERIODS[:3])
@pytest.mark.parametrize("form", ["csv", "several", "frame", "duckdb"])
def test_days_are_those_of_the_clock_as_written(form, every, tmp_path, engine):
    table = moments(days=80 if every == "week" else 16)
    expected = respond(table, every)[1]
    databases, found = respond(place(written(table), form, tmp_path), every)
    assert isinstance(databases._source, EngineSource) is (
        form == "duckdb" or (engine and form != "frame")
    )
    assert np.array_equal(found.response, expected.response)
    assert local(found.database) == local(expected.database)
    if every == "day":
        assert found.n_databases == 16
        said = "Times of 'when' are those of the clock as written, at +01:00, +02:00."
        assert found.read_as == said


@pytest.mark.parametrize("form", ["csv", "several", "frame"])
def test_the_repeated_hour_is_two_hours(form, tmp_path, engine):
    table = moments(start="2024-10-26", days=2)
    expected = respond(table, "hour")[1]
    found = respond(place(written(table), form, tmp_path), "hour")[1]
    assert found.n_databases == expected.n_databases == 49
    assert np.array_equal(found.response, expected.response)
    assert [one.utcoffset() for one in found.database] == [
        one.utcoffset() for one in expected.database
    ]


@pytest.mark.parametrize("offset", ["+01:00", "-0330", "+0545", "+09", "Z", "+00:00"])
def test_one_offset_is_one_clock(offset, tmp_path, engine):
    days = pd.date_range("2024-01-01", periods=40, freq="11h")
    table = pd.DataFrame({"when": days.repeat(2), "who": ["a", "b"] * 40, "x": 1.0 + np.arange(80)})
    expected = respond(table, "day")[1]
    table["when"] = [f"{t.isoformat(sep=' ')}{offset}" for t in table["when"]]
    found = respond(place(table, "csv", tmp_path), "day")[1]
    assert local(found.database) == local(expected.database)
    assert np.array_equal(found.response, expected.response)


def test_london_has_files_without_an_offset_from_utc(tmp_path, engine):
    table = moments("Europe/London")
    expected = respond(table, "day")[1]
    found = respond(place(written(table), "several", tmp_path), "day")[1]
    assert np.array_equal(found.response, expected.response)


@pytest.mark.parametrize("form", ["csv", "several", "frame", "duckdb"])
def test_offsets_of_several_clocks_need_a_zone(form, tmp_path, engine):
    table = written(moments())
    table["when"] = [
        t.replace("+01:00", "-05:00") if k % 2 else t for k, t in enumerate(table["when"])
    ]
    source = place(table, form, tmp_path)
    with pytest.raises(
        InvalidInputError,
        match=r"'when' have offsets of more than one clock \(-05:00, \+01:00.*\(--time-zone\)",
    ):
        respond(source, "day")
    found = respond(source, "day", time_zone=BERLIN)[1]
    aware = table.assign(when=pd.to_datetime(table["when"], utc=True).dt.tz_convert(BERLIN))
    expected = respond(aware, "day")[1]
    assert np.array_equal(found.response, expected.response)
    assert local(found.database) == local(expected.database)


def test_python_times_of_several_offsets_are_read_by_their_clock():
    table = moments()
    fixed = [t.to_pydatetime().astimezone(dt.timezone(t.utcoffset())) for t in table["when"]]
    found = respond(table.assign(when=pd.Series(fixed, dtype=object)), "day")[1]
    assert np.array_equal(found.response, respond(table, "day")[1].response)


@pytest.mark.full
@pytest.mark.parametrize("unit", ["unix", "unix_ms", "unix_us"])
@pytest.mark.parametrize("form", ["csv", "several", "frame", "duckdb"])
def test_numbers_since_1970(form, unit, tmp_path, engine):
    table = moments()
    source = place(written(table, unit), form, tmp_path)
    for zone in (None, BERLIN):
        found = respond(source, "day", date_format=unit, time_zone=zone)[1]
        expected = respond(table.assign(when=table["when"].dt.tz_convert(zone or "UTC")), "day")[1]
        assert np.array_equal(found.response, expected.response)
        assert local(found.database) == local(expected.database)
    with pytest.raises(InputTypeError, match=r"such as 17\d+; date_format= .*'unix' or 'unix_ms'"):
        respond(source, "day")


def test_numbers_before_1970_and_of_another_unit(tmp_path, engine):
    table = moments(start="1969-12-25", days=14)
    found = respond(place(written(table, "unix"), "csv", tmp_path), "day", date_format="unix",
                    time_zone=BERLIN)[1]  # fmt: skip
    assert np.array_equal(found.response, respond(table, "day")[1].response)
    source = place(written(moments(), "unix_ms"), "csv", tmp_path)
    with pytest.raises(InvalidInputError, match=r"outside the years 1900 to 2200.*'unix_ms'"):
        respond(source, "day", date_format="unix")


@pytest.mark.full
@pytest.mark.parametrize("form", ["csv", "several", "frame", "duckdb"])
@pytest.mark.parametrize(
    ("spelling", "given"),
    [
        ("%d.%m.%Y", None), ("%d/%m/%Y", None), ("%m/%d/%Y", None), ("%d-%m-%Y %H:%M", None),
        ("%Y-%m-%d %H:%M", None), ("%d.%m.%y", "%d.%m.%y"), ("%Y%m%d", "%Y%m%d"),
        ("%d %b %Y", "%d %b %Y"), ("%d.%m.%Y", "%d.%m.%Y"), ("%d.%m.%Y %H:%M:%S%z",) * 2,
    ],
)  # fmt: skip
def test_days_as_people_write_them(form, spelling, given, tmp_path, engine):
    table = moments(zone=None if "%z" not in spelling else BERLIN)
    expected = respond(table, "day")[1]
    found = respond(place(written(table, spelling), form, tmp_path), "day", date_format=given)[1]
    said = {"%d.%m.%Y": "day.month.year", "%m/%d/%Y": "month/day/year"}.get(spelling)
    if said and given is None:
        assert found.read_as == f"Dates of 'when' are read as {said}."
    assert np.array_equal(found.response, expected.response)
    assert local(found.database) == local(expected.database)


def test_a_format_makes_keys_dates_without_a_period():
    table = moments(zone=None, days=16)
    table["when"] = table["when"].dt.normalize()
    found = respond(written(table, "%d.%m.%Y"), None, date_format="%d.%m.%Y")[1]
    assert found.database.dtype.kind == "M"
    assert np.array_equal(found.response, respond(table, None)[1].response)


def days_of(texts):
    return pd.DataFrame(
        {
            "when": np.repeat(texts, 2),
            "who": ["a", "b"] * len(texts),
            "x": np.arange(2.0 * len(texts)),
        }
    )


@pytest.mark.parametrize("form", ["csv", "frame"])
def test_a_day_that_may_be_a_month_is_asked_for(form, tmp_path, engine):
    unclear = place(days_of([f"{k:02}/04/2024" for k in range(1, 13)]), form, tmp_path)
    with pytest.raises(
        InvalidInputError, match=r"'01/04/2024' may have the day first .*='%d/%m/%Y' \(--date-form"
    ):
        respond(unclear, "day")
    assert local(respond(unclear, "day", date_format="%d/%m/%Y")[0].database)[1].day == 2
    assert local(respond(unclear, "day", date_format="%m/%d/%Y")[0].database)[1].month == 2
    both = place(days_of([f"{k:02}.{14 - k:02}.2024" for k in range(13, 0, -1)]), form, tmp_path)
    with pytest.raises(InvalidInputError, match="days and months in both places"):
        respond(both, "day")


def test_what_is_no_date_is_named():
    with pytest.raises(InvalidInputError, match=r"holds '30\.02\.2024', which is no date by"):
        respond(days_of([f"{k}.02.2024" for k in range(20, 32)]), "day", date_format="%d.%m.%Y")
    with pytest.raises(InputTypeError, match=r"a day needs dates .*'w1'; date_format= \(--date-f"):
        respond(days_of([f"w{k}" for k in range(1, 12)]), "day")
    with pytest.raises(InputTypeError, match="date_format is for text and numbers"):
        respond(moments(), "day", date_format="%d.%m.%Y")
    with pytest.raises(InvalidInputError, match="those of 'when' have none"):
        respond(moments(zone=None), "day", time_zone=BERLIN)
    with pytest.raises(InvalidInputError, match="needs numbers"):
        respond(days_of([f"w{k}" for k in range(1, 12)]), "day", date_format="unix")


@pytest.mark.parametrize("form", ["frame", "parquet"])
def test_a_zone_is_taken_for_times_that_have_another(form, tmp_path, engine):
    table = moments()
    utc = table.assign(when=table["when"].dt.tz_convert("UTC"))
    source: object = utc
    if form == "parquet":
        source = tmp_path / "a.parquet"
        utc.to_parquet(source)
    databases, found = respond(source, "day", time_zone=BERLIN)
    assert isinstance(databases._source, EngineSource) is (engine and form == "parquet")
    expected = respond(table, "day")[1]
    assert np.array_equal(found.response, expected.response)
    assert found.database.tolist() == expected.database.tolist()


@pytest.mark.parametrize(
    "zone", [BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]
)
def test_the_zone_that_offsets_show(zone):
    when = pd.date_range("2021-01-01", "2024-12-31", freq="5h", tz=zone)
    local, offset = with_offsets(pa.array([t.isoformat() for t in when]))
    instants = pa.array(when.tz_convert("UTC").tz_localize(None)).cast(pa.timestamp("us"))
    found = zone_of(Offsets.of(instants, offset))
    assert found is not None
    there = when.tz_convert(ZoneInfo(found))
    assert (there.tz_localize(None) == when.tz_localize(None)).all()
    assert local.to_pylist() == [t.to_pydatetime().replace(tzinfo=None) for t in when]


def test_clocks_refuse_what_is_none():
    table = written(moments(), "unix").assign(shop=1)
    for option in ({"date_format": "unix"}, {"time_zone": BERLIN}):
        with pytest.raises(InvalidInputError, match="for one key column of times, found 'shop'"):
            edp.Databases.from_table(table, database=["shop", "when"], individual="who", **option)
    with pytest.raises(InputTypeError, match="date_format must be text"):
        Clock(date_format=5)  # type: ignore[arg-type]
