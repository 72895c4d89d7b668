"""The pictures show the numbers of the curves, the published points among them."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from edp_bayes import statistical_privacy as sp
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.plots import breutigam_reischuk as paper
from edp_bayes.plots import statistical_privacy as figures
from edp_bayes.plots.lines import draw

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


@pytest.mark.full
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


def test_words_stand_at_the_lines_or_below():
    x = np.array([0.0, 1.0])
    ax = draw(x, {"a": [1, 0.5], "b": [1, 0.5], "c": [1, 0.0]}, "x", "y", "Words")
    places = {text.get_text(): text.get_position()[1] for text in ax.texts}
    assert places["c"] < places["a"] < places["b"]
    assert places["b"] - places["a"] > 0.02
    assert ax.get_legend() is None
    ax = draw(x, {"a": [1, 0.5], "b": [1, 1e-9]}, "x", "y", "Words", log=True, lowest=1e-6)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]


def test_a_dotted_line_has_the_colour_of_the_one_before():
    lines = {"a": [1, 2], "a, known": [2, 3], "b": [3, 4]}
    a, known, b = draw(np.array([0, 1]), lines, "x", "y", "", dotted=["a, known"]).get_lines()
    assert a.get_color() == known.get_color() != b.get_color()
    assert len({line.get_linestyle() for line in (a, known, b)}) == 3


# The figures of the paper, at its parameters.


def last(ax):
    """Return where every line ends, by its label."""
    return {line.get_label(): float(line.get_ydata()[-1]) for line in ax.get_lines()}


@pytest.mark.parametrize(
    ("noise", "published"), [(sp.GaussianNoise, (0.38, 0.128)), (sp.LaplaceNoise, (0.390, 0.149))]
)
def test_figures_1_and_3(noise, published):
    ends = last(paper.noise_by_probability(noise))
    for scale, value in zip((1, 3), published, strict=True):
        assert ends[f"scale {scale}, differential"] == pytest.approx(value, abs=5e-4)
        exact = sp.delta(1000, 0.5, epsilon=0.01, mechanism=noise(scale / 1000))
        assert ends[f"scale {scale}, statistical"] == pytest.approx(exact, rel=1e-12)


def test_figure_3_laplace_noise_suits_the_statistical_setting_slightly_better():
    """At one scale it loses more utility; this is what the paper compares."""
    gaussian, laplace = (
        last(paper.noise_by_probability(kind)) for kind in (sp.GaussianNoise, sp.LaplaceNoise)
    )
    for scale in (1, 3):
        label = f"scale {scale}, statistical"
        assert 0.97 * gaussian[label] < laplace[label] < gaussian[label]


@pytest.mark.parametrize(
    ("noise", "n", "found"),
    [
        (sp.GaussianNoise, 1000, (2.10, 1.45, 1.05)),
        (sp.LaplaceNoise, 1000, (2.87, 1.98, 1.26)),
        (sp.GaussianNoise, 100, (1.13, 1.05, 1.01)),
    ],
)
def test_figures_2_4_and_6(noise, n, found):
    ax = paper.gain_by_scale(noise, n)
    assert list(last(ax).values()) == pytest.approx(found, abs=6e-3)
    for line in ax.get_lines():
        assert (np.diff(line.get_ydata()) < 0).all()
        assert (line.get_ydata() > 1).all()


@pytest.mark.parametrize(("prob", "worse"), [(0.5, 1.53), (0.1, 1.46)])
def test_figures_5_and_8_laplace_is_not_a_fifth_worse(prob, worse):
    """The paper says about 20% at a rate of 0.1."""
    curves = {line.get_label(): line for line in paper.mechanisms_by_probability().get_lines()}
    laplace, gaussian, sample = (
        np.interp(prob, *curves[name].get_data())
        for name in ("Laplace noise", "Gaussian noise", "subsampling")
    )
    assert laplace / gaussian == pytest.approx(worse, abs=6e-3)
    assert sample == pytest.approx(gaussian, rel=0.03)
    curves = {line.get_label(): line for line in paper.mechanisms_by_rate(prob=prob).get_lines()}
    rates, laplace = curves["Laplace noise"].get_data()
    ratio = laplace / curves["Gaussian noise"].get_ydata()
    assert np.interp(0.1, rates, ratio) == pytest.approx(worse, abs=6e-3)
    assert (ratio[rates > 0.016] > 1).all()
    assert (np.diff(ratio[rates > 0.03]) < 0).all()  # the smaller the rate, the worse
    # but noise of scale 1 / (epsilon n) = 0.1 and more leaves nothing
    ends = 1 / (1 + 1000 * 2 * 0.1**2 / (prob * (1 - prob)))
    np.testing.assert_array_equal(laplace == 0, rates < ends)


def test_figure_7_the_sample_lies_below_and_rises_up_to_a_point():
    sample, bound = (line.get_ydata() for line in paper.sample_and_small_database().get_lines())
    assert (sample <= bound * (1 + 1e-12)).all()
    highest = int(np.argmax(sample))
    assert 0 < highest < sample.size // 2
    assert sample[-1] == pytest.approx(bound[-1])


def test_figures_of_the_paper_refuse_what_they_cannot_draw():
    with pytest.raises(InputTypeError, match="noise must be GaussianNoise or LaplaceNoise"):
        paper.noise_by_probability(sp.Subsampling)
    with pytest.raises(InvalidInputError, match="n must be"):
        paper.sample_and_small_database(0)
