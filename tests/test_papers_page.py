"""The page that lists the papers: its numbers are computed, its names and links exist."""

import importlib
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes import interval
from edp_bayes import statistical_privacy as sp

PAGE = Path(__file__).parents[1] / "docs" / "mathematics" / "papers.md"
TEXT = PAGE.read_text()
N, EPSILON = 1000, 0.01


def rows(head):
    """Return the cells of every row of the tables that begin with this word."""
    for table in re.split(r"\n\n+", TEXT):
        if table.startswith(f"| {head} |"):
            for line in table.splitlines()[2:]:
                yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def gain(prob):
    noise = sp.GaussianNoise(10 / N)
    known = sp.differential_privacy_delta(N, epsilon=EPSILON, mechanism=noise)
    return known / sp.delta(N, prob, epsilon=EPSILON, mechanism=noise)


def worse(prob):
    laplace, gaussian = (
        sp.matching_scale(sp.Subsampling(rate=0.1), N, prob, kind)
        for kind in (sp.LaplaceNoise, sp.GaussianNoise)
    )
    deltas = [sp.delta(N, prob, epsilon=EPSILON, mechanism=m) for m in (laplace, gaussian)]
    return deltas[0] / deltas[1] - 1


def known(nu):
    return sp.differential_privacy_delta(N, epsilon=EPSILON, mechanism=sp.GaussianNoise(nu / N))


def as_large(answer, truth):
    """Return the probability of noise at epsilon 0.1 that is as large as this, or larger."""
    return math.exp(-0.1 * abs(answer - truth))


FIFTH = sp.Subsampling(rate=0.2)
COMPUTED = {
    "Figure 1, differential privacy, nu = 1": lambda: f"{known(1):.3f}",
    "Figure 1, differential privacy, nu = 3": lambda: f"{known(3):.3f}",
    "Figure 2, ratio at nu = 10, pi = 0.5": lambda: f"{gain(0.5):.2f}",
    "Figure 2, ratio at nu = 10, pi = 0.1": lambda: f"{gain(0.1):.2f}",
    "Figure 2, ratio at nu = 10, pi = 0.01": lambda: f"{gain(0.01):.2f}",
    "Figure 5, Laplace noise against Gaussian, pi = 0.5": lambda: f"{worse(0.5):.0%}",
    "Figure 5, Laplace noise against Gaussian, pi = 0.1": lambda: f"{worse(0.1):.0%}",
    "Theorem 4.1 as printed": lambda: f"{sp.delta_plus(N, 0.1, epsilon=0.1, mechanism=FIFTH):.6f}",
    "Theorem 4.2 as printed": lambda: f"{sp.delta_plus(N, 0.1, epsilon=0.1):.5f}",
    "epsilon at a count of 100": lambda: f"{interval.epsilon(100, 0.2, 0.8):.7f}",
    "restricted Laplace, lambda = 1": lambda: (
        f"{edp.mechanisms.RestrictedLaplace(1.0).epsilon():.4f}"
    ),
    "restricted Laplace, lambda = 2": lambda: (
        f"{edp.mechanisms.RestrictedLaplace(0.5).epsilon():.4f}"
    ),
    "noised once at epsilon 0.1": lambda: (
        f"noise as large or larger: {as_large(14238.15, 14237):.2f}, "
        f"and {as_large(17432.26, 14237):.0e}"
    ),
    "the same from 17450": lambda: f"{as_large(17432.26, 17450):.2f}",
    "noised once": lambda: (
        f"noise as large or larger: {as_large(2.20, 1):.2f}, and {as_large(-6.35, 1):.2f}"
    ),
}
# These need the real data.
FROM_RAIN = {
    "epsilon from which delta = 0": lambda: f"{rain().epsilon[rain().delta == 0][0]:.2f}",
    "epsilon at which delta\\* is read": lambda: f"{rain().epsilon[level()]:.3f}",
    "delta\\* there": lambda: f"{rain().total_risk[level()]:.4f}",
    "places with delta_i > 0 there": lambda: str((rain().individual_delta[:, level()] > 0).sum()),
    "places with delta_i > 0.001 there": lambda: str(
        (rain().individual_delta[:, level()] > 0.001).sum()
    ),
}
FROM_CENSUS = {
    "people of 40 and over": lambda people: f"{(people['age'] >= 40).sum():,}",
    "malicious query on Karrie Trusslove": lambda people: str(
        ((people["Name"] == "Karrie Trusslove") & (people["income"] == "<=50K")).sum()
    ),
}
FOLDER: list[Path] = []  # where the real data are, once a test has asked


@cache
def rain():
    """Return the published estimate on the last 41 years of the climate divisions."""
    with np.load(FOLDER[0] / "us_climate_divisions_annual_mm.npz") as stored:
        mm = stored["annual_mm"][-41:]
    places = mm.shape[1]
    without = (mm.sum(axis=1, keepdims=True) - mm) / (places - 1)
    responses = edp.Responses.from_arrays(mm.mean(axis=1), response_without=without)
    grid = np.linspace(0.0, 0.4, 41)
    return edp.plugin.empirical_privacy(responses, epsilon=grid, density="fixed", kernel="laplace")


def level():
    """Return the first place of the grid at which the total risk is that of the paper or less."""
    return int(np.flatnonzero(rain().total_risk <= 0.007)[0])


def ours(number):
    (row,) = [row for row in rows("number") if row[0] == number or row[0].startswith(f"{number},")]
    return row[-1]


@pytest.mark.parametrize("number", COMPUTED)
def test_our_numbers_are_computed(number):
    assert ours(number) == COMPUTED[number]()


@pytest.mark.parametrize("number", FROM_RAIN)
def test_our_numbers_on_the_climate_divisions(number, data_dir):
    FOLDER[:] = [data_dir]
    assert ours(number) == FROM_RAIN[number]()


@pytest.mark.parametrize("number", FROM_CENSUS)
def test_our_numbers_on_the_census(number, data_dir):
    import pandas as pd

    columns = ["age", "Name", "income"]
    people = pd.read_parquet(data_dir / "adult_with_pii.parquet", columns=columns)
    assert ours(number) == FROM_CENSUS[number](people)


def test_no_number_is_left_out():
    known_numbers = [*COMPUTED, *FROM_RAIN, *FROM_CENSUS]
    for number, *_ in rows("number"):
        assert any(number == one or number.startswith(f"{one},") for one in known_numbers), number


def found(name):
    """Return what a dotted name stands for, importing the modules on the way."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            value = getattr(value, part)
        return value
    raise AssertionError(name)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(edp_bayes[.\w]+)`", TEXT))))
def test_names_exist(name):
    assert found(name) is not None


def test_links_lead_to_headings():
    for target in re.findall(r"\]\((?!http)([^)]+)\)", TEXT):
        path, _, heading = target.partition("#")
        page = PAGE.parent / path
        assert page.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
            assert heading in slugs, target


def test_every_item_says_where_it_is():
    for item in rows("item"):
        assert len(item) == 3
        assert all(item), item
