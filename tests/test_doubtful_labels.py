"""Labels that look like damage or like each other, and rows of totals."""

import unicodedata
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_bayes import queries
from edp_bayes.records.doubtful_labels import doubtful_labels
from edp_bayes.responses.databases import Databases
from edp_bayes.utils import labels
from tests.command_line import printed
from tests.table_forms import FORMS as ALL_FORMS

# Not CSV, in which some of these labels are missing values.
FORMS = {name: made for name, made in ALL_FORMS.items() if name != "csv"}
DAMAGED = ["1.23457E+15", "", " ", "nan", "NULL", "None", "N/A", "-", "Total"]


def table_of(people, n=20, **columns):
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "week": np.repeat(np.arange(n), len(people)),
            "who": list(people) * n,
            "x": rng.gamma(2.0, size=n * len(people)),
        }
    ).assign(**columns)


def said(table, query=None, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        keys = {"database": "week", "individual": "who"} | options
        responses = Databases.from_table(table, **keys).respond(query or queries.Count())
    ours = [str(each.message) for each in caught if "tied" not in str(each.message)]
    ours = [words for words in ours if "not looked at" not in words]
    return ours, responses


def judged(texts, size=None):
    held = labels.as_objects(texts)
    return doubtful_labels(held, np.ones(held.size, np.int64) if size is None else size)


@pytest.mark.parametrize("form", FORMS)
def test_one_warning_names_what_looks_like_damage_and_its_share(form, tmp_path):
    table = table_of(["ann", "bob", "cyd", *DAMAGED])
    extra = table[table["who"] == "nan"]
    table = pd.concat([table, extra.assign(x=-1.0), extra.assign(x=-2.0)], ignore_index=True)
    table.loc[table.index[0], "who"] = "bob"  # Counts are not all alike.
    (words,), responses = said(FORMS[form](table, tmp_path), queries.Sum("x"))
    assert words.startswith("labels of individuals look like damage: 'nan' (21.4% of the records)")
    assert "and 4 more (28.6% of the records)" in words
    assert "they stand for no person or are long numbers that a spreadsheet rounded" in words
    assert words in responses.warnings
    hidden = responses.warnings[-1].naming(lambda label: "X")
    assert "nan" not in hidden
    assert "X (21.4% of the records)" in hidden


@pytest.mark.parametrize("label", [*DAMAGED, "NaN", "n/a", "#N/A", "  ", "\u200b", "Grand Total"])
def test_each_of_them_is_found_among_others(label):
    (words,) = judged(["ann", "bob", label, "Zoe"])
    assert f"look like damage: {labels.show(label)} (25.0% of the records)" in words
    assert judged(["ann", "bob", f"x{label}x", "Zoe"]) == ()


@pytest.mark.parametrize(
    "texts",
    [
        ["ann", "bob", "Total Energies", "Nancy", "a-b", "E+", "1E+5", "nand"],
        ["C0001", "C0002"],
        ["Ann", "Bob"],
        ["aB", "bA", "cC"],
        ["Andr\u00e9", "andrea", "Straße", "STRASBOURG"],
        ["a ", "b", "c"],
        ["x\0y", "z"],
        [("ann", "", 1), ("bob", "-", 2)],
    ],
)
def test_ordinary_labels_are_no_matter(texts):
    assert judged(texts) == ()


@pytest.mark.parametrize(
    ("first", "second", "by"),
    [
        ("Ann", "ann", "by case"),
        ("ANN", "ann", "by case"),
        ("ann", "ann ", "by blanks at an end"),
        ("\u00a0ann", "ann", "by blanks at an end"),
        ("ann\u200b", "ann", "by characters of no width"),
        ("\ufeffann", "ann", "by characters of no width"),
        ("Andr\u00e9", unicodedata.normalize("NFD", "Andr\u00e9"), "by the Unicode form"),
        ("\uff21nn", "Ann", "by the Unicode form"),
        ("Ann ", "ann", "by case or by blanks at an end"),
        ("an\0n", "an\0N", "by case"),
        (("n", "ann"), ("N", "ann"), "by case"),
        (("n", 1, "ann "), ("n", 1, "ann"), "by blanks at an end"),
    ],
)
def test_twins_are_said_with_what_they_differ_by(first, second, by):
    (words,) = judged([first, second, (*first[:-1], "c") if isinstance(first, tuple) else "c"])
    assert words.startswith(f"2 individuals may be 1: {labels.show(first)} and ")
    assert f"differ {by} " in words
    assert f"(66.7% of the records) differ {by}" in words
    assert "\u200b" not in words
    assert "\ufeff" not in words


def test_damage_and_twins_are_one_warning():
    (words,) = judged(["nan", "NaN", "ann", "Ann", "cyd"])
    assert "look like damage: 'nan' (20.0% of the records), 'NaN' (20.0%" in words
    assert ". 4 individuals may be 2: 'nan' and 'NaN', 'ann' and 'Ann' (80.0%" in words


def test_long_numbers_with_few_digits_were_rounded():
    held = np.array([1234567890123.0, 1.23457e15, 9.0e11, 5.0, 120000.0])
    (words,) = doubtful_labels(held, np.array([1, 2, 1, 1, 1]))
    assert "1234570000000000.0 (33.3% of the records), 900000000000.0 (16.7%" in words
    assert "are long numbers that a spreadsheet rounded" in words
    assert doubtful_labels(held[[0, 3, 4]], np.ones(3)) == ()
    assert doubtful_labels(np.array([1230000000000000, 7]), np.ones(2)) == ()


def test_parts_of_compound_labels_are_judged():
    (words,) = judged([("north", "Total", 3), ("north", "ann", 3), ("-", "", 3), ("", "x", 3)])
    assert "('north', 'Total', 3) (25.0% of the records), ('-', '', 3) (25.0%" in words
    assert "('', 'x', 3)" not in words


def test_labels_of_databases_are_judged_too():
    weeks = np.repeat([*(f"w{k}" for k in range(18)), "W3", "Total"], 3)
    (words,), _ = said(table_of("abc", week=weeks), queries.Sum("x"))
    assert "labels of databases look like damage: 'Total' (5.0% of the records)" in words
    assert "2 databases may be 1: 'W3' and 'w3'" in words


def test_pooled_records_and_those_left_out_count_as_they_are(tmp_path):
    table = table_of(["ann", "Ann", "bob", None])
    for form in FORMS:
        source = FORMS[form](table, tmp_path)
        texts, _ = said(source, queries.Sum("x"), missing="pool")
        assert any("'Ann' and 'ann' (50.0% of the records)" in words for words in texts)
        texts, _ = said(source, queries.Sum("x"), missing="drop")
        assert any("'Ann' and 'ann' (66.7% of the records)" in words for words in texts)


@given(
    st.lists(
        st.text(st.sampled_from("aAbB \t\u200b\u00e9\u0301e\0\u00df\u212b\u3000"), max_size=4),
        min_size=1,
        max_size=30,
        unique=True,
    )
)
@settings(derandomize=True, deadline=None, max_examples=200)
def test_who_may_be_one_is_found_as_one_by_one(texts):
    """All labels at once give the groups that each label's own form gives."""

    def form(text):
        text = "".join(c for c in text if c != "\u200b")
        return unicodedata.normalize("NFKC", text).casefold().strip()

    alike = pd.Series(texts).groupby([form(text) for text in texts], sort=False).size()
    found = judged(texts)
    expected = alike[alike > 1]
    words = f"{expected.sum()} individuals may be {expected.size}: "
    assert any(words in sentence for sentence in found) == bool(expected.size)


# Totals


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("collect", [None, 3])
def test_who_contributes_what_all_others_do_may_be_a_total(form, collect, tmp_path):
    table = table_of(["ann", "bob", "cyd", "dan"]).round(2)
    sums = table.groupby("week", as_index=False)["x"].sum().round(2).assign(who="all of us")
    table = pd.concat([table, sums], ignore_index=True)
    databases = Databases.from_table(
        FORMS[form](table, tmp_path), database="week", individual="who"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        responses = databases.respond(queries.Sum("x"), collect=collect)
    (words,) = [words for words in responses.warnings if "as all others together" in words]
    assert words.startswith("individual 'all of us' contributes as much as all others together to")
    assert "each of 20 databases: it may be a row of totals" in words
    assert "all of us" not in words.naming(lambda label: "X")


def test_half_of_few_or_small_databases_is_no_total():
    half = table_of(["ann", "bob"], x=3.0)
    half.loc[half.index[-1], "x"] = 5.0
    assert said(half, queries.Sum("x"))[0] == []
    rare = table_of(["ann", "bob", "cyd"], x=np.tile([2.0, 1.0, 1.0], 20))
    rare.loc[rare.index[6:], "x"] = np.random.default_rng(2).gamma(2.0, size=54)
    assert said(rare, queries.Sum("x"))[0] == []


def test_many_labels_that_look_like_nothing_are_not_named():
    people = [f"user{k:06d}" for k in range(20_000)]
    assert doubtful_labels(np.array(people, dtype=object), np.ones(len(people))) == ()


@pytest.mark.full
def test_the_command_line_prints_them_escaped(capsys, tmp_path):
    table = table_of(["ann", "ann\u200b", "bob\x1b[31m", "nan"])
    table = table[np.random.default_rng(2).random(len(table)) < 0.8]
    table.to_parquet(tmp_path / "t.parquet")
    words = [
        "audit",
        tmp_path / "t.parquet",
        "--verbose",
        "--individual",
        "who",
        "--database",
        "week",
    ]
    words += ["--query", "sum:x", "--epsilon", "0.5", "--model", "bootstrap", "--draws", 10]
    out = printed(capsys, *words, "--chains", 2, "--seed", 1, "--out", tmp_path / "out")
    assert "'ann' and 'ann\\u200b'" in " ".join(out.split())
    assert "look like damage: 'nan'" in " ".join(out.split())
    warned = out[out.index("WARNING") : out.index("Sampling")]
    assert "\u200b" not in warned
