"""Five figures beside pictures of how they should look.

Pictures are made by `python tests/plots/test_reference.py`.
Fonts come with matplotlib. Drawing one figure again moves it by less than 3 of 255, and another
style of a line, another colour or title by 8 and more; the tolerance lies between.
"""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from figures import drawn
from matplotlib.testing.compare import compare_images

PICTURES = Path(__file__).parent / "reference"
NAMES = ("plot_delta", "plot_density", "plot_individuals", "plot_iso_curves", "gaussian_noise")
RESOLUTION = 60  # a picture has 10 to 20 kB
TOLERANCE = 4.0  # root mean square of differences, of 255


def draw(name, path, change=None):
    """Draw a figure into a file, changed or not, whatever the user's configuration."""
    mpl.use("agg")
    with mpl.rc_context(mpl.rcParamsDefault):
        figure = drawn(name)
        if change is not None:
            change(figure)
        figure.savefig(path, dpi=RESOLUTION, metadata={"Software": None})


@pytest.fixture(autouse=True)
def no_figure_stays():
    yield
    plt.close("all")


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_a_figure_looks_as_before(name, tmp_path):
    draw(name, tmp_path / f"{name}.png")
    expected = PICTURES / f"{name}.png"
    difference = compare_images(expected, tmp_path / f"{name}.png", TOLERANCE)
    assert difference is None, difference


def restyled(figure):
    figure.axes[0].get_lines()[0].set_linestyle(":")


def recoloured(figure):
    for line in figure.axes[0].get_lines()[:2]:
        line.set_color("#d62728")


def renamed(figure):
    figure.axes[0].set_title("Another title")


@pytest.mark.parametrize(
    ("name", "change"),
    [("plot_iso_curves", restyled), ("gaussian_noise", recoloured), ("plot_density", renamed)],
)
def test_a_change_is_seen(name, change, tmp_path):
    draw(name, tmp_path / "changed.png", change)
    expected = PICTURES / f"{name}.png"
    assert compare_images(expected, tmp_path / "changed.png", TOLERANCE) is not None


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for each in NAMES:
        draw(each, PICTURES / f"{each}.png")
