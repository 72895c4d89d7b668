import numpy as np
import pytest

from edp_bayes.data import load_cdnow, load_cdnow_weeks


@pytest.fixture(scope="module")
def purchases():
    return load_cdnow()


def test_counts_are_those_published_for_the_master_data(purchases):
    assert purchases["customer"].nunique() == 23_570
    assert len(purchases) == 69_659
    assert (str(purchases["date"].min())[:10], str(purchases["date"].max())[:10]) == (
        "1997-01-01",
        "1998-06-30",
    )


def test_first_purchases_end_on_25_march(purchases):
    first = purchases.groupby("customer")["date"].min()
    assert str(first.max())[:10] == "1997-03-25"


def test_types_and_values(purchases):
    assert purchases["customer"].dtype == np.int32
    assert purchases["customer"].min() == 1
    assert (purchases["quantity"] >= 1).all()
    assert (purchases["dollars"] >= 0).all()
    assert not purchases.isna().any().any()
    # The first two customers of the original file, as printed there.
    rows = purchases[purchases["customer"] <= 2][["customer", "quantity", "dollars"]]
    assert rows.to_numpy().tolist() == [[1, 1, 11.77], [2, 1, 12.0], [2, 5, 77.0]]


def test_a_week_is_the_monday_before(purchases):
    assert (purchases["week"].dt.day_of_week == 0).all()
    days = (purchases["date"] - purchases["week"]).dt.days
    assert days.between(0, 6).all()


def test_weeks_are_whole_and_begin_after_everybody_joined(purchases):
    weeks = load_cdnow_weeks()
    labels = np.sort(weeks["week"].unique())
    assert labels.size == 65
    assert (np.diff(labels) == np.timedelta64(7, "D")).all()
    assert labels[0] > purchases.groupby("customer")["date"].min().max()
    # One day more on either side and a further whole week would fit.
    assert labels[-1] + np.timedelta64(7, "D") <= purchases["date"].max()
    assert labels[-1] + np.timedelta64(13, "D") > purchases["date"].max()
    assert labels[0] - np.timedelta64(7, "D") < np.datetime64("1997-03-25")
    assert (len(weeks), weeks["customer"].nunique()) == (37_877, 10_010)


def test_weeks_hold_all_purchases_of_their_days(purchases):
    weeks = load_cdnow_weeks()
    inside = purchases["date"].between("1997-03-31", "1998-06-28")
    assert weeks["dollars"].sum() == pytest.approx(purchases.loc[inside, "dollars"].sum())
    assert len(weeks) == inside.sum()
