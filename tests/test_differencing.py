"""Combinations of cells that tell what one individual contributes."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array

import edp_bayes as edp
from edp_bayes.auditing.cells.differencing import difference
from edp_bayes.auditing.cells.records import TOGETHER, CellRecords, Part


def records_of(amounts):
    """Return the records of contributions (individual, database, cell)."""
    people, databases, cells = amounts.shape
    matrix = csc_array(amounts.transpose(1, 2, 0).reshape(databases, cells * people))
    columns = tuple(np.arange(people) + people * k for k in range(cells))
    names = tuple(f"cell {k}" for k in range(cells))
    part = Part(TOGETHER, ("together",), columns, names)
    records = CellRecords(
        matrix, np.tile(np.arange(people), cells), np.arange(people), np.arange(databases), "sum",
        (part,),
    )  # fmt: skip
    return records, part


def rows_of(one):
    """Return what an individual moves a combination by: less the mean if they are always there."""
    there = (one != 0.0).any(axis=1)
    return one - one.mean(axis=0) if there.all() else one[there]


def revealed_by_rank(amounts):
    """Return whom some combination moves by that nobody else moves, by ranks of stacked rows."""
    rows = [rows_of(one) for one in amounts]
    found = []
    for i, own in enumerate(rows):
        others = np.vstack([*rows[:i], *rows[i + 1 :], np.zeros((1, amounts.shape[2]))])
        whole = np.vstack([others, own])
        if np.linalg.matrix_rank(whole) > np.linalg.matrix_rank(others):
            found.append(i)
    return found


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    people=st.integers(1, 6),
    cells=st.integers(2, 8),
    kinds=st.integers(1, 8),
)
def test_whom_combinations_reveal_is_what_ranks_say(seed, people, cells, kinds):
    rng = np.random.default_rng(seed)
    # few kinds of purchases, so that many combinations are the same for others
    kind = rng.integers(-1, 3, (kinds, cells)).astype(float)
    bought = rng.integers(0, kinds, (people, 9))
    amounts = kind[bought] * (rng.random((people, 9, 1)) < rng.choice([0.6, 1.0], (people, 1, 1)))
    truth = revealed_by_rank(amounts)
    found = difference(*records_of(amounts))
    assert (found is not None) == bool(truth)
    if found is not None:
        assert found.individual in truth
        moved = [np.ptp(one @ found.combination) for one in amounts]
        assert moved[found.individual] > 1e-6 * np.abs(found.combination).max()
        assert max(np.delete(moved, found.individual), default=0.0) < 1e-8 * moved[found.individual]


def fees(waived=True):
    """Return seven fees, each charged to all who are there; one individual is let off the last."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({"week": np.repeat(np.arange(30), 12), "who": np.tile(np.arange(12), 30)})
    rows = rows[rng.random(len(rows)) < 0.7]
    whole = pd.concat([rows.assign(fee=f"fee {k}", cost=10.0 + k) for k in range(7)])
    return whole[(whole["who"] != 4) | (whole["fee"] != "fee 6")] if waived else whole


@pytest.mark.full
@pytest.mark.parametrize("waived", [True, False])
def test_seven_cells_that_differ_by_one_individual_reveal_them(waived, tmp_path):
    databases = edp.Databases.from_table(fees(waived), database="week", individual="who")
    found = edp.audit_cells(
        databases, edp.queries.Sum("cost"), by="fee", epsilon=[0.1], delta=0.3, totals=False,
        model=edp.FiniteMixture(components=2), draws=50, chains=2, tune=50, random_seed=1,
        progressbar=False,
    )  # fmt: skip
    row = found.together.groups.iloc[0]
    page = found.report(tmp_path / "cells.html").read_text(encoding="utf-8")
    assert "individual 4" not in page
    if waived:
        assert row["status"] == "revealed exactly"
        assert "varies by what individual 4 contributes and by nothing else" in row["sentence"]
        assert found.record()["status"] == "fail"
    else:
        assert row["status"] == "not established"
        assert "no combination of them reveals an individual" in row["sentence"]


def test_a_total_that_everybody_else_is_always_in_reveals_who_is_not():
    rng = np.random.default_rng(1)
    amounts = np.zeros((9, 20, 7))
    for i in range(9):
        amounts[i, np.arange(20), rng.integers(0, 7, 20)] = 1.0
    assert difference(*records_of(amounts)) is None
    amounts[5, ::3] = 0.0
    found = difference(*records_of(amounts))
    assert (found.individual, found.databases) == (5, 13)
    assert found.combination == pytest.approx(np.full(7, found.combination[0]))
