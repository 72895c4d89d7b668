"""Periods as codes such as 202407 or 2024-W05, their gaps, and periods far from all others."""

import datetime as dt
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_bayes import queries
from edp_bayes.adversary.timeline import Timeline
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.records.codes import numbers_of, texts_of
from edp_bayes.records.spacing import spacing
from edp_bayes.responses.databases import Databases
from tests.command_line import printed, refused
from tests.table_forms import FORMS

KEYS = {"database": "period", "individual": "who"}


def months(count, first=(2019, 1)):
    start = 12 * first[0] + first[1] - 1
    return [divmod(start + k, 12) for k in range(count)]


def weeks(count, first=dt.date(2019, 1, 7)):
    return [(first + dt.timedelta(weeks=k)).isocalendar()[:2] for k in range(count)]


def quarters(count, first=2012):
    return [(first + k // 4, k % 4 + 1) for k in range(count)]


CODES = {
    "YYYYMM": [100 * y + m + 1 for y, m in months(60)],
    "YYYYWW": [100 * y + w for y, w in weeks(250)],
    "YYYYQ": [10 * y + q for y, q in quarters(40)],
    "YYYYMMDD": [int(f"{day:%Y%m%d}") for day in pd.date_range("2024-01-01", periods=90)],
    "2024-Q1": [f"{y}-Q{q}" for y, q in quarters(40)],
    "2024Q1": [f"{y}Q{q}" for y, q in quarters(40)],
    "2024 q1": [f"{y} q{q}" for y, q in quarters(40)],
    "2024-W05": [f"{y}-W{w:02d}" for y, w in weeks(250)],
    "2024W5": [f"{y}W{w}" for y, w in weeks(250)],
    "2024-KW05": [f"{y}-KW{w:02d}" for y, w in weeks(250)],
    "2024-05": [f"{y}-{m + 1:02d}" for y, m in months(60)],
    "2024/5": [f"{y}/{m + 1}" for y, m in months(60)],
    "2024M05": [f"{y}M{m + 1:02d}" for y, m in months(60)],
    "202405": [f"{y}{m + 1:02d}" for y, m in months(60)],
    "week 202405": [f"{y}{w:02d}" for y, w in weeks(250)],
    "20241": [f"{y}{q}" for y, q in quarters(40)],
}


def records(keys, each=12):
    return pd.DataFrame(
        {
            "period": np.repeat(np.array(keys), each),
            "who": np.tile(np.arange(each), len(keys)),
            "x": np.random.default_rng(1).gamma(2.0, size=each * len(keys)),
        }
    )


def said(table, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = Databases.from_table(table, **KEYS, **options)
    return found, " ".join(str(each.message) for each in caught)


# Codes


@pytest.mark.parametrize("form", CODES)
def test_gaps_of_codes_are_periods_without_a_record(form):
    codes = CODES[form]
    left = [code for k, code in enumerate(codes) if k not in (5, 13, 14)]
    assert said(records(codes))[1] == ""
    dropped, words = said(records(left))
    assert f"3 of {len(codes)} periods of 'period' have no record" in words
    assert all(repr(codes[k]) in words for k in (5, 13, 14))
    assert dropped.n_databases == len(left)
    kept, words = said(records(left), empty="zero")
    assert "3 of" in words
    assert "whose sum and count are zero" in words
    assert kept.database.tolist() == codes
    answers = kept.respond(queries.Count()).response
    np.testing.assert_array_equal(np.flatnonzero(answers == 0.0), [5, 13, 14])
    with pytest.raises(InvalidInputError, match=r"3 of .* have no record"):
        Databases.from_table(records(left), **KEYS, empty="error")


@pytest.mark.parametrize("form", CODES)
def test_codes_are_evenly_spaced_times(form):
    codes = np.array(CODES[form])
    codes = codes if codes.dtype.kind == "i" else codes.astype(object)
    timeline = Timeline.of(codes)
    np.testing.assert_array_equal(timeline.position, np.arange(codes.size) * 1.0)
    assert timeline.disorder == ""
    days = "WW" in form or "W" in form or "week" in form or form == "YYYYMMDD"
    assert timeline.unit == ("D" if days else "M")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("code", ["YYYYMM", "2024-W05", "2024Q1"])
def test_every_kind_of_table_has_the_same_gaps(form, code, tmp_path):
    codes = CODES[code][:40]
    table = records([each for k, each in enumerate(codes) if k != 7])
    kept, words = said(FORMS[form](table, tmp_path), empty="zero")
    assert f"1 of 40 periods of 'period' have no record ({codes[7]!r})" in words
    assert kept.database.tolist() == codes


@given(st.integers(1900, 2099), st.integers(1, 12), st.sampled_from([1, 3]), st.integers(6, 400))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_months_are_written_as_they_were_read(year, month, step, count):
    codes = np.array([100 * y + m + 1 for y, m in months(step * count, (year, month))][::step])
    coded = numbers_of(codes)
    if year + step * count / 24 > 2100:  # No usual year.
        return
    assert set(np.diff(coded.number)) == {3 if coded.unit == "months" and step == 3 else step}
    np.testing.assert_array_equal(coded.written(coded.number), codes)


@given(st.dates(dt.date(1901, 1, 1), dt.date(2080, 1, 1)), st.integers(6, 300))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_iso_weeks_are_those_of_the_calendar(first, count):
    codes = [f"{y}-W{w:02d}" for y, w in weeks(count, first)]
    coded = texts_of(codes)
    assert coded.unit == "weeks"
    assert set(np.diff(coded.number)) == {1}
    assert coded.written(coded.number) == codes
    numbers = numbers_of(np.array([int(code.replace("-W", "")) for code in codes]))
    if numbers.unit == "weeks":  # Weeks 1 to 12 of one year alone read as months.
        np.testing.assert_array_equal(numbers.number, coded.number)


@pytest.mark.parametrize(
    "texts",
    [
        [f"2024-W{k:02d}" for k in range(53)],
        [f"2024-W{k:02d}" for k in range(10, 54)],
        [f"2024-{k:02d}" for k in range(0, 12)],
        [f"{k}-Q5" for k in range(2000, 2020)],
        [f"{k}-Q1" for k in range(3000, 3020)],
        ["2024-Q1", "2024Q2", "2024-Q3", "2024-Q4", "2025-Q1", "2025-Q2"],
        [f"2024-{k}" for k in range(1, 9)],
        [f"2024{k}" for k in range(1, 13)],
        ["2024-Q1", "2024-Q2", "2024-Q3"],
        [f"\u0662\u0660\u0662\u0664-W{k}" for k in range(1, 9)],
        [f"2024-{'9' * 30}{k}" for k in range(9)],
        [f"shop {k}" for k in range(9)],
    ],
)
def test_other_text_is_no_code(texts):
    assert texts_of(texts) is None


@pytest.mark.parametrize(
    "values",
    [
        np.arange(202400, 202420),
        np.arange(20241, 20260),
        np.arange(1000, 1100),
        np.arange(-5, 90),
        np.array([202401, 202402, 202403]),
        202301 + 7 * np.arange(90),
        np.arange(20240101, 20240140),
    ],
)
def test_other_numbers_are_no_codes(values):
    assert numbers_of(values) is None


# Far from all others


def weekly(count=40, year=2024, extra="2043-03-11"):
    days = pd.date_range(f"{year}-01-01", periods=7 * count)
    table = pd.DataFrame({"period": days.repeat(4), "who": np.arange(28 * count) % 4})
    odd = pd.DataFrame({"period": [pd.Timestamp(extra)], "who": [0]})
    return pd.concat([table, odd], ignore_index=True).assign(x=1.5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("extra", "where"),
    [("2043-03-11", "962 weeks after 2024-09-30"), ("1942-03-11", "4,269 weeks before 2024-01-01")],
)
def test_one_mistyped_year_makes_no_databases(form, extra, where, tmp_path):
    source = FORMS[form](weekly(extra=extra), tmp_path)
    with pytest.raises(InvalidInputError) as error:
        Databases.from_table(source, **KEYS, database_every="week", empty="zero")
    monday = "2043-03-09" if extra > "2000" else "1942-03-09"
    for words in (
        "databases out of nothing",
        f"{monday} (1 record) stands {where}, the nearest of the others",
        "correct the year if it is mistyped, or leave such records out",
    ):
        assert words in str(error.value)
    with pytest.raises(InvalidInputError, match="stands far from all others") as error:
        Databases.from_table(source, **KEYS, database_every="week")
    assert f"{monday} (1 record) stands {where}" in str(error.value)
    dropped, words = said(source, database_every="week", empty="drop")
    assert dropped.n_databases == 41
    assert f"{monday} (1 record) stands {where}" in words


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ([*range(1980, 2024), 2203], "2203 (12 records) stands 180 periods after 2023"),
        ([1203, *range(1980, 2024)], "1203 (12 records) stands 777 periods before 1980"),
        ([*CODES["YYYYMM"], 204301], "204301 (12 records) stands 229 months after 202312"),
        ([*CODES["2024-W05"], "2043-W07"], "'2043-W07' (12 records) stands 1,008 weeks after"),
        ([*CODES["YYYYQ"], 20433], "20433 (12 records) stands 87 quarters after 20214"),
        ([*pd.date_range("2023-01-02", periods=60, freq="7D"), "2042-02-28"], "941 periods after"),
    ],
)
def test_a_mistyped_year_of_keys_as_they_stand(keys, told):
    table = records([0] * len(keys))
    table["period"] = np.repeat(np.array(keys), 12)
    if not isinstance(keys[0], (int, str)):
        table["period"] = pd.to_datetime(table["period"])
    with pytest.raises(InvalidInputError, match="databases out of nothing") as error:
        Databases.from_table(table, **KEYS, empty="zero")
    assert told in str(error.value)
    with pytest.raises(InvalidInputError, match="stands far from all others") as error:
        Databases.from_table(table, **KEYS)
    assert told in str(error.value)
    assert told in said(table, empty="drop")[1]


def test_a_year_in_the_far_future_takes_no_memory():
    table = weekly(extra="2024-05-05")
    table.loc[0, "period"] = pd.Timestamp("2261-01-01")
    table["period"] += pd.to_timedelta(np.arange(len(table)) % 24, unit="h")
    dropped, words = said(table, database_every="hour", empty="drop")
    assert "periods after" not in words
    assert "hours after" in words
    assert dropped.n_databases < 8000


def test_mostly_empty_periods_are_refused_without_blaming_one():
    days = pd.date_range("2024-01-01", periods=40, freq="21D")
    table = pd.DataFrame({"period": days.repeat(4), "who": np.arange(160) % 4})
    with pytest.raises(InvalidInputError, match=r"out of nothing: take longer periods"):
        Databases.from_table(table, **KEYS, database_every="week", empty="zero")
    fewer = days[np.arange(40) % 9 > 0]
    table = pd.DataFrame({"period": fewer.repeat(4), "who": np.arange(4 * fewer.size) % 4})
    kept, words = said(table, empty="zero")
    assert (kept.n_databases, "stands" in words) == (39, False)


def test_a_year_off_by_little_is_said_with_the_zeros():
    days = pd.date_range("2014-01-06", periods=7 * 400)
    table = pd.DataFrame({"period": days.repeat(2), "who": np.arange(2 * days.size) % 2})
    table = pd.concat([table, table.tail(1).assign(period=pd.Timestamp("2024-03-05"))])
    kept, words = said(table, database_every="week", empty="zero")
    assert "whose sum and count are zero; 2024-03-04 (1 record) stands" in words
    assert kept.n_databases > 500


@given(
    st.integers(20, 200),
    st.integers(1, 30),
    st.integers(2, 10),
    st.integers(0, 2**31),
    st.booleans(),
)
@settings(derandomize=True, deadline=None, max_examples=60)
def test_places_are_where_the_keys_lie(count, step, times, seed, late):
    """Keys with few gaps, and one that may be far away: each place gives back its key."""
    rng = np.random.default_rng(seed)
    kept = np.sort(rng.choice(count, max(4, count - count // 10), replace=False))
    numbers = 1000 + step * kept
    far = numbers[-1] + step * times * count if late else numbers[0] - step * times * count
    keys = pa.array(np.sort(np.append(numbers, far)))
    found = spacing(keys, None)
    if found is None:  # Too many gaps, or the smallest distance did not occur.
        return
    assert found.labels_at(found.place).to_pylist() == keys.to_pylist()
    empty = np.setdiff1d(np.arange(found.count), found.place)
    assert found.gaps == empty.size
    np.testing.assert_array_equal(found.first_gaps(7), empty[:7])
    if count >= 40 and times > 3:
        (outlying,) = found.outlying
        assert outlying.period == (len(keys) - 1 if late else 0)


@pytest.mark.full
def test_the_command_line_refuses_a_mistyped_year_and_takes_codes(capsys, tmp_path):
    weekly().to_csv(tmp_path / "t.csv", index=False)
    words = ["--individual", "who", "--database", "period", "--query", "count", "--epsilon", "0.5"]
    words += ["--model", "bootstrap", "--draws", 10, "--chains", 2, "--out", tmp_path / "out"]
    weekly_words = ["audit", tmp_path / "t.csv", "--verbose", *words, "--database-every", "week"]
    line = refused(capsys, *weekly_words, "--empty", "zero")
    assert "2043-03-09 (1 record) stands 962 weeks after 2024-09-30" in line
    line = refused(capsys, *weekly_words)
    assert "a period of 'period' stands far from all others: 2043-03-09 (1 record)" in line
    assert "--empty drop" in line
    assert printed(capsys, *weekly_words, "--empty", "drop")
    codes = CODES["2024-W05"][:50]
    table = records([code for k, code in enumerate(codes) if k != 20])
    table = table[np.random.default_rng(2).random(len(table)) < 0.7]
    table.to_csv(tmp_path / "w.csv", index=False)
    out = " ".join(
        printed(capsys, "audit", tmp_path / "w.csv", "--verbose", *words, "--empty", "zero").split()
    )
    assert f"1 of 50 periods of 'period' have no record ({codes[20]!r}); they are databases" in out
