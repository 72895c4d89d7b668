"""The study of people who come and leave: its worlds, its table and what the pages say of it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.calibration import report
from tests.calibration.given import Cell
from tests.calibration.spells import (
    DATABASES,
    END,
    START,
    WORLDS,
    given,
    markov,
    newcomers,
    one_spell,
    study,
    table,
    unlike,
)
from tests.calibration.whereabouts import below, truth_of_those_seen


@pytest.fixture(scope="module")
def figures():
    """The figures of every world: by name, databases and whether they were there last time."""
    found = {(world.name, n): study(world, n) for world in WORLDS for n in DATABASES}
    return {
        (*key, here): values
        for key, both in found.items()
        for here, values in both.items()
        if values is not None
    }


@pytest.mark.full
def test_the_page_shows_the_table_of_the_study():
    _, rest = report.PAGE.read_text(encoding="utf-8").split(START)
    assert rest.split(END)[0].strip() == table().strip()


def test_the_page_has_the_unsafe_figures_of_the_study(figures):
    page = " ".join(report.PAGE.with_name("calibration.md").read_text(encoding="utf-8").split())
    few, many = (figures["one in spells among 50 at random", n, True].far_below for n in DATABASES)
    assert f"by more than a tenth in {many:.0%} to {few:.0%}".replace("% to", " to") in page
    for world in ("a newcomer beside 3 always there", "one who has left beside 3 always there"):
        for n in DATABASES:
            here = "newcomer" in world
            assert figures[world, n, here].far_below == 0.0


@pytest.mark.parametrize("others", [1, 3, 10])
@pytest.mark.parametrize("n", DATABASES)
def test_a_newcomer_beside_people_who_are_always_there_is_taken_to_stay(others, n):
    for k in range(1, n):
        present = np.ones((n, others + 1), dtype=bool)
        present[: n - k, 0] = False
        chance = given(present)[0]
        # every database in which they stayed counts, and others stayed in all
        assert max(0.985, (k - 1) / k) < chance < 1.0
    mean = study(newcomers(others), n)[True]
    assert mean is not None
    assert mean.given > 0.99


def test_who_was_there_is_given_as_much_presence_as_is_true_on_average(figures):
    """By 0.07 less at most: who comes in spells among many who do not."""
    here = {key: value for key, value in figures.items() if key[2]}
    short = {key: value.truth - value.given for key, value in here.items()}
    hidden = "one in spells among 50 at random"
    assert max(short[hidden, n, True] for n in DATABASES) < 0.08
    assert max(value for key, value in short.items() if key[0] != hidden) < 0.02
    far = {key: value.far_below for key, value in here.items() if value.truth >= 0.9}
    assert max(far[hidden, n, True] for n in DATABASES) < 0.3
    assert max(value for key, value in far.items() if key[0] != hidden) < 0.15


def test_who_was_away_is_given_as_much_presence_as_is_true_on_average(figures):
    away = [value for key, value in figures.items() if not key[2]]
    assert max(value.truth - value.given for value in away) < 0.03


def test_who_has_left_for_good_is_given_little(figures):
    for (name, n, _), value in figures.items():
        if name.startswith("one who has left"):
            assert 0.0 == value.truth < value.given < (0.15 if n == 24 else 0.08)


def test_markov_presence_has_its_share_and_autocorrelation():
    there, chance = markov(np.random.default_rng(1), 4000, 20, 0.3, 0.8)
    assert there.mean() == pytest.approx(0.3, abs=0.02)
    assert there[1:][there[:-1]].mean() == pytest.approx(0.86, abs=0.02)
    np.testing.assert_allclose(chance, np.where(there[-1], 0.86, 0.06))


def test_worlds_watch_whom_they_name():
    rng = np.random.default_rng(2)
    present, truth = newcomers(3).sample(rng, 24)
    assert present[:, 1:].all()
    assert 1 <= present[:, 0].sum() <= 5
    assert present[-1, 0]
    np.testing.assert_array_equal(truth, [1.0, np.nan, np.nan, np.nan])
    present, truth = one_spell(300, 0.9).sample(rng, 60)
    starts = present[0].astype(int) + (np.diff(present.astype(int), axis=0) == 1).sum(axis=0)
    assert (starts == 1).all()
    before, after = present[:-1], present[1:]
    assert after[before].mean() == pytest.approx(0.9, abs=0.03)
    np.testing.assert_array_equal(truth, 0.9 * present[-1])
    _, truth = unlike("one", (0.5, 0.9), (0.5, 0.0)).sample(rng, 24)
    assert truth[0] in (pytest.approx(0.05), pytest.approx(0.95))
    assert np.isnan(truth[1:]).all()


@pytest.mark.full
def test_no_band_lies_below_the_truth_against_who_knows_the_last_presence():
    cell = Cell("spells", "normal", 150, 0.4)
    (there, here, first), (away, gone, second) = below(cell, 20)
    assert there
    assert not away
    assert here + gone == 20
    assert min(here, gone) > 3
    assert (first[1] == 0.0).all()
    assert (second[1] == 0.0).all()


def test_those_away_hide_more_from_who_knows_it():
    cell = Cell("spells", "normal", 41, 0.4)
    away = truth_of_those_seen(cell, there=False)
    assert (away < truth_of_those_seen(cell, there=True)).all()
    for repetition in range(20):
        _, by_releases = cell.sample(repetition)
        assert (away <= by_releases).all()
