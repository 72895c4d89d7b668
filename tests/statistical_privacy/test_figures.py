"""The pictures show the numbers of the curves, the published points among them."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from edp_bayes import statistical_privacy as sp
from edp_bayes.plots import statistical_privacy as figures

FIGURES = (
    "curves_by_probability",
    "delta_by_probability",
    "delta_by_size",
    "subsampling",
    "gaussian_noise",
    "laplace_noise",
    "equal_utility",
    "utility_and_privacy",
)


@pytest.fixture(autouse=True)
def no_window():
    from matplotlib import pyplot as plt

    mpl.use("Agg")
    yield
    plt.close("all")


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_draws_finite_curves_on_the_axes_given(name):
    from matplotlib import pyplot as plt

    _, ax = plt.subplots()
    assert getattr(figures, name)(n=60, ax=ax) is ax if name != "delta_by_size" else True
    ax = getattr(figures, name)()
    assert len(ax.get_lines()) >= 3
    assert ax.get_xlabel()
    assert ax.get_title()
    for line in ax.get_lines():
        y = line.get_ydata()
        assert np.isfinite(y).all()
        assert (y >= 0).all()
        assert (y <= 1).all()


def test_gaussian_noise_shows_the_published_points():
    lines = {line.get_label(): line for line in figures.gaussian_noise().get_lines()}
    for scale, published in ((1, 0.38), (3, 0.128)):
        line = lines[f"scale {scale} / n, differential privacy"]
        assert np.interp(0.01, *line.get_data()) == pytest.approx(published, abs=5e-4)


def test_the_plot_of_a_query():
    query = sp.PropertyQuery(100, 0.1)
    ax = query.plot(log=True)
    assert [line.get_label() for line in ax.get_lines()] == ["delta_plus", "delta_minus"]
    x, y = query.plot(epsilon=[0.0, 0.25, 0.5]).get_lines()[1].get_data()
    np.testing.assert_array_equal(y, query.delta_minus(epsilon=x))
    assert ax.get_yscale() == "log"
