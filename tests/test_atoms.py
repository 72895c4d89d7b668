"""Answers with atoms: point masses beside a density, and who turns one into the other."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array
from scipy.stats import norm

import edp_bayes as edp
from edp_bayes.coupling.atoms import AtomCoupling
from edp_bayes.coupling.views.some_draws import curves_by_draw, pick
from edp_bayes.coupling.views.some_individuals import taken
from edp_bayes.divergence.shifts import gaussian_shift
from edp_bayes.models import DirichletProcessMixture, SamplerSettings
from edp_bayes.responses.atoms import at_atoms, places, tied_ends

GRID = np.array([0.05, 0.2, 0.5])
QUICK = {"draws": 100, "chains": 2, "random_seed": 1, "progressbar": False}


def closed_weeks(seed=0, n=60, people=1, shut=0.25, contribution=0.3):
    """Weeks of a normal total, a quarter of them closed: nobody is there, and the answer is 0."""
    rng = np.random.default_rng(seed)
    closed = rng.random(n) < shut
    closed[:3] = True
    there = rng.random((n, people)) < (1.0 if people == 1 else 0.5)
    given_amounts = np.where(closed[:, None] | ~there, 0.0, contribution)
    rest = np.where(closed, 0.0, rng.normal(10.0, 1.0, n))
    return rest + given_amounts.sum(axis=1), given_amounts


def capped(seed=0, n=60, contribution=0.3):
    """Totals that are published up to a cap."""
    rest = np.random.default_rng(seed).normal(0.0, 1.0, n)
    cap = norm.ppf(2.0 / 3.0)
    return np.minimum(rest + contribution, cap), np.minimum(rest, cap), cap


def often_nothing(seed=0, n=60):
    """Amounts that are exactly 0 without one individual in a third of the databases."""
    rng = np.random.default_rng(seed)
    nothing = rng.random(n) < 1.0 / 3.0
    rest = np.where(nothing, 0.0, rng.gamma(4.0, 1.0, n))
    return rest + rng.gamma(4.0, 0.25, n), rest


@pytest.fixture(scope="module")
def responses():
    y, amounts = closed_weeks(people=12)
    y[5], amounts[5] = 0.7, 0.0
    amounts[5, 0] = 0.7  # without whom that week is one of nothing
    y[0], amounts[0, 1] = 0.0, -9.0  # and without whom that one is not
    return edp.Responses.from_arrays(y, contribution=amounts, atoms=[0.0])


@pytest.fixture(scope="module")
def coupling(responses):
    quick = SamplerSettings(draws=6, tune=200, chains=2, random_seed=1, progressbar=False)
    density = DirichletProcessMixture().fit(responses, quick).coupling
    return AtomCoupling.of(density, responses, 3)


def test_who_turns_an_atom_into_another_answer_is_counted(responses):
    counts = at_atoms(responses)
    y = responses.response
    here = y == 0.0
    assert counts.count.tolist() == [here.sum()]
    assert counts.others == (~here).sum()
    for k in range(responses.n_individuals):
        without = responses.response_without(k)
        assert counts.leaves[k, 0] == (here & (without != 0.0)).sum()
        assert counts.falls[k, 0] == (~here & (np.abs(without) < 1e-12)).sum()
    assert counts.leaves.sum() == counts.falls.sum() == 1.0
    assert responses.on_scale.n_databases == counts.others


@pytest.mark.full
@settings(derandomize=True, deadline=None)
@given(st.lists(st.sampled_from([0.0, 1.0, 2.5, 7.0]), min_size=8, max_size=30), st.data())
def test_tied_ends_are_those_of_three_databases(values, data):
    y = np.array(values)
    c = np.array([data.draw(st.sampled_from([0.0, 0.0, 0.5])) for _ in values])
    found = tied_ends(y, csc_array(c[:, None]))
    without = y - c
    low, high = min(y.min(), without.min()), max(y.max(), without.max())
    often = {
        end: max((y == end).sum(), ((without == end) & (c != 0.0)).sum()) for end in (low, high)
    }
    assert found.tolist() == sorted(end for end, count in often.items() if count >= 3)


@pytest.mark.full
@pytest.mark.parametrize("draw", [0, 7])
@pytest.mark.parametrize("person", [0, 1, 5])
def test_curves_are_those_of_the_whole_distributions(coupling, draw, person):
    """By brute force, with what is told apart at places of its own."""
    masses = coupling.masses(np.array([person]))
    w, v = masses.atoms[draw, 0], masses.without[draw, 0]
    left, fell, kept = (float(part[draw, 0]) for part in masses[2:])
    assert w.sum() + fell + kept == pytest.approx(1.0)
    assert v.sum() + left + kept == pytest.approx(1.0)
    p, q = coupling.pair(person)
    at = np.unravel_index(draw, p.weights.shape[:2])
    p, q = p[at], q[at]
    line = np.linspace(-90.0, 110.0, 2_000_001)
    found = coupling.curves(np.array([person]), GRID)[draw, 0]
    for epsilon, value in zip(GRID, found, strict=True):
        sides = []
        for one, other, a, b, apart in ((p, q, w, v, fell), (q, p, v, w, left)):
            ratio = one.pdf(line) - math.exp(epsilon) * other.pdf(line)
            area = float(np.maximum(ratio, 0.0).sum() * (line[1] - line[0]))
            sides.append((apart + np.maximum(a - math.exp(epsilon) * b, 0.0).sum(), area))
        exact = max(mass + kept * area for mass, area in sides)
        bound = max(mass for mass, _ in sides) + kept * max(area for _, area in sides)
        assert value >= exact - 1e-7
        assert value == pytest.approx(bound, abs=1e-6)


@pytest.mark.parametrize("person", [0, 1, 5], ids=["fell", "left", "neither"])
def test_atoms_and_what_is_told_apart_add_to_the_risk_of_the_density(coupling, person):
    one = np.array([person])
    masses = coupling.masses(one)
    w, v = masses.atoms[:, 0], masses.without[:, 0]
    p, q = coupling.pair(person)
    for k, epsilon in enumerate(GRID):
        growth = math.exp(epsilon)
        forward = masses.falling[:, 0] + np.maximum(w - growth * v, 0.0).sum(axis=1)
        backward = masses.leaving[:, 0] + np.maximum(v - growth * w, 0.0).sum(axis=1)
        area = [edp.hockey_stick(*pair, epsilon=epsilon).ravel() for pair in ((p, q), (q, p))]
        bound = np.maximum(forward, backward) + masses.density[:, 0] * np.maximum(*area)
        found = coupling.curves(one, GRID)[:, 0, k]
        np.testing.assert_allclose(found, bound, rtol=1e-6, atol=1e-9)


def test_some_draws_and_some_individuals_have_the_same_curves(coupling):
    everybody = np.arange(coupling.n_individuals)
    whole = coupling.curves(everybody, GRID)
    rows, members = np.array([1, 4, 11]), np.array([0, 3, 9])
    np.testing.assert_array_equal(pick(coupling, rows).curves(everybody, GRID), whole[rows])
    again = pick(pick(coupling, rows), np.array([0, 2]))
    np.testing.assert_array_equal(again.curves(everybody, GRID), whole[rows[[0, 2]]])
    part = taken(coupling, members)
    np.testing.assert_array_equal(part.curves(np.arange(3), GRID), whole[:, members])
    level = np.repeat(GRID, 4)
    by_draw = curves_by_draw(coupling, members, level)[:, :, 0]
    expected = whole[np.arange(12)[:, None], members, np.repeat(np.arange(3), 4)[:, None]]
    np.testing.assert_allclose(by_draw, expected, rtol=1e-9, atol=1e-12)
    assert np.all(coupling.new_individual(GRID) <= 1.0)


def test_who_left_an_atom_is_judged_alone_and_who_never_did_by_all(coupling, responses):
    counts = at_atoms(responses)
    for share, n, person in (
        (coupling.leaving, counts.count[0], 1),
        (coupling.falling, counts.others, 0),
    ):
        assert (share.a[person, 0], share.b[person, 0]) == (1.5, n - 0.5)
        others = np.delete(share.a / (share.a + share.b), person)
        assert np.allclose(others, others[0])
        assert others[0] < 2.0 / (12 * n)


@pytest.mark.full
def test_closed_weeks_hide_nobody_and_cost_nothing():
    """A quarter of the weeks is 0 whoever there is: three quarters of the risk are left."""
    truth = 0.75 * gaussian_shift(0.3, GRID)
    y, amounts = closed_weeks(n=100)
    with pytest.warns(edp.EdpBayesWarning, match=r"0, an end of the answers, is .*--atoms 0\)"):
        plain = edp.Responses.from_arrays(y, contribution=amounts)
    named = edp.Responses.from_arrays(y, contribution=amounts, atoms=[0.0])
    assert not named.warnings
    found = edp.audit(named, epsilon=GRID, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        before = edp.audit(plain, epsilon=GRID, **QUICK)
    limit = found.upper("delta").to_numpy()
    assert (limit >= truth).all()
    assert (limit < before.upper("delta").to_numpy()).all()
    assert (found.band("delta")["lower"].to_numpy() <= truth).all()
    count = int((y == 0.0).sum())
    assert found.settings["atoms"] == {"0": count}
    assert f"{count} answers at the atom 0" in str(found)
    assert f"Point masses stand for {count} answers at 0" in found.describe()
    assert found.checks.loc["ties", "passed"]
    assert not before.checks.loc["ties", "passed"]
    assert "calibrate" not in " ".join(found.verdict(epsilon=0.2, delta=0.001).helps)


@pytest.mark.full
def test_who_keeps_the_answer_from_being_nothing_is_told_by_a_third():
    for seed in range(3):
        y, rest = often_nothing(seed)
        responses = edp.Responses.from_arrays(y, response_without=rest[:, None], atoms="found")
        assert responses.atoms.tolist() == [0.0]
        found = edp.audit(responses, epsilon=GRID, **QUICK)
        share = (rest == 0.0).mean()
        assert (found.delta.mean(("chain", "draw")) > share - 0.05).all()
        assert (found.upper("delta") > 1.0 / 3.0).all()


def test_a_cap_is_an_atom_that_individuals_leave():
    y, rest, cap = capped(n=100)
    responses = edp.Responses.from_arrays(y, response_without=rest[:, None], atoms=[cap])
    counts = at_atoms(responses)
    assert counts.leaves[0, 0] == ((y == cap) & (rest < cap)).sum() > 0
    found = edp.audit(responses, epsilon=GRID, **QUICK)
    truth = max(norm.cdf(cap) - norm.cdf(cap - 0.3), 0.0)  # at epsilon 0, by the cap alone
    assert (found.upper("delta") > truth).all()
    tested = found.tree["lower_bounds"]["delta"].to_numpy()
    assert (tested <= found.delta.to_numpy()).all()


@pytest.mark.full
def test_thousands_who_never_leave_an_atom_do_not_raise_the_largest_risk():
    y, amounts = closed_weeks(n=60, people=400, contribution=0.001)
    named = edp.Responses.from_arrays(y, contribution=amounts, atoms=[0.0])
    found = edp.audit(named, epsilon=[0.2], **QUICK)
    assert found.upper("delta").item() < 0.01


@pytest.mark.full
def test_workers_give_the_same_numbers_and_a_file_keeps_them(responses, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        one = edp.audit(responses, epsilon=GRID, **QUICK)
        two = edp.audit(responses, epsilon=GRID, executor=2, **QUICK)
    np.testing.assert_array_equal(one.delta, two.delta)
    loaded = edp.load(one.save(tmp_path / "audit.nc"))
    np.testing.assert_array_equal(loaded.upper("delta"), one.upper("delta"))
    assert str(loaded) == str(one)
    assert loaded.at_atoms == one.at_atoms
    presence = one.tree["individuals"]["presence"].to_numpy()
    np.testing.assert_array_equal(presence, responses.presence)


@pytest.mark.full
def test_what_needs_a_density_alone_says_so(responses):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        found = edp.audit(responses, epsilon=GRID, **QUICK)
    message = "these have atoms: audit without atoms"
    for ask in (
        lambda: found.released(rounded_to=1.0),
        lambda: edp.compose(found, databases=2),
        lambda: edp.plan(responses, width=0.1, epsilon=0.1),
        lambda: edp.noise.calibrate(responses, epsilon=0.5, delta=0.01),
        lambda: edp.noise.calibrate(found, responses=responses, epsilon=0.5, delta=0.01),
        lambda: found.interval_level(0.1),
    ):
        with pytest.raises(edp.InvalidInputError, match=message):
            ask()
    with pytest.raises(edp.InvalidInputError, match="not known where risks are bounds"):
        found.epsilon_at(0.0)
    with pytest.raises(edp.InvalidInputError, match=r"leave out the adversary .*, or atoms"):
        edp.audit(responses, epsilon=GRID, adversary=edp.Adversary(past=1), **QUICK)
    with pytest.raises(edp.InvalidInputError, match="join responses without atoms"):
        edp.Responses.join(responses, responses.replaced(query="other"))


Y, AMOUNTS = closed_weeks()
BAD = {
    "two": ({"atoms": [0.0, 99.0]}, "99 is that of 0: leave it out of atoms"),
    "twice": ({"atoms": [0.0, 0.0]}, "must be different numbers"),
    "many": ({"atoms": list(range(6))}, "must be 1 to 5 numbers"),
    "word": ({"atoms": "zero"}, "must be numbers, such as"),
    "none": ({"atoms": [np.nan]}, "finite"),
    "noise": ({"atoms": [0.0], "noise": edp.LaplaceNoise(1.0)}, "found known noise beside them"),
    "transform": ({"atoms": [0.0], "transform": "sqrt"}, "found transform beside them"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD.keys())
def test_bad_atoms_are_named(options, message):
    with pytest.raises((edp.InvalidInputError, edp.InputTypeError), match=message):
        edp.Responses.from_arrays(Y, contribution=AMOUNTS, **options)


def test_few_answers_at_no_atom_are_refused():
    y = np.where(np.arange(30) < 25, 0.0, np.arange(30.0) * 1.37)
    with pytest.raises(edp.InvalidInputError, match="must be at no atom, found 5"):
        edp.Responses.from_arrays(y, contribution=np.zeros(30), atoms=[0.0])


def test_rounded_answers_have_no_atoms():
    rng = np.random.default_rng(1)
    y = np.where(rng.random(60) < 0.3, 0, rng.poisson(5.0, 60)).astype(float)
    with pytest.raises(edp.InvalidInputError, match="rounded to a grid of step 1"):
        edp.Responses.from_arrays(y, contribution=np.minimum(y, 1.0), atoms=[0.0])


def test_places_of_differences_allow_for_rounding():
    y, c = np.array([0.3, 0.7]), np.array([0.1 + 0.2, 0.7 - 0.1])
    assert places(y - c, np.array([0.0, 0.1]), np.abs(y)).tolist() == [0, 1]


def test_the_fingerprint_holds_the_atoms(responses):
    assert replace(responses).fingerprint == responses.fingerprint
    assert responses.replaced(atoms=None).fingerprint != responses.fingerprint
