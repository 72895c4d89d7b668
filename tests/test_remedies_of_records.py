"""What is advised about records is done literally, in Python and on the command line, and helps."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

import edp_bayes as edp
from edp_bayes.cli import main
from edp_bayes.exceptions import InputTypeError
from edp_bayes.queries import Sum

KEYS = {"database": "week", "individual": "person"}
# name='value' (--option value), or (--option) alone, where the value is the same
NAMED = re.compile(r"(\w+)=('[^']*')(?: or ('[^']*'))? \((--[a-z-]+)(?: ([^)]+))?\)")


def plain(weeks=None, amount=None):
    """Twenty weeks of eight people, who each come twice a week."""
    rng = np.random.default_rng(4)
    day = pd.date_range("2024-01-01", periods=20, freq="7D") if weeks is None else weeks
    table = pd.MultiIndex.from_product([day, [f"p{k}" for k in range(8)], range(2)])
    table = table.to_frame(index=False).set_axis(["week", "person", "visit"], axis=1)
    table["amount"] = np.round(rng.gamma(4.0, 3.0, len(table)), 2)
    return table.drop(columns="visit") if amount is None else table.assign(amount=amount)


def without_names():
    table = plain()
    table["person"] = table["person"].astype(object)
    table.loc[::9, "person"] = None
    return table


def with_gaps():
    table = plain()
    return table[~table["week"].isin(table["week"].unique()[[7, 12]])]


def cut_short():
    days = pd.date_range("2024-01-01", periods=136)  # the last week has three days
    return plain(days)


def written(table, **options):
    return lambda path: table().to_csv(path, index=False, **options)


def ambiguous_days():
    table = plain(pd.date_range("2024-01-01", periods=12, freq="MS"))
    return table.assign(week=table["week"].dt.strftime("%d/%m/%Y"))


def in_cp1252():
    table = plain()
    return table.assign(person=table["person"] + "é")


def of_two_meanings():
    table = plain()
    return table.assign(amount=[f"{1 + k % 9},{100 + 7 * k % 900}" for k in range(len(table))])


def of_two_clocks():
    table = plain(pd.date_range("2024-01-01T23:30", periods=20, freq="7D"))
    when = table["week"].dt.strftime("%Y-%m-%dT%H:%M:%S")
    return table.assign(week=[f"{t}{'+01:00' if k % 2 else '-05:00'}" for k, t in enumerate(when)])


def of_moments():
    days = pd.date_range("2024-01-01T08:00:07", periods=320, freq="10h3min")
    table = plain(days).iloc[::4]
    return table.assign(person=[f"p{k % 8}" for k in range(len(table))])


def with_a_name_in_cp1252():
    return plain().assign(größe=1)


# How the records are written, what else is asked for, and the arguments that must be advised.
CASES = {
    "missing": (written(without_names), {}, {"missing": {"drop", "pool"}}),
    "gaps dropped": (written(with_gaps), {}, {"empty": {"zero"}}),
    "gaps refused": (written(with_gaps), {"empty": "error"}, {"empty": {"drop", "zero"}}),
    "cut off": (written(cut_short), {"database_every": "week"}, {"partial": {"drop"}}),
    "encoding": (written(in_cp1252, encoding="cp1252"), {}, {"encoding": {"cp1252"}}),
    "names": (written(with_a_name_in_cp1252, encoding="cp1252"), {}, {"encoding": {"cp1252"}}),
    "clocks": (written(of_two_clocks), {"database_every": "day"}, {"time_zone": {"Europe/Berlin"}}),
    "too fine": (written(of_moments), {}, {"database_every": {"week"}}),
    "days": (written(ambiguous_days), {}, {"date_format": {"%d/%m/%Y", "%m/%d/%Y"}}),
    "decimal": (written(of_two_meanings), {}, {"decimal": {",", "."}}),
}


def python(path, given):
    """Return what is said of the records, and whether they could be read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        try:
            data = edp.Databases.from_table(path, **KEYS, **given).respond(Sum("amount"))
        except edp.EdpBayesError as error:
            return str(error), False
    return " ".join(data.warnings), True


def command(path, words, capsys, query="sum:amount"):
    keys = [word for name, value in KEYS.items() for word in (f"--{name}", value)]
    quick = ["--model", "bootstrap", "--draws", "20", "--chains", "1", "--epsilon", "0.1"]
    quick += ["--seed", "1", "--no-past", "--query", query]
    code = main(
        ["audit", str(path), "--verbose", *keys, *quick, "--out", str(path.parent / "out"), *words]
    )
    captured = capsys.readouterr()
    return " ".join((captured.out + captured.err).split()), code == 0


def advised(said):
    """Return the arguments that a message names, and the words of the command line for each."""
    found = {}
    for name, first, second, option, word in NAMED.findall(said):
        for value in filter(None, (first, second)):
            text = value.strip("'")
            assert not word or word == text
            found[name, text] = [option, text]
    return found


def options_of(given):
    return [word for k, v in given.items() for word in (f"--{k.replace('_', '-')}", v)]


@pytest.mark.full
@pytest.mark.parametrize("case", CASES)
def test_what_is_advised_about_records_helps(case, tmp_path, capsys):
    write, asked, expected = CASES[case]
    path = tmp_path / "records.csv"
    write(path)
    said, _ = python(path, asked)
    remedies = advised(said)
    for name, values in expected.items():
        assert {value for key, value in remedies if key == name} == values, said
    printed, _ = command(path, options_of(asked), capsys)
    for (name, value), words in remedies.items():
        assert words[0] in printed
        better = {**asked, name: value}
        again, read = python(path, better)
        assert read, again
        assert (name, value) not in advised(again)
        # An option that is given twice is that of the last.
        again, read = command(path, [*options_of(asked), *words], capsys)
        assert read, again
        assert f"({' '.join(words)})" not in again


def test_dates_of_another_form_are_told_a_format_too():
    days = [f"{month} {day:02} 2024" for month in ("Apr", "Feb") for day in range(1, 16)]
    rows = pd.DataFrame({"day": days * 2, "who": ["a"] * 30 + ["b"] * 30, "x": np.arange(60.0)})
    keys = {"database": "day", "individual": "who"}
    with pytest.warns(edp.EdpBayesWarning, match="such as '%b %d %Y', makes them dates"):
        edp.Databases.from_table(rows, **keys).respond(edp.queries.Sum("x"))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        read = edp.Databases.from_table(rows, **keys, date_format="%b %d %Y", database_every="day")
        read.respond(edp.queries.Sum("x"))
    assert not any("makes them dates" in str(one.message) for one in said)


@pytest.mark.full
def test_two_separators_are_told_apart_as_advised(tmp_path, capsys):
    path = tmp_path / "records.csv"
    rows = plain().rename(columns={"amount": "amount,EUR"})
    rows.to_csv(path, index=False, sep=";", decimal=",", float_format="%.2f")
    with pytest.raises(edp.InvalidInputError) as error:
        edp.Databases.from_table(path, **KEYS)
    assert {text for name, text in advised(str(error.value)) if name == "separator"} == {",", ";"}
    data = edp.Databases.from_table(path, **KEYS, separator=";").respond(Sum("amount,EUR"))
    expected = edp.Databases.from_table(rows, **KEYS).respond(Sum("amount,EUR"))
    np.testing.assert_allclose(data.response, expected.response)
    printed, _ = command(path, [], capsys)
    assert "(--separator)" in printed
    again, read = command(path, ["--separator", ";"], capsys, query="sum:amount,EUR")
    assert read, again


@pytest.mark.parametrize(("mark", "column"), [(".", "points"), (",", "commas")])
def test_the_decimal_mark_that_is_given_says_which_are_numbers(mark, column, tmp_path):
    path = tmp_path / "records.csv"
    table = plain()
    points = table["amount"].map("{:.2f}".format)
    table = table.assign(points=points, commas=points.str.replace(".", ","))
    table.drop(columns="amount").to_csv(path, index=False, sep=";")
    for asked in ("points", "commas"):
        with pytest.raises(edp.InvalidInputError, match=r"decimal=',' or '\.' \(--decimal\)"):
            edp.Databases.from_table(path, **KEYS).respond(Sum(asked))
    data = edp.Databases.from_table(path, **KEYS, decimal=mark).respond(Sum(column))
    expected = edp.Databases.from_table(plain(), **KEYS).respond(Sum("amount"))
    np.testing.assert_allclose(data.response, expected.response)


def seconds():
    day = plain()["week"]
    return (day - pd.Timestamp("1970-01-01")) // pd.Timedelta("1s")


# What is asked for that the table cannot have, and the word of what is to be left out.
LEFT_OUT = {
    "zone of days": ({"database_every": "week", "time_zone": "Europe/Berlin"}, "time_zone"),
    "format of dates": ({"date_format": "%d.%m.%Y"}, "date_format"),
    "unix of dates": ({"date_format": "unix"}, "date_format"),
    "separator": ({"separator": ";"}, "separator"),
    "decimal": ({"decimal": ","}, "decimal"),
    "encoding": ({"encoding": "cp1252"}, "encoding"),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_what_is_to_be_left_out_is(case):
    asked, name = LEFT_OUT[case]
    with pytest.raises(edp.EdpBayesError, match="leave it out") as error:
        edp.Databases.from_table(plain(), **KEYS, **asked)
    assert name in str(error.value)
    better = {key: value for key, value in asked.items() if key != name}
    assert edp.Databases.from_table(plain(), **KEYS, **better).respond(Sum("amount")).n_databases


def test_numbers_since_1970_become_dates_as_advised():
    table = plain().assign(week=seconds())
    with pytest.raises(edp.InputTypeError, match=r"date_format= \(--date-format\)") as error:
        edp.Databases.from_table(table, **KEYS, database_every="week")
    (unit,) = re.findall(r"'(unix)' or", str(error.value))
    given = {"database_every": "week", "date_format": unit}
    data = edp.Databases.from_table(table, **KEYS, **given).respond(Sum("amount"))
    expected = edp.Databases.from_table(plain(), **KEYS, database_every="week")
    np.testing.assert_array_equal(data.response, expected.respond(Sum("amount")).response)


def test_periods_that_are_mostly_empty_are_kept_apart_as_advised():
    sparse = plain(pd.date_range("2024-01-01", periods=20, freq="28D"))
    asked = {"database_every": "day", "empty": "zero"}
    with pytest.raises(edp.InvalidInputError, match="out of nothing") as error:
        edp.Databases.from_table(sparse, **KEYS, **asked)
    said = str(error.value)
    assert "take longer periods by database_every (--database-every)" in said
    assert ("empty", "drop") in advised(said)
    for better in ({"empty": "drop"}, {"database_every": "month"}):
        found = edp.Databases.from_table(sparse, **KEYS, **{**asked, **better})
        assert found.respond(Sum("amount")).n_databases >= 18


def test_periods_at_no_regular_distances_are_made_regular_or_numbered():
    rng = np.random.default_rng(1)
    days = np.cumsum(rng.integers(1, 9, 60))
    start = pd.Timestamp("2024-01-01")
    table = pd.DataFrame({"day": start + pd.to_timedelta(days.repeat(4), unit="D")})
    table = table.assign(who=np.tile(np.arange(4), 60), amount=rng.gamma(2.0, 1.0, 240))
    keys = {"database": "day", "individual": "who", "empty": "zero"}
    with pytest.raises(edp.InvalidInputError, match="needs periods at regular distances"):
        edp.Databases.from_table(table, **keys)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        weekly = edp.Databases.from_table(table, **keys, database_every="week")
    assert len(weekly.database) == len(pd.date_range(start, table["day"].max(), freq="7D"))
    numbered = table.assign(day=np.arange(60).repeat(4))
    assert len(edp.Databases.from_table(numbered, **keys).database) == 60


@pytest.mark.parametrize("every", [None, "week"])
def test_a_mistyped_year_is_corrected_left_out_or_kept(every):
    days = pd.date_range("2024-01-01", periods=40, freq="7D")
    table = pd.DataFrame({"day": days.repeat(4), "who": np.tile(np.arange(4), 40), "amount": 1.0})
    typed = table.copy()
    typed.loc[5, "day"] += pd.DateOffset(years=19)
    keys = {"database": "day", "individual": "who", "database_every": every}
    with pytest.raises(edp.InvalidInputError, match=r"correct the year.*or leave such records out"):
        edp.Databases.from_table(typed, **keys)
    for mended, count in ((table, 40), (typed.drop(index=5), 40)):
        assert edp.Databases.from_table(mended, **keys).n_databases == count
    with pytest.warns(edp.EdpBayesWarning, match="stands"):
        assert edp.Databases.from_table(typed, **keys, empty="drop").n_databases == 41


@pytest.mark.parametrize("written", ["%Y-%m-%d %H:%M", "%d.%m.%Y", "%m/%d/%Y"])
def test_a_row_of_totals_among_dates_is_named_and_left_out(written):
    days = pd.date_range("2024-01-29", periods=280, freq="D").strftime(written)
    table = pd.DataFrame({"day": days, "who": np.arange(280) % 7, "amount": 1.0})
    total = pd.DataFrame({"day": ["Summe"], "who": [7], "amount": [280.0]})
    keys = {"database": "day", "individual": "who", "database_every": "week"}
    with pytest.raises(InputTypeError, match="holds 'Summe', which is no date, beside dates"):
        edp.Databases.from_table(pd.concat([table, total]), **keys)
    form = None if written.startswith("%Y") else written
    assert edp.Databases.from_table(table, **keys, date_format=form).n_databases == 40


@pytest.mark.full
def test_text_before_the_names_of_the_columns_is_left_out(tmp_path, capsys):
    lines = plain().to_csv(sep=";", decimal=",", index=False)
    (tmp_path / "titled.csv").write_text("Export of 2025\nClient 17\n\n" + lines)
    (tmp_path / "records.csv").write_text(lines)
    for name, code in (("titled.csv", 2), ("records.csv", 0)):
        words = [
            "audit",
            tmp_path / name,
            "--verbose",
            "--database",
            "week",
            "--individual",
            "person",
        ]
        words += ["--query", "sum:amount", "--epsilon", "0.1", "--draws", "10", "--chains", "2"]
        words += ["--model", "bootstrap", "--out", tmp_path / "out", "--seed", "1", "--quiet"]
        assert main([str(word) for word in words]) == code
        assert ("the first line must be these" in capsys.readouterr().err) == (code == 2)
