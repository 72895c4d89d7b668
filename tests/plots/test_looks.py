"""Every figure as its reader meets it: no text on another, names at axes, one palette."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from figures import GALLERY, SHOWN, drawn, of_the_gallery
from looks import problems

from edp_bayes import plots
from edp_bayes.plots import style

mpl.use("agg")
SCRIPTS = sorted(GALLERY.glob("*.py"))
# Of scripts that fit a model; the others stay quick.
LONG = {
    "01_privacy_curve",
    "02_with_and_without",
    "03_riskiest",
    "04_total_risk",
    "09_property_query",
    "10_noise",
    "11_more_databases",
    "13_rare_properties",
}


@pytest.fixture(autouse=True)
def plain_matplotlib():
    with mpl.rc_context(mpl.rcParamsDefault):
        mpl.use("agg")
        yield
    plt.close("all")


@pytest.mark.full
@pytest.mark.parametrize("name", SHOWN)
def test_a_figure_can_be_read(name):
    assert problems(drawn(name)) == []


@pytest.mark.parametrize(
    "script",
    [pytest.param(s, marks=[pytest.mark.full] * (s.stem in LONG), id=s.stem) for s in SCRIPTS],
)
def test_the_gallery_can_be_read(script: Path):
    figures = of_the_gallery(script)
    assert figures
    assert [found for figure in figures for found in problems(figure)] == []


def test_every_plot_is_among_them():
    named = {name.split(",")[0] for name in SHOWN}
    assert set(plots.__all__) <= named


def test_the_style_ends_with_the_figure():
    before = dict(mpl.rcParams)
    drawn("plot_delta")
    drawn("gaussian_noise")
    assert dict(mpl.rcParams) == before


def test_a_backend_that_a_figure_chooses_goes_on_showing_figures():
    before = mpl.is_interactive()
    try:
        with style.context():
            mpl.interactive(True)  # as the first figure of a notebook does
        assert mpl.is_interactive()
    finally:
        mpl.interactive(before)


def test_the_sheet_for_notebooks_is_the_style_of_the_figures():
    with plt.style.context("edp_bayes.plots.figures"):
        settings = dict(mpl.rcParams)
    with style.context():
        assert dict(mpl.rcParams) == settings
    colours = settings["axes.prop_cycle"].by_key()["color"]
    assert colours == list(style.COLOURS)
    assert settings["axes.titlesize"] == style.TITLE_SIZE
    assert settings["axes.labelsize"] == style.LABEL_SIZE
    assert settings["xtick.labelsize"] == settings["ytick.labelsize"] == style.TICK_SIZE
    assert settings["legend.fontsize"] == style.LEGEND_SIZE


def test_a_dark_style_of_the_user_hides_nothing():
    with plt.style.context("dark_background"):
        figure = drawn("plot_delta")
        figure.canvas.draw()
        assert mpl.colors.to_hex(figure.get_facecolor()) == "#ffffff"
        ax = figure.axes[0]
        words = [*figure.legends[0].get_texts(), ax.title, *ax.get_xticklabels()]
        assert {mpl.colors.to_hex(text.get_color()) for text in words} == {"#000000"}


def test_individuals_of_one_risk_share_a_row_that_says_how_many():
    figure = drawn("plot_individuals")
    texts = [text.get_text() for text in figure.findobj(mpl.text.Text)]
    assert sum("alike" in text for text in texts) == 1
    assert any(text.endswith("\nand 3 alike") for text in texts)
    assert sum(text.startswith("client") for text in texts) == 3


def test_numbers_are_written_in_full():
    figure = drawn("plot_past")
    series = figure.axes[0]
    labels = [text.get_text() for text in series.get_yticklabels()]
    assert all(label.endswith("×10⁶") for label in labels if label != "0")
    assert next(text.get_text() for text in series.get_xticklabels()) == "2020-03"


@pytest.mark.parametrize(
    ("draw", "problem"),
    [
        (lambda ax: ax.text(0.5, 0.5, "one") and ax.text(0.52, 0.5, "other"), "texts overlap"),
        (lambda ax: ax.text(2.0, 0.5, "far away"), "leaves the figure"),
        (lambda ax: ax.plot([0, 1], [0, 1], color="#d62728"), "colour #d62728"),
        (lambda ax: ax.plot([0, 1], [1, 0], color="#D55E00"), "have one style"),
        (lambda ax: ax.legend(loc="center"), "a legend lies on the axes"),
        (lambda ax: ax.set_xlabel(""), "numbers without a name at the x axis"),
        (lambda ax: ax.plot([0, 1], [1e7, 3e7], color="k", ls=":"), "offset at the y axis"),
    ],
)
def test_what_is_wrong_is_found(draw, problem):
    figure, ax = plt.subplots(layout="none")
    ax.plot([0, 1], [0, 1], color=style.COLOURS[0], label="line")
    ax.set(xlabel="x", ylabel="y", title="Title")
    assert problems(figure) == []
    draw(ax)
    assert any(problem in found for found in problems(figure))


def test_lines_that_end_together_have_a_legend_outside():
    with style.context():
        _, ax = plt.subplots(layout="constrained")
        for k in range(9):
            ax.plot([0, 1], [k, 1.0], label=f"line {k}", color=style.COLOURS[0])
        style.label_lines(ax)
    assert ax.get_legend() is not None
    assert not ax.texts


def test_plain_ticks_leave_dates_and_logarithms():
    with style.context():
        _, (dates, log) = plt.subplots(1, 2)
        dates.plot(np.arange("2020-01", "2020-09", dtype="datetime64[M]"), np.arange(8))
        log.loglog([1, 1e8], [1, 1e8])
        for ax in (dates, log):
            style.plain_ticks(ax)
    assert isinstance(dates.xaxis.get_major_formatter(), mpl.dates.AutoDateFormatter)
    assert isinstance(log.xaxis.get_major_formatter(), mpl.ticker.LogFormatter)
