"""What is advised about records is done literally, in Python and on the command line, and helps."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

import edp_bayes as edp
from edp_bayes.cli import main
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


# How the records are written, what else is asked for, and the arguments that must be advised.
CASES = {
    "missing": (written(without_names), {}, {"missing": {"drop", "pool"}}),
    "gaps dropped": (written(with_gaps), {}, {"empty": {"zero"}}),
    "gaps refused": (written(with_gaps), {"empty": "error"}, {"empty": {"drop", "zero"}}),
    "cut off": (written(cut_short), {"database_every": "week"}, {"partial": {"drop"}}),
    "encoding": (written(in_cp1252, encoding="cp1252"), {}, {"encoding": {"cp1252"}}),
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


def command(path, words, capsys):
    keys = [word for name, value in KEYS.items() for word in (f"--{name}", value)]
    quick = ["--model", "bootstrap", "--draws", "20", "--chains", "1", "--epsilon", "0.1"]
    quick += ["--seed", "1", "--no-past", "--query", "sum:amount"]
    code = main(["audit", str(path), *keys, *quick, "--out", str(path.parent / "out"), *words])
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
